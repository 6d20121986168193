//! A server without one of its guards, or two: for the tests that look on while it breaks. Only in builds with debug
//! assertions; in a release build nothing of this exists.

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;

use carillon_domain::guard::{self, Guard, enabled};
use tracing::warn;

/// Names the guard that is removed, or two with a comma between them.
const VARIABLE: &str = "CARILLON_WITHOUT_GUARD";
/// The same for the keeper, whose environment is empty: comes before its subcommand.
const ARGUMENT: &str = "without-guard=";

/// Removes what the environment names.
///
/// # Errors
/// A sentence, if that is no guard.
pub fn from_environment() -> Result<(), String> {
    let Some(names) = std::env::var_os(VARIABLE) else { return Ok(()) };
    remove(&names).ok_or_else(|| {
        let known: Vec<&str> = Guard::ALL.into_iter().map(Guard::name).collect();
        format!("{VARIABLE}: there is no guard {names:?}; there are {}", known.join(", "))
    })
}

/// Says loudly what is removed.
pub fn tell() {
    for guard in removed() {
        warn!(
            "THE GUARD {} IS REMOVED ({VARIABLE}): {:?} will be broken; only a test may run like this",
            guard.name(),
            guard.keeps()
        );
    }
}

/// The argument that tells a keeper.
pub fn keeper_argument() -> Option<OsString> {
    let names: Vec<&str> = removed().map(Guard::name).collect();
    (!names.is_empty()).then(|| format!("{ARGUMENT}{}", names.join(",")).into())
}

/// Takes what a keeper was told out of its arguments.
pub fn from_arguments(arguments: &mut Peekable<impl Iterator<Item = OsString>>) {
    let told = |argument: &OsString| argument.as_encoded_bytes().starts_with(ARGUMENT.as_bytes());
    if let Some(argument) = arguments.next_if(told) {
        // The node has read it before.
        let _known = argument.to_str().and_then(|text| remove(OsStr::new(text.strip_prefix(ARGUMENT)?)));
    }
}

fn remove(names: &OsStr) -> Option<()> {
    let guards: Option<Vec<Guard>> = names.to_str()?.split(',').map(Guard::from_name).collect();
    match guards?[..] {
        [one] => guard::remove(one),
        [one, other] => guard::remove_both([one, other]),
        _ => return None,
    };
    Some(())
}

fn removed() -> impl Iterator<Item = Guard> {
    Guard::ALL.into_iter().filter(|guard| !enabled(*guard))
}
