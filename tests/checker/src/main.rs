//! `carillon-check [--json] DIR`: judges what a chaos run left in DIR (see [`carillon_checker::evidence`]), again if need be.
//!
//! Prints the verdict as Markdown, or as JSON. Exit code 0: clean; 1: not clean; 2: the evidence cannot be read.

use std::path::Path;
use std::process::ExitCode;

use carillon_checker::{Evidence, judge};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (json, dir) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--json", dir] => (true, dir.to_owned()),
        [dir] if !dir.starts_with('-') => (false, dir.to_owned()),
        _ => {
            eprintln!("usage: carillon-check [--json] DIR");
            return ExitCode::from(2);
        }
    };
    let verdict = match Evidence::read(Path::new(&dir)) {
        Ok(evidence) => judge(&evidence),
        Err(why) => {
            eprintln!("carillon-check: {why}");
            return ExitCode::from(2);
        }
    };
    if json {
        println!("{:#}", verdict.to_json());
    } else {
        print!("{verdict}");
    }
    if verdict.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
