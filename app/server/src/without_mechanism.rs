//! A server without some of its mechanisms for speed, so that `./bench ablate` can measure the gain of each.

use carillon_domain::mechanism::{Mechanism, switch_off};
use tracing::warn;

/// Names the mechanisms that are switched off, with commas between them.
const VARIABLE: &str = "CARILLON_WITHOUT_MECHANISM";

/// Switches off the mechanisms that the environment names, and says so.
///
/// # Errors
/// A sentence, if one of them does not exist.
pub fn from_environment() -> Result<(), String> {
    let Ok(names) = std::env::var(VARIABLE) else { return Ok(()) };
    for name in names.split(',') {
        let Some(mechanism) = Mechanism::from_name(name) else {
            let known: Vec<&str> = Mechanism::ALL.into_iter().map(Mechanism::name).collect();
            return Err(format!("{VARIABLE}: there is no mechanism {name:?}; there are {}", known.join(", ")));
        };
        switch_off(mechanism);
        warn!("the mechanism {name} is switched off ({VARIABLE}): this server is slower than it need be");
    }
    Ok(())
}
