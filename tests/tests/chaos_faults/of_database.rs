//! Faults of the servers.

use carillon_tests::chaos::{Class, Kind, Reach};
use carillon_tests::cluster::PATIENT;

use crate::fixture::{field, take_effect};

/// Nodes outlive a database that is away, and a loss is accepted soon: nodes that the database has forgotten must be dead before.
const FORGOTTEN_SOON: &str = carillon_tests::session!("25s", "30s");

pub fn faults_of_the_database_take_effect(kind: Kind) {
    let (field, witness) = field(kind, PATIENT, true, true);
    let of_database = kind.classes().into_iter().filter(|class| class.reach() == Reach::Database);
    take_effect(&of_database.collect::<Vec<_>>(), &field, &witness);
}

pub fn a_restored_older_state_is_noticed_and_accepted(kind: Kind) {
    let (field, witness) = field(kind, FORGOTTEN_SOON, true, false);
    let lossy: Vec<Class> = kind.classes().into_iter().filter(|class| class.loses_commits()).collect();
    assert_eq!(lossy.len(), 1);
    take_effect(&lossy, &field, &witness);
}
