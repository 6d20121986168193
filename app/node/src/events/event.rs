//! One event: its kind, its subject, and its text on the wire.

use carillon_domain::alert::Notice;
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use carillon_store::feed::{AuditLine, Entry, Journal};
use carillon_store::{JobKey, RunStage, RunView, SessionState, SessionView};
use serde_json::{Value, json};
use warp::hyper::body::Bytes;

use super::mark::Mark;
use carillon_json::run_json;

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run has started.
    RunStarted,
    /// A run has ended, however it did.
    RunEnded,
    /// Due times did not run.
    RunSkipped,
    /// A job is new, changed or gone, because somebody asked for that.
    JobChanged,
    /// A session is new, or its state is another one.
    SessionChanged,
    /// A person should look.
    Alert,
    /// The audit log has an entry that is no change of a job.
    AuditWritten,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::RunStarted,
        Self::RunEnded,
        Self::RunSkipped,
        Self::JobChanged,
        Self::SessionChanged,
        Self::Alert,
        Self::AuditWritten,
    ];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunStarted => "run.started",
            Self::RunEnded => "run.ended",
            Self::RunSkipped => "run.skipped",
            Self::JobChanged => "job.changed",
            Self::SessionChanged => "session.changed",
            Self::Alert => "alert",
            Self::AuditWritten => "audit.written",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Those that tell of jobs and nodes. Entries of the log are left to those who ask by name, as runs and routes have
    /// events of their own.
    pub const USUAL: Self = Self(!Kind::AuditWritten.bit());

    /// These kinds.
    pub fn of(kinds: &[Kind]) -> Self {
        Self(kinds.iter().fold(0, |set, kind| set | kind.bit()))
    }

    /// Whether the set has the kind.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// Which events a reader wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of jobs in these namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// Of the job with this name only. Events that are about no job are left out then.
    pub job: Option<String>,
    /// Of these kinds.
    pub kinds: Kinds,
}

impl Filter {
    /// Whether the reader wants an event of this kind about this job, or about none.
    pub fn wants(&self, kind: Kind, about: Option<&JobKey>) -> bool {
        let here = match about {
            // Who may enter one namespace only does not see the entries of none.
            None => self.job.is_none() && (self.namespaces.is_none() || kind != Kind::AuditWritten),
            Some(key) => {
                self.namespaces.as_ref().is_none_or(|only| only.contains(&key.namespace))
                    && self.job.as_ref().is_none_or(|job| *job == key.name)
            }
        };
        here && self.kinds.has(kind)
    }
}

/// An event as it is told. Its text is shared by all readers.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub kind: Kind,
    pub about: Option<JobKey>,
    pub at: Option<Timestamp>,
    pub frame: Bytes,
}

/// A row of a journal as an event. A reader that comes back may lack the start of the run, so that goes with it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub journal: Journal,
    pub number: u64,
    pub start: Option<Event>,
    pub event: Event,
}

/// The frame of an event. Only events of a journal move the reader's mark.
fn frame(kind: Kind, mark: Option<Mark>, data: &Value) -> Bytes {
    let id = mark.map(|mark| format!("id: {mark}\n")).unwrap_or_default();
    format!("event: {}\n{id}data: {data}\n\n", kind.as_str()).into()
}

/// An event of the stream itself, with a sentence about the reason.
pub(super) fn notice(name: &str, reason: &str) -> Bytes {
    format!("event: {name}\ndata: {}\n\n", json!({"type": name, "reason": reason})).into()
}

fn of_run(kind: Kind, mark: Option<Mark>, view: &RunView, at: Option<Timestamp>, run: &Value) -> Event {
    let step = match kind {
        Kind::RunStarted => "started",
        Kind::RunSkipped => "skipped",
        _ => "ended",
    };
    let data = json!({
        "type": kind.as_str(),
        "key": format!("run:{}:{step}", view.id),
        "at": at.map(|at| at.to_string()),
        "namespace": view.key.namespace,
        "job": view.key.name,
        "run": run,
    });
    Event { kind, about: Some(view.key.clone()), at, frame: frame(kind, mark, &data) }
}

