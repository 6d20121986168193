//! Two nodes with a handful of jobs, and faults that strike until they take effect.

use std::time::{Duration, Instant};

use carillon_tests::chaos::{Class, Dice, Field, Kind, Outcome, Plan, Seen, Target, Ways, strike};
use carillon_tests::cluster::Witness;
use carillon_tests::server::LOG;
use carillon_tests::waiting::wait_until_within;
use serde_json::json;

/// How long a cluster may take to get over a fault: nodes that fenced themselves start again, others expire.
const RECOVERY: Duration = Duration::from_secs(60);

/// Nodes that name the servers themselves.
pub fn field(kind: Kind, timing: &str, small_disk: bool, clocks: bool) -> (Field, Witness) {
    field_by(kind, Ways::Named, timing, small_disk, clocks)
}

/// The same with other ways of the nodes to the members.
pub fn field_by(kind: Kind, ways: Ways, timing: &str, small_disk: bool, clocks: bool) -> (Field, Witness) {
    let topology = (kind == Kind::Galera).then_some("galera");
    let plan = Plan { kind, topology, ways, nodes: 2, config: timing.to_owned(), small_disk, clocks };
    let field = Field::start(&plan);
    let witness = Witness::new(field.cluster.dir());
    let node = field.nodes[0].member.server().expect("it runs");
    for n in 0..6 {
        let job = json!({"name": format!("job-{n}"), "schedule": "@every 1s",
                         "params": {"command": witness.command(2, 300, "0")}});
        node.create(&job);
    }
    wait_until_within(RECOVERY, "the jobs run", || witness.len() > 20);
    (field, witness)
}

/// Why this machine cannot have such a fault.
fn impossible(class: Class, field: &Field) -> Option<String> {
    match class {
        Class::DiskFull => field.server().disk().err(),
        Class::DatabaseClock => field.server().clock().err(),
        Class::MemberCutOff => field.servers.network().err(),
        Class::NodeClock => field.nodes[0].clock.as_ref().err().cloned(),
        _ => None,
    }
}

fn log(field: &Field, target: &Target) -> String {
    std::fs::read_to_string(field.cluster.dir().join(target.name()).join(LOG)).expect("a log")
}

/// Waits until jobs run and all nodes are ready; the ends of the logs where that does not come.
fn gets_over(class: Class, field: &Field, witness: &Witness) {
    let (before, begun) = (witness.len(), Instant::now());
    while witness.len() < before + 24 || !field.nodes.iter().all(|target| target.member.is_ready()) {
        if begun.elapsed() > RECOVERY {
            for target in &field.nodes {
                let (log, ends) = (log(field, target), target.member.ends());
                let last: Vec<&str> = log.lines().rev().take(60).collect();
                eprintln!("{} ended {ends:?}", target.name());
                last.iter().rev().for_each(|line| eprintln!("{line}"));
            }
            panic!("no recovery from {} within {RECOVERY:?}: {} lines", class.name(), witness.len() - before);
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// So often a strike may miss: the server may hang up on a packet that is held, say, before that is delivered.
const STRIKES: usize = 6;

/// The observation of the first strike that took effect.
fn struck(class: Class, field: &Field, dice: &mut Dice) -> Seen {
    let mut missed = Vec::new();
    for _ in 0..STRIKES {
        let begun = Instant::now();
        let outcome = strike(class, field, dice);
        eprintln!("{} after {:?}: {outcome:?}", class.name(), begun.elapsed());
        match outcome {
            Outcome::Effective(seen) => return seen,
            Outcome::NotEffective { why } => missed.push(why),
        }
    }
    panic!("{} never took effect: {missed:#?}", class.name());
}

/// Strikes each until it takes effect and waits until the cluster works again.
pub fn take_effect(classes: &[Class], field: &Field, witness: &Witness) {
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    let mut dice = Dice::new(seed);
    for class in classes {
        if let Some(why) = impossible(*class, field) {
            carillon_tests::skipped::tell(&format!("{} of chaos: {why}", class.name()));
            continue;
        }
        let seen = struck(*class, field, &mut dice);
        assert!(seen.from_us < seen.until_us, "{seen:?}");
        gets_over(*class, field, witness);
    }
    for target in &field.nodes {
        let log = log(field, target);
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
    }
}
