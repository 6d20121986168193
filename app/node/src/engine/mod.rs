//! The engine: the one loop that performs what the node machine decides.
//!
//! It selects what happened, hands it to the machine with the time, and performs the effects; it decides nothing. Calls to
//! the store and runs are tasks of their own that come back as messages.

mod counters;
mod handle;
mod histogram;
mod publish;
mod runs;
mod stores;

pub use handle::{Ask, Counts, EngineHandle, LiveOutput, Readiness};
pub use histogram::Histogram;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{Answer, Call, CallFailure, CallId, CallKind};
use carillon_domain::node::{Config, Effect, Input, Node, SelfKillReason};
use carillon_domain::time::{BootTime, Timestamp};
use carillon_executors::executor::Exit;
use carillon_executors::registry::{ByName, Executors};
use carillon_keeper::{KeeperHandle, boottime_ms};
use carillon_store::Store;
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use crate::service_manager::ServiceManager;

use counters::{Counters, WHAT_TO_DO};
#[cfg(not(test))]
use handle::HandleParts;
#[cfg(test)]
pub(crate) use handle::HandleParts;
use publish::Publisher;
use runs::Running;
use stores::StoreCalls;

pub use stores::{end_and_sweep, end_session};

use crate::telemetry::Tracer;

/// The parts of an engine.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The helper process that holds the children.
    pub keeper: KeeperHandle,
    /// The executors; they may change meanwhile.
    pub executors: Executors,
    /// How long a call to the store may take.
    pub statement_timeout: Duration,
    /// The node's configuration.
    pub config: Config,
    /// This node's session, registered before.
    pub session: SessionId,
    /// This node's name.
    pub node: String,
    /// When the registration was sent: the session is trusted from then on.
    pub registered: BootTime,
    /// The database's time when the session was registered.
    pub utc: Timestamp,
    /// Notes runs for a collector of traces, where one is configured.
    pub tracer: Option<Tracer>,
}

/// How an engine ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// In good order: everything is given back or recorded, the session is removed.
    Drained,
    /// In good order as far as it went, because the database can be used no longer; a sentence says why.
    Unfit(String),
    /// It had to end itself (exit code 70).
    SelfKilled(SelfKillReason),
}

/// An order from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Stop claiming, give back what is prepared, wait for what runs.
    Drain,
    /// Cancel what runs.
    Now,
}

/// A message from a task of the engine.
enum Message {
    /// A call to the store was answered, or failed.
    Answered { id: CallId, kind: CallKind, answer: Result<Answer, CallFailure> },
    /// A run ended.
    Exited(RunId, Box<Exit>),
    /// The database lacks what keeps the nodes apart, as the sentence says: drain and end.
    Unfit(String),
}

/// The loop and what it holds.
pub struct Engine {
    node: Node,
    parts: Parts,
    handle: EngineHandle,
    ends: HandleParts,
    calls: StoreCalls,
    publisher: Publisher,
    messages: mpsc::UnboundedReceiver<Message>,
    send: mpsc::UnboundedSender<Message>,
    running: BTreeMap<RunId, Running>,
    /// The executors that the machine was told of last.
    offered: Arc<ByName>,
    counters: Counters,
    unfit: Option<String>,
    manager: ServiceManager,
}

/// How many messages are taken in before the counts are published again.
const MESSAGES_AT_ONCE: usize = 256;

impl Engine {
    /// An engine and the way to it. Nothing happens before [`Engine::run`].
    pub fn new(parts: Parts) -> (Self, EngineHandle) {
        let (handle, ends) = EngineHandle::new(parts.session, parts.node.clone(), parts.executors.clone());
        handle.limit_executing(parts.config.max_executing);
        let (send, messages) = mpsc::unbounded_channel();
        let calls = StoreCalls::new(&parts, send.clone());
        let publisher = Publisher::spawn(parts.store.clone(), handle.clone(), parts.statement_timeout);
        let node = Node::new(parts.config.clone(), parts.session, parts.utc, boot()).registered_at(parts.registered);
        let engine = Self {
            node,
            handle: handle.clone(),
            ends,
            calls,
            publisher,
            messages,
            send,
            running: BTreeMap::new(),
            offered: Arc::default(),
            counters: Counters::new(handle.clone()),
            unfit: None,
            manager: ServiceManager::default(),
            parts,
        };
        (engine, handle)
    }

    /// Tells the service manager how things stand. It is told by the loop itself: its freeze is the one that matters.
    pub fn reporting_to(self, manager: ServiceManager) -> Self {
        Self { manager, ..self }
    }

