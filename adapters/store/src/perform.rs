//! Calls of a node, performed: the one place where a call as data becomes a call of a store.

use carillon_domain::node::call::{Answer, Call};

use crate::{NodeStore, StoreError};

/// Performs one call of a node and answers it in its kind.
pub async fn perform<S: NodeStore + ?Sized>(store: &S, call: &Call) -> Result<Answer, StoreError> {
    Ok(match call {
        Call::Heartbeat { me, seq, draining } => Answer::Heartbeat(store.heartbeat(*me, *seq, *draining).await?),
        Call::Peek(request) => Answer::Peek(store.peek(request).await?),
        Call::Claim(request) => Answer::Claim(store.claim(request).await?),
        Call::Start { me, runs } => Answer::Start(store.start(*me, runs).await?),
        Call::Finish { me, runs, executors } => Answer::Finish(store.finish(*me, runs, executors).await?),
        Call::Settle { session, runs } => Answer::Settle(store.settle(*session, runs).await?),
        Call::Release { session, runs } => {
            store.release(*session, runs).await?;
            Answer::Released
        }
        Call::WriteBack(request) => Answer::WroteBack(store.write_back(request).await?),
        Call::ListHeld { session } => Answer::Held(store.list_held(*session).await?),
        Call::Expire { by, session, seq } => Answer::Expired(store.expire(Some(*by), *session, *seq).await?),
        Call::Sweep { session, limit } => Answer::Swept(store.sweep(*session, *limit).await?),
        Call::Close { session } => {
            store.close_session(*session).await?;
            Answer::Closed
        }
    })
}
