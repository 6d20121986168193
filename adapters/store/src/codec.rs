//! Rows as columns: the one place that knows the layout of a job's state and of a concurrent run in a table.
//!
//! A value that is searched or guarded has a column of its own. A firing is never searched by its parts, so it is one short
//! text, `due start trigger attempt policy`, which a person can read in a database shell.

use carillon_domain::firing::{
    CancelledBy, ConcurrentRun, Firing, FiringKey, Held, JobState, LastEnd, Pause, Phase, Waiting,
};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::RowKey;
use carillon_domain::run::{Status, Trigger};
use carillon_domain::time::Timestamp;

/// The value whose name is `text`.
pub(crate) fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T, String> {
    all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| format!("\"{text}\" is not known here"))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().flat_map(digits).for_each(|digit| text.push(digit));
    text
}

/// A row of `job_state` but for its place in the indexes on the partition and the executor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StateColumns {
    pub id: u64,
    pub claim_at: Option<i64>,
    pub version: u64,
    pub generation: u64,
    pub anchor_at: i64,
    pub cursor_at: i64,
    pub armed: Option<Firing>,
    pub manual: Option<Firing>,
    pub manual_run: Option<[u8; 16]>,
    pub last_manual_at: Option<i64>,
    pub catch_up_until: Option<i64>,
    pub held: HeldColumns,
    pub pause_since: Option<i64>,
    pub pause_until: Option<i64>,
    pub pause_reason: Option<String>,
    pub cancel: Option<CancelledBy>,
    pub deleted: bool,
    /// See [`end_code`]; 0 before the first run ended.
    pub last_status: u8,
    /// 0 while the job is not in trouble.
    pub troubled_since: i64,
}

/// The held firing, in both tables: all `NULL` while Idle, `started_at` while Prepared too.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HeldColumns {
    pub firing: Option<Firing>,
    pub run: Option<[u8; 16]>,
    pub session: Option<u64>,
    pub started_at: Option<i64>,
    pub fencing_token: u64,
}

/// A row of `concurrent_run`. While no session holds it, `waiting` is the firing that waits and `waiting_run` its id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConcurrentColumns {
    pub job_id: u64,
    pub due_at: i64,
    pub trigger: Trigger,
    pub claim_at: Option<i64>,
    pub version: u64,
    pub waiting: Option<Firing>,
    pub waiting_run: Option<[u8; 16]>,
    pub held: HeldColumns,
    pub cancel: Option<CancelledBy>,
    pub withdrawn: bool,
}

/// The 16 bytes of a run id, whose order is that of the id.
pub(crate) fn run_bytes(run: RunId) -> [u8; 16] {
    let (high, low) = run.parts();
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}

/// Reads back what [`run_bytes`] wrote.
pub(crate) fn run_from(bytes: [u8; 16]) -> RunId {
    let number = u128::from_be_bytes(bytes);
    RunId::from_parts((number >> 64) as u64, number as u64)
}

/// Reads the name of a trigger.
pub(crate) fn trigger_from(text: &str) -> Result<Trigger, String> {
    named(&Trigger::ALL, Trigger::as_str, text)
}

/// A row by what identifies it: a job's own has neither a due time nor a trigger.
pub(crate) fn row_key(job: JobId, due_at: Option<i64>, trigger: Option<&str>) -> Result<RowKey, String> {
    let (Some(due_at), Some(trigger)) = (due_at, trigger) else { return Ok(RowKey::Job(job)) };
    let due_at = Timestamp::from_ms(due_at);
    Ok(RowKey::Concurrent(FiringKey { job, due_at, trigger: trigger_from(trigger)? }))
}

/// The name in the column.
pub(crate) const fn cancel_name(cancel: CancelledBy) -> &'static str {
    match cancel {
        CancelledBy::Person => "person",
        CancelledBy::NewerFiring => "newer_firing",
    }
}

/// Reads the name of who cancelled a run.
pub(crate) fn cancel_from(text: &str) -> Result<CancelledBy, String> {
    named(&[CancelledBy::Person, CancelledBy::NewerFiring], cancel_name, text)
}

/// The outcome of the last run as the number in the column `last_status`: one byte, so a row keeps its length.
pub(crate) const fn end_code(status: Status) -> u8 {
    match status {
        Status::Running | Status::Skipped => 0,
        Status::Succeeded => 1,
        Status::Failed => 2,
        Status::TimedOut => 3,
        Status::Cancelled => 4,
        Status::Lost => 5,
    }
}

