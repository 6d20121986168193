//! The states of a batch, written with one UPDATE that names only what changes.
//!
//! The cost of such a statement grows with its columns. The server parses each out of the JSON, keeps the values of all rows, and copies
//! them. A transition changes few columns, and most of them alike in every row: to NULL, the session, or the time. So a column is in the
//! rows only if the rows differ in it. There are as few texts of the statement as transitions, and each connection prepares each once.

use std::fmt::Write as _;

use carillon_domain::firing::JobState;
use carillon_domain::guard::{Guard, enabled};
use mysql_async::Value;

use crate::codec::{StateColumns, cancel_name};
use crate::mysql::encoding::batch::{Batch, Cell, Column, ColumnType, batches, of_all, row, table};
use crate::mysql::encoding::prefix_encoding::PrefixEncoded;
use crate::tables::Write;

/// A row of `job_state` but for its partition, which never changes.
pub(in crate::mysql) struct StateRow<'a> {
    columns: StateColumns,
    executor: &'a str,
}

impl<'a> StateRow<'a> {
    pub fn of(state: &JobState, executor: &'a str) -> Self {
        Self { columns: StateColumns::of(state), executor }
    }

    /// The values of [`STATE`].
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        (0..STATE.len()).map(move |column| self.cell(column))
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        let StateRow { columns: row, executor } = self;
        match column {
            0 => row.version.into(),
            1 => row.generation.into(),
            2 => row.anchor_at.into(),
            3 => row.cursor_at.into(),
            4 => row.armed.into(),
            5 => row.manual.into(),
            6 => row.manual_run.as_ref().into(),
            7 => row.last_manual_at.into(),
            8 => row.catch_up_until.into(),
            9 => row.held.firing.into(),
            10 => row.held.run.as_ref().into(),
            11 => row.held.session.into(),
            12 => Some(row.held.started_at.unwrap_or(NOT_STARTED)).into(),
            13 => row.held.fencing_token.into(),
            14 => row.pause_since.into(),
            15 => row.pause_until.into(),
            16 => row.pause_reason.as_deref().into(),
            17 => u64::from(row.deleted).into(),
            18 => Some(*executor).into(),
            19 => row.claim_at.into(),
            20 => row.cancel.map(cancel_name).into(),
            21 => u64::from(row.last_status).into(),
            22 => Some(row.troubled_since).into(),
            _ => Some(self.room()).into(),
        }
    }

    /// Padding, so that the row has the same length in every phase: a row that grows costs its page a reorganization.
    fn room(&self) -> &'static str {
        const WIDEST: &str = "........................";
        let (row, held) = (&self.columns, &self.columns.held);
        let taken = [(row.claim_at.is_some(), 8), (held.run.is_some(), 16), (held.session.is_some(), 8)];
        let taken: usize = taken.iter().filter(|(is_there, _)| *is_there).map(|(_, bytes)| bytes).sum();
        WIDEST.get(taken..).unwrap_or_default()
    }
}

/// `started_at` holds this instead of NULL. So the row has room for the time of a start, and InnoDB updates it in place.
pub(in crate::mysql) const NOT_STARTED: i64 = 0;

/// In the order of [`StateRow::cells`].
pub(in crate::mysql) const STATE: &[Column] = &[
    Column("version", ColumnType::Unsigned),
    Column("generation", ColumnType::Unsigned),
    Column("anchor_at", ColumnType::Signed),
    Column("cursor_at", ColumnType::Signed),
    Column("armed", ColumnType::Text),
    Column("manual", ColumnType::Text),
    Column("manual_run", ColumnType::Bytes),
    Column("last_manual_at", ColumnType::Signed),
    Column("catch_up_until", ColumnType::Signed),
    Column("held", ColumnType::Text),
    Column("held_run", ColumnType::Bytes),
    Column("held_session", ColumnType::Unsigned),
    Column("started_at", ColumnType::Signed),
    Column("fencing_token", ColumnType::Unsigned),
    Column("pause_since", ColumnType::Signed),
    Column("pause_until", ColumnType::Signed),
    Column("pause_reason", ColumnType::Text),
    Column("deleted", ColumnType::Unsigned),
    Column("executor", ColumnType::Text),
    Column("claim_at", ColumnType::Signed),
    Column("cancel", ColumnType::Text),
    Column("last_status", ColumnType::Unsigned),
    Column("troubled_since", ColumnType::Signed),
    Column("room", ColumnType::Text),
];
const VERSION: usize = 0;
const SESSION: usize = 11;
const TOKEN: usize = 13;

