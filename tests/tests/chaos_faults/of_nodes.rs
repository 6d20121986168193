//! Faults of nodes and their wires: the same on every database.

use carillon_tests::chaos::{Class, Dice, Kind, Outcome, Reach, strike};
use carillon_tests::cluster::STEADY;

use crate::fixture::{field, take_effect};

fn of_nodes(kind: Kind, is_wanted: impl Fn(&str) -> bool) -> Vec<Class> {
    let mut all = kind.classes();
    all.retain(|class| class.reach() == Reach::Node && is_wanted(class.name()));
    all
}

pub fn faults_of_a_wire_take_effect(kind: Kind) {
    let (field, witness) = field(kind, STEADY, false, false);
    take_effect(&of_nodes(kind, |name| name.starts_with("wire-")), &field, &witness);
}

pub fn faults_of_a_node_take_effect(kind: Kind) {
    let (field, witness) = field(kind, STEADY, false, true);
    take_effect(&of_nodes(kind, |name| !name.starts_with("wire-")), &field, &witness);
}

pub fn faults_at_the_same_time_leave_each_other_alone(kind: Kind) {
    let (field, witness) = field(kind, STEADY, false, false);
    let threads = [
        [Class::WireCutAfter, Class::WireHeldClientGone, Class::WireBlackHole],
        [Class::NodeFrozen, Class::KeeperKilled, Class::ChildKilled],
        [Class::ConnectionsKilled, Class::DatabaseKilled, Class::ReadOnly],
    ];
    std::thread::scope(|scope| {
        for (seed, classes) in (0..).zip(&threads) {
            let field = &field;
            scope.spawn(move || {
                let mut dice = Dice::new(seed);
                let outcomes = classes.map(|class| strike(class, field, &mut dice));
                eprintln!("at the same time: {outcomes:#?}");
                // The effect of one may hide that of another, never all of them.
                let effective = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Effective(_)));
                assert!(effective.count() > 0, "{outcomes:?}");
            });
        }
    });
    take_effect(&[Class::WireCutBefore], &field, &witness);
}
