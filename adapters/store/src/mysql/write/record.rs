//! The history of a batch, written with an INSERT in which what is alike in all records goes along once.

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use mysql_async::Value;

use crate::codec::run_bytes;
use crate::mysql::encoding::batch::{Batch, Cell, Column, ColumnType, batches, of_all, row, table};
use crate::mysql::encoding::prefix_encoding::PrefixEncoded;

/// In the order of [`cells`]. The first two are never alike.
const RUN: &[Column] = &[
    Column("id", ColumnType::Bytes),
    Column("job_id", ColumnType::Unsigned),
    Column("due_at", ColumnType::Signed),
    Column("trigger_name", ColumnType::Text),
    Column("attempt", ColumnType::Unsigned),
    Column("status", ColumnType::Text),
    Column("reason", ColumnType::Text),
    Column("exit_code", ColumnType::Signed),
    Column("signal_number", ColumnType::Signed),
    Column("started_at", ColumnType::Signed),
    Column("finished_at", ColumnType::Signed),
    Column("lag_ms", ColumnType::Signed),
    Column("session", ColumnType::Unsigned),
    Column("fencing_token", ColumnType::Unsigned),
    Column("due_count", ColumnType::Unsigned),
    Column("first_due_at", ColumnType::Signed),
    Column("prepared_ms", ColumnType::Unsigned),
    Column("cpu_ms", ColumnType::Unsigned),
    Column("peak_memory_kib", ColumnType::Unsigned),
];
const KEYS: usize = 2;
const DUE: usize = 2;
const STARTED: usize = 9;
const LAG: usize = 11;
const SESSION: usize = 12;
const FIRST_DUE: usize = 15;
const COLUMNS: usize = RUN.len();

/// So many runs, and so many due times that did not run, are worth a statement for each: they differ in nearly every column.
const ENOUGH: usize = 50;

/// A statement and its parameters: those in front of the rows, and the rows.
pub(in crate::mysql) struct Insert {
    pub sql: String,
    pub scalars: Vec<Value>,
    pub batches: Vec<Batch>,
}

/// The texts of a record.
struct Texts {
    id: [u8; 16],
    reason: Option<String>,
}

fn cells<'a>(record: &RunRecord, texts: &'a Texts) -> [Cell<'a>; COLUMNS] {
    let number = |number: Option<i32>| Cell::from(number.map(i64::from));
    [
        Some(&texts.id).into(),
        record.job.0.into(),
        record.due_at.as_ms().into(),
        Some(record.trigger.as_str()).into(),
        u64::from(record.attempt).into(),
        Some(record.status.as_str()).into(),
        texts.reason.as_deref().into(),
        number(record.exit_code),
        number(record.signal),
        record.started_at.map(Timestamp::as_ms).into(),
        record.finished_at.as_ms().into(),
        record.lag_ms.into(),
        record.session.map(SessionId::as_u64).into(),
        record.fencing_token.into(),
        record.count.into(),
        record.first_due_at.as_ms().into(),
        record.prepared_ms.into(),
        record.usage.cpu_ms.into(),
        record.usage.peak_memory_kib.into(),
    ]
}

/// The statements for all records, none where there are none.
pub(in crate::mysql) fn inserts(records: &[RunRecord]) -> Vec<Insert> {
    if records.is_empty() {
        return Vec::new();
    }
    let (ran, skipped): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.session.is_some());
    if ran.len() >= ENOUGH && skipped.len() >= ENOUGH {
        vec![insert(&ran), insert(&skipped)]
    } else {
        vec![insert(&records.iter().collect::<Vec<_>>())]
    }
}

