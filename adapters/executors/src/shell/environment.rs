//! The environment of a run. Nothing of the server's own environment is in it.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::account::Account;
use crate::executor::{RESERVED, RunFacts};

/// `NAME=value` of each variable, sorted by name.
pub(super) fn build(account: &Account, facts: &RunFacts, own: BTreeMap<String, String>) -> Vec<String> {
    let account: [(_, &dyn Display); 2] = [("HOME", &account.home), ("USER", &account.name)];
    let given = facts.variables().chain(account);
    let mut all: BTreeMap<String, String> = given.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    all.extend(own.into_iter().filter(|(name, _)| !name.starts_with(RESERVED)));
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}
