//! The screens of the page: a new screen gets a line here, and is looked at by every test of all screens.

use serde_json::json;

use super::Site;
use crate::browser::Browser;

/// A screen of a site.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Its name.
    pub name: &'static str,
    /// The path that is opened; `{run}` stands for a run that failed, `{living}` for one that lives.
    pub path: &'static str,
    /// The way from there to the screen; most need none.
    pub then: fn(&Site, &Browser),
    /// An element that only this screen has.
    pub element: &'static str,
    /// Words of that element.
    pub words: &'static str,
}

const fn screen(name: &'static str, path: &'static str, element: &'static str, words: &'static str) -> Screen {
    Screen { name, path, then: |_, _| {}, element, words }
}

impl Screen {
    const fn after(self, then: fn(&Site, &Browser)) -> Self {
        Self { then, ..self }
    }
}

/// Every screen that an admin sees on a site with history.
pub const SCREENS: [Screen; 34] = [
    screen("overview", "/", "p.sentence", "1 job needs you."),
    screen("jobs", "/jobs", "table.jobs .name", "backup-database"),
    screen("jobs by team", "/jobs?group=team", "tr.group-head", "team = billing"),
    screen("jobs that match nothing", "/jobs?q=no-such-job", "div.empty", "No job matches."),
    screen("job", "/jobs/default/invoice-export", "h1", "invoice-export"),
    screen("paused job", "/jobs/default/rotate-certificates", "p.say.warn", "the new authority comes"),
    screen("run", "/runs/{run}", "#output", "ledger is locked"),
    screen("run that lives", "/runs/{living}", "#output", "1,204,331 documents"),
    screen("run now", "/jobs/default/rebuild-search-index/run", "p.say.warn", "Its last run still lives"),
    screen("alerts", "/alerts", "table.routes .name", "ops"),
    screen("new route", "/alerts/new", "legend", "When"),
    screen("new route that is at fault", "/alerts/new", "p.fault", "to").after(route_at_fault),
    screen("edit route", "/alerts/ops/edit", "h1", "Route ops"),
    screen("delete route", "/alerts/ops/delete", "button.danger", "Delete ops"),
    screen("pause", "/jobs/default/invoice-export/pause", "label[for=reason]", "Reason"),
    screen("delete", "/jobs/default/invoice-export/delete", "button.danger", "Delete invoice-export"),
    screen("new job", "/jobs/new", "h1", "New job"),
    screen("new job that is at fault", "/jobs/new", "[id='schedule-fault']", "61").after(new_job_at_fault),
    screen("edit", "/jobs/default/invoice-export/edit", "h1", "Edit invoice-export"),
    screen("review", "/jobs/default/invoice-export/edit", ".diff .ins", "55 5 * * *").after(review),
    screen("conflict", "/jobs/default/sync-crm/edit", "h1", "Somebody else changed").after(conflict),
    screen("timeline", "/timeline", "svg.lanes", ""),
    screen("timeline as a table", "/timeline?as=table&hours=1", "main table", "poll-mailbox"),
    screen("timeline of the past", "/timeline?from=2026-01-01T00:00:00Z", "svg.lanes", ""),
    screen("schedules", "/schedules", ".examples", "every night"),
    screen(
        "schedule",
        "/schedules?schedule=30+8+1+*+*&timezone=Europe/Berlin",
        "tr.change",
        "The clock of Europe/Berlin",
    ),
    screen("schedule at fault", "/schedules?schedule=61+*+*+*+*", "#explained .fault", "61"),
    screen("crontab", "/schedules", "table.lines", "polling").after(crontab),
    screen("cluster", "/cluster", "p.sentence", "1 node schedules, and nothing was lost."),
    screen("acceptance of nothing", "/cluster/accept", "main", "There is nothing to accept."),
    screen("audit", "/audit", "table.audit", "job.paused"),
    screen("audit of one job", "/audit?job=rotate-certificates", "table.audit .diff", "the new authority comes"),
    screen("audit that has nothing", "/audit?job=no-such-job", "div.empty", "No entry fits."),
    screen("audit in another zone", "/audit?zone=Asia/Kolkata", ".foot", "Asia/Kolkata"),
];

/// The screens of a site that has nothing yet.
pub const EMPTY_SCREENS: [Screen; 7] = [
    screen("empty overview", "/", "div.empty", "carillon job add"),
    screen("no jobs", "/jobs", "div.empty", "carillon job add"),
    screen("no lanes", "/timeline", "div.empty", "carillon job add"),
    screen("no lanes in a table", "/timeline?as=table", "div.empty", "carillon job add"),
    screen("no alerts", "/alerts", "div.empty", "carillon alert put"),
    screen("no audit", "/audit", "div.empty", "carillon job add"),
    screen("a new cluster", "/cluster", "p.sentence", "1 node schedules"),
];

/// The screens that many jobs change.
pub const FULL_SCREENS: [Screen; 7] = [
    screen("overview", "/", "p.sentence", "All jobs are on time."),
    screen("jobs", "/jobs", "table.jobs .name", "tenant-"),
    screen("jobs by team", "/jobs?group=team", "tr.group-head", "team = "),
    screen("timeline", "/timeline?hours=24", "svg.lanes", ""),
    screen("timeline as a table", "/timeline?as=table", "td.name", "tenant-"),
    screen("schedule", "/schedules?schedule=0+9+*+*+*", "#explained", "At 09:00 every day"),
    screen("audit", "/audit", "table.audit", "job.created"),
];

/// A crontab as people paste them: jobs, a variable, a line at fault.
pub const CRONTAB: &str = "MAILTO=ops@example.org\n\
    # backups\n\
    15 2 * * * /usr/local/bin/backup --all --verify --keep 14 /srv /home /var/lib/mail\n\
    */5 8-18 * * mon-fri /opt/support/polling\n\
    61 * * * * /usr/local/bin/never\n\
    @reboot /usr/local/bin/warm-up\n";

fn new_job_at_fault(_: &Site, browser: &Browser) {
    browser.fill("#name", "compact-archive");
    browser.fill("#schedule", "61 * * * *");
    browser.click("button[value=review]");
}

fn route_at_fault(_: &Site, browser: &Browser) {
    browser.fill("#name", "nobody");
    browser.click("main button.primary");
}

fn review(_: &Site, browser: &Browser) {
    browser.fill("#schedule", "55 5 * * *");
    browser.click("button[value=review]");
}

/// Somebody else changes the job while its form is open.
fn conflict(site: &Site, browser: &Browser) {
    let stored = site.server.get("/v1/jobs/sync-crm");
    let jitter = if stored["jitter"] == "7s" { "8s" } else { "7s" };
    let change = json!({"schedule": stored["schedule"], "params": stored["params"], "labels": stored["labels"], "jitter": jitter});
    let (status, answer) = site.server.call("PUT", "/v1/jobs/sync-crm", Some(&change));
    assert_eq!(status, 200, "{answer}");
    browser.fill("#timeout", "20m");
    browser.click("button[value=review]");
}

fn crontab(_: &Site, browser: &Browser) {
    browser.fill("#text", CRONTAB);
    browser.click("button[value=check]");
}