fn insert(records: &[&RunRecord]) -> Insert {
    let text = |record: &&RunRecord| {
        let reason = record.reason.as_ref().map(ToString::to_string);
        Texts { id: run_bytes(record.id), reason }
    };
    let texts: Vec<Texts> = records.iter().map(text).collect();
    let rows: Vec<_> = records.iter().zip(&texts).map(|(record, texts)| cells(record, texts)).collect();
    let ways: Vec<Way<'_>> = (0..RUN.len()).map(|at| way(&rows, at)).collect();
    let mut scalars = Vec::new();
    let values: Vec<String> = (0..RUN.len()).map(|at| value(&ways, at, &mut scalars)).collect();
    let (node, join) = match &ways[SESSION] {
        Way::Once(session) => {
            scalars.push(session.parameter());
            ("(SELECT node FROM session WHERE id = ?)", "")
        }
        _ => ("s.node", " LEFT JOIN session s ON s.id = t.session"),
    };
    let names: Vec<&str> = RUN.iter().map(|column| column.0).collect();
    let mut in_rows: Vec<&PrefixEncoded<'_>> = ways.iter().filter_map(Way::in_rows).collect();
    in_rows.sort_by_key(|packed| packed.is_long());
    let twice = if enabled(Guard::RecordTwice) { " ON DUPLICATE KEY UPDATE seq = run.seq" } else { "" };
    let sql = format!(
        "INSERT INTO run ({}, node) SELECT {}, {node} FROM {}{join}{twice}",
        names.join(", "),
        values.join(", "),
        table(in_rows.iter().map(|packed| packed.column()))
    );
    let json = (0..rows.len()).map(|at| row(in_rows.iter().map(|packed| packed.cell(at))));
    Insert { sql, scalars, batches: batches(json) }
}

/// How a column goes along.
enum Way<'a> {
    /// Once for all rows.
    Once(Cell<'a>),
    /// With each row.
    Row(PrefixEncoded<'a>),
    /// It is what another column is.
    As(usize),
    /// It is one column less another.
    Less(usize, usize),
}

impl<'a> Way<'a> {
    fn in_rows(&self) -> Option<&PrefixEncoded<'a>> {
        match self {
            Way::Row(packed) => Some(packed),
            Way::Once(_) | Way::As(_) | Way::Less(..) => None,
        }
    }
}