/// Reads back what [`end_code`] made of a run's end. A number that a newer binary wrote says nothing.
pub(crate) fn end_status(code: u8) -> Option<Status> {
    Status::ALL.into_iter().find(|status| code != 0 && end_code(*status) == code)
}

/// A firing as the text of a column.
pub(crate) fn firing_text(firing: Firing) -> String {
    let policy = if firing.misfire_exempt { "settled" } else { "open" };
    let (due, start) = (firing.due_at.as_ms(), firing.start_at.as_ms());
    format!("{due} {start} {} {} {policy}", firing.trigger.as_str(), firing.attempt)
}

/// Reads back what [`firing_text`] wrote.
pub(crate) fn firing_from(text: &str) -> Result<Firing, String> {
    let bad = || format!("\"{text}\" is not a firing");
    let mut words = text.split(' ');
    let mut word = || words.next().ok_or_else(bad);
    let firing = Firing {
        due_at: Timestamp::from_ms(word()?.parse().map_err(|_| bad())?),
        start_at: Timestamp::from_ms(word()?.parse().map_err(|_| bad())?),
        trigger: trigger_from(word()?)?,
        attempt: word()?.parse().map_err(|_| bad())?,
        misfire_exempt: match word()? {
            "settled" => true,
            "open" => false,
            _ => return Err(bad()),
        },
    };
    Ok(firing)
}

impl HeldColumns {
    fn of(phase: &Phase) -> Self {
        phase.held().map_or_else(Self::default, |held| Self {
            firing: Some(held.firing),
            run: Some(run_bytes(held.run)),
            session: Some(held.session.as_u64()),
            started_at: held.started_at.map(Timestamp::as_ms),
            fencing_token: held.fencing_token,
        })
    }

    /// The phase that they stand for.
    pub(crate) fn phase(&self) -> Phase {
        let (Some(firing), Some(run), Some(session)) = (self.firing, self.run, self.session) else {
            return Phase::Idle;
        };
        let held = Held {
            firing,
            run: run_from(run),
            session: SessionId::from_random(session),
            started_at: self.started_at.map(Timestamp::from_ms),
            fencing_token: self.fencing_token,
        };
        if held.started_at.is_some() { Phase::Executing(held) } else { Phase::Prepared(held) }
    }
}

fn waiting_from(firing: Option<Firing>, run: Option<[u8; 16]>) -> Option<Waiting> {
    firing.map(|firing| Waiting { run: run.map(run_from), firing })
}

impl StateColumns {
    pub fn of(state: &JobState) -> Self {
        let pause = state.pause.as_ref();
        Self {
            id: state.id.0,
            claim_at: state.claim_at().map(Timestamp::as_ms),
            version: state.version,
            generation: state.generation,
            anchor_at: state.anchor_at.as_ms(),
            cursor_at: state.cursor.as_ms(),
            armed: state.armed,
            manual: state.manual.map(|manual| manual.firing),
            manual_run: state.manual.and_then(|manual| manual.run).map(run_bytes),
            last_manual_at: state.last_manual_at.map(Timestamp::as_ms),
            catch_up_until: state.catch_up_until.map(Timestamp::as_ms),
            held: HeldColumns::of(&state.phase),
            pause_since: pause.map(|pause| pause.since.as_ms()),
            pause_until: pause.and_then(|pause| pause.until).map(Timestamp::as_ms),
            pause_reason: pause.and_then(|pause| pause.reason.clone()),
            cancel: state.cancel,
            deleted: state.deleted,
            last_status: state.last_end.map_or(0, |end| end_code(end.status)),
            troubled_since: state.last_end.and_then(|end| end.troubled_since).map_or(0, Timestamp::as_ms),
        }
    }

    pub fn state(self) -> JobState {
        let pause = self.pause_since.map(|since| Pause {
            since: Timestamp::from_ms(since),
            until: self.pause_until.map(Timestamp::from_ms),
            reason: self.pause_reason,
        });
        JobState {
            id: JobId(self.id),
            version: self.version,
            generation: self.generation,
            anchor_at: Timestamp::from_ms(self.anchor_at),
            cursor: Timestamp::from_ms(self.cursor_at),
            phase: self.held.phase(),
            armed: self.armed,
            manual: waiting_from(self.manual, self.manual_run),
            last_manual_at: self.last_manual_at.map(Timestamp::from_ms),
            catch_up_until: self.catch_up_until.map(Timestamp::from_ms),
            pause,
            cancel: self.cancel,
            deleted: self.deleted,
            last_end: end_status(self.last_status).map(|status| LastEnd {
                status,
                troubled_since: Some(self.troubled_since).filter(|at| *at != 0).map(Timestamp::from_ms),
            }),
        }
    }
}

