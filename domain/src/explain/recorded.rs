//! Due times that have a record.

use super::words::clause;
use super::{DueState, Found, Question};
use crate::duration::spoken;
use crate::job::OnLost;
use crate::run::{Reason, RunRecord, Status, Trigger};

/// A start that is later than this is told as late, in milliseconds.
const LATE_MS: i64 = 1_000;

impl Question<'_> {
    /// The record of the latest attempt. A run of the schedule goes before a manual one of the same instant.
    pub(super) fn of_record(&self) -> Option<Found> {
        let order = |record: &&RunRecord| (record.trigger != Trigger::Manual, record.attempt);
        let record = self.facts.records.iter().filter(|record| self.is_covered_by(record)).max_by_key(order)?;
        let firing = self.firing(record.trigger);
        let (standing, predicate) = match record.status {
            Status::Lost => (DueState::Lost, self.lost(record)),
            _ if record.started_at.is_none() => (DueState::Skipped, self.unstarted(record)),
            _ => (DueState::Ran, self.ended(record)),
        };
        Some((standing, format!("{firing} {predicate}{}.", self.others(record)), Some(record.id)))
    }

    /// A range stands for the due times in it, not for the moments between them. Those of an earlier schedule are not known.
    fn is_covered_by(&self, record: &RunRecord) -> bool {
        let is_an_end = self.at == record.first_due_at || self.at == record.due_at;
        is_an_end || self.is_due() || self.at <= self.facts.state.anchor_at
    }

    /// The other due times that share the record.
    fn others(&self, record: &RunRecord) -> String {
        if record.count <= 1 {
            return String::new();
        }
        let (first, last) = (self.clock.at(record.first_due_at), self.clock.at(record.due_at));
        format!("; so were all {} due times from {first} to {last}", record.count)
    }

    fn ended(&self, record: &RunRecord) -> String {
        let took = record.started_at.map(|started| spoken(record.finished_at.since(started))).unwrap_or_default();
        let late = record.lag_ms.filter(|lag_ms| *lag_ms > LATE_MS).map(|lag_ms| {
            let lag = std::time::Duration::from_millis(lag_ms.unsigned_abs());
            format!(" {} late", spoken(lag))
        });
        let (late, attempt) = (late.unwrap_or_default(), self.attempt(record.attempt));
        let said = match &record.reason {
            Some(Reason::Said(text)) => format!(": {}", clause(text)),
            _ => String::new(),
        };
        match (record.status, &record.reason) {
            (Status::Succeeded, _) => format!("started{late} and succeeded after {took}{attempt}"),
            (Status::TimedOut, _) => match self.facts.job.timeout {
                Some(timeout) => {
                    format!("started{late} and was ended after {took}{attempt}, as its timeout is {}", spoken(timeout))
                }
                None => format!("started{late} and was ended after {took}{attempt}, as its timeout passed"),
            },
            (Status::Cancelled, Some(Reason::Replaced)) => {
                format!("started{late} and was ended after {took}{attempt}: a newer firing took its place")
            }
            (Status::Cancelled, _) => format!("started{late} and was cancelled by a person after {took}{attempt}"),
            _ => {
                let how = match (record.exit_code, record.signal) {
                    (Some(code), _) => format!(" with exit code {code}"),
                    (None, Some(signal)) => format!(" by signal {signal}"),
                    (None, None) => String::new(),
                };
                format!("started{late} and failed after {took}{how}{attempt}{said}")
            }
        }
    }

    fn lost(&self, record: &RunRecord) -> String {
        let again = match self.facts.job.on_lost {
            OnLost::Skip => "; it does not start again, as on_lost is skip",
            OnLost::Rerun => "",
        };
        match (&record.reason, record.started_at) {
            (Some(Reason::CommitsLost), _) => {
                format!("may have run: the database went back in time and forgot it{again}")
            }
            (Some(Reason::Said(text)), Some(started)) => {
                format!("started at {} and is lost: {}{again}", self.clock.at(started), clause(text))
            }
            (_, Some(started)) => {
                let started = self.clock.at(started);
                format!(
                    "started at {started} and is lost: the session of its node ended before it told the outcome{again}"
                )
            }
            (_, None) => format!("is lost: the session of its node ended{again}"),
        }
    }

    /// A due time that never started.
    fn unstarted(&self, record: &RunRecord) -> String {
        let grace = spoken(self.facts.job.misfire.grace);
        match &record.reason {
            Some(Reason::Overlap) => format!("was skipped: {} was still alive", self.previous_run(record)),
            Some(Reason::Misfire) => {
                format!(
                    "was skipped: no node started it within its grace of {grace}, and the misfire policy does not run it"
                )
            }
            Some(Reason::Paused) => "was skipped: the job was paused".to_owned(),
            Some(Reason::Updated) => "was skipped: the job got a new definition before it started".to_owned(),
            Some(Reason::Deleted) => "was skipped: the job was deleted before it started".to_owned(),
            Some(Reason::Replaced) => "did not start: a newer firing took its place".to_owned(),
            Some(Reason::Cancelled) => "did not start: a person cancelled it".to_owned(),
            Some(Reason::SessionEnded) => "did not start: the session of its node ended".to_owned(),
            Some(Reason::CommitsLost) => "may have run: the database went back in time and forgot it".to_owned(),
            Some(Reason::Said(text)) => format!("did not start: {}", clause(text)),
            None => "did not start".to_owned(),
        }
    }

    /// The run that lived when this due time came.
    fn previous_run(&self, record: &RunRecord) -> String {
        let lived = |run: &&RunRecord| run.due_at < self.at && run.finished_at >= self.at.min(record.finished_at);
        if let Some(run) = self.facts.previous.filter(lived) {
            return self.run_of(run.trigger, run.due_at);
        }
        let held = self.facts.state.phase.held().filter(|held| held.firing.due_at < self.at);
        match held {
            Some(held) => self.run_of(held.firing.trigger, held.firing.due_at),
            None => "the previous run".to_owned(),
        }
    }
}
