//! The switches of the mechanisms. They are for the life of a process, so this is a program of its own.

use carillon_domain::mechanism::{Mechanism, enabled, switch_off};

#[test]
fn a_mechanism_that_is_switched_off_is_not_used_and_the_others_are() {
    for (some, off) in Mechanism::ALL.into_iter().enumerate() {
        switch_off(off);
        let used: Vec<Mechanism> = Mechanism::ALL.into_iter().filter(|mechanism| enabled(*mechanism)).collect();
        assert_eq!(used, Mechanism::ALL[some + 1..]);
    }
}