impl ConcurrentColumns {
    pub fn of(row: &ConcurrentRun) -> Self {
        Self {
            job_id: row.key.job.0,
            due_at: row.key.due_at.as_ms(),
            trigger: row.key.trigger,
            claim_at: row.claim_at().map(Timestamp::as_ms),
            version: row.version,
            waiting: row.waiting.map(|waiting| waiting.firing),
            waiting_run: row.waiting.and_then(|waiting| waiting.run).map(run_bytes),
            held: HeldColumns::of(&row.phase),
            cancel: row.cancel,
            withdrawn: row.withdrawn,
        }
    }

    pub fn row(self) -> ConcurrentRun {
        ConcurrentRun {
            key: FiringKey { job: JobId(self.job_id), due_at: Timestamp::from_ms(self.due_at), trigger: self.trigger },
            version: self.version,
            phase: self.held.phase(),
            waiting: waiting_from(self.waiting, self.waiting_run),
            cancel: self.cancel,
            withdrawn: self.withdrawn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(started_at: Option<Timestamp>) -> Held {
        Held {
            firing: Firing::regular(Timestamp::from_ms(7)).next_attempt(Timestamp::from_ms(9)),
            run: RunId::drawn(SessionId::from_random(3), 4),
            session: SessionId::from_random(3),
            started_at,
            fencing_token: 6,
        }
    }

    #[test]
    fn a_state_survives_its_columns() {
        let idle = JobState {
            id: JobId(9),
            version: 1 << 60,
            generation: 3,
            anchor_at: Timestamp::from_ms(1),
            cursor: Timestamp::from_ms(2),
            phase: Phase::Idle,
            armed: Some(Firing::regular(Timestamp::from_ms(7))),
            manual: Some(Waiting { run: None, firing: Firing::manual(Timestamp::from_ms(8)) }),
            last_manual_at: Some(Timestamp::from_ms(8)),
            catch_up_until: Some(Timestamp::from_ms(10)),
            pause: Some(Pause { since: Timestamp::from_ms(3), until: None, reason: Some("tired".into()) }),
            cancel: None,
            deleted: false,
            last_end: None,
        };
        let prepared = JobState { phase: Phase::Prepared(held(None)), pause: None, ..idle.clone() };
        let executing = JobState {
            phase: Phase::Executing(held(Some(Timestamp::from_ms(11)))),
            cancel: Some(CancelledBy::NewerFiring),
            deleted: true,
            armed: None,
            last_end: Some(LastEnd { status: Status::Lost, troubled_since: Some(Timestamp::from_ms(12)) }),
            ..idle.clone()
        };
        for state in [idle, prepared, executing] {
            assert_eq!(StateColumns::of(&state).state(), state);
        }
    }

    #[test]
    fn a_firing_survives_its_text() {
        for firing in [held(None).firing, Firing::manual(Timestamp::from_ms(-8))] {
            for firing in [firing, Firing { misfire_exempt: !firing.misfire_exempt, ..firing }] {
                assert_eq!(firing_from(&firing_text(firing)), Ok(firing));
            }
        }
        for text in ["", "7 9 schedule 2", "7 9 schedule 2 perhaps", "7 x schedule 2 open", "7 9 never 2 open"] {
            assert!(firing_from(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_active_row_survives_its_columns() {
        let key = FiringKey { job: JobId(1), due_at: Timestamp::from_ms(7), trigger: Trigger::Manual };
        let phase = Phase::Executing(held(Some(Timestamp::from_ms(8))));
        let row =
            ConcurrentRun { key, version: 4, phase, waiting: None, cancel: Some(CancelledBy::Person), withdrawn: true };
        assert_eq!(ConcurrentColumns::of(&row).row(), row);
    }

    #[test]
    fn run_bytes_keep_the_order_of_ids() {
        let session = SessionId::from_random(1);
        assert!(run_bytes(RunId::drawn(session, 1)) < run_bytes(RunId::drawn(session, 256)));
        assert_eq!(run_from(run_bytes(RunId::drawn(session, 256))), RunId::drawn(session, 256));
    }
}
