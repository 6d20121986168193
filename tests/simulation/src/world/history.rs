//! Past events that the invariants speak of, and that neither the store nor a node remembers.

use std::collections::BTreeMap;

use carillon_domain::firing::{FiringKey, Held};
use carillon_domain::id::JobId;
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::{Job, OnLost, Overlap};
use carillon_domain::run::Trigger;

/// The policies that some definition of a job has had.
#[derive(Debug, Clone, Copy, Default, Hash)]
struct Allowed {
    overlap: bool,
    repeat: bool,
}

/// The past events.
#[derive(Debug, Clone, Default, Hash)]
pub struct History {
    allowed: BTreeMap<JobId, Allowed>,
    /// The attempts of each firing that were started.
    starts: BTreeMap<FiringKey, Vec<u32>>,
    /// The newest fencing token of each job.
    tokens: BTreeMap<JobId, u64>,
}

impl History {
    /// From now on, or once more, this is the definition of the job.
    pub fn defined(&mut self, id: JobId, job: &Job) {
        let allowed = self.allowed.entry(id).or_default();
        allowed.overlap |= job.overlap == Overlap::Allow;
        allowed.repeat |= job.retry.max_attempts > 1 || job.on_lost == OnLost::Rerun;
    }

    /// Whether a definition of the job has ever allowed that runs overlap.
    pub fn may_overlap(&self, id: JobId) -> bool {
        self.allowed.get(&id).is_some_and(|allowed| allowed.overlap)
    }

    /// A run of the job starts: S2.
    pub fn started(&mut self, id: JobId, job: &Job, held: &Held) -> Verdict {
        let key = firing(id, held);
        let starts = self.starts.entry(key).or_default();
        starts.push(held.firing.attempt);
        let may_repeat = self.allowed.get(&id).is_some_and(|allowed| allowed.repeat);
        let repeating = Job { on_lost: OnLost::Rerun, ..job.clone() };
        let judged = if may_repeat { &repeating } else { job };
        must::starts_once(judged, starts.iter().map(|attempt| (key, *attempt)))
    }

    /// Whether this attempt of the firing was started.
    pub fn has_started(&self, held: &Held) -> bool {
        let is_it = |key: &FiringKey| {
            key.due_at == held.firing.due_at
                && (key.trigger == Trigger::Manual) == (held.firing.trigger == Trigger::Manual)
        };
        self.starts.iter().any(|(key, attempts)| is_it(key) && attempts.contains(&held.firing.attempt))
    }

    /// How many runs were started.
    pub fn count(&self) -> usize {
        self.starts.values().map(Vec::len).sum()
    }

    /// The job of which a firing that was due then has started.
    pub fn job_of(&self, held: &Held) -> Option<JobId> {
        self.starts.keys().find(|key| key.due_at == held.firing.due_at).map(|key| key.job)
    }

    /// A run of the job was given this fencing token: S7, unless those that it follows are lost.
    pub fn token(&mut self, id: JobId, token: u64, follows: bool) -> Verdict {
        let last = self.tokens.insert(id, token).unwrap_or(0);
        if follows { must::never_decreases("a fencing token", last + 1, token) } else { Ok(()) }
    }
}

/// The firing that a start is of, whatever the policy that let it through.
fn firing(job: JobId, held: &Held) -> FiringKey {
    let trigger = if held.firing.trigger == Trigger::Manual { Trigger::Manual } else { Trigger::Schedule };
    FiringKey { job, due_at: held.firing.due_at, trigger }
}
