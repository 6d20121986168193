//! Calls to the store: each a task with a time limit, each answer a message. Errors become the machine's three failures.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::FinishRequest;
use carillon_domain::node::{BeatAnswer, Effect, Failure, Input, Lane, StoreAnswer};
use carillon_executors::executors::Executors;
use carillon_store::{ClaimRequest, Finished, Me, Output, PeekRequest, Store, StoreError};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{Message, Parts, boot};

/// How many rows of an ended session go back in one call.
const SWEEP_BATCH: usize = 1_000;

/// The way to the store.
pub(super) struct StoreCalls {
    store: Arc<dyn Store>,
    session: SessionId,
    executors: Executors,
    statement_timeout: Duration,
    heartbeat_timeout: Duration,
    send: mpsc::UnboundedSender<Message>,
}

impl StoreCalls {
    pub fn new(parts: &Parts, send: mpsc::UnboundedSender<Message>) -> Self {
        Self {
            store: parts.store.clone(),
            session: parts.session,
            executors: parts.executors.clone(),
            statement_timeout: parts.statement_timeout,
            heartbeat_timeout: parts.config.timing.heartbeat_timeout,
            send,
        }
    }

    /// Performs an effect that is one call to the store, to which heartbeats up to `acked` were acknowledged.
    pub fn perform(&self, effect: Effect, acked: u64) {
        let (store, session, limit) = (self.store.clone(), self.session, self.statement_timeout);
        let me = Me { session, acked };
        match effect {
            Effect::Heartbeat { seq, draining } => self.heartbeat(me, seq, draining),
            Effect::Peek { partitions, until } => {
                let request = PeekRequest { session, partitions, until, executors: self.offered() };
                self.call("peek", async move { store.peek(&request).await }, Input::Peeked);
            }
            Effect::Claim { partitions, until, runs, places, only } => {
                let executors = only.map_or_else(|| self.offered(), |executor| vec![executor]);
                let request = ClaimRequest { me, partitions, until, runs, places, executors };
                self.call("claim", async move { store.claim(&request).await }, Input::Claimed);
            }
            Effect::Start { lane, runs } => {
                let started = move |answer| Input::Started { lane, answer };
                self.call("start", async move { store.start(me, &runs).await }, started);
            }
            Effect::Settle(runs) => {
                self.call("settle", async move { store.settle(session, &runs).await }, Input::Settled);
            }
            Effect::Reset(runs) => {
                self.call("reset", async move { store.reset(session, &runs).await }, Input::Reset);
            }
            Effect::ListHeld => self.call("held", async move { store.held(session).await }, Input::Held),
            Effect::Expire { session, seq } => {
                self.sweep(session, async move { end_and_sweep(&*store, Some(me), (session, seq), limit).await });
            }
            Effect::Sweep { session } => {
                self.sweep(session, async move { sweep_all(&*store, session, limit).await });
            }
            // The loop performs these itself.
            Effect::RenewKeeper { .. }
            | Effect::Spawn { .. }
            | Effect::Stop { .. }
            | Effect::Finish { .. }
            | Effect::Forget(_)
            | Effect::Drained
            | Effect::SelfKill(_) => {}
        }
    }

    /// The executors that the node has now.
    fn offered(&self) -> Vec<String> {
        self.executors.offered().keys().cloned().collect()
    }

    /// Writes finishes, each with what its run printed; heartbeats up to `acked` were acknowledged.
    pub fn finish(&self, lane: Lane, requests: Vec<FinishRequest>, outputs: &BTreeMap<RunId, Output>, acked: u64) {
        let (store, me, executors) = (self.store.clone(), Me { session: self.session, acked }, self.offered());
        let with_output = |request: FinishRequest| {
            let output = outputs.get(&request.at.run).cloned().unwrap_or_default();
            Finished { request, output }
        };
        let runs: Vec<Finished> = requests.into_iter().map(with_output).collect();
        let finished = move |answer| Input::Finished { lane, answer };
        self.call("finish", async move { store.finish(me, &runs, &executors).await }, finished);
    }

    /// Removes the session, which holds nothing any more.
    pub fn close(&self) {
        let (store, session, send, limit) =
            (self.store.clone(), self.session, self.send.clone(), self.statement_timeout);
        tokio::spawn(async move {
            if within("close_session", limit, store.close_session(session)).await.is_err() {
                // The others will find it silent and remove it.
                warn!("the session could not be removed");
            }
            let _ = send.send(Message::Closed);
        });
    }

    fn heartbeat(&self, me: Me, seq: u64, draining: bool) {
        let (store, send, limit) = (self.store.clone(), self.send.clone(), self.heartbeat_timeout);
        let sent = boot();
        tokio::spawn(async move {
            let answer = within("heartbeat", limit, store.heartbeat(me, seq, draining)).await;
            let answer = answer.map(BeatAnswer::from).map_err(Failure::from);
            let _ = send.send(Message::Input(Input::Beat { sent, answer }));
        });
    }

    fn sweep(&self, ended: SessionId, work: impl Future<Output = Result<usize, StoreError>> + Send + 'static) {
        let send = self.send.clone();
        tokio::spawn(async move {
            if let Err(error) = work.await {
                debug!(%ended, %error, "an ended session could not be swept yet");
                stop_if_unfit(&send, &error);
            }
            let _ = send.send(Message::Input(Input::Swept));
        });
    }

    fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
        input: impl FnOnce(StoreAnswer<T>) -> Input + Send + 'static,
    ) {
        let (send, limit) = (self.send.clone(), self.statement_timeout);
        tokio::spawn(async move {
            let answer = within(what, limit, call).await;
            if let Err(error) = &answer {
                stop_if_unfit(&send, error);
            }
            // A closed channel means that the engine has ended.
            let _ = send.send(Message::Input(input(answer.map_err(Failure::from))));
        });
    }
}

/// Ends a session if its heartbeat is still the one seen, and moves what it held back to Idle. `by` is who has found it silent,
/// if that is why ([`NodeStore::expire`](carillon_store::NodeStore::expire)).
pub(crate) async fn end_and_sweep(
    store: &dyn Store,
    by: Option<Me>,
    (ended, seq): (SessionId, u64),
    limit: Duration,
) -> Result<usize, StoreError> {
    match within("expire", limit, store.expire(by, ended, seq)).await? {
        true => sweep_all(store, ended, limit).await,
        false => Ok(0),
    }
}

/// Moves what an ended session held back to Idle.
async fn sweep_all(store: &dyn Store, ended: SessionId, limit: Duration) -> Result<usize, StoreError> {
    let mut swept = 0;
    loop {
        let rows = within("sweep", limit, store.sweep(ended, SWEEP_BATCH)).await?;
        swept += rows;
        if rows < SWEEP_BATCH {
            return Ok(swept);
        }
    }
}

/// A call with its time limit. What takes longer has an unknown outcome: it may still be applied.
async fn within<T>(
    what: &'static str,
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let error = match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => error,
        Err(_) => StoreError::Unknown(format!("no answer within {limit:?}")),
    };
    warn!(call = what, %error, "a call to the database failed");
    Err(error)
}

/// Without its lock row nobody can be kept out of a partition: the node must not go on.
fn stop_if_unfit(send: &mpsc::UnboundedSender<Message>, error: &StoreError) {
    if let StoreError::LockMissing(sentence) = error {
        let _ = send.send(Message::Unfit(sentence.clone()));
    }
}
