//! Faults of a node's processes.
use super::class::Class;
use super::dice::Dice;
use super::field::{Field, Target};
use super::outcome::Struck;

pub(super) fn strike(_class: Class, _field: &Field, _target: &Target, _dice: &mut Dice) -> Struck {
    Err("it is not there yet".to_owned())
}
