//! Old history is deleted, as a server does it, while jobs run.

use std::time::{Duration, Instant};

use carillon_store::ControlStore;
use carillon_store::mysql::{MySqlStore, Options};

use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::many;
use crate::numbers;
use crate::records::{Stretch, lateness};
use crate::site::{Setting, Site, Work, pause_until};

/// As much as a server deletes at once, how many times as long as that took it rests, and what it keeps.
const ROWS_AT_ONCE: usize = 500;
const RESTS: u32 = 4;
const KEEP: Duration = Duration::from_secs(30 * 86_400);
const MAX_RUNS_PER_JOB: u32 = 10_000;
/// Jobs that the history is of.
const JOBS: u64 = 2_000;
const AGE_MS: i64 = 60 * 86_400_000;
/// Firings a second meanwhile.
const PACE: usize = 100;

pub fn run(lab: &Lab, found: &mut Found) {
    let mut site = Site::empty(lab, &Setting::default());
    site.start_node();
    fill(lab, &site);
    site.spread(Work::NoopTime, PACE);
    pause_until(Instant::now() + lab.size.warm);
    let without = watched(&site, || pause_until(Instant::now() + lab.size.window));
    let mut deleted = 0;
    let mut took = Duration::ZERO;
    let with = watched(&site, || (deleted, took) = purge(lab, &site));
    for (name, late) in [("without", &without), ("beside", &with)] {
        found.lags(&format!("{PACE} firings/s {name} a purge, noop"), "recorded", &late.recorded);
        found.lags(&format!("{PACE} firings/s {name} a purge, noop"), "at the executor", &late.executor);
    }
    let rows = lab.size.history;
    found.row(
        Row::new(format!("purge of {rows} rows of history"), deleted as f64 / took.as_secs_f64(), "rows/s")
            .note(format!("{ROWS_AT_ONCE} at once for {:.1} s, beside {PACE} firings/s", took.as_secs_f64())),
    );
    let p99 = with.executor.ms(99.0);
    let note = format!("without it {:.1} ms", without.executor.ms(99.0));
    found.row(Row::new(format!("lag p99 of {PACE} firings/s beside a purge, at the executor"), p99, "ms").note(note));
}

/// History of two months ago, each job with less than it may keep.
fn fill(lab: &Lab, site: &Site<'_>) {
    site.create(1, |_| Work::Noop.job("template", "@every 1s"));
    site.wait_for_finished(1);
    site.node().post("/v1/jobs/template/pause", &serde_json::json!({}));
    numbers::prepare(&site.scratch);
    let since = now_ms() - AGE_MS;
    many::records(site, JOBS, since, lab.size.history);
    site.scratch.fill(&[format!("DELETE FROM run WHERE finished_at > {}", now_ms() - AGE_MS / 2)]);
}

fn watched(site: &Site<'_>, work: impl FnOnce()) -> crate::records::Lateness {
    let from = now_ms();
    work();
    lateness(&site.scratch, Stretch { from, until: now_ms() })
}

/// For as long as the window lasts, or until nothing is left; how many rows, and how long.
fn purge(lab: &Lab, site: &Site<'_>) -> (usize, Duration) {
    lab.block(async {
        let store = MySqlStore::open(&site.scratch.url(), Options::default()).await.expect("a store");
        let (began, mut deleted) = (Instant::now(), 0);
        while began.elapsed() < lab.size.window {
            let now = store.now().await.expect("the database's time");
            let call = Instant::now();
            let rows = store.purge(now - KEEP, MAX_RUNS_PER_JOB, ROWS_AT_ONCE).await.expect("history is purged");
            deleted += rows;
            if rows == 0 {
                break;
            }
            tokio::time::sleep(call.elapsed() * RESTS).await;
        }
        (deleted, began.elapsed())
    })
}
