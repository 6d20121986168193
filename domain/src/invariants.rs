//! The invariants: what must always hold, as pure predicates over rows, records and live children.
//!
//! S1 to S9 are about safety: each must hold at every moment. L1 to L3 are about liveness: they must hold some time
//! after faults have ended. The tests, the simulator and the model checker call the predicates. A running server calls
//! only [`not_live_yet`], before each spawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::alert::{Delivery, DeliveryState, Notice, State};
use crate::firing::{Firing, FiringKey, Held, JobState, Phase, TransitionKind};
use crate::id::{JobId, RunId, SessionId};
use crate::job::{Job, OnLost};
use crate::node::Node;
use crate::run::{RunRecord, Status, Trigger};
use crate::time::{BootTime, Timestamp};

pub use crate::guard::Invariant;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant:?}: {sentence}")]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// The observed contradiction, as a sentence.
    pub sentence: String,
}

/// The result of every predicate.
pub type Verdict = Result<(), Violation>;

fn hold(holds: bool, invariant: Invariant, sentence: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Violation { invariant, sentence: sentence() }) }
}

/// S1 over all live children, each with its job. `may_overlap` tells whether a job allows overlap, or did when one of
/// these children was started.
pub fn one_live_run(live: impl IntoIterator<Item = (JobId, RunId)>, may_overlap: impl Fn(JobId) -> bool) -> Verdict {
    let mut seen: BTreeMap<JobId, RunId> = BTreeMap::new();
    for (job, run) in live {
        if let Some(before) = seen.insert(job, run) {
            hold(may_overlap(job), Invariant::S1, || format!("job {job} lives as run {before} and as run {run}"))?;
        }
    }
    Ok(())
}

/// S1 on one node, cheap enough for every spawn. `lives` tells whether the run has a child on this node already.
pub fn not_live_yet(run: RunId, lives: bool) -> Verdict {
    hold(!lives, Invariant::S1, || format!("run {run} lives already"))
}

/// S2 over all starts of one job, each with its firing and attempt.
pub fn starts_once(job: &Job, starts: impl IntoIterator<Item = (FiringKey, u32)>) -> Verdict {
    let once = job.on_lost == OnLost::Skip && job.retry.max_attempts <= 1;
    let mut seen = BTreeSet::new();
    for (key, attempt) in starts {
        hold(seen.insert((key, attempt)), Invariant::S2, || format!("attempt {attempt} of {key:?} started twice"))?;
        hold(!once || attempt == 1, Invariant::S2, || format!("{key:?} started again as attempt {attempt}"))?;
    }
    Ok(())
}

/// S3 over one live child of a live session. `row` is the phase of the row that holds the run, if there is one.
pub fn child_has_its_row(session: SessionId, run: RunId, row: Option<&Phase>) -> Verdict {
    let mine = |held: &Held| held.run == run && held.session == session;
    let holds = matches!(row, Some(Phase::Executing(held)) if mine(held));
    hold(holds, Invariant::S3, || format!("run {run} of session {session} lives, and its row says {row:?}"))
}

/// S4 over one write: only certain kinds of transition may take a Prepared firing from its holder.
pub fn prepared_is_kept(before: &Phase, after: Option<&Phase>, kind: TransitionKind) -> Verdict {
    let Phase::Prepared(held) = before else { return Ok(()) };
    let kept = matches!(after, Some(Phase::Prepared(now)) if now == held);
    let may_change = match kind {
        // Its holder or a fence.
        TransitionKind::Started
        | TransitionKind::StartedConcurrently
        | TransitionKind::Misfired
        | TransitionKind::Deferred
        | TransitionKind::Reset
        | TransitionKind::SweptUnstarted => true,
        // The run of that firing lives: its start was lost, and it is not to start again.
        TransitionKind::WrittenBack | TransitionKind::WrittenBackBeside => true,
        // An answered call. A manual run goes before a firing that was claimed ahead of its time.
        TransitionKind::Paused
        | TransitionKind::Updated
        | TransitionKind::Deleted
        | TransitionKind::CancelledUnstarted
        | TransitionKind::Triggered => true,
        TransitionKind::TriggerSkipped
        | TransitionKind::TriggeredConcurrently
        | TransitionKind::Resumed
        | TransitionKind::DeletedLater
        | TransitionKind::CancelRequested => false,
        TransitionKind::Claimed
        | TransitionKind::Rearmed
        | TransitionKind::Finished
        | TransitionKind::Retried
        | TransitionKind::FinishedDeleted
        | TransitionKind::SweptLost => false,
        TransitionKind::GivenUp => false,
    };
    hold(kept || may_change, Invariant::S4, || format!("run {} was prepared and was lost to {kind:?}", held.run))
}

/// S5 over one start. `before` is the job's row as the start found it.
pub fn starts_where_allowed(before: &JobState, trigger: Trigger, now: Timestamp) -> Verdict {
    let pause = before.pause.as_ref().filter(|pause| pause.until.is_none_or(|until| until > now));
    hold(!before.deleted, Invariant::S5, || format!("job {} started after it was deleted", before.id))?;
    let paused = pause.is_some() && trigger != Trigger::Manual;
    hold(!paused, Invariant::S5, || format!("job {} started while it was paused", before.id))
}

/// S5 over the time of one start: not early, and after the grace only if the firing is exempt from the misfire policy.
pub fn starts_in_time(job: &Job, firing: &Firing, now: Timestamp) -> Verdict {
    let Firing { due_at, start_at, misfire_exempt, .. } = *firing;
    hold(start_at <= now, Invariant::S5, || format!("what is due at {start_at} started at {now}"))?;
    let in_time = misfire_exempt || now.since(due_at) <= job.misfire.grace;
    hold(in_time, Invariant::S5, || format!("what was due at {due_at} started at {now}, after its grace"))
}