    /// Runs until drained or fenced. `shutdown` asks for the drain.
    pub async fn run(mut self, mut shutdown: mpsc::UnboundedReceiver<Shutdown>) -> End {
        let mut keeper_died = self.parts.keeper.died();
        let mut shutdown_open = true;
        let mut keeper_lives = true;
        self.feed(Input::Tick);
        loop {
            if let Some(end) = self.perform_all() {
                return end;
            }
            self.publish();
            let due = self.node.next_wake();
            let wake = due.since(boot());
            let input = tokio::select! {
                message = self.messages.recv() => message.map_or(Input::Tick, |message| self.take(message)),
                ask = self.ends.asks.recv() => match ask {
                    Some(Ask::Cancel(run)) => Input::CancelAsked(run),
                    Some(Ask::Look) | None => Input::RowsChanged,
                },
                order = shutdown.recv(), if shutdown_open => match order {
                    Some(Shutdown::Drain) => Input::Drain,
                    Some(Shutdown::Now) => Input::DrainNow,
                    None => { shutdown_open = false; Input::Tick }
                },
                _ = keeper_died.wait_for(Option::is_some), if keeper_lives => {
                    keeper_lives = false;
                    warn!("the keeper died; its runs are lost and this node ends");
                    Input::KeeperDied
                }
                () = tokio::time::sleep(wake) => Input::Tick,
            };
            tell_stall(boot().since(due));
            self.feed(input);
            // Runs end in crowds. The first one wakes this loop; the others go before it does.
            tokio::task::yield_now().await;
            self.take_waiting();
        }
    }

    /// Takes in what has gathered, so that one batch goes to the store instead of many.
    fn take_waiting(&mut self) {
        for _ in 0..MESSAGES_AT_ONCE {
            let Ok(message) = self.messages.try_recv() else { break };
            let input = self.take(message);
            self.feed(input);
        }
    }

    fn feed(&mut self, input: Input) {
        if matches!(input, Input::Drain | Input::DrainNow) {
            self.counters.drains();
            self.manager.stopping();
        }
        let offered = self.parts.executors.offered();
        if !Arc::ptr_eq(&offered, &self.offered) {
            self.node.handle(Input::Offers(offered.keys().cloned().collect()), boot());
            self.offered = offered;
        }
        let suspended_by = self.node.suspended_by();
        self.node.handle(input, boot());
        tell_lost_commits(suspended_by, self.node.suspended_by());
    }

    /// The input that a message is for the node.
    fn take(&mut self, message: Message) -> Input {
        match message {
            Message::Answered { id, kind, answer } => {
                self.counters.note(kind, &answer);
                if answer.is_ok() && matches!(kind, CallKind::Claim | CallKind::Start | CallKind::Finish) {
                    self.handle.committed();
                }
                if let Ok(Answer::Peek(peek)) = &answer {
                    self.publisher.wanted(&peek.wanted_outputs);
                }
                Input::Answered { id, answer }
            }
            Message::Exited(run, exit) => self.exited(run, *exit),
            Message::Unfit(sentence) => {
                if self.unfit.is_none() {
                    error!("this node ends: {sentence}");
                    self.unfit = Some(sentence);
                }
                Input::Drain
            }
        }
    }

    fn perform_all(&mut self) -> Option<End> {
        while let Some(effect) = self.node.poll() {
            match effect {
                Effect::SelfKill(reason) => return Some(End::SelfKilled(reason)),
                Effect::Drained => {
                    info!("everything is recorded or given back; the session is closed");
                    return Some(self.unfit.take().map_or(End::Drained, End::Unfit));
                }
                Effect::Call { id, call } => {
                    self.trace_ends(&call);
                    self.calls.make(id, call);
                }
                Effect::RenewKeeper { until } => self.parts.keeper.extend_deadline(until.as_ms()),
                Effect::Spawn { held, job } => self.spawn(held, job),
                Effect::Stop { run, reason } => self.stop(run, reason),
                Effect::Recorded(run) => {
                    self.handle.end_output(run);
                    if let Some(tracer) = &mut self.parts.tracer {
                        tracer.recorded(run);
                    }
                }
            }
        }
        None
    }

    /// A finish says how runs ended and when they were claimed, on the database's clock.
    fn trace_ends(&mut self, call: &Call) {
        if let (Some(tracer), Call::Finish { runs, .. }) = (&mut self.parts.tracer, call) {
            runs.iter().for_each(|ended| tracer.ended(ended.at.run, &ended.ending));
        }
    }

    /// Tells the outside how things stand.
    fn publish(&mut self) {
        self.handle.seen();
        self.manager.alive(boottime_ms());
        let (prepared, executing) = self.node.counts();
        self.counters.holds(prepared, executing, self.node.partitions());
        let readiness = self.counters.readiness(self.node.suspended_by());
        let manager = &self.manager;
        self.ends.readiness.send_if_modified(|known| {
            let changed = *known != readiness;
            if changed {
                manager.status(readiness.sentence());
            }
            *known = readiness;
            changed
        });
    }
}

/// A node that runs wakes within milliseconds.
const STALL: Duration = Duration::from_secs(1);

/// A node that ends for want of heartbeats may have had a database all the time, and no CPU.
fn tell_stall(late: Duration) {
    if late >= STALL {
        warn!("this node did not run for {late:.1?}: it was stopped, or the machine slept or was too busy");
    }
}

/// Once a window, not once a heartbeat.
fn tell_lost_commits(before: Option<LossWindow>, after: Option<LossWindow>) {
    match (before, after) {
        (None, Some(window)) => error!("{window}; {WHAT_TO_DO}"),
        (Some(_), None) => info!("the loss of commits was accepted: claims and starts go on"),
        (Some(_), Some(_)) | (None, None) => {}
    }
}

/// The boot clock as the machine wants it.
fn boot() -> BootTime {
    BootTime::from_ms(boottime_ms())
}
