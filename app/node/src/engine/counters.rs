//! The engine's counters, and whether it can schedule.

use super::{EngineHandle, Histogram, Readiness};
use carillon_domain::firing::Held;
use carillon_domain::invariants::Violation;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{Answer, BeatAnswer, CallFailure, CallKind};
use carillon_domain::run::{Outcome, Status};
use carillon_domain::time::Timestamp;
use carillon_keeper::boottime_ms;
use carillon_store::{Clock, SystemClock};
use tracing::{error, warn};

/// For the person who reads of a [`Window`].
pub(super) const WHAT_TO_DO: &str = "nothing is claimed or started until somebody has looked at it and runs `carillon cluster \
     accept`; jobs with on_lost = skip that were due by then are recorded as lost, those with rerun start again";

/// A difference between the clocks from which on people are told.
const CLOCK_OFFSET_TOLD_MS: i64 = 1_000;

const FAILURES: [CallFailure; 3] = [CallFailure::RolledBack, CallFailure::Refused, CallFailure::Unknown];

/// The name of a failure in the metrics.
fn failure_kind(failure: CallFailure) -> &'static str {
    match failure {
        CallFailure::RolledBack => "retryable",
        CallFailure::Refused => "permanent",
        CallFailure::Unknown => "unknown",
    }
}

pub(super) struct Counters {
    /// Where the counts are kept, for all to see.
    handle: EngineHandle,
    trouble: Option<String>,
    registered: bool,
    draining: bool,
}

impl Counters {
    pub fn new(handle: EngineHandle) -> Self {
        let mut counts = handle.count();
        (counts.lags, counts.durations) = (Histogram::of_lags(), Histogram::of_durations());
        // A series that is there from the beginning has a rate from its first event on.
        counts.finished_total = Outcome::ALL.map(|outcome| (Status::from(outcome).as_str(), 0)).into();
        counts.store_errors_total = FAILURES.map(|kind| (failure_kind(kind), 0)).into();
        drop(counts);
        Self { handle, trouble: None, registered: false, draining: false }
    }

    pub fn started(&mut self, held: &Held) {
        let mut counts = self.handle.count();
        counts.started_total += 1;
        let Some(started_at) = held.started_at else { return };
        let lag_ms = u64::try_from(started_at.since(held.firing.start_at).as_millis()).unwrap_or(u64::MAX);
        counts.lags.add(lag_ms);
    }

    /// `lasted_ms`: of a run that could begin.
    pub fn finished(&mut self, status: Status, lasted_ms: Option<u64>) {
        let mut counts = self.handle.count();
        *counts.finished_total.entry(status.as_str()).or_default() += 1;
        if let Some(lasted_ms) = lasted_ms {
            counts.durations.add(lasted_ms);
        }
    }

    /// The runs that the node holds now.
    pub fn holds(&mut self, prepared: usize, executing: usize, partitions: &[u16]) {
        let mut counts = self.handle.count();
        (counts.prepared, counts.executing) = (prepared, executing);
        if counts.partitions != partitions {
            counts.partitions = partitions.to_vec();
        }
    }

    pub fn violated(&mut self, violation: &Violation) {
        self.handle.count().invariant_violations_total += 1;
        error!(%violation, "an invariant does not hold: this is a bug in Carillon");
    }

    /// The node drains from now on.
    pub fn drains(&mut self) {
        self.draining = true;
    }

    /// Watches the answers of the store go by: a database that fails makes the node not ready, one that answers again
    /// makes it ready.
    pub fn note(&mut self, kind: CallKind, answer: &Result<Answer, CallFailure>) {
        if answer.is_ok() {
            self.handle.count().database_heard_ms = boottime_ms();
        }
        match answer {
            Ok(Answer::Heartbeat(BeatAnswer::Alive { utc, .. })) => {
                self.compare_clocks(*utc);
                self.registered = true;
                self.trouble = None;
            }
            Ok(Answer::Heartbeat(BeatAnswer::WentBack)) => {
                let sentence = "the database went back in time and has forgotten this node's session";
                error!("{sentence}; {WHAT_TO_DO}");
                self.trouble = Some(sentence.into());
            }
            Ok(Answer::Heartbeat(BeatAnswer::Fenced)) => {
                self.trouble = Some("another node has ended this node's session".into());
            }
            Ok(_) => {}
            Err(failure) => self.failed(kind, *failure),
        }
    }

    fn failed(&mut self, kind: CallKind, failure: CallFailure) {
        let untaken = match kind {
            CallKind::Heartbeat => Some("this node's heartbeats"),
            CallKind::Claim => Some("claims"),
            CallKind::Start => Some("starts"),
            CallKind::Finish => Some("records of runs"),
            CallKind::Peek | CallKind::WriteBack | CallKind::Settle | CallKind::Release | CallKind::ListHeld => None,
            // They are about the sessions of others, or the node ends.
            CallKind::Expire | CallKind::Sweep | CallKind::Close => return,
        };
        if let Some(untaken) = untaken {
            self.trouble = Some(format!("the database does not take {untaken}"));
        }
        *self.handle.count().store_errors_total.entry(failure_kind(failure)).or_default() += 1;
    }

    /// Due times follow the database's clock, whatever this machine's says: told to people, and used for nothing.
    fn compare_clocks(&mut self, database: Timestamp) {
        let offset_ms = database.as_ms().saturating_sub(SystemClock.now().as_ms());
        let known_ms = std::mem::replace(&mut self.handle.count().clock_offset_ms, offset_ms);
        let (was_far, is_far) = (known_ms.abs() >= CLOCK_OFFSET_TOLD_MS, offset_ms.abs() >= CLOCK_OFFSET_TOLD_MS);
        if is_far && !was_far {
            warn!(offset_ms, "the database's clock differs from this machine's; due times follow the database's");
        }
    }

    /// `suspended_by`: the time in which commits were lost, until somebody accepts that.
    pub fn readiness(&self, suspended_by: Option<LossWindow>) -> Readiness {
        match &self.trouble {
            _ if self.draining => Readiness::NotReady("the node is draining".into()),
            Some(trouble) => Readiness::NotReady(trouble.clone()),
            None if !self.registered => Readiness::NotReady("the node is starting".into()),
            None => {
                suspended_by.map_or(Readiness::Ready, |window| Readiness::NotReady(format!("{window}; {WHAT_TO_DO}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::SessionId;
    use carillon_domain::time::Timestamp;
    use carillon_executors::registry::Executors;

    use super::*;

    #[test]
    fn a_node_that_withholds_says_since_when_and_what_to_do() {
        let executors = Executors::new(std::time::Duration::ZERO);
        let mut counters = Counters::new(EngineHandle::new(SessionId::from_random(1), "n1".into(), executors).0);
        let answer = Ok(Answer::Heartbeat(BeatAnswer::Alive { utc: Timestamp::EPOCH, peers: vec![], window: None }));
        counters.note(CallKind::Heartbeat, &answer);
        assert_eq!(counters.readiness(None), Readiness::Ready);
        let [from_at, until_at, noticed_at] = [3, 9, 8].map(Timestamp::from_secs);
        let Readiness::NotReady(why) = counters.readiness(Some(LossWindow { from_at, until_at, noticed_at })) else {
            panic!("ready although commits were lost")
        };
        for part in ["00:00:03.000Z", "00:00:09.000Z", "noticed at 1970-01-01T00:00:08.000Z", "carillon cluster accept"]
        {
            assert!(why.contains(part), "{why}");
        }
    }
}