/// S6 over the history of one job.
pub fn recorded_once<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Verdict {
    let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for record in records {
        let key = (record.job, record.due_at, record.trigger, record.attempt);
        hold(ids.insert(record.id), Invariant::S6, || format!("run {} is recorded twice", record.id))?;
        hold(keys.insert(key), Invariant::S6, || format!("{key:?} is recorded twice"))?;
        let ended = record.status != Status::Running;
        let due_range = match record.count {
            0 => false,
            1 => record.first_due_at == record.due_at,
            _ => record.first_due_at < record.due_at && matches!(record.status, Status::Skipped | Status::Lost),
        };
        hold(ended && due_range, Invariant::S6, || format!("a record makes no sense: {record:?}"))?;
    }
    Ok(())
}

/// S7 over one write of a job's row.
pub fn row_goes_forward(before: &JobState, after: &JobState) -> Verdict {
    let id = after.id;
    hold(after.version > before.version, Invariant::S7, || {
        format!("job {id} went from version {} to {}", before.version, after.version)
    })?;
    never_decreases("the generation", before.generation, after.generation)?;
    never_decreases("the cursor", before.cursor, after.cursor)?;
    let token = |phase: &Phase| phase.held().map_or(0, |held| held.fencing_token);
    let fresh = token(&after.phase) <= after.version;
    hold(fresh, Invariant::S7, || format!("job {id} carries a token beyond its version"))
}

/// S7 over any other counter: the epoch of a lock, the sequence of a heartbeat, a fencing token.
pub fn never_decreases<T: PartialOrd + fmt::Debug>(what: &str, before: T, after: T) -> Verdict {
    hold(before <= after, Invariant::S7, || format!("{what} went from {before:?} back to {after:?}"))
}

/// S8 over one start.
pub fn starts_within_lease(lease_until: BootTime, now: BootTime) -> Verdict {
    hold(now < lease_until, Invariant::S8, || format!("a start at {now:?}, and the lease ended at {lease_until:?}"))
}

/// S8 over one sweep: when the rows of a session are swept, none of its children lives.
pub fn dead_before_sweep(session: SessionId, live: impl IntoIterator<Item = (SessionId, RunId)>) -> Verdict {
    let survivor = live.into_iter().find(|(of, _)| *of == session);
    hold(survivor.is_none(), Invariant::S8, || format!("session {session} is swept while {survivor:?} lives"))
}

/// S9 over one message about a fact. `happened` tells whether the fact is true.
pub fn told_with_reason(notice: &Notice, happened: bool) -> Verdict {
    hold(happened, Invariant::S9, || format!("a route is told of what did not happen: {notice:?}"))
}

/// S9 over one fact that a route asks for: how often the route was told of it.
pub fn told_once(fact: &impl fmt::Debug, times: usize) -> Verdict {
    hold(times <= 1, Invariant::S9, || format!("a route is told {times} times of {fact:?}"))
}

/// S9 over the messages of one route, in their order: no id comes twice, and each recovery closes an earlier alert of its own
/// incident. Behind a message that stands for many, a recovery may close one of those.
pub fn recoveries_follow<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> Verdict {
    let (mut ids, mut open, mut stands_for_many) = (BTreeSet::new(), BTreeSet::new(), false);
    for notice in notices {
        hold(ids.insert(notice.id), Invariant::S9, || format!("two messages have one id: {notice:?}"))?;
        match notice.state {
            _ if notice.folded > 0 => stands_for_many = true,
            State::Open => _ = open.insert(notice.thread),
            State::Recovered => {
                let follows = open.remove(&notice.thread) || stands_for_many;
                hold(follows, Invariant::S9, || format!("it is over and was never told: {notice:?}"))?;
            }
            State::Test => {}
        }
    }
    Ok(())
}

/// L1 over all rows, some time after faults and due times have ended.
pub fn all_idle<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Verdict {
    let held = phases.into_iter().find_map(Phase::held);
    hold(held.is_none(), Invariant::L1, || format!("a row is still held: {held:?}"))
}

/// L1 while due times go on: after faults have ended, no row stays claimable for longer than `patience`.
pub fn nothing_overdue<'a>(
    rows: impl IntoIterator<Item = &'a JobState>,
    patience: Duration,
    now: Timestamp,
) -> Verdict {
    let overdue = rows.into_iter().find(|row| row.claim_at().is_some_and(|at| now.since(at) > patience));
    hold(overdue.is_none(), Invariant::L1, || format!("at {now} a row is still to be claimed: {overdue:?}"))
}

/// L2 over one node: it has settled every run, whatever errors the store returned.
pub fn nothing_wedged(node: &Node) -> Verdict {
    let run = node.known_runs().next();
    hold(run.is_none(), Invariant::L2, || format!("the node still knows {run:?}"))
}

/// L3 over one fact that a route asks for, some time after faults have ended.
pub fn is_told(fact: &impl fmt::Debug, told: bool) -> Verdict {
    hold(told, Invariant::L3, || format!("nobody was told of {fact:?}"))
}

/// L3 over one delivery: how it stands, how often its receiver has heard it, and how often that refused it for good. Enough refusals end it.
pub fn has_arrived(delivery: u64, state: DeliveryState, heard: usize, refused: u32) -> Verdict {
    let is_over = match state {
        DeliveryState::Sent { .. } => heard > 0,
        DeliveryState::Dead { .. } => refused >= Delivery::MOST_REFUSALS,
        DeliveryState::Waiting { .. } | DeliveryState::Sending { .. } => false,
    };
    hold(is_over, Invariant::L3, || {
        format!("delivery {delivery} was heard {heard} times, refused for good {refused} times, and is {state:?}")
    })
}