const ID: Column = Column("id", ColumnType::Unsigned);
const GUARD: Column = Column("guard", ColumnType::Unsigned);

/// How the new value of a column goes along.
enum Way {
    /// With each row.
    Row,
    /// Once for all rows.
    Once(Value),
    /// It is so many versions behind the one that was read.
    Version(u64),
}

/// A statement, its parameter of rows, and those behind it.
pub(in crate::mysql) struct Update {
    pub sql: String,
    pub scalars: Vec<Value>,
    pub batches: Vec<Batch>,
}

/// The row as it was and as it is to be.
struct Pair<'a> {
    before: StateRow<'a>,
    after: StateRow<'a>,
}

impl<'a> Pair<'a> {
    fn of(write: &'a Write<JobState>) -> Option<Self> {
        let (before, after) = (write.before.as_ref()?, write.after.as_ref()?);
        let executor = write.definition.job.executor.as_str();
        // The definition before is not here; it was another one only where the generation was.
        let old = if before.generation == after.generation { executor } else { "" };
        Some(Self { before: StateRow::of(before, old), after: StateRow::of(after, executor) })
    }

    /// How many versions behind the one that was read the column is.
    fn versions_on(&self, column: usize) -> Option<u64> {
        let Cell::Unsigned(after) = self.after.cell(column) else { return None };
        after.checked_sub(self.before.columns.version)
    }
}

/// The statement for all writes that change a row which is there. `None` where there is none.
pub(in crate::mysql) fn update(writes: &[Write<JobState>]) -> Option<Update> {
    let mut pairs: Vec<Pair<'_>> = Vec::with_capacity(writes.len());
    pairs.extend(writes.iter().filter_map(Pair::of));
    if pairs.is_empty() {
        return None;
    }
    let ways: Vec<(usize, Way)> = (0..STATE.len()).filter_map(|column| Some((column, way(&pairs, column)?))).collect();
    let (mut set, mut scalars, mut in_rows) = (String::new(), Vec::new(), Vec::new());
    for (at, way) in ways {
        let column = &STATE[at];
        let comma = if set.is_empty() { "" } else { ", " };
        let value = match way {
            Way::Row => {
                let packed = PrefixEncoded::of(column, pairs.iter().map(|pair| pair.after.cell(at)));
                let value = packed.value(&mut scalars);
                in_rows.push(packed);
                value
            }
            Way::Once(value) => {
                scalars.push(value);
                column.parameter()
            }
            Way::Version(further) => format!("t.guard + {further}"),
        };
        let _infallible = write!(set, "{comma}s.{} = {value}", column.0);
    }
    let guard = guard(&pairs, &mut scalars);
    in_rows.sort_by_key(PrefixEncoded::is_long);
    let rows = table([&ID, &GUARD].into_iter().chain(in_rows.iter().map(PrefixEncoded::column)));
    let sql = format!("UPDATE {rows} STRAIGHT_JOIN job_state s ON s.id = t.id SET {set} WHERE {guard}");
    let json = pairs.iter().enumerate().map(|(at, Pair { before, .. })| {
        let key = [before.columns.id.into(), before.columns.version.into()];
        row(key.into_iter().chain(in_rows.iter().map(|packed| packed.cell(at))))
    });
    Some(Update { sql, scalars, batches: batches(json) })
}

/// The assignments for all writes, each of which changes a row that is there, as the text of a statement over `job_state` alone.
/// Where the rows differ their number tells which value is theirs; that is for few rows, as it is looked for one by one.
pub(in crate::mysql) fn assignments(writes: &[Write<JobState>]) -> Option<String> {
    let pairs: Vec<Pair<'_>> = writes.iter().map(Pair::of).collect::<Option<_>>()?;
    let mut set = String::new();
    // From the left to the right, and a column that was assigned is the new one from there on: the version comes last.
    for at in (0..STATE.len()).rev() {
        let column = &STATE[at];
        let text = |value: Value| column.parameter().replace('?', &value.as_sql(false));
        let value = match way(&pairs, at) {
            None => continue,
            Some(Way::Row) => {
                let of_row = |Pair { after, .. }: &Pair<'_>| {
                    format!("WHEN {} THEN {}", after.columns.id, text(after.cell(at).parameter()))
                };
                format!("CASE id {} END", pairs.iter().map(of_row).collect::<Vec<_>>().join(" "))
            }
            Some(Way::Once(value)) => text(value),
            Some(Way::Version(further)) => format!("version + {further}"),
        };
        let comma = if set.is_empty() { "" } else { ", " };
        let _infallible = write!(set, "{comma}{} = {value}", column.0);
    }
    (!set.is_empty()).then_some(set)
}

