//! Clusters under load and under blows, on a private database of their own.
//!
//! `cargo run --release -p carillon-tests --bin cluster -- chaos|join|rate|burst [name=value ...]`
//!
//! - `chaos`: jobs that come due each second write their own start to a file while one node is killed, one frozen and the
//!   database restarted; judged from what they wrote. `nodes=3 jobs=300 seconds=180 timing=default|fast`
//! - `join`: a fourth node joins three: which partitions move, and how the share of the firings evens out. `jobs=300`
//! - `rate`: statements that the database counts for each 1,000 firings of jobs that do nothing. `jobs=100`
//! - `burst`: how late runs start when many come due in the same second. `jobs=1000`
//!
//! Each takes `database=mariadb|mysql`.

#[path = "cluster/burst.rs"]
mod burst;
#[path = "cluster/chaos.rs"]
mod chaos;
#[path = "cluster/join.rs"]
mod join;
#[path = "cluster/rate.rs"]
mod rate;
#[path = "cluster/settings.rs"]
mod settings;

use std::process::ExitCode;

use settings::Settings;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let scenario = words.next().unwrap_or_default();
    let settings = Settings::of(words);
    let clean = match scenario.as_str() {
        "chaos" => chaos::run(&settings),
        "join" => join::run(&settings),
        "rate" => rate::run(&settings),
        "burst" => burst::run(&settings),
        other => {
            eprintln!("{other:?} is no scenario; there are chaos, join, rate and burst");
            false
        }
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
