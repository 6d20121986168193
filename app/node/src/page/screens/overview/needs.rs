//! The things that need a person: jobs in trouble, overdue ones, silent nodes, lost commits, clocks that differ.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::alert::{Class, Incident, SubjectKey};
use carillon_domain::duration::spoken;
use carillon_store::alerts::DeliveryCounts;
use carillon_store::{Bounded, ListedJob, RecordedLoss, SessionView};
use maud::{Markup, html};

use crate::engine::Readiness;
use crate::page::outcome::Mark;
use crate::page::screens::alerts::{subject, word};
use crate::page::screens::parts::{bounded, job_link, key_of, plural};
use crate::page::screens::why;
use crate::page::visit::Visit;
use crate::page::zone::{clock, relative};

/// A clock that differs by more is told.
const DRIFT_MS: u64 = 1_000;

/// How many jobs of a kind are listed.
const LISTED: usize = 20;

/// Everything that needs a person.
pub(super) struct Needs<'a> {
    troubled: &'a Bounded<ListedJob>,
    overdue: &'a Bounded<ListedJob>,
    silent: Vec<&'a SessionView>,
    open_loss: Option<&'a RecordedLoss>,
    drift_ms: Option<i64>,
    /// Open troubles that somebody was told of, and that stand nowhere else.
    incidents: Vec<&'a Incident>,
    /// How many messages were given up.
    dead: u64,
    not_ready: Option<String>,
}

impl<'a> Needs<'a> {
    pub fn of(
        visit: &Visit,
        troubled: &'a Bounded<ListedJob>,
        overdue: &'a Bounded<ListedJob>,
        (sessions, losses): (&'a [SessionView], &'a [RecordedLoss]),
        (incidents, dead): (&'a [Incident], u64),
    ) -> Self {
        let drift_ms = visit.api.engine.counts().clock_offset_ms;
        let not_ready = match visit.api.engine.readiness() {
            Readiness::Ready => None,
            Readiness::NotReady(why) => Some(why),
        };
        Self {
            troubled,
            overdue,
            silent: sessions.iter().filter(|session| session.is_silent(visit.now)).collect(),
            open_loss: losses.iter().find(|loss| loss.is_open()),
            drift_ms: Some(drift_ms).filter(|drift_ms| drift_ms.unsigned_abs() > DRIFT_MS),
            incidents: of_their_own(incidents, troubled, overdue),
            dead,
            not_ready,
        }
    }

    fn jobs(&self) -> usize {
        let troubled =
            |job: &&ListedJob| self.troubled.items.iter().any(|other| other.view.state.id == job.view.state.id);
        let listed = self.troubled.items.len() + self.overdue.items.iter().filter(|job| !troubled(job)).count();
        let told: BTreeSet<_> = self.incidents.iter().filter(|it| it.job.is_some()).map(|it| &it.key.subject).collect();
        listed + told.len()
    }

    fn others(&self) -> usize {
        let one = |there: bool| usize::from(there);
        let of_cluster = self.incidents.iter().filter(|incident| incident.job.is_none()).count();
        let messages = one(self.dead > 0);
        self.silent.len()
            + of_cluster
            + messages
            + one(self.open_loss.is_some())
            + one(self.drift_ms.is_some())
            + one(self.not_ready.is_some())
    }

    /// How many things there are, as far as they were looked at.
    pub fn count(&self) -> usize {
        self.jobs() + self.others()
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The answer to the first question, large.
    pub fn sentence(&self) -> Markup {
        let (jobs, others) = (self.jobs(), self.others());
        let more = self.troubled.more || self.overdue.more;
        let many = bounded(jobs, more);
        let text = match (jobs, others) {
            (0, 0) => "All jobs are on time.".to_owned(),
            (0, _) => "The cluster needs you.".to_owned(),
            (1, 0) => "1 job needs you.".to_owned(),
            (_, 0) => format!("{many} jobs need you."),
            (_, _) => format!("{many} {} and the cluster need you.", plural(jobs, "job", "jobs")),
        };
        html! { p.sentence { (text) } }
    }

    pub fn list(&self, visit: &Visit) -> Markup {
        if self.is_empty() {
            return html! {};
        }
        html! {
            ul.needs data-list {
                @if let Some(why) = &self.not_ready { li.say.bad { "This node does not schedule: " (why) "." } }
                @if let Some(loss) = self.open_loss {
                    li.say.bad {
                        strong { "Commits were lost. " } "Nothing starts until somebody accepts it: "
                        (loss.window.to_string()) ". " code { "carillon cluster accept" }
                    }
                }
                @for session in &self.silent {
                    li.say.bad { "Node " strong { (session.node) } " has gone silent: its last heartbeat was " (relative(session.heartbeat_at, visit.now)) "." }
                }
                @if let Some(drift_ms) = self.drift_ms {
                    li.say.warn { "The clock of " (visit.api.engine.node()) " is " (spoken(Duration::from_millis(drift_ms.unsigned_abs()))) " "
                        @if drift_ms > 0 { "behind" } @else { "ahead of" } " the database's." }
                }
                @if self.dead > 0 {
                    li.say.warn { a href=(visit.links.to("/alerts?state=dead")) { (self.dead) @if self.dead >= DeliveryCounts::MOST { " or more" } " " (plural(usize::try_from(self.dead).unwrap_or(2), "message", "messages")) } " could not be delivered." }
                }
                @for incident in self.incidents.iter().take(LISTED) { (told(visit, incident)) }
                @for job in self.overdue.items.iter().take(LISTED) { (overdue(visit, job)) }
                @for job in self.troubled.items.iter().take(LISTED) { (troubled(visit, job)) }
                @if self.troubled.items.len() > LISTED { li { a href=(visit.links.to("/jobs?outcome=failed")) { "All jobs whose last run failed" } } }
            }
        }
    }
}

/// Incidents that no other line tells of, one for each subject and class.
fn of_their_own<'a>(
    incidents: &'a [Incident],
    troubled: &Bounded<ListedJob>,
    overdue: &Bounded<ListedJob>,
) -> Vec<&'a Incident> {
    let listed: BTreeSet<SubjectKey> =
        troubled.items.iter().chain(&overdue.items).map(|job| SubjectKey::Job(job.view.state.id)).collect();
    let mut seen = BTreeSet::new();
    let is_new = |incident: &&'a Incident| {
        incident.told_at.is_some()
            && incident.key.class != Class::CommitsLost
            && !listed.contains(&incident.key.subject)
            && seen.insert((&incident.key.subject, incident.key.class))
    };
    incidents.iter().filter(is_new).collect()
}

