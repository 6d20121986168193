//! A crontab that somebody pasted, and the fate of its lines.

use carillon_domain::crontab::{self, ImportOptions, Line, LineKind};
use carillon_store::JobKey;
use maud::{Markup, html};

use super::check_place;
use super::explain::Asked;
use crate::http::problem::Problem;
use crate::page::layout::sentence;
use crate::page::outcome::Mark;
use crate::page::params::Params;
use crate::page::screens::parts::{grouped, plural};
use crate::page::visit::Visit;
use crate::page::zone::{clock, relative};
use carillon_json::crontab_jobs::check_schedule;

/// The form as it was filled in.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub text: String,
    pub namespace: String,
    /// The name of the file.
    pub file: String,
    pub timezone: Option<String>,
    pub system: bool,
    pub ignore_user: bool,
}

impl Given {
    /// The form before anybody filled it in.
    pub fn empty(visit: &Visit) -> Self {
        Self::of(visit, &Params::default())
    }

    pub fn of(visit: &Visit, form: &Params) -> Self {
        let text = |key| form.get(key).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let own = visit.caller.namespaces().and_then(|names| names.first().cloned());
        Self {
            text: form.get("text").unwrap_or_default().replace("\r\n", "\n"),
            namespace: text("namespace").or(own).unwrap_or_else(|| "default".to_owned()),
            file: text("file").unwrap_or_else(|| "crontab".to_owned()),
            timezone: text("timezone"),
            system: form.get("system").is_some(),
            ignore_user: form.get("ignore_user").is_some(),
        }
    }

    /// The lines.
    pub fn read(&self) -> Result<Vec<Line>, Problem> {
        check_place(&self.namespace, &self.file)?;
        if self.text.trim().is_empty() {
            return Err(Problem::field("lines", "there are none"));
        }
        if let Some(zone) = &self.timezone {
            check_schedule("@daily", Some(zone), "").map_err(|error| Problem::field("time zone", error))?;
        }
        let options = ImportOptions {
            file: &self.file,
            system: self.system,
            ignore_user: self.ignore_user,
            timezone: self.timezone.as_deref(),
        };
        let check = |schedule: &str, timezone: Option<&str>| check_schedule(schedule, timezone, &self.namespace);
        Ok(crontab::parse(self.text.as_bytes(), &options, &check))
    }
}

/// The fate of a line.
#[derive(Debug, Clone)]
pub(super) struct Fate {
    pub line: Line,
    /// `created`, `updated` or `unchanged`, where the line is a job.
    pub change: Option<&'static str>,
    /// Why its job was not stored.
    pub refused: Option<String>,
    /// The route that mails for this line.
    pub mail: Option<String>,
    /// The definition, for a job that is new or differs.
    pub put: Option<(serde_json::Value, carillon_store::PutIf)>,
    pub namespace: String,
}

/// The fate of each line, done or planned.
pub(super) fn results(visit: &Visit, fates: &[Fate], imported: bool) -> Markup {
    let count = |fits: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| fits(fate)).count();
    let jobs = count(&|fate| matches!(fate.line.what, LineKind::Job(_)) && fate.refused.is_none());
    let faults = count(&|fate| fate.refused.is_some() || matches!(fate.line.what, LineKind::Error { .. }));
    let changed =
        ["created", "updated", "unchanged"].map(|change| (change, count(&|fate| fate.change == Some(change))));
    let class = if faults > 0 { "say bad" } else { "say" };
    html! {
        p #said class=(class) role="status" {
            @if imported { "Imported " } @else { "Nothing is stored yet. It has " }
            (grouped(jobs as u64)) " " (plural(jobs, "job", "jobs"))
            @for (change, count) in changed.iter().filter(|(_, count)| *count > 0) { ", " (count) " " (change) }
            ", " (faults) " " (plural(faults, "line at fault", "lines at fault")) "."
        }
        div.scroll tabindex="0" role="region" aria-label="The lines of the crontab" { table.lines {
            thead { tr {
                th.n scope="col" { "Line" } th scope="col" { "Result" } th scope="col" { "Job" } th scope="col" { "Schedule" } th scope="col" { "Next" }
            } }
            tbody data-list { @for fate in fates.iter().filter(|fate| fate.line.what != LineKind::Comment) { (row(visit, fate, imported)) } }
        } }
    }
}

fn row(visit: &Visit, fate: &Fate, imported: bool) -> Markup {
    let mark = match (&fate.line.what, &fate.refused) {
        (LineKind::Error { .. }, _) | (_, Some(_)) => Mark::Failed,
        (LineKind::Skipped { .. }, _) => Mark::Skipped,
        (LineKind::Job(_), None) => Mark::Succeeded,
        _ => Mark::Idle,
    };
    let word = match (&fate.line.what, fate.change) {
        (_, _) if mark == Mark::Failed => "at fault",
        (LineKind::Job(_), Some("created")) if !imported => "new",
        (LineKind::Job(_), Some("updated")) if !imported => "differs",
        (LineKind::Job(_), change) => change.unwrap_or("job"),
        (LineKind::Env { .. }, _) => "variable",
        (_, _) => fate.line.status(),
    };
    let reason = fate.refused.as_deref().or(fate.mail.as_deref()).or(fate.line.reason());
    html! {
        tr {
            td.n { (fate.line.number) }
            td.nowrap { span class=(format!("o o-{}", mark.as_str())) { (mark.icon()) (word) } }
            td.name {
                @match &fate.line.what {
                    LineKind::Job(job) => {
                        @if imported && fate.refused.is_none() {
                            a href=(visit.links.job(&JobKey { namespace: fate.namespace.clone(), name: job.name.clone() })) { (job.name) }
                        } @else { (job.name) }
                        br; code.muted { (job.command) }
                    }
                    LineKind::Env { name, value } => { code { (name) "=" (value) } }
                    LineKind::Skipped { command, .. } => { code.muted { (command) } }
                    LineKind::Error { .. } | LineKind::Comment => {}
                }
                @if let Some(reason) = reason { p class=(if mark == Mark::Failed { "fault" } else { "note" }) { (sentence(reason)) } }
            }
            (due(visit, fate))
        }
    }
}

/// The schedule in words, and its next time.
fn due(visit: &Visit, fate: &Fate) -> Markup {
    let LineKind::Job(job) = &fate.line.what else {
        return html! { td { @if let Some(schedule) = fate.line.schedule() { code.muted { (schedule) } } } td {} };
    };
    let key = format!("{}/{}", fate.namespace, job.name);
    let read = Asked { schedule: &job.schedule, timezone: job.timezone.as_deref(), key: &key }.read().ok();
    let next = read.as_ref().and_then(|schedule| schedule.next_after(visit.now));
    html! {
        td { @if let Some(schedule) = &read { (schedule.describe()) " " } code.muted { (job.schedule) } }
        td.nowrap { @if let Some(next) = next { (relative(next, visit.now)) " " span.muted { (clock(next, visit.now, visit.zone)) } } }
    }
}
