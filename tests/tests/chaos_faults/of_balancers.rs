//! Faults of the balancers between nodes and the members of a cluster.

use carillon_tests::chaos::{Class, Ways};

use crate::chaos_faults::{field_by, take_effect};

/// Nodes outlive a balancer that leads them nowhere.
const PATIENT: &str = "[session]\nheartbeat = \"1s\"\nheartbeat_timeout = \"1s\"\nself_kill_after = \"60s\"\n\
                       fence_grace = \"1s\"\npause = \"1s\"\nexpire_after = \"70s\"\n";

#[test]
fn a_balancer_that_rotates_takes_effect_and_raises_no_false_alarm() {
    if !crate::is_asked_for() {
        return;
    }
    let (field, witness) = field_by(Ways::Balanced, PATIENT, false, false);
    take_effect(&[Class::BalancerRotates, Class::SwitchedOver, Class::BalancerRotates], &field, &witness);
    let losses = carillon_tests::chaos_run::windows(&field);
    assert_eq!(losses, [], "nothing was lost");
}
