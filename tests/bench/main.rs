//! Measures every promised figure on a durable database of its own, beside the raw ceilings of the same machine in the
//! same run.
//!
//! `./bench [database=mariadb|mysql] [quick] [only=NAME,NAME]` builds what is needed and runs this. A full run keeps its
//! figures in `tests/reports/bench-*.json` and writes `BENCHMARKS.md` anew from them, `only=` just those of the scenarios
//! named. `./bench ablate` measures the gain of each mechanism instead. `quick` runs every scenario at a tiny size in a few seconds and judges nothing; its figures go nowhere, unless
//! `into=DIRECTORY` says where.

mod ablate;
mod ablation_table;
mod ceilings;
mod cycles;
mod found;
mod http;
mod lab;
mod lags;
mod machine;
mod many;
mod meter;
mod numbers;
mod page;
mod plot;
mod records;
mod report;
mod scenarios;
mod site;
mod size;
mod tables;
mod words;

use std::process::ExitCode;

use crate::lab::Lab;
use crate::report::Report;
use crate::scenarios::SCENARIOS;
use crate::words::Words;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = words.as_slice()
        && first == ceilings::SPAWNER
    {
        return ceilings::spawn_for_a_while(rest);
    }
    let words = match Words::of(&words) {
        Ok(words) => words,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let lab = Lab::new(words.brand, words.size());
    if words.ablate {
        return ablate(&lab, &words);
    }
    let mut report = Report::new(&lab, &words);
    for scenario in SCENARIOS.iter().filter(|scenario| words.wants(scenario.name)) {
        eprintln!("{}: {}", scenario.name, scenario.about);
        let found = scenario.measure(&lab);
        eprintln!("    {:.1} s", found.seconds);
        report.add(scenario, &found);
        // Findings are kept, should the run be cut short.
        if let Err(error) = report.keep() {
            eprintln!("the figures could not be kept: {error}");
            return ExitCode::FAILURE;
        }
    }
    print!("{}", report.text());
    if report.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints the gain of each mechanism, and keeps it where the figures are worth it.
fn ablate(lab: &Lab, words: &Words) -> ExitCode {
    let table = ablate::run(lab, &words.without);
    print!("{}", ablate::page(&table));
    if !lab.size.judged {
        return ExitCode::SUCCESS;
    }
    match ablate::keep(table, words.brand.name()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the figures could not be kept: {error}");
            ExitCode::FAILURE
        }
    }
}
