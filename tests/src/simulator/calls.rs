//! What a node asks of its store, as the server's engine does it: each a call with a time limit, each answer an input.

use carillon_domain::id::SessionId;
use carillon_domain::node::{BeatAnswer, Effect, Failure, Input};
use carillon_domain::time::BootTime;
use carillon_store::memory::innodb::Client;
use carillon_store::{ClaimRequest, Finished, Me, NodeStore, Output, PeekRequest};

/// What a call is about, so that a time limit can be told as its failure.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Open,
    Close,
    /// A person's.
    Control,
    /// A node's.
    Asked {
        /// Whether it is a heartbeat, which has a time limit of its own.
        beat: bool,
        /// What the node is told when no answer came in time.
        late: Input,
    },
}

/// What comes of a call.
pub(super) enum Done {
    Opened(Option<carillon_domain::time::Timestamp>),
    Input(Input),
    Closed,
    /// Whether the person got an answer that is one.
    Told(bool),
}

impl Call {
    /// How it ends when no answer came in time: it may still be applied.
    pub fn late(self) -> Done {
        match self {
            Call::Open => Done::Opened(None),
            Call::Close => Done::Closed,
            Call::Control => Done::Told(false),
            Call::Asked { late, .. } => Done::Input(late),
        }
    }

    pub fn of(effect: &Effect, sent: BootTime) -> Option<Self> {
        let late = effect.failed(Failure::Unknown, sent)?;
        Some(Call::Asked { beat: matches!(effect, Effect::Heartbeat { .. }), late })
    }
}

/// Performs an effect that is a call to the store.
pub(super) async fn perform(store: Client, me: Me, executors: Vec<String>, effect: Effect, sent: BootTime) -> Done {
    let session = me.session;
    Done::Input(match effect {
        Effect::Heartbeat { seq, draining } => {
            let answer = store.heartbeat(me, seq, draining).await;
            Input::Beat { sent, answer: answer.map(BeatAnswer::from).map_err(Failure::from) }
        }
        Effect::Peek { partitions, until } => {
            let request = PeekRequest { session, partitions, until, executors };
            Input::Peeked(store.peek(&request).await.map_err(Failure::from))
        }
        Effect::Claim { partitions, until, runs, places, only } => {
            let executors = only.map_or(executors, |executor| vec![executor]);
            let request = ClaimRequest { me, partitions, until, runs, places, executors };
            Input::Claimed(store.claim(&request).await.map_err(Failure::from))
        }
        Effect::Start { lane, runs } => {
            Input::Started { lane, answer: store.start(me, &runs).await.map_err(Failure::from) }
        }
        Effect::Settle(runs) => Input::Settled(store.settle(session, &runs).await.map_err(Failure::from)),
        Effect::Finish { lane, runs: requests } => {
            let finished = |request| Finished { request, output: Output::default() };
            let runs: Vec<Finished> = requests.into_iter().map(finished).collect();
            Input::Finished { lane, answer: store.finish(me, &runs, &executors).await.map_err(Failure::from) }
        }
        Effect::Reset(runs) => Input::Reset(store.reset(session, &runs).await.map_err(Failure::from)),
        Effect::ListHeld => Input::Held(store.held(session).await.map_err(Failure::from)),
        Effect::Expire { session, seq } => {
            // What could not be done now is asked for again after the next heartbeat.
            if store.expire(Some(me), session, seq).await == Ok(true) {
                sweep(&store, session).await;
            }
            Input::Swept
        }
        Effect::Sweep { session } => {
            sweep(&store, session).await;
            Input::Swept
        }
        Effect::Drained => {
            let _the_others_find_it_silent = store.close_session(session).await;
            return Done::Closed;
        }
        Effect::RenewKeeper { .. }
        | Effect::Spawn { .. }
        | Effect::Stop { .. }
        | Effect::Forget(_)
        | Effect::SelfKill(_) => Input::Tick,
    })
}

/// As the engine does it, batch after batch.
async fn sweep(store: &Client, session: SessionId) {
    const BATCH: usize = 1_000;
    while store.sweep(session, BATCH).await == Ok(BATCH) {}
}
