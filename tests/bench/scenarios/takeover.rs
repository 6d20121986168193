//! How long the jobs of a killed node rest.

use std::time::{Duration, Instant};

use carillon_tests::waiting::wait_until_within;

use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::records::elsewhere;
use crate::site::{Setting, Site, Work, pause_until};

/// Much longer than it may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(lab: &Lab, found: &mut Found) {
    // Half of them are the dead node's.
    let (taken_over, session) = lab.size.taken_over;
    let jobs = taken_over * 2;
    let setting = Setting { session, ..Setting::default() };
    let mut site = Site::with_nodes(lab, &setting, 2);
    site.spread(Work::Noop, jobs);
    site.wait_for_finished(jobs * 2);
    pause_until(Instant::now() + lab.size.warm);
    let (dead, killed) = ("node-1", now_ms());
    site.nodes.remove(0).kill();
    let mut last = 0;
    wait_until_within(PATIENCE, "all jobs run on the other node", || {
        std::thread::park_timeout(Duration::from_millis(200));
        let (at, count) = elsewhere(&site.scratch, dead, killed);
        last = at;
        count >= jobs as u64
    });
    let seconds = (last - killed) as f64 / 1_000.0;
    found.row(Row::new("takeover after kill -9, fast timing", seconds, "s").at_most(6.0, 5.0).note(format!(
        "until the last of {jobs} jobs at `@every 1s`, half of which the dead node had, has run on the other node"
    )));
}
