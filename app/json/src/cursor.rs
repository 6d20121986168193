//! Cursors: where a listing goes on, as text that clients hand back without looking at it.
//!
//! A cursor names the last item of the page before. It is checked completely when it comes back. A made-up one can only begin a listing at
//! another place. The rights of the caller are checked elsewhere.

use carillon_domain::id::JobId;
use carillon_domain::name::{check_job_name, check_namespace};
use carillon_domain::time::Timestamp;
use carillon_store::{JobCursor, JobKey, RunCursor};

/// The cursor after this job.
pub fn job_cursor(after: &JobCursor) -> String {
    encode(&match after {
        JobCursor::Name(key) => format!("j:{}/{}", key.namespace, key.name),
        JobCursor::Next { claim_at: Some(claim_at), id } => format!("n:{}:{id}", claim_at.as_ms()),
        JobCursor::Next { claim_at: None, id } => format!("n::{id}"),
    })
}

/// Reads back what [`job_cursor`] wrote; `None` for anything else.
pub fn read_job_cursor(text: &str) -> Option<JobCursor> {
    let plain = decode(text)?;
    if let Some(place) = plain.strip_prefix("n:") {
        return read_place(place);
    }
    let (namespace, name) = plain.strip_prefix("j:")?.split_once('/')?;
    check_namespace(namespace).ok()?;
    check_job_name(name).ok()?;
    Some(JobCursor::Name(JobKey { namespace: namespace.to_owned(), name: name.to_owned() }))
}

/// The time and the number of a job, in the order of times.
fn read_place(place: &str) -> Option<JobCursor> {
    let (claim_at, id) = place.split_once(':')?;
    let claim_at = if claim_at.is_empty() { None } else { Some(claim_at.parse().ok()?) };
    let known = claim_at.is_none_or(|at| (0..=Timestamp::MAX.as_ms()).contains(&at));
    let id = JobId(id.parse().ok()?);
    known.then(|| JobCursor::Next { claim_at: claim_at.map(Timestamp::from_ms), id })
}

/// The cursor after this run.
pub fn run_cursor(after: &RunCursor) -> String {
    encode(&format!("r:{}:{}:{}", after.due_at.as_ms(), after.attempt, after.run))
}

/// Reads back what [`run_cursor`] wrote; `None` for anything else.
pub fn read_run_cursor(text: &str) -> Option<RunCursor> {
    let plain = decode(text)?;
    let mut parts = plain.strip_prefix("r:")?.splitn(3, ':');
    let due_at_ms: i64 = parts.next()?.parse().ok()?;
    let attempt = parts.next()?.parse().ok()?;
    let run = parts.next()?.parse().ok()?;
    let known = (0..=Timestamp::MAX.as_ms()).contains(&due_at_ms);
    known.then(|| RunCursor { due_at: Timestamp::from_ms(due_at_ms), attempt, run })
}

/// The cursor after the entry of the audit log with this id.
pub fn audit_cursor(after: u64) -> String {
    encode(&format!("a:{after}"))
}

/// Reads back what [`audit_cursor`] wrote; `None` for anything else.
pub fn read_audit_cursor(text: &str) -> Option<u64> {
    number(&decode(text)?, "a:")
}

/// The cursor after the delivery with this id.
pub fn delivery_cursor(after: u64) -> String {
    encode(&format!("d:{after}"))
}

/// Reads back what [`delivery_cursor`] wrote; `None` for anything else.
pub fn read_delivery_cursor(text: &str) -> Option<u64> {
    number(&decode(text)?, "d:")
}

fn number(plain: &str, kind: &str) -> Option<u64> {
    let digits = plain.strip_prefix(kind)?;
    digits.parse().ok().filter(|id: &u64| id.to_string() == digits)
}

/// Lower-case hexadecimal: no URL, shell or spreadsheet touches it.
fn encode(plain: &str) -> String {
    plain.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn decode(text: &str) -> Option<String> {
    const LONGEST: usize = 1_024;
    if text.len() > LONGEST || !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_domain::id::{RunId, SessionId};

    #[test]
    fn cursors_survive_the_journey() {
        let key = JobKey { namespace: "prod".into(), name: "a.b-c_d".into() };
        let next = |claim_at| JobCursor::Next { claim_at, id: JobId(u64::MAX) };
        for cursor in [JobCursor::Name(key), next(None), next(Some(Timestamp::from_ms(1_700_000_000_123)))] {
            assert_eq!(read_job_cursor(&job_cursor(&cursor)), Some(cursor));
        }
        let run = RunCursor {
            due_at: Timestamp::from_ms(1_700_000_000_123),
            attempt: 2,
            run: RunId::drawn(SessionId::from_random(7), 9),
        };
        assert_eq!(read_run_cursor(&run_cursor(&run)), Some(run));
        assert_eq!(read_audit_cursor(&audit_cursor(42)), Some(42));
        assert_eq!(read_delivery_cursor(&delivery_cursor(42)), Some(42));
        assert_eq!(read_delivery_cursor(&audit_cursor(42)), None);
    }

    #[test]
    fn made_up_cursors_are_seen() {
        let forged = [
            encode("j:a/b/c"),
            encode("j:../x"),
            encode("j:a"),
            encode("n:"),
            encode("n:-1:1"),
            encode("n:1:x"),
            encode("n:1:1:1"),
            encode("r:-1:1:8000000000000007-1"),
            encode("r:1:1:x"),
            encode("r:1"),
            encode("a:-1"),
            encode("a:+1"),
            encode("a:"),
        ];
        let junk = ["", "0", "zz", "é", "6a3a", "6A3A612F62zz"].map(String::from);
        for text in forged.iter().chain(&junk).chain([&"61".repeat(600)]) {
            assert_eq!(read_job_cursor(text), None, "{text}");
            assert_eq!(read_run_cursor(text), None, "{text}");
            assert_eq!(read_audit_cursor(text), None, "{text}");
        }
        assert_eq!(
            read_run_cursor(&job_cursor(&JobCursor::Name(JobKey { namespace: "a".into(), name: "b".into() }))),
            None
        );
    }
}