fn way<'a>(rows: &[[Cell<'a>; COLUMNS]], at: usize) -> Way<'a> {
    let all = |of: fn(&[Cell<'a>; COLUMNS]) -> bool| rows.iter().all(of);
    match of_all(rows.iter().map(|cells| cells[at])) {
        Some(cell) if at >= KEYS => Way::Once(cell),
        _ if at == FIRST_DUE && all(|cells| cells[FIRST_DUE] == cells[DUE]) => Way::As(DUE),
        _ if at == LAG && all(|cells| cells[LAG] == less(cells[STARTED], cells[DUE])) => Way::Less(STARTED, DUE),
        _ => Way::Row(PrefixEncoded::of(&RUN[at], rows.iter().map(|cells| cells[at]))),
    }
}

fn less<'a>(one: Cell<'a>, other: Cell<'a>) -> Cell<'a> {
    match (one, other) {
        (Cell::Signed(one), Cell::Signed(other)) => one.checked_sub(other).into(),
        _ => Cell::Null,
    }
}

/// The value of a column, with its parameters.
fn value(ways: &[Way<'_>], at: usize, scalars: &mut Vec<Value>) -> String {
    match &ways[at] {
        Way::Once(cell) => {
            scalars.push(cell.parameter());
            RUN[at].parameter()
        }
        Way::Row(packed) => packed.value(scalars),
        Way::As(other) => value(ways, *other, scalars),
        Way::Less(one, other) => {
            let one = value(ways, *one, scalars);
            format!("{one} - {}", value(ways, *other, scalars))
        }
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::{JobId, RunId};
    use carillon_domain::measured::Usage;
    use carillon_domain::run::{Reason, Status, Trigger};

    use super::*;

    fn record(job: u64) -> RunRecord {
        let at = Timestamp::from_ms(7);
        RunRecord {
            id: RunId::drawn(SessionId::from_random(1), job),
            job: JobId(job),
            due_at: at,
            trigger: Trigger::Schedule,
            attempt: 1,
            status: Status::Succeeded,
            reason: None,
            exit_code: Some(0),
            signal: None,
            started_at: Some(at),
            finished_at: at,
            lag_ms: Some(0),
            prepared_ms: Some(0),
            usage: Usage::default(),
            session: Some(SessionId::from_random(1)),
            fencing_token: Some(9),
            count: 1,
            first_due_at: at,
        }
    }

    /// The one statement for a few records.
    fn insert(records: &[RunRecord]) -> Insert {
        let mut inserts = inserts(records);
        assert_eq!(inserts.len(), 1);
        inserts.remove(0)
    }

    fn in_rows(insert: &Insert) -> Vec<&'static str> {
        RUN.iter().map(|column| column.0).filter(|name| insert.sql.contains(&format!("t.{name}"))).collect()
    }

    #[test]
    fn what_is_alike_goes_along_once() {
        let alike = insert(&[record(1), record(2)]);
        assert_eq!(in_rows(&alike), ["id", "job_id"]);
        assert_eq!((alike.scalars.len(), alike.batches[0].rows), (19, 2));
        assert!(!alike.sql.contains("JOIN"), "{}", alike.sql);
        let one = insert(&[record(1)]);
        assert_eq!(one.sql, alike.sql, "a batch of one is no statement of its own");
    }

    #[test]
    fn what_differs_is_in_the_rows() {
        let failed = RunRecord { status: Status::Failed, exit_code: Some(1), ..record(2) };
        let skipped = RunRecord { session: None, reason: Some(Reason::Overlap), ..record(3) };
        let mixed = insert(&[record(1), failed, skipped]);
        assert_eq!(in_rows(&mixed), ["id", "job_id", "status", "reason", "exit_code", "session"]);
        assert!(
            mixed.sql.contains("s.node FROM JSON_TABLE") && mixed.sql.contains("LEFT JOIN session"),
            "{}",
            mixed.sql
        );
        let session = SessionId::from_random(1).as_u64();
        let rows = [
            format!(r#"1,0,{session},"01","succeed",null"#),
            format!(r#"2,1,{session},"02","fail",null"#),
            r#"3,0,null,"03","succeed","""#.to_owned(),
        ];
        assert_eq!(mixed.batches[0].json, format!("[[{}]]", rows.join("],[")));
    }

    #[test]
    fn what_follows_from_other_columns_does_not_go_along() {
        let late = |job, due_ms, lag_ms| {
            let due_at = Timestamp::from_ms(due_ms);
            let started_at = Some(due_at + std::time::Duration::from_millis(lag_ms));
            let lag_ms = i64::try_from(lag_ms).ok();
            RunRecord { due_at, first_due_at: due_at, started_at, lag_ms, ..record(job) }
        };
        let follows = insert(&[late(1, 7, 1), late(2, 8, 2)]);
        assert_eq!(in_rows(&follows), ["id", "job_id", "due_at", "started_at"]);
        assert!(follows.sql.contains(", t.started_at - t.due_at, "), "{}", follows.sql);
        assert_eq!(follows.batches[0].json, r#"[[1,7,8,"01"],[2,8,10,"02"]]"#);
        let together = RunRecord { first_due_at: Timestamp::from_ms(1), ..late(2, 8, 2) };
        assert_eq!(in_rows(&insert(&[late(1, 7, 1), together]))[4..], ["first_due_at"]);
        let otherwise = RunRecord { lag_ms: Some(0), ..late(2, 8, 2) };
        assert_eq!(in_rows(&insert(&[late(1, 7, 1), otherwise]))[4..], ["lag_ms"]);
    }

    #[test]
    fn many_runs_and_many_skipped_due_times_have_a_statement_each() {
        let skipped = |job| RunRecord {
            status: Status::Skipped,
            reason: Some(Reason::Overlap),
            session: None,
            count: 2,
            ..record(job)
        };
        let mixed: Vec<RunRecord> = (0..2 * ENOUGH as u64).flat_map(|job| [record(job), skipped(job)]).collect();
        let statements = inserts(&mixed);
        assert_eq!(statements.iter().map(|insert| insert.batches[0].rows).collect::<Vec<_>>(), [100, 100]);
        assert!(statements.iter().all(|insert| in_rows(insert) == ["id", "job_id"]));
    }
}
