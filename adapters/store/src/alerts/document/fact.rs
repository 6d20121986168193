//! Facts that history does not tell.

use carillon_domain::alert::expect::Paused;
use carillon_domain::alert::{Because, Broken, Part, Trouble, Verdict, When};
use carillon_domain::id::JobId;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::run::{DueRange, Reason, Status};
use serde_json::{Value, json};

use super::incident::{part_from, part_value};
use super::{Fields, Read, maybe_ms, parse};
use crate::StoreResult;
use crate::codec::named;

/// The job or the part of the cluster that a fact is about. The step adds what it needs to know of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredSubject {
    Job(JobId),
    Cluster(Part),
}

/// The content of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredWhat {
    Judged(Verdict),
    Gone,
    Trouble(Trouble),
    Over(When),
}

/// A fact but for its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredFact {
    pub subject: StoredSubject,
    pub what: StoredWhat,
}

impl StoredFact {
    /// Its document.
    pub fn text(&self) -> String {
        let (job, part) = match &self.subject {
            StoredSubject::Job(job) => (Some(job.0), None),
            StoredSubject::Cluster(part) => (None, Some(part_value(part))),
        };
        let (what, content) = match &self.what {
            StoredWhat::Judged(Verdict::Broken(broken)) => ("broken", broken_value(broken)),
            StoredWhat::Judged(Verdict::Kept { when, due_at }) => {
                ("kept", json!({ "when": when.as_str(), "due_at": due_at.as_ms() }))
            }
            StoredWhat::Gone => ("gone", Value::Null),
            StoredWhat::Trouble(trouble) => ("trouble", trouble_value(trouble)),
            StoredWhat::Over(when) => ("over", json!({ "when": when.as_str() })),
        };
        json!({ "job_id": job, "subject": part, what: content }).to_string()
    }

    /// Reads it.
    pub fn read(text: &str) -> StoreResult<Self> {
        parse("a fact", text, |fields| {
            let subject = match fields.maybe_object("subject") {
                Some(part) => StoredSubject::Cluster(part_from(&part)),
                None => StoredSubject::Job(fields.job("job_id")?),
            };
            let what = if let Some(broken) = fields.maybe_object("broken") {
                StoredWhat::Judged(Verdict::Broken(broken_from(&broken)?))
            } else if let Some(kept) = fields.maybe_object("kept") {
                let when = kept.named("when", When::from_name)?;
                StoredWhat::Judged(Verdict::Kept { when, due_at: kept.at("due_at")? })
            } else if let Some(trouble) = fields.maybe_object("trouble") {
                StoredWhat::Trouble(trouble_from(&trouble)?)
            } else if let Some(over) = fields.maybe_object("over") {
                StoredWhat::Over(over.named("when", When::from_name)?)
            } else if fields.0.get("gone").is_some() {
                StoredWhat::Gone
            } else {
                return Err("its kind is not known".to_owned());
            };
            Ok(Self { subject, what })
        })
    }
}

fn broken_value(broken: &Broken) -> Value {
    let DueRange { count, first, last } = broken.due;
    json!({
        "when": broken.when.as_str(),
        "count": count,
        "first": first.as_ms(),
        "last": last.as_ms(),
        "limit": broken.limit.as_ms(),
        "because": because_value(&broken.because),
        "run": broken.run.map(|run| run.to_string()),
    })
}

fn broken_from(fields: &Fields<'_>) -> Read<Broken> {
    Ok(Broken {
        when: fields.named("when", When::from_name)?,
        due: DueRange { count: fields.number("count")?, first: fields.at("first")?, last: fields.at("last")? },
        limit: fields.at("limit")?,
        because: because_from(&fields.object("because")?)?,
        run: fields.maybe_run("run")?,
    })
}

fn because_value(because: &Because) -> Value {
    match because {
        Because::NotStarted => json!({ "kind": "not_started" }),
        Because::Paused(Paused { since, until, reason }) => {
            json!({ "kind": "paused", "since": since.as_ms(), "until": maybe_ms(*until), "reason": reason })
        }
        Because::NotRun(reason) => json!({ "kind": "not_run", "reason": reason.to_string() }),
        Because::StartedLate(at) => json!({ "kind": "started_late", "at": at.as_ms() }),
        Because::StillRuns(at) => json!({ "kind": "still_runs", "at": at.as_ms() }),
        Because::SucceededLate(at) => json!({ "kind": "succeeded_late", "at": at.as_ms() }),
        Because::Ended(status, at) => json!({ "kind": "ended", "status": status.as_str(), "at": at.as_ms() }),
    }
}

