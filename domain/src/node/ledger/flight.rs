//! The calls in flight. A manual run keeps its id, so it may be in two calls of a kind: its row went back and was claimed again.
//! So a call about rows is remembered with their versions, and its answer counts only for the claim that it was sent for.

use std::collections::BTreeMap;

use crate::id::{RunId, SessionId};
use crate::node::call::CallId;
use crate::node::ledger::stealing::StealPlan;
use crate::node::port::RunRef;
use crate::time::{BootTime, Timestamp};

/// A claim in flight.
#[derive(Debug, Clone, Hash)]
pub(in crate::node) struct SentClaim {
    pub runs: Vec<RunId>,
    /// Places kept for those that may start in the same commit.
    pub places: usize,
    /// The plan to steal; `None` in this node's own partitions.
    pub plan: Option<StealPlan>,
}

/// The node's memory of a call in flight.
#[derive(Debug, Clone, Hash)]
pub(in crate::node) enum Sent {
    Heartbeat { at: BootTime },
    Peek { at: BootTime },
    Claim(SentClaim),
    Start(Vec<RunRef>),
    Finish(Vec<RunId>),
    Settle(Vec<RunRef>),
    Release(Vec<RunRef>),
    WriteBack { until: Timestamp, runs: Vec<RunRef>, last: bool },
    ListHeld,
    Expire(SessionId),
    Sweep { session: SessionId, limit: usize },
    Close,
}

/// All calls in flight.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Flight {
    calls: BTreeMap<CallId, Sent>,
    numbered: u64,
}

impl Flight {
    /// A call goes out; answers its number.
    pub fn send(&mut self, sent: Sent) -> CallId {
        self.numbered += 1;
        let id = CallId(self.numbered);
        self.calls.insert(id, sent);
        id
    }

    /// A call was answered. `None` where no such call is in flight.
    pub fn take(&mut self, id: CallId) -> Option<Sent> {
        self.calls.remove(&id)
    }

    fn any(&self, is_it: impl Fn(&Sent) -> bool) -> bool {
        self.calls.values().any(is_it)
    }

    pub fn beats(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::Heartbeat { .. }))
    }

    pub fn peeks(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::Peek { .. }))
    }

    pub fn settles(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::Settle(_)))
    }

    pub fn releases(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::Release(_)))
    }

    pub fn writes_back(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::WriteBack { .. }))
    }

    pub fn lists_held(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::ListHeld))
    }

    pub fn claim(&self) -> Option<&SentClaim> {
        self.calls.values().find_map(|sent| if let Sent::Claim(claim) = sent { Some(claim) } else { None })
    }

    /// The session that is being ended or swept.
    pub fn sweeps(&self) -> Option<SessionId> {
        self.calls.values().find_map(|sent| match sent {
            Sent::Expire(session) | Sent::Sweep { session, .. } => Some(*session),
            _ => None,
        })
    }

    /// Whether an answer may tell that runs have started or are recorded.
    pub fn may_tell_of_runs(&self) -> bool {
        self.any(|sent| matches!(sent, Sent::Claim(_) | Sent::Start(_) | Sent::Finish(_) | Sent::Settle(_)))
    }

    fn starting(&self) -> impl Iterator<Item = &Vec<RunRef>> {
        self.calls.values().filter_map(|sent| if let Sent::Start(runs) = sent { Some(runs) } else { None })
    }

    /// How many starts are in flight.
    pub fn starts(&self) -> usize {
        self.starting().count()
    }

    /// How many runs they carry.
    pub fn starting_runs(&self) -> usize {
        self.starting().map(Vec::len).sum()
    }

    /// How many finishes are in flight.
    pub fn finishes(&self) -> usize {
        self.calls.values().filter(|sent| matches!(sent, Sent::Finish(_))).count()
    }
}