/// How a column goes along, if it changes in any row.
fn way(pairs: &[Pair<'_>], column: usize) -> Option<Way> {
    if pairs.iter().all(|pair| pair.before.cell(column) == pair.after.cell(column)) {
        return None;
    }
    if matches!(column, VERSION | TOKEN)
        && let Some(further) = pairs.first().and_then(|pair| pair.versions_on(column))
        && pairs.iter().all(|pair| pair.versions_on(column) == Some(further))
    {
        return Some(Way::Version(further));
    }
    Some(
        of_all(pairs.iter().map(|pair| pair.after.cell(column))).map_or(Way::Row, |value| Way::Once(value.parameter())),
    )
}

/// The row is the one that was read. If one session held all of them, it still does. A version repeats only if the database lost commits,
/// and rows that another session has written since then must not be overwritten.
fn guard(pairs: &[Pair<'_>], scalars: &mut Vec<Value>) -> &'static str {
    if !enabled(Guard::UpdateVersion) {
        return "TRUE";
    }
    match of_all(pairs.iter().map(|pair| pair.before.cell(SESSION))) {
        None | Some(Cell::Null) => "s.version = t.guard",
        Some(session) => {
            scalars.push(session.parameter());
            "s.version = t.guard AND s.held_session = ?"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use carillon_domain::firing::{Event, Firing, apply};
    use carillon_domain::id::{JobId, RunId, SessionId};
    use carillon_domain::job::Job;
    use carillon_domain::run::{Ending, Status};
    use carillon_domain::time::Timestamp;

    use super::*;
    use crate::codec::firing_text;
    use crate::definition::Definition;

    const BEGIN: Timestamp = Timestamp::from_secs(1_767_225_600);

    fn me() -> SessionId {
        SessionId::from_random(1)
    }

    fn run(job: u64) -> RunId {
        RunId::drawn(me(), job)
    }

    /// Jobs that are due every so many seconds.
    fn jobs(every: &[u64]) -> Vec<Write<JobState>> {
        let made = every.iter().zip(1..).map(|(every, id)| {
            let job = Arc::new(Job::new(("default", &format!("j{id}")), &format!("@every {every}s"), "{}"));
            let timeline = job.timeline(BEGIN).unwrap();
            let state = JobState::new(JobId(id), &timeline, 10 * id, BEGIN).unwrap();
            let (anchor_at, created_at, updated_at) = (BEGIN, BEGIN, BEGIN);
            let definition = Arc::new(Definition { job, timeline, generation: 1, anchor_at, created_at, updated_at });
            Write { before: None, after: Some(Arc::new(state)), definition }
        });
        made.collect()
    }

    fn after(writes: Vec<Write<JobState>>, now: Timestamp, event: impl Fn(RunId) -> Event) -> Vec<Write<JobState>> {
        let step = |Write { after, definition, .. }: Write<JobState>| {
            let (before, job) = (after.unwrap(), &definition.job);
            let next = apply(job, &definition.timeline, &before, &event(run(before.id.0)), now).unwrap().next;
            Write { before: Some(before), after: next.map(Arc::new), definition }
        };
        writes.into_iter().map(step).collect()
    }

    fn claimed(every: &[u64]) -> Vec<Write<JobState>> {
        let until = BEGIN + std::time::Duration::from_secs(100);
        after(jobs(every), BEGIN, |run| Event::Claim { session: me(), run, until, losses_until: None })
    }

    /// The columns that are set, and those that are in the rows behind the number and the version.
    fn columns(writes: &[Write<JobState>]) -> (Vec<&'static str>, Vec<&'static str>) {
        let Update { sql, .. } = update(writes).unwrap();
        let of = |text: &str, pattern: fn(&str) -> String| {
            STATE.iter().map(|column| column.0).filter(|name| text.contains(&pattern(name))).collect()
        };
        (of(sql.split(" WHERE ").next().unwrap(), |name| format!("s.{name} = ")), of(&sql, |name| format!(", {name} ")))
    }

    #[test]
    fn only_what_changes_is_named_and_only_what_differs_is_in_the_rows() {
        let claims = claimed(&[10, 10, 12]);
        let (set, rows) = columns(&claims);
        assert_eq!(set, ["version", "armed", "held", "held_run", "held_session", "claim_at", "room"]);
        assert_eq!(rows, ["held", "held_run"]);
        let starts =
            after(claims, BEGIN + std::time::Duration::from_secs(12), |run| Event::Start { session: me(), run });
        let (set, rows) = columns(&starts);
        assert_eq!(
            set,
            ["version", "cursor_at", "started_at", "fencing_token"],
            "all of them numbers that are there already"
        );
        assert_eq!(rows, ["cursor_at"]);
        let ending = Ending { exit_code: Some(0), ..Ending::new(Status::Succeeded, BEGIN) };
        let finishes = after(starts, BEGIN + std::time::Duration::from_secs(13), |run| Event::Finish {
            session: me(),
            run,
            ending: ending.clone(),
        });
        let (_, rows) = columns(&finishes);
        assert_eq!(rows, ["armed", "claim_at"], "the next due times differ");
    }

    #[test]
    fn few_rows_are_told_apart_by_their_numbers() {
        let start = |every: &[u64]| {
            let now = BEGIN + std::time::Duration::from_secs(12);
            after(claimed(every), now, |run| Event::Start { session: me(), run })
        };
        let begin = BEGIN.as_ms();
        let (ten, twelve) = (begin + 10_000, begin + 12_000);
        let rest = format!("fencing_token = version + 1, started_at = {twelve}, cursor_at");
        let texts = [&[10, 10][..], &[10, 12]].map(|every| assignments(&start(every)).unwrap());
        let one_by_one = format!("CASE id WHEN 1 THEN {ten} WHEN 2 THEN {twelve} END");
        assert_eq!(
            texts,
            [ten.to_string(), one_by_one].map(|cursor| format!("{rest} = {cursor}, version = version + 1"))
        );
        assert_eq!(assignments(&jobs(&[10])), None, "what is new is not updated");
    }

    #[test]
    fn a_row_is_as_long_in_every_phase() {
        let length = |writes: &[Write<JobState>]| {
            let state = writes[0].after.as_ref().unwrap();
            let (row, text) = (StateRow::of(state, "shell"), |firing: Option<Firing>| {
                firing.map_or(0, |firing| firing_text(firing).len())
            });
            let columns = &row.columns;
            let fixed = columns.claim_at.map_or(0, |_| 8);
            let held = columns.held.run.map_or(0, |_| 16) + columns.held.session.map_or(0, |_| 8);
            fixed + held + text(columns.armed) + text(columns.held.firing) + row.room().len()
        };
        let claims = claimed(&[10]);
        let starts = after(claims.clone(), BEGIN + std::time::Duration::from_secs(12), |run| Event::Start {
            session: me(),
            run,
        });
        assert_eq!(length(&jobs(&[10])), length(&claims));
        assert_eq!(length(&claims), length(&starts));
    }

    #[test]
    fn the_rows_carry_their_versions() {
        let one = update(&claimed(&[10])).unwrap();
        assert_eq!((one.batches.len(), one.batches[0].json.as_str(), one.batches[0].rows), (1, "[[1,10]]", 1));
        let two = update(&claimed(&[10, 10])).unwrap();
        assert_eq!(two.batches[0].json, r#"[[1,10,"01"],[2,20,"02"]]"#, "what their runs begin with goes along once");
        assert!(update(&jobs(&[10])).is_none(), "what is new is not updated");
    }

    #[test]
    fn what_one_session_holds_it_must_hold_still() {
        assert!(update(&claimed(&[10])).unwrap().sql.ends_with("WHERE s.version = t.guard"));
        let now = BEGIN + std::time::Duration::from_secs(10);
        let starts = after(claimed(&[10]), now, |run| Event::Start { session: me(), run });
        let update = update(&starts).unwrap();
        assert!(update.sql.ends_with("WHERE s.version = t.guard AND s.held_session = ?"));
        assert_eq!(update.scalars.last(), Some(&Value::from(me().as_u64())));
    }
}
