//! The API.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use carillon_tests::server::Server;
use serde_json::json;

use crate::found::{Found, Row};
use crate::http::Caller;
use crate::lab::Lab;
use crate::lags::Lags;
use crate::site::{Setting, Site, Work};

use super::interval::crowded;

/// Never comes up while this runs.
const NEVER: &str = "@at 2090-01-01T00:00:00Z";
const READERS: usize = 16;
const CREATORS: usize = 64;
/// Batches at the same time, and jobs of each.
const BATCHES: (usize, usize) = (2, 5_000);

pub fn run(lab: &Lab, found: &mut Found) {
    {
        let site = Site::new(lab, &Setting::default());
        let known = lab.size.batch;
        site.create(known, |n| Work::Noop.job(&format!("known-{n}"), NEVER));
        let read = |caller: &mut Caller, number: usize| {
            let (status, _) = caller.call("GET", &format!("/v1/jobs/known-{}", number % known), "");
            (status == 200).then_some(1)
        };
        let rate = rate(lab, site.node(), READERS, read);
        found.row(calls("API reads/s", rate, (5_000.0, 15_000.0), READERS));
        let create = |caller: &mut Caller, number: usize| {
            let body = Work::Noop.job(&format!("single-{number}"), NEVER).to_string();
            (caller.call("POST", "/v1/jobs", &body).0 == 201).then_some(1)
        };
        let rate = self::rate(lab, site.node(), CREATORS, create);
        found.row(calls("API durable creates/s", rate, (1_000.0, 3_000.0), CREATORS));
        let (callers, size) = (BATCHES.0, BATCHES.1.min(lab.size.crowd));
        let create = |caller: &mut Caller, number: usize| {
            let job = |n: usize| Work::Noop.job(&format!("batch-{number}-{n}"), NEVER);
            let items: Vec<_> = (0..size).map(job).collect();
            let (status, body) = caller.call("POST", "/v1/jobs:batch", &json!({ "items": items }).to_string());
            (status == 200 && !body.contains("\"status\":\"error\"")).then_some(size)
        };
        let rate = self::rate(lab, site.node(), callers, create);
        found.row(calls(&format!("API batch creates/s, {size} a call"), rate, (10_000.0, 50_000.0), callers));
    }
    let pauses = pauses(lab);
    found.lags("pauses under full load", "by the caller", &pauses);
    let row = Row::new("API pause latency p99 under full load", pauses.ms(99.0), "ms").at_most(100.0, 20.0);
    found.row(row.note(format!("p50 {:.1} ms, {} calls one after another", pauses.ms(50.0), pauses.count())));
}

fn calls(what: &str, rate: f64, (must, aim): (f64, f64), callers: usize) -> Row {
    Row::new(what, rate, "/s").at_least(must, aim).note(format!("callers: {callers}"))
}

/// How much a second so many callers get done for the window; `call` is given a number that is new each time.
fn rate(lab: &Lab, node: &Server, callers: usize, call: impl Fn(&mut Caller, usize) -> Option<usize> + Sync) -> f64 {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let window = lab.size.window / 3;
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let mut caller = Caller::of(node);
                while began.elapsed() < window {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let count = call(&mut caller, number).expect("the call is answered well");
                    done.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    done.into_inner() as f64 / began.elapsed().as_secs_f64()
}

/// How long each of many pauses takes, and resumes, while the node does all it can.
fn pauses(lab: &Lab) -> Lags {
    let site = crowded(lab, "process", 1);
    crate::site::pause_until(Instant::now() + lab.size.warm);
    let mut caller = Caller::of(site.node());
    let (mut lags, began) = (Lags::new(), Instant::now());
    let mut number = 0;
    while began.elapsed() < lab.size.window {
        let job = format!("/v1/jobs/job-{}", number * 7 % lab.size.crowd);
        let sent = Instant::now();
        let (status, body) = caller.call("POST", &format!("{job}/pause"), "{}");
        lags.add(i64::try_from(sent.elapsed().as_micros()).unwrap_or(i64::MAX));
        assert_eq!(status, 200, "a pause under load: {body}");
        caller.call("POST", &format!("{job}/resume"), "{}");
        number += 1;
    }
    lags
}
