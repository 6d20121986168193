//! The history of a batch, written with an INSERT in which what is alike in all records goes along once.

use carillon_domain::guard::{Guard, stands};
use carillon_domain::id::SessionId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use mysql_async::Value;

use super::batch::{Batch, Cell, Column, Kind, batches, of_all, row, table};
use crate::store::codec::run_bytes;

/// In the order of [`cells`]. The first two are never alike.
const RUN: &[Column] = &[
    Column("id", Kind::Bytes),
    Column("job_id", Kind::Unsigned),
    Column("due_at", Kind::Signed),
    Column("trigger_name", Kind::Text),
    Column("attempt", Kind::Unsigned),
    Column("status", Kind::Text),
    Column("reason", Kind::Text),
    Column("exit_code", Kind::Signed),
    Column("signal_number", Kind::Signed),
    Column("started_at", Kind::Signed),
    Column("finished_at", Kind::Signed),
    Column("lag_ms", Kind::Signed),
    Column("session", Kind::Unsigned),
    Column("fencing_token", Kind::Unsigned),
    Column("due_count", Kind::Unsigned),
    Column("first_due_at", Kind::Signed),
];
const KEYS: usize = 2;
const SESSION: usize = 12;

/// So many runs, and so many due times that did not run, are worth a statement for each: they differ in nearly every column.
const ENOUGH: usize = 50;

/// A statement and its parameters: those in front of the rows, and the rows.
pub(super) struct Insert {
    pub sql: String,
    pub scalars: Vec<Value>,
    pub batches: Vec<Batch>,
}

/// What a record says in text.
struct Texts {
    id: [u8; 16],
    reason: Option<String>,
}

fn cells<'a>(record: &RunRecord, texts: &'a Texts) -> [Cell<'a>; 16] {
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
    ]
}

/// The statements for all records, none where there are none.
pub(super) fn inserts(records: &[RunRecord]) -> Vec<Insert> {
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
    let alike = |at: usize| if at < KEYS { None } else { of_all(rows.iter().map(|cells| cells[at])) };
    let alike: Vec<Option<Cell<'_>>> = (0..RUN.len()).map(alike).collect();
    let value = |(column, alike): (&Column, &Option<Cell<'_>>)| match alike {
        Some(_) => column.parameter(),
        None => column.value(),
    };
    let values: Vec<String> = RUN.iter().zip(&alike).map(value).collect();
    let mut scalars: Vec<Value> = alike.iter().flatten().map(|cell| cell.parameter()).collect();
    let (node, join) = match alike[SESSION] {
        Some(session) => {
            scalars.push(session.parameter());
            ("(SELECT node FROM session WHERE id = ?)", "")
        }
        None => ("s.node", " LEFT JOIN session s ON s.id = t.session"),
    };
    let names: Vec<&str> = RUN.iter().map(|column| column.0).collect();
    let in_rows = |at: &usize| alike[*at].is_none();
    let columns: Vec<&Column> = (0..RUN.len()).filter(in_rows).map(|at| &RUN[at]).collect();
    let twice = if stands(Guard::RecordTwice) { " ON DUPLICATE KEY UPDATE seq = run.seq" } else { "" };
    let sql = format!(
        "INSERT INTO run ({}, node) SELECT {}, {node} FROM {}{join}{twice}",
        names.join(", "),
        values.join(", "),
        table(columns)
    );
    let json = rows.iter().map(|cells| row((0..RUN.len()).filter(in_rows).map(|at| cells[at])));
    Insert { sql, scalars, batches: batches(json) }
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::{JobId, RunId};
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
        assert_eq!((alike.scalars.len(), alike.batches[0].rows), (15, 2));
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
        let (json, session) = (&mixed.batches[0].json, SessionId::from_random(1).as_u64());
        for row in [
            format!(r#",1,"succeeded",null,0,{session}],["#),
            format!(r#",2,"failed",null,1,{session}],["#),
            format!(r#",3,"succeeded","{}",0,null]]"#, Reason::Overlap),
        ] {
            assert!(json.contains(&row), "{row} in {json}");
        }
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
