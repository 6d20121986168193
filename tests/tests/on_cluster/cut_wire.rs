//! A node whose connections are cut in the middle of its COMMITs, again and again: the outcome is unknown to it, and the
//! exception matrix has to find it out.

use std::time::{Duration, Instant};

use carillon_checker::judge;
use carillon_tests::cluster::{Cluster, PATIENT, Witness};
use carillon_tests::databases::Server;
use carillon_tests::databases::proxy::{COMMIT, LONE_START, Proxy, Trap};
use carillon_tests::jobs::{job, status};
use carillon_tests::waiting::wait_until;
use serde_json::json;

use super::{database, settled, wait_for_more};

/// A query packet that locks partitions for what follows.
const LOCKS: &str = "\u{3}UPDATE lock_row";
/// The transitions of the matrix that a node makes all the time.
const STEPS: [&str; 3] = ["claim", "start", "finish"];
/// How often each is to be hit in each way at least, and how long that may take: which COMMIT comes next is a matter of chance.
const HITS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(240);

#[test]
fn commits_of_unknown_outcome_start_nothing_twice_and_lose_nothing() {
    let database = database();
    let wire = Proxy::to(Server::shared(crate::BRAND).port());
    let near = format!("{PATIENT}[scheduler]\nhorizon = \"1s\"\n");
    let cut = Cluster::new(&database.url_through(wire.port()), &near);
    let whole = Cluster::new(&database.url(), PATIENT);
    let witness = Witness::new(cut.dir());
    let (node, other) = (cut.node("cut"), whole.node("whole"));
    let names: Vec<String> = (0..30).map(|n| format!("job-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        // A run that ends within the horizon of its next due time is claimed in its finish; one that ends before is not.
        let steps = if n % 2 == 0 { 1 } else { 12 };
        other.create(&job(name, "@every 2s", &witness.command(steps, 100, "0"), json!({})));
        // Due times follow from the creation: spread over the second, so that a cut finds now this, now that.
        std::thread::park_timeout(Duration::from_millis(50));
    }
    wait_for_more(&witness, 60);

    let unknown = || -> Vec<usize> {
        let log = node.log();
        let of = |step: &str| {
            let hit = |line: &&str| line.contains(&format!("call=\"{step}\"")) && line.contains("it is not known");
            log.lines().filter(hit).count()
        };
        STEPS.iter().map(|step| of(step)).collect()
    };
    let begun = Instant::now();
    for trap in [Trap::CutBefore, Trap::CutAfter] {
        let before = unknown();
        for (step, before) in before.iter().enumerate() {
            while unknown()[step] - before < HITS {
                assert!(begun.elapsed() < PATIENCE, "{trap:?} has hit {:?} of {STEPS:?}\n{}", unknown(), node.log());
                let sprung = wire.sprung();
                match STEPS[step] {
                    "claim" => wire.set_after(trap, LOCKS, COMMIT),
                    "start" => wire.set(trap, LONE_START),
                    _ => wire.set(trap, COMMIT),
                }
                wait_until("a commit is cut", || wire.sprung() > sprung);
                // Were all of them cut, nothing would ever be claimed and started.
                wait_for_more(&witness, 15);
            }
        }
    }
    wait_for_more(&witness, 60);

    let runs = settled(&other, &names);
    let verdict = judge(&witness.evidence_every(2, &runs));
    assert!(verdict.is_clean(), "{verdict}");
    let ended_badly = |run: &&serde_json::Value| !matches!(status(run), "succeeded" | "skipped");
    assert_eq!(runs.iter().find(ended_badly), None, "{verdict}");
    assert!(!node.log().contains("an invariant does not hold"), "{}", node.log());
    eprintln!("{} commits cut, {:?} of {STEPS:?} unknown\n{verdict}", wire.sprung(), unknown());
    assert!(node.drain().success());
}
