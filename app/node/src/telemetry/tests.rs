//! The bounds of what is kept for a collector.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use carillon_domain::firing::{Firing, Held};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::run::trace::Sample;
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::Timestamp;

use super::*;
use crate::config::TelemetryConfig;

fn held(seq: u64) -> Held {
    let session = SessionId::from_random(1);
    let due_at = Timestamp::from_secs(i64::try_from(seq).unwrap());
    let (firing, started_at) = (Firing::regular(due_at), Some(due_at));
    Held { firing, run: RunId::drawn(session, seq), session, started_at, fencing_token: 1 }
}

/// A collector that takes connections and never answers, as a frozen one does.
#[tokio::test]
async fn a_collector_that_hangs_costs_a_bounded_queue_and_no_run() {
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let otlp = Some(format!("http://{}", hung.local_addr().unwrap()));
    let config = TelemetryConfig { otlp, sample: Sample::ALL, service: "carillon".to_owned() };
    let (mut tracer, exporting) = start(&config, "n1").unwrap().unwrap();
    let (counts, job) = (exporting.counts(), Arc::new(Job::new(("default", "x"), "* * * * *", "{}")));
    let (begun, runs) = (Instant::now(), 10_000_u64);
    for seq in 1..=runs {
        let held = held(seq);
        assert!(tracer.started(&held, &job).is_sampled());
        tracer.ended(held.run, &Ending::new(Status::Succeeded, Timestamp::EPOCH));
        tracer.recorded(held.run);
    }
    assert!(begun.elapsed() < exporting::SENT_WITHIN, "no run waits for the collector");
    let dropped = counts.dropped.load(Ordering::Relaxed);
    // Those in the queue, and the batch that the thread holds.
    let kept = MOST_WAITING as u64 + exporting::MOST_AT_ONCE as u64;
    assert!((runs - kept..=runs - MOST_WAITING as u64).contains(&dropped), "{dropped} dropped");
    assert_eq!(counts.sent.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_run_that_was_never_recorded_leaves_no_span() {
    let (queue, waiting) = sync_channel(8);
    let config = TelemetryConfig { otlp: None, sample: Sample::ALL, service: "carillon".to_owned() };
    let mut tracer = Tracer::new(&config, queue, Arc::default());
    let job = Arc::new(Job::new(("default", "x"), "* * * * *", "{}"));
    tracer.started(&held(1), &job);
    tracer.recorded(held(1).run);
    tracer.recorded(held(2).run);
    assert!(waiting.try_recv().is_err());
}
