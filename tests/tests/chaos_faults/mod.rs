//! Every fault of chaos runs is struck once, on two nodes with a handful of jobs: it takes effect, and the cluster gets over
//! it.

use std::io::Write as _;

use carillon_tests::chaos::{Class, Dice, Field, Outcome, Plan, Reach, strike};
use carillon_tests::cluster::Witness;
use carillon_tests::server::wait_until;
use serde_json::json;

/// Nodes outlive what lasts for some seconds, and are found dead soon.
const TIMING: &str = "[session]\nheartbeat = \"1s\"\nheartbeat_timeout = \"1s\"\nself_kill_after = \"8s\"\n\
                      fence_grace = \"1s\"\npause = \"1s\"\nexpire_after = \"11s\"\n";

fn field(small_disk: bool, clocks: bool) -> (Field, Witness) {
    let plan =
        Plan { brand: crate::BRAND, options: Vec::new(), nodes: 2, config: TIMING.to_owned(), small_disk, clocks };
    let field = Field::start(&plan);
    let witness = Witness::new(field.cluster.dir());
    let node = field.nodes[0].member.server().expect("it runs");
    for n in 0..6 {
        let job = json!({"name": format!("job-{n}"), "schedule": "@every 1s",
                         "params": {"command": witness.command(2, "0.3")}});
        node.create(&job);
    }
    wait_until("the jobs run", || witness.len() > 20);
    (field, witness)
}

/// Why this machine cannot have such a fault.
fn impossible(class: Class, field: &Field) -> Option<String> {
    match class {
        Class::DiskFull => field.server.disk().err(),
        Class::DatabaseClock => field.server.clock().err(),
        Class::NodeClock => field.nodes[0].clock.as_ref().err().cloned(),
        _ => None,
    }
}

/// Strikes each once and waits until the cluster works again.
fn take_effect(classes: &[Class], field: &Field, witness: &Witness) {
    let mut dice = Dice::new(u64::from(std::process::id()));
    for class in classes {
        if let Some(why) = impossible(*class, field) {
            let words = format!("\n\nSKIPPED, NOT TESTED HERE: {} of chaos: {why}\n\n", class.name());
            // Not through the macros, which tests capture.
            let _unheard = std::io::stderr().write_all(words.as_bytes());
            continue;
        }
        let begun = std::time::Instant::now();
        let outcome = strike(*class, field, &mut dice);
        eprintln!("{} after {:?}: {outcome:?}", class.name(), begun.elapsed());
        let Outcome::Effective(seen) = outcome else { panic!("{}: {outcome:?}", class.name()) };
        assert!(seen.from_us < seen.until_us, "{seen:?}");
        let before = witness.len();
        wait_until(&format!("the jobs go on after {}", class.name()), || witness.len() > before + 40);
        for target in &field.nodes {
            let is_ready = || target.member.server().is_some_and(|server| server.get_open("/readyz") == 200);
            wait_until(&format!("{} is ready after {}", target.name(), class.name()), is_ready);
        }
    }
    for target in &field.nodes {
        let log = std::fs::read_to_string(field.cluster.dir().join(target.name()).join(carillon_tests::server::LOG));
        let log = log.expect("a log");
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
    }
}

#[test]
fn faults_of_a_node_and_its_wire_take_effect() {
    let (field, witness) = field(false, true);
    let of_nodes = Class::ALL.into_iter().filter(|class| class.reach() == Reach::Node);
    take_effect(&of_nodes.collect::<Vec<_>>(), &field, &witness);
}

#[test]
fn faults_of_the_database_take_effect() {
    let (field, witness) = field(true, true);
    let of_database = Class::ALL.into_iter().filter(|class| class.reach() == Reach::Database);
    take_effect(&of_database.collect::<Vec<_>>(), &field, &witness);
}

#[test]
fn a_restored_older_state_is_noticed_and_accepted() {
    let (field, witness) = field(true, false);
    take_effect(&[Class::Restored], &field, &witness);
}
