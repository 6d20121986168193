//! Many jobs stored: what is near is found as fast among ten million as among one, and what is far costs no memory.

use std::time::{Duration, Instant};

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::time::Timestamp;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_store::{ClaimRequest, Me, NewSession, NodeStore, PeekRequest};
use carillon_tests::processes::{keeper, resident_kib};
use carillon_tests::waiting::wait_until_within;

use crate::found::{Found, Row};
use crate::http::Caller;
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::many::{self, PARTITIONS};
use crate::numbers;
use crate::site::{Setting, Site, Work, metric};

const NEVER: &str = "@at 2090-01-01T00:00:00Z";
/// How far ahead the armed jobs are due, and how far the node looks.
const AHEAD: Duration = Duration::from_secs(1_800);
const HORIZON: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(60);
/// Firings of one claim, and jobs of one page.
const AT_ONCE: usize = 1_000;
const PAGE: usize = 100;

/// How long the looks at a table of some size take.
struct Scan {
    peek: Duration,
    claim: Duration,
}

pub fn run(lab: &Lab, found: &mut Found) {
    let [small, large] = lab.size.stored;
    let setting = Setting { horizon: "1h", limits: (lab.size.armed * 2, lab.size.armed), ..Setting::default() };
    let mut site = prepared(lab, &setting);
    fill(&site, 0, small);
    let of_small = lab.block(scan(lab, &site));
    start(&mut site, found, small);
    memory(lab, &site, found, small);
    pages(&site, found, small);
    drain(&mut site);
    fill(&site, small, large);
    let of_large = lab.block(scan(lab, &site));
    for (what, small, large) in
        [("claim", of_small.claim, of_large.claim), ("look ahead", of_small.peek, of_large.peek)]
    {
        let ratio = large.as_secs_f64() / small.as_secs_f64().max(1e-9);
        let note = format!("{:.2} ms against {:.2} ms, median of {}", ms(large), ms(small), lab.size.scans);
        let what = format!("due scan at {} rows vs {} rows, {what}", lab.size.stored[1], lab.size.stored[0]);
        found.row(Row::new(what, ratio, "x").at_most(1.5, 1.2).note(note));
    }
    start(&mut site, found, large);
}

/// A database with jobs that are soon due, and one that never is, which the others are copies of. The node that made them
/// is gone.
fn prepared<'a>(lab: &'a Lab, setting: &Setting) -> Site<'a> {
    let mut site = Site::empty(lab, setting);
    site.start_node();
    site.create(1, |_| Work::Noop.job("template", NEVER));
    site.shoot(Work::Noop, lab.size.armed, AHEAD, "armed");
    wait_until_within(PATIENCE, "the jobs are claimed", || prepared_on(&site) == lab.size.armed as u64);
    drain(&mut site);
    numbers::prepare(&site.scratch);
    site
}

/// Ends the node in good order: what it has claimed goes back.
fn drain(site: &mut Site<'_>) {
    let status = site.nodes.remove(0).drain();
    assert!(status.success(), "the node drains: {status}");
}

fn prepared_on(site: &Site<'_>) -> u64 {
    metric(site.node(), "carillon_prepared")
}

/// More jobs that come up in 2090. Those beyond the smaller number are rows of the hot table alone: nothing that is measured
/// among so many reads more.
fn fill(site: &Site<'_>, from: u64, until: u64) {
    many::jobs(site, "template", from == 0, (from, until));
}

