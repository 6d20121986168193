//! A short chaos run; the long ones are `cargo run --release -p carillon-tests --bin chaos`.

use std::time::Duration;

use carillon_tests::chaos::{Class, Kind, Ways};
use carillon_tests::chaos_run::ChaosRun;
use carillon_tests::chaos_run::faults::Pace;
use carillon_tests::cluster::BRISK;
use carillon_tests::databases::Brand;

/// Quick to strike and to get over.
const CLASSES: [Class; 8] = [
    Class::WireCutBefore,
    Class::WireCutAfter,
    Class::WireHalfPacket,
    Class::NodeKilled,
    Class::NodeFrozen,
    Class::KeeperKilled,
    Class::ChildKilled,
    Class::ConnectionsKilled,
];
/// On a machine that is busy with other tests, of what would be some fifty of all classes.
const FAULTS: u64 = 8;
const KINDS: usize = 4;

#[test]
fn faults_of_many_kinds_start_nothing_twice_and_lose_nothing() {
    let dir = tempfile::tempdir().expect("a directory for the run");
    let chaos_run = ChaosRun {
        kind: Kind::One(Brand::MariaDb),
        seed: 7,
        length: Duration::from_secs(40),
        ways: Ways::Named,
        nodes: 3,
        jobs: 40,
        classes: CLASSES.to_vec(),
        pace: Pace { wires: 2, pauses_percent: 100 },
        session: BRISK,
        last_messages: Duration::ZERO,
        dir: dir.path().to_owned(),
    };
    let told = chaos_run.run();
    let strikes = format!("{:?}", told.strikes.tally);
    if !told.is_clean() {
        let kept = dir.keep();
        panic!(
            "at rest: {:?}; ended: {:?}; logs: {:#?}\n{}\n`carillon-check {}` judges it again",
            told.rested,
            told.drained,
            told.bad_lines,
            told.verdict,
            kept.display()
        );
    }
    assert!(told.strikes.effective() >= FAULTS && told.strikes.classes() >= KINDS, "{strikes}");
    assert!(told.verdict.alerts.sent > 0, "{}", told.verdict);
    assert!(told.verdict.starts > 0 && told.verdict.due > 1_000, "{}", told.verdict);
    eprintln!("{strikes}\n{}", told.verdict);
}