fn told(visit: &Visit, incident: &Incident) -> Markup {
    html! {
        li.need {
            span.o.o-failed { (word(incident)) }
            (subject(visit, incident))
            a.plain href=(visit.links.to("/alerts")) { @if let Some(last) = &incident.last { (last.sentence) } @else { "Look at the alerts." } }
            span.muted { "since " (clock(incident.since, visit.now, visit.zone)) }
        }
    }
}

fn overdue(visit: &Visit, job: &ListedJob) -> Markup {
    html! {
        li.need {
            span.o.o-timed_out { (Mark::Waiting.icon()) "overdue" }
            (job_link(visit, &key_of(&job.view)))
            span.muted { @if let Some(at) = job.at { "was due " (relative(at, visit.now)) "; no node has started it." } }
        }
    }
}

fn troubled(visit: &Visit, job: &ListedJob) -> Markup {
    let mark = job.view.state.last_end.map_or(Mark::Failed, |end| end.status.into());
    let last = job.view.last_run.as_ref();
    html! {
        li.need {
            (mark.badge())
            (job_link(visit, &key_of(&job.view)))
            @if let Some(record) = last {
                a.plain href=(visit.links.run(record.id)) { (why::recorded(record)) }
                span.muted { (relative(record.finished_at, visit.now)) }
            } @else { span {} span {} }
            @if let Some(since) = job.at { span.muted.at { "since " (clock(since, visit.now, visit.zone)) } }
        }
    }
}
