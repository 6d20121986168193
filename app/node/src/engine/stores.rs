//! Calls to the store: each a task with a time limit, each answer a message. Errors become the machine's three failures.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::node::call::{Call, CallFailure, CallId, CallKind};
use carillon_store::{Me, SessionBeat, SessionState, Store, StoreError, perform};
use tokio::sync::mpsc;
use tracing::warn;

use super::{Message, Parts};

/// How many rows of an ended session go back in one call.
const ROWS_PER_SWEEP: usize = 1_000;

/// The way to the store.
pub(super) struct StoreCalls {
    store: Arc<dyn Store>,
    statement_timeout: Duration,
    heartbeat_timeout: Duration,
    send: mpsc::UnboundedSender<Message>,
}

impl StoreCalls {
    pub fn new(parts: &Parts, send: mpsc::UnboundedSender<Message>) -> Self {
        Self {
            store: parts.store.clone(),
            statement_timeout: parts.statement_timeout,
            heartbeat_timeout: parts.config.timing.heartbeat_timeout,
            send,
        }
    }

    /// Makes a call; its answer comes back as a message.
    pub fn make(&self, id: CallId, call: Call) {
        let (store, send, kind) = (self.store.clone(), self.send.clone(), call.kind());
        let limit = if kind == CallKind::Heartbeat { self.heartbeat_timeout } else { self.statement_timeout };
        tokio::spawn(async move {
            let answer = within(kind.as_str(), limit, perform(&*store, &call)).await;
            // Without its lock row nobody can be kept out of a partition: the node must not go on.
            if let Err(StoreError::LockMissing(sentence)) = &answer {
                let _ = send.send(Message::Unfit(sentence.clone()));
            }
            // A closed channel means that the engine has ended.
            let _ = send.send(Message::Answered { id, kind, answer: answer.map_err(CallFailure::from) });
        });
    }
}

/// Ends a session that is certainly dead, as node `by`; `true` once it has ended. `false` where a heartbeat that it had sent came between,
/// or where a loss of commits is not accepted: nobody ends a session then.
pub async fn end_session(
    store: &dyn Store,
    by: SessionId,
    ended: SessionId,
    limit: Duration,
) -> Result<bool, StoreError> {
    let sessions = within("sessions", limit, store.sessions()).await?;
    let lives = |beat: &SessionBeat| beat.id == ended && beat.state != SessionState::Ended;
    match sessions.iter().map(|one| one.beat).find(lives) {
        None => Ok(true),
        Some(beat) => within("expire", limit, store.expire(Some(Me::new(by)), ended, beat.seq)).await,
    }
}

/// Ends a session that is certainly dead, if its heartbeat is still the one that was read. Moves its rows back to Idle; answers how
/// many.
pub async fn end_and_sweep(
    store: &dyn Store,
    (ended, seq): (SessionId, u64),
    limit: Duration,
) -> Result<usize, StoreError> {
    let mut swept = 0;
    if !within("expire", limit, store.expire(None, ended, seq)).await? {
        return Ok(swept);
    }
    loop {
        let rows = within("sweep", limit, store.sweep(ended, ROWS_PER_SWEEP)).await?;
        swept += rows;
        if rows < ROWS_PER_SWEEP {
            return Ok(swept);
        }
    }
}

/// A call with its time limit. What takes longer has an unknown outcome: it may still be applied.
async fn within<T>(
    call: &'static str,
    limit: Duration,
    calling: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let error = match tokio::time::timeout(limit, calling).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => error,
        Err(_) => StoreError::Unknown(format!("no answer within {limit:?}")),
    };
    warn!(call, %error, "a call to the database failed");
    Err(error)
}
