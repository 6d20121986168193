//! The screens of the page: a new screen gets a line here, and is looked at by every test of all screens.

/// A screen of a site with history.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Its name.
    pub name: &'static str,
    /// Its path; `{run}` stands for a run that failed.
    pub path: &'static str,
    /// An element that only this screen has.
    pub element: &'static str,
    /// Words of that element.
    pub words: &'static str,
}

const fn screen(name: &'static str, path: &'static str, element: &'static str, words: &'static str) -> Screen {
    Screen { name, path, element, words }
}

/// Every screen that an admin sees.
pub const SCREENS: [Screen; 12] = [
    screen("overview", "/", "p.sentence", "1 job needs you."),
    screen("jobs", "/jobs", "table.jobs .name", "backup-database"),
    screen("jobs by team", "/jobs?group=team", "tr.group-head", "team = billing"),
    screen("jobs that match nothing", "/jobs?q=no-such-job", "div.empty", "No job matches."),
    screen("job", "/jobs/default/invoice-export", "h1", "invoice-export"),
    screen("paused job", "/jobs/default/rotate-certificates", "p.say.warn", "the new authority comes"),
    screen("run", "/runs/{run}", "#output", "ledger is locked"),
    screen("run now", "/jobs/default/rebuild-search-index/run", "p.say.warn", "Its last run still lives"),
    screen("alerts", "/alerts", "table.routes .name", "ops"),
    screen("new route", "/alerts/new", "legend", "When"),
    screen("pause", "/jobs/default/invoice-export/pause", "label[for=reason]", "Reason"),
    screen("delete", "/jobs/default/invoice-export/delete", "button.danger", "Delete invoice-export"),
];