fn because_from(fields: &Fields<'_>) -> Read<Because> {
    Ok(match fields.text("kind")? {
        "not_started" => Because::NotStarted,
        "paused" => Because::Paused(Paused {
            since: fields.at("since")?,
            until: fields.maybe_at("until"),
            reason: fields.maybe_text("reason"),
        }),
        "not_run" => Because::NotRun(Reason::from_text(fields.text("reason")?)),
        "started_late" => Because::StartedLate(fields.at("at")?),
        "still_runs" => Because::StillRuns(fields.at("at")?),
        "succeeded_late" => Because::SucceededLate(fields.at("at")?),
        "ended" => {
            let status = fields.named("status", |name| named(&Status::ALL, Status::as_str, name).ok())?;
            Because::Ended(status, fields.at("at")?)
        }
        other => return Err(format!("reason {other} is not known")),
    })
}

fn trouble_value(trouble: &Trouble) -> Value {
    let when = trouble.when().as_str();
    match trouble {
        Trouble::NodeLost { last_heard_at, runs } => {
            json!({ "when": when, "last_heard_at": last_heard_at.as_ms(), "runs": runs })
        }
        Trouble::CommitsLost(LossWindow { from_at, until_at, noticed_at }) => json!({
            "when": when,
            "from_at": from_at.as_ms(),
            "until_at": until_at.as_ms(),
            "noticed_at": noticed_at.as_ms(),
        }),
        Trouble::ClockDrift { drift_ms } => json!({ "when": when, "drift_ms": drift_ms }),
        Trouble::DatabaseAway { from, until } => {
            json!({ "when": when, "from": from.as_ms(), "until": until.as_ms() })
        }
        Trouble::DiskFull { path, free } => json!({ "when": when, "path": path, "free": free }),
        Trouble::PluginRefused { file, why } => json!({ "when": when, "file": file, "why": why }),
        Trouble::CertificateExpires { file, ends_at } => {
            json!({ "when": when, "file": file, "ends_at": ends_at.as_ms() })
        }
    }
}

fn trouble_from(fields: &Fields<'_>) -> Read<Trouble> {
    Ok(match fields.named("when", When::from_name)? {
        When::NodeLost => {
            Trouble::NodeLost { last_heard_at: fields.at("last_heard_at")?, runs: fields.number("runs")? }
        }
        When::CommitsLost => Trouble::CommitsLost(LossWindow {
            from_at: fields.at("from_at")?,
            until_at: fields.at("until_at")?,
            noticed_at: fields.at("noticed_at")?,
        }),
        When::ClockDrift => Trouble::ClockDrift { drift_ms: fields.signed("drift_ms")? },
        When::DatabaseAway => Trouble::DatabaseAway { from: fields.at("from")?, until: fields.at("until")? },
        When::DiskFull => Trouble::DiskFull { path: fields.owned("path")?, free: fields.number("free")? },
        When::PluginRefused => Trouble::PluginRefused { file: fields.owned("file")?, why: fields.owned("why")? },
        When::CertificateExpires => {
            Trouble::CertificateExpires { file: fields.owned("file")?, ends_at: fields.at("ends_at")? }
        }
        other => return Err(format!("{} is no trouble of the cluster", other.as_str())),
    })
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::RunId;
    use carillon_domain::time::Timestamp;

    use super::*;

    #[test]
    fn a_fact_survives_its_document() {
        let at = Timestamp::from_ms;
        let reasons = [
            Because::NotStarted,
            Because::Paused(Paused { since: at(1), until: Some(at(2)), reason: Some("tired".into()) }),
            Because::NotRun(Reason::Overlap),
            Because::StartedLate(at(3)),
            Because::StillRuns(at(4)),
            Because::SucceededLate(at(5)),
            Because::Ended(Status::TimedOut, at(6)),
        ];
        let due = DueRange { count: 2, first: at(7), last: at(8) };
        let broken = reasons.into_iter().map(|because| {
            let run = Some(RunId::from_parts(1, 2));
            StoredWhat::Judged(Verdict::Broken(Broken { when: When::LateFinish, due, limit: at(9), because, run }))
        });
        let window = LossWindow { from_at: at(1), until_at: at(2), noticed_at: at(3) };
        let troubles = [
            Trouble::NodeLost { last_heard_at: at(1), runs: 2 },
            Trouble::CommitsLost(window),
            Trouble::ClockDrift { drift_ms: -5 },
            Trouble::DatabaseAway { from: at(1), until: at(2) },
            Trouble::DiskFull { path: "/".into(), free: 3 },
            Trouble::PluginRefused { file: "f".into(), why: "w".into() },
            Trouble::CertificateExpires { file: "f".into(), ends_at: at(4) },
        ];
        let others = [
            StoredWhat::Judged(Verdict::Kept { when: When::LateStart, due_at: at(3) }),
            StoredWhat::Gone,
            StoredWhat::Over(When::NodeLost),
        ];
        for what in broken.chain(troubles.into_iter().map(StoredWhat::Trouble)).chain(others) {
            for subject in [StoredSubject::Job(JobId(3)), StoredSubject::Cluster(Part::node("n"))] {
                let fact = StoredFact { subject, what: what.clone() };
                assert_eq!(StoredFact::read(&fact.text()), Ok(fact));
            }
        }
    }
}