/// The start of a run that executes, or of one that has ended since; `None` for one that never started.
pub(super) fn start_of(view: &RunView) -> Option<Event> {
    let started_at = match &view.stage {
        RunStage::Waiting { .. } => None,
        RunStage::Running { held, .. } => held.started_at,
        RunStage::Recorded { record, .. } => record.started_at,
    }?;
    let mut run = run_json(view);
    if let (RunStage::Recorded { .. }, Some(fields)) = (&view.stage, run.as_object_mut()) {
        for later in ["reason", "exit_code", "signal", "finished_at", "claimed_at", "cpu_ms", "peak_memory_bytes"] {
            fields.insert(later.to_owned(), Value::Null);
        }
        for of_record in ["count", "first_due_at", "last_due_at", "output_truncated"] {
            fields.remove(of_record);
        }
        fields.insert("status".to_owned(), json!(Status::Running.as_str()));
        fields.insert("cancelling".to_owned(), json!(false));
    }
    Some(of_run(Kind::RunStarted, None, view, Some(started_at), &run))
}

/// A row of a journal as it is told.
pub(super) fn row_of(number: u64, entry: &Entry, mark: Mark) -> Row {
    match entry {
        Entry::Run(view) => row_of_run(number, view, mark),
        Entry::Audit(line) => {
            let event = change_of(number, line, mark).unwrap_or_else(|| entry_of(number, line, mark));
            Row { journal: Journal::Audit, number, start: None, event }
        }
    }
}

/// A change of a job. Runs that are asked for or cancelled have events of their own, and the cluster is no job.
fn change_of(number: u64, line: &AuditLine, mark: Mark) -> Option<Event> {
    let (kind, job, generation) = (Kind::JobChanged, line.job.as_ref()?, line.generation?);
    let data = json!({
        "type": kind.as_str(),
        "key": format!("audit:{number}"),
        "at": line.at.to_string(),
        "namespace": job.namespace,
        "job": {"name": job.name, "generation": generation},
        "action": line.action,
        "who": line.who,
    });
    Some(Event { kind, about: Some(job.clone()), at: Some(line.at), frame: frame(kind, Some(mark), &data) })
}

/// Any other entry of the audit log. It may be about no job.
fn entry_of(number: u64, line: &AuditLine, mark: Mark) -> Event {
    let (kind, job) = (Kind::AuditWritten, line.job.as_ref());
    let data = json!({
        "type": kind.as_str(),
        "key": format!("audit:{number}"),
        "at": line.at.to_string(),
        "namespace": job.map(|job| &job.namespace),
        "job": job.map(|job| &job.name),
        "action": line.action,
        "who": line.who,
    });
    Event { kind, about: job.cloned(), at: Some(line.at), frame: frame(kind, Some(mark), &data) }
}

/// When a run ended, or when the due times were recorded as skipped.
pub(super) fn end_of(view: &RunView) -> Option<Timestamp> {
    match &view.stage {
        RunStage::Recorded { record, .. } => Some(record.finished_at),
        RunStage::Waiting { .. } | RunStage::Running { .. } => None,
    }
}

fn row_of_run(number: u64, view: &RunView, mark: Mark) -> Row {
    let skipped = matches!(&view.stage, RunStage::Recorded { record, .. } if record.status == Status::Skipped);
    let kind = if skipped { Kind::RunSkipped } else { Kind::RunEnded };
    let event = of_run(kind, Some(mark), view, end_of(view), &run_json(view));
    Row { journal: Journal::Runs, number, start: start_of(view), event }
}

