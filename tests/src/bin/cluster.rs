//! Clusters under load, on a private database of their own.
//!
//! `cargo run --release -p carillon-tests --bin cluster -- join|upgrade [name=value ...]`
//!
//! - `join`: a fourth node joins three: which partitions move, and how the share of the firings evens out. `jobs=300`
//! - `upgrade`: nodes of an older binary are replaced by the current one, one after another, under load.
//!   `older=PATH jobs=100`
//!
//! Each takes `database=mariadb|mysql`.

#[path = "cluster/join.rs"]
mod join;
#[path = "cluster/settings.rs"]
mod settings;
#[path = "cluster/upgrade.rs"]
mod upgrade;

use std::process::ExitCode;

use carillon_tests::settings::Settings;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let scenario = words.next().unwrap_or_default();
    let settings = Settings::of(words);
    let clean = match scenario.as_str() {
        "join" => join::run(&settings),
        "upgrade" => upgrade::run(&settings),
        other => {
            eprintln!("{other:?} is no scenario; there are join and upgrade");
            false
        }
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
