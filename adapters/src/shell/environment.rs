//! The environment of a run: clean, whatever the server's own is (SPEC section 4).

use std::collections::BTreeMap;

use super::account::Account;
use crate::executor::RunFacts;

/// As Debian's login gives it to root, for everybody; `params.env` may say otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Every system has it, and it reads UTF-8.
const LANG: &str = "C.UTF-8";
/// What begins so is the server's to say.
pub(super) const RESERVED: &str = "CARILLON_";

/// `NAME=value` of each variable, sorted by name.
pub(super) fn build(account: &Account, facts: &RunFacts, own: BTreeMap<String, String>) -> Vec<String> {
    let mut all: BTreeMap<String, String> = [
        ("PATH", PATH.to_owned()),
        ("HOME", account.home.clone()),
        ("USER", account.name.clone()),
        ("LANG", LANG.to_owned()),
        ("CARILLON_NAMESPACE", facts.namespace.clone()),
        ("CARILLON_JOB", facts.job.clone()),
        ("CARILLON_RUN_ID", facts.run_id.to_string()),
        ("CARILLON_DUE_AT", facts.due_at.to_string()),
        ("CARILLON_ATTEMPT", facts.attempt.to_string()),
        ("CARILLON_FENCING_TOKEN", facts.fencing_token.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    all.extend(own.into_iter().filter(|(name, _)| !name.starts_with(RESERVED)));
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}