/// The calls of a node: a peek, and a claim, which is released.
async fn scan(lab: &Lab, site: &Site<'_>) -> Scan {
    let store = MySqlStore::open(&site.scratch.url(), Options::default()).await.expect("a store");
    let session = SessionId::from_random(now_ms().unsigned_abs());
    let (node, address, version) = ("bench".to_owned(), "127.0.0.1:7650".to_owned(), "0.1.0".to_owned());
    store.open_session(&NewSession { id: session, node, address, version }).await.expect("a session");
    let partitions: Vec<u16> = (0..PARTITIONS).collect();
    let (executors, until) = (vec!["noop".to_owned(), "shell".to_owned()], Timestamp::from_ms(now_ms()) + HORIZON);
    let (mut peeks, mut claims) = (Vec::new(), Vec::new());
    let mut drawn = 0;
    for _ in 0..lab.size.scans {
        let request = PeekRequest { session, partitions: partitions.clone(), until, executors: executors.clone() };
        let began = Instant::now();
        store.peek(&request).await.expect("a look");
        peeks.push(began.elapsed());
        let count = AT_ONCE.min(lab.size.armed);
        let runs = (0..count).map(|_| {
            drawn += 1;
            RunId::drawn(session, drawn)
        });
        let request = ClaimRequest {
            me: Me::new(session),
            partitions: partitions.clone(),
            until,
            runs: runs.collect(),
            places: 0,
            executors: executors.clone(),
        };
        let began = Instant::now();
        let claimed = store.claim(&request).await.expect("a claim");
        claims.push(began.elapsed());
        assert_eq!(claimed.len(), count, "all that were asked for are soon due");
        let given_back: Vec<_> = claimed.iter().map(|claimed| claimed.at).collect();
        store.release(session, &given_back).await.expect("they are given back");
    }
    store.close_session(session).await.expect("the session ends");
    Scan { peek: median(peeks), claim: median(claims) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn start(site: &mut Site<'_>, found: &mut Found, stored: u64) {
    let began = Instant::now();
    site.start_node();
    found.row(Row::new(format!("start until ready, {stored} jobs stored"), began.elapsed().as_secs_f64(), "s"));
}

/// Resident memory once the jobs within the horizon are armed.
fn memory(lab: &Lab, site: &Site<'_>, found: &mut Found, stored: u64) {
    let armed = lab.size.armed as u64;
    wait_until_within(PATIENCE, "the jobs within the horizon are armed", || prepared_on(site) == armed);
    let pid = site.node().pid();
    let mib = |pid: i32| resident_kib(pid) as f64 / 1_024.0;
    let of_keeper = keeper(pid).map_or(0.0, mib);
    let what = format!("resident memory, {stored} jobs stored, {armed} armed");
    let note = format!("with its keeper {:.1} MB", megabytes(mib(pid) + of_keeper));
    found.row(Row::new(what, megabytes(mib(pid)), "MB").at_most(100.0, 60.0).note(note));
}

fn megabytes(mib: f64) -> f64 {
    mib * 1.048_576
}

/// The first page of the list, and one at nine tenths of it.
fn pages(site: &Site<'_>, found: &mut Found, stored: u64) {
    let mut caller = Caller::of(site.node());
    let mut page = |path: &str| {
        let mut times = Vec::new();
        let mut last = String::new();
        for _ in 0..9 {
            let began = Instant::now();
            let (status, body) = caller.call("GET", path, "");
            times.push(began.elapsed());
            assert_eq!(status, 200, "GET {path}: {body:.300}");
            last = body;
        }
        (ms(median(times)), last)
    };
    let (first, _) = page(&format!("/v1/jobs?limit={PAGE}"));
    found.row(Row::new(format!("first page of the list, {stored} jobs stored"), first, "ms"));
    // The cursor of a page that the prefix leads to goes on through the whole list.
    let deep = format!("stored-{:08}", stored * 9 / 10);
    let (_, body) = page(&format!("/v1/jobs?limit=1&prefix={}", &deep[..deep.len() - 2]));
    let body: serde_json::Value = serde_json::from_str(&body).expect("a page is JSON");
    if let Some(cursor) = body["next_cursor"].as_str() {
        let (deep, _) = page(&format!("/v1/jobs?limit={PAGE}&cursor={cursor}"));
        found.row(Row::new(format!("page at nine tenths of the list, {stored} jobs stored"), deep, "ms"));
    }
}
