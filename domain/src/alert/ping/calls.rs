//! Which ends of runs call the monitor of their job, and which calls wait for a next attempt.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fact::{Ended, Fact, JobSubject, Subject, What};
use super::super::incident::Incident;
use super::super::notice::NoticeId;
use super::{PingCall, PingKind};
use crate::firing::FiringKey;
use crate::id::JobId;
use crate::run::Status;
use crate::time::Timestamp;

/// The call of a failure whose next attempt is still to come. If that attempt never comes, the failure was the last word of its firing,
/// and the call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCall {
    /// The firing.
    pub firing: FiringKey,
    /// The attempt that failed.
    pub attempt: u32,
    /// When the store looks whether the next attempt still waits.
    pub look_at: Timestamp,
    /// The call.
    pub call: PingCall,
}

/// The calls that wait, by job. A job without any is not in it.
pub type HeldCalls = BTreeMap<JobId, Vec<HeldCall>>;

/// The calls that follow from facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// Those that are made; each is one delivery.
    pub made: Vec<PingCall>,
    /// All calls that wait of each job for which that changed; an empty list for none.
    pub held: BTreeMap<JobId, Vec<HeldCall>>,
}

/// The jobs whose waiting calls these facts may touch. A run that succeeds at its first attempt touches none.
pub fn wanted_calls(facts: &[Fact]) -> BTreeSet<JobId> {
    let job = |fact: &Fact| {
        let Subject::Job(job) = &fact.subject else { return None };
        let touches = match &fact.what {
            What::Ended(ended) => ended.is_held_back() || ended.record.attempt > 1 || !ended.ran(),
            What::RetryDropped(_) | What::Gone | What::Seen { .. } => true,
            What::Judged(_) | What::Trouble(_) | What::Over(_) => false,
        };
        touches.then_some(job.id)
    };
    facts.iter().filter_map(job).collect()
}

/// The calls of monitors that follow from facts in their order. `held` has the calls that wait, of the jobs of [`wanted_calls`] and of
/// those whose look is due. A run that somebody or a newer firing ended calls nobody, and neither does an attempt that another follows.
pub fn calls(held: &HeldCalls, facts: &[Fact], now: Timestamp) -> Calls {
    let mut step = Step { now, held: held.clone(), made: Vec::new() };
    for fact in facts {
        if let Subject::Job(job) = &fact.subject {
            step.fact(job, &fact.what);
        }
    }
    let due = step.held.values_mut().flatten().filter(|one| one.look_at <= now);
    due.for_each(|one| one.look_at = now + Incident::LOOK_EVERY);
    let before = |job: &JobId| held.get(job).map_or(&[][..], Vec::as_slice);
    let changed = step.held.into_iter().filter(|(job, after)| before(job) != after.as_slice());
    Calls { made: step.made, held: changed.collect() }
}

struct Step {
    now: Timestamp,
    held: HeldCalls,
    made: Vec<PingCall>,
}

impl Step {
    fn fact(&mut self, job: &JobSubject, what: &What) {
        let failures_go_to = job.ping.as_ref().and_then(|ping| ping.url(PingKind::Failure));
        let to_current = |call: PingCall| Some(PingCall { url: failures_go_to?.to_owned(), ..call });
        match what {
            What::Ended(ended) => {
                let last_word = self.release(job.id, ended.firing()).filter(|_| ended.never_came());
                self.made.extend(last_word.and_then(to_current));
                self.ended(job, ended);
            }
            What::RetryDropped(firing) => {
                let last_word = self.release(job.id, *firing);
                self.made.extend(last_word.and_then(to_current));
            }
            // The job's definition is gone, so the address is the one that it had.
            What::Gone => {
                let last_words = self.release_all(job.id);
                self.made.extend(last_words);
            }
            What::Seen { .. } if failures_go_to.is_none() => drop(self.release_all(job.id)),
            What::Seen { .. } | What::Judged(_) | What::Trouble(_) | What::Over(_) => {}
        }
    }

    fn ended(&mut self, job: &JobSubject, ended: &Ended) {
        let record = &ended.record;
        let kind = match record.status {
            Status::Succeeded => PingKind::Success,
            Status::Failed | Status::TimedOut | Status::Lost => PingKind::Failure,
            Status::Running | Status::Cancelled | Status::Skipped => return,
        };
        let Some(url) = job.ping.as_ref().and_then(|ping| ping.url(kind)) else { return };
        let id = NoticeId::derived(&["ping", &job.id.to_string(), &record.id.to_string(), kind.as_str()]);
        let call = PingCall { id, job: job.id, run: record.id, kind, url: url.to_owned(), at: record.finished_at };
        match ended.retry_at.filter(|_| ended.is_held_back()) {
            None => self.made.push(call),
            Some(retry_at) => self.held.entry(job.id).or_default().push(HeldCall {
                firing: ended.firing(),
                attempt: record.attempt,
                look_at: retry_at.max(self.now) + Incident::LOOK_EVERY,
                call,
            }),
        }
    }

    fn release(&mut self, job: JobId, firing: FiringKey) -> Option<PingCall> {
        let held = self.held.get_mut(&job)?;
        let place = held.iter().position(|held| held.firing == firing)?;
        Some(held.remove(place).call)
    }

    fn release_all(&mut self, job: JobId) -> Vec<PingCall> {
        let held = self.held.get_mut(&job).map(std::mem::take).unwrap_or_default();
        held.into_iter().map(|held| held.call).collect()
    }
}
