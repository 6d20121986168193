//! Faults of the balancers between nodes and the members of a cluster.

use carillon_tests::chaos::{Class, Kind, Ways};
use carillon_tests::cluster::PATIENT;

use crate::fixture::{field_by, take_effect};

pub fn a_balancer_that_rotates_takes_effect_and_raises_no_false_alarm(kind: Kind) {
    let (field, witness) = field_by(kind, Ways::Balanced, PATIENT, false, false);
    take_effect(&[Class::BalancerRotates, Class::SwitchedOver, Class::BalancerRotates], &field, &witness);
    let losses = carillon_tests::chaos_run::windows(&field);
    assert_eq!(losses, [], "nothing was lost");
}
