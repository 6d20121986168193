//! The jobs of a company, with harmless commands.

use serde_json::{Value, json};

/// A job, and how its past is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub name: &'static str,
    schedule: &'static str,
    team: &'static str,
    /// The minutes between two due times.
    pub every_min: i64,
    /// Its usual duration in milliseconds.
    pub usual_ms: i64,
    /// Of so many runs one fails; 0 for none.
    pub fails_one_of: u64,
}

const fn entry(
    name: &'static str,
    schedule: &'static str,
    team: &'static str,
    (every_min, usual_ms, fails_one_of): (i64, i64, u64),
) -> Entry {
    Entry { name, schedule, team, every_min, usual_ms, fails_one_of }
}

const DAY: i64 = 24 * 60;

/// All of them.
pub(super) const JOBS: [Entry; 20] = [
    entry("backup-database", "15 2 * * *", "platform", (DAY, 1_920_000, 0)),
    entry("backup-uploads", "45 3 * * *", "platform", (DAY, 640_000, 0)),
    entry("check-disk-space", "*/5 * * * *", "platform", (5, 180, 0)),
    entry("expire-sessions", "*/10 * * * *", "web", (10, 900, 0)),
    entry("export-analytics", "30 4 * * MON", "data", (7 * DAY, 410_000, 0)),
    entry("fetch-exchange-rates", "7 * * * *", "billing", (60, 2_300, 41)),
    entry("invoice-export", "20 5 * * *", "billing", (DAY, 95_000, 9)),
    entry("monthly-statement", "0 6 1 * *", "billing", (30 * DAY, 730_000, 0)),
    entry("poll-mailbox", "*/2 * * * *", "support", (2, 1_100, 300)),
    entry("purge-old-logs", "H 1 * * *", "platform", (DAY, 51_000, 0)),
    entry("rebuild-search-index", "0 */4 * * *", "web", (240, 380_000, 0)),
    entry("refresh-dashboards", "*/15 * * * *", "data", (15, 14_000, 23)),
    entry("reindex-tickets", "10 */2 * * *", "support", (120, 33_000, 0)),
    entry("rotate-certificates", "0 4 * * SUN", "platform", (7 * DAY, 8_000, 0)),
    entry("send-reminders", "0 9 * * MON-FRI", "billing", (DAY, 21_000, 0)),
    entry("sync-crm", "*/30 * * * *", "support", (30, 47_000, 17)),
    entry("sync-inventory", "H/20 * * * *", "web", (20, 5_200, 60)),
    entry("thumbnail-backlog", "*/10 * * * *", "web", (10, 73_000, 0)),
    entry("verify-backups", "0 11 * * *", "platform", (DAY, 260_000, 0)),
    entry("warm-caches", "0 * * * *", "web", (60, 9_500, 0)),
];

/// The command that fails.
const FAILURE: &str =
    r"printf 'reading 4,210 invoices\n\033[1;31mledger is locked\033[0m by pid 3177, giving up\n'; exit 3";
/// The one that a looker finds running.
const LONG: &str = "echo 'indexing 1,204,331 documents'; exec sleep 300";

/// As the API takes them.
pub(super) fn definitions() -> Vec<Value> {
    let definition = |job: &Entry| {
        let command = match job.name {
            "invoice-export" => FAILURE.to_owned(),
            "rebuild-search-index" => LONG.to_owned(),
            name => format!("echo '{name} is done'"),
        };
        json!({"name": job.name, "schedule": job.schedule, "params": {"command": command},
               "labels": {"team": job.team}})
    };
    JOBS.iter().map(definition).collect()
}

/// The job of a tenant: names of every length, schedules of every kind.
pub(super) fn of_tenant(number: usize) -> Value {
    const WORK: [&str; 5] = ["sync", "invoice", "nightly-export-of-everything-to-the-warehouse", "ping", "report_2"];
    const SCHEDULES: [&str; 5] =
        ["H * * * *", "H H * * *", "H H(0-5) * * MON-FRI", "@every 6h", "15 8,12,18 1-7 * MON"];
    const TEAMS: [&str; 3] = ["billing", "data", "tenants"];
    let name = format!("tenant-{number:05}-{}", WORK[number % WORK.len()]);
    let params = json!({"command": format!("echo '{name} is done'")});
    json!({"name": name, "schedule": SCHEDULES[number % SCHEDULES.len()], "params": params,
           "labels": {"team": TEAMS[number % TEAMS.len()]}})
}
