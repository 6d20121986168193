//! Schedules: what would this mean? An expression is explained, a crontab is read and imported.

mod crontab;
mod crowd;
pub(crate) mod explain;
mod import;

use carillon_domain::name::{check_job_name, check_namespace};
use maud::{Markup, html};

use self::crontab::{Fate, Given};
use self::explain::{Asked, explained, refused};
use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::layout::{Shown, View, sentence};
use crate::page::params::Params;
use crate::page::screens::parts::csrf;
use crate::page::visit::{Fault, Request, Visit};

/// The screen.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let schedule = visit.params.get("schedule").unwrap_or_default();
    let timezone = visit.params.get("timezone").map(str::trim);
    let key = visit.params.get("key").unwrap_or_default();
    let asked = Asked { schedule, timezone, key };
    let read = (!schedule.is_empty()).then(|| asked.read());
    let crowd = match &read {
        Some(Ok(schedule)) => crowd::note(visit, &asked, schedule).await?,
        _ => html! {},
    };
    let body = html! {
        h1 { "Schedules" }
        section.group {
            (expression_form(visit))
            div #explained .group aria-live="polite" {
                @match &read {
                    None => { (examples(visit)) }
                    Some(Ok(schedule)) => { (explained(visit, schedule)) (crowd) }
                    Some(Err(fault)) => { (refused(fault)) }
                }
            }
        }
        (crontab_section(visit, &Given::empty(visit), None))
    };
    let given = visit.state().only(&["schedule", "timezone"]);
    let cli = match (visit.params.get("schedule"), timezone) {
        (None, _) => "carillon explain '0 3 * * *'".to_owned(),
        (Some(text), None) => format!("carillon explain {}", quoted(text)),
        (Some(text), Some(zone)) => format!("carillon explain {} --timezone {}", quoted(text), quoted(zone)),
    };
    let json = serde_json::json!({"schedule": given.get("schedule").unwrap_or("0 3 * * *"), "timezone": timezone});
    Ok(View::new("Schedules", body).posting("/v1/schedules/explain", json.to_string(), cli))
}

/// A word of a shell's line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn expression_form(visit: &Visit) -> Markup {
    let get = |key| visit.params.get(key).unwrap_or_default();
    html! {
        form.filters method="get" action=(visit.links.to("/schedules")) data-filter {
            input #schedule .grow type="text" name="schedule" value=(get("schedule")) placeholder="0 3 * * *" aria-label="Schedule"
                maxlength="1024" autocomplete="off" spellcheck="false" data-keep;
            input type="text" name="timezone" value=(get("timezone")) placeholder="time zone, such as Europe/Berlin" aria-label="Time zone of the schedule"
                maxlength="64" autocomplete="off" spellcheck="false" data-keep;
            @if let Some(zone) = visit.params.get("zone") { input type="hidden" name="zone" value=(zone); }
            button { "Explain" }
        }
    }
}

fn examples(visit: &Visit) -> Markup {
    const EXAMPLES: [(&str, &str); 6] = [
        ("0 3 * * *", "every night"),
        ("*/5 8-18 * * MON-FRI", "while people work"),
        ("H * * * *", "each hour, at a minute of its own"),
        ("0 9 L * *", "on the last day of each month"),
        ("30 8 * * MON#1", "on the first Monday"),
        ("@every 90s", "at an interval"),
    ];
    html! {
        ul.examples { @for (text, when) in EXAMPLES {
            li { a href=(visit.links.with("/schedules", &Params::default().with("schedule", Some(text)))) { code { (text) } } " " span.muted { (when) } }
        } }
    }
}

/// `POST /schedules`: what becomes of each line of a crontab; with `do=import` its jobs are stored.
pub(crate) async fn crontab(request: &mut Request) -> Result<Shown, Fault> {
    let (visit, form) = request.form(Role::Viewer).await?;
    let imports = form.get("do") == Some("import");
    if imports {
        visit.caller.needs(Role::Admin)?;
    }
    let given = Given::of(&visit, &form);
    if check_namespace(&given.namespace).is_ok() {
        visit.caller.enters(&given.namespace)?;
    }
    let outcome = match given.read() {
        Err(problem) => Err(problem),
        Ok(lines) => {
            let mut fates = import::planned(&visit, &given, lines).await?;
            // Before the jobs, so that no output of theirs is missed.
            import::mail(&visit, &given.namespace, &mut fates, imports).await?;
            if imports {
                import::store(&visit, &mut fates).await?;
            }
            Ok((fates, imports))
        }
    };
    let body = html! {
        p { a href=(visit.links.to("/schedules")) { "← Schedules" } }
        h1 { "A crontab" }
        (crontab_section(&visit, &given, Some(&outcome)))
    };
    let cli = format!(
        "crontab -l | carillon import - --namespace {}{}",
        given.namespace,
        if imports { "" } else { " --dry-run" }
    );
    let view = View::new("A crontab", body).otherwise("/v1/jobs?namespace=*&label=crontab", cli);
    Ok(Shown::View(Box::new(visit), Box::new(view)))
}

type Outcome = Result<(Vec<Fate>, bool), Problem>;

fn crontab_section(visit: &Visit, given: &Given, outcome: Option<&Outcome>) -> Markup {
    let fault = outcome.and_then(|outcome| outcome.as_ref().err());
    html! {
        section.group {
            @if outcome.is_none() {
                h2 { "A crontab" }
                p.muted { "Paste one, and see the meaning of each line. Nothing is stored by looking." }
            }
            @if let Some(Ok((fates, imported))) = outcome { (crontab::results(visit, fates, *imported)) }
            form.stack method="post" action=(visit.links.to("/schedules")) {
                (csrf(visit))
                @if let Some(problem) = fault { p #fault .say.bad role="alert" { (sentence(&problem.detail)) } }
                label for="text" { "Lines" }
                textarea #text name="text" rows="10" spellcheck="false" placeholder="0 3 * * * /usr/local/bin/backup" { "\n" (given.text) }
                div.row {
                    span.labelled {
                        label for="namespace" { "Namespace" }
                        input #namespace .short type="text" name="namespace" value=(given.namespace) maxlength="128";
                    }
                    span.labelled {
                        label for="file" { "File" }
                        input #file .short type="text" name="file" value=(given.file) maxlength="128" aria-describedby="file-note";
                    }
                    span.labelled {
                        label for="crontab-zone" { "Time zone" }
                        input #crontab-zone .short type="text" name="timezone" value=(given.timezone.as_deref().unwrap_or_default()) placeholder="UTC" maxlength="64";
                    }
                }
                label.check { input type="checkbox" name="system" value="yes" checked[given.system]; " A user stands before each command, as in /etc/cron.d" }
                label.check { input type="checkbox" name="ignore_user" value="yes" checked[given.ignore_user]; " Run everything as the server's own user" }
                p #file-note .note { "Jobs carry the label crontab with the name of the file. The same file imported again changes the same jobs." }
                div.row {
                    button.primary name="do" value="check" { "See what becomes of it" }
                    @if visit.may(Role::Admin) { button name="do" value="import" { "Import" } }
                }
            }
        }
    }
}

/// Whether the namespace and the names that are made from the file are usable.
fn check_place(namespace: &str, file: &str) -> Result<(), Problem> {
    check_namespace(namespace).map_err(|error| Problem::field("namespace", error.to_string()))?;
    let stem = carillon_domain::crontab::stem(file);
    check_job_name(&stem).map_err(|error| Problem::field("file", error.to_string()))
}