/// A session in a state.
pub(super) fn session_event(view: &SessionView, state: SessionState, at: Timestamp) -> Event {
    let kind = Kind::SessionChanged;
    let id = view.beat.id.to_string();
    let data = json!({
        "type": kind.as_str(),
        "key": format!("session:{id}:{}", state.as_str()),
        "at": at.to_string(),
        "session": {
            "id": id,
            "node": view.node,
            "address": view.address,
            "version": view.version,
            "started_at": view.started_at.to_string(),
            "state": state.as_str(),
        },
    });
    Event { kind, about: None, at: Some(at), frame: frame(kind, None, &data) }
}

/// A notice of a route. One that stands for many names jobs of any namespace, so only its count is told.
pub(super) fn alert_event(notice: &Notice) -> Event {
    let kind = Kind::Alert;
    let about = match (&notice.namespace, &notice.job) {
        (Some(namespace), Some(name)) => Some(JobKey { namespace: namespace.clone(), name: name.clone() }),
        _ => None,
    };
    let sentence = match notice.folded {
        0 => notice.sentence.clone(),
        count => format!("{count} messages of the route {} became one.", notice.route),
    };
    let data = json!({
        "type": kind.as_str(),
        "key": format!("alert:{}", notice.id),
        "at": notice.at.to_string(),
        "namespace": notice.namespace,
        "job": notice.job,
        "alert": {
            "route": notice.route,
            "when": notice.when.as_str(),
            "state": notice.state.as_str(),
            "run": notice.run.map(|run| run.to_string()),
            "due_at": notice.due_at.map(|due_at| due_at.to_string()),
            "sentence": sentence,
        },
    });
    Event { kind, about, at: Some(notice.at), frame: frame(kind, None, &data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_what_it_wants() {
        let key = |namespace: &str, name: &str| JobKey { namespace: namespace.into(), name: name.into() };
        let all = Filter { namespaces: None, job: None, kinds: Kinds::USUAL };
        let of_prod = Filter { namespaces: Some(vec!["prod".into()]), ..all.clone() };
        let of_a = Filter { job: Some("a".into()), ..of_prod.clone() };
        let ends = Filter { kinds: Kinds::of(&[Kind::RunEnded, Kind::Alert]), ..all.clone() };
        let log = Filter { kinds: Kinds::of(&[Kind::AuditWritten]), ..all.clone() };
        let of_prods_log = Filter { namespaces: of_prod.namespaces.clone(), ..log.clone() };
        for (filter, kind, about, wanted) in [
            (&all, Kind::RunStarted, Some(key("default", "a")), true),
            (&all, Kind::SessionChanged, None, true),
            (&of_prod, Kind::RunEnded, Some(key("prod", "b")), true),
            (&of_prod, Kind::RunEnded, Some(key("default", "b")), false),
            (&of_prod, Kind::SessionChanged, None, true),
            (&of_a, Kind::RunEnded, Some(key("prod", "a")), true),
            (&of_a, Kind::RunEnded, Some(key("prod", "b")), false),
            (&of_a, Kind::RunEnded, Some(key("default", "a")), false),
            (&of_a, Kind::SessionChanged, None, false),
            (&ends, Kind::RunEnded, Some(key("default", "a")), true),
            (&ends, Kind::RunStarted, Some(key("default", "a")), false),
            (&all, Kind::AuditWritten, Some(key("default", "a")), false),
            (&log, Kind::AuditWritten, Some(key("prod", "a")), true),
            (&log, Kind::AuditWritten, None, true),
            (&of_prods_log, Kind::AuditWritten, Some(key("prod", "a")), true),
            (&of_prods_log, Kind::AuditWritten, Some(key("default", "a")), false),
            (&of_prods_log, Kind::AuditWritten, None, false),
        ] {
            assert_eq!(filter.wants(kind, about.as_ref()), wanted, "{filter:?} {kind:?} {about:?}");
        }
        for one in Kind::ALL {
            let only = Kinds::of(&[one]);
            assert!(Kind::ALL.iter().all(|kind| only.has(*kind) == (*kind == one)), "{one:?}");
        }
    }
}
