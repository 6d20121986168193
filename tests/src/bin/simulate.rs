//! Clusters in virtual time, seed after seed; see `carillon_simulation::simulator`.
//!
//! `cargo run --profile proof -p carillon-tests --bin simulate -- [plan=all] [seeds=100] [first=0] [seed=17] [jobs=1000]
//! [minutes=10] [without=GUARD] [keep=yes]`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use carillon_domain::guard::{Guard, remove};
use carillon_domain::invariants::Violation;
use carillon_simulation::simulator::{Plan, Summary, run};
use carillon_tests::report::Report;
use carillon_tests::settings::Settings;

fn main() -> ExitCode {
    let settings = Settings::of(std::env::args().skip(1));
    let jobs = settings.number("jobs", 1_000);
    let minutes = settings.number("minutes", u64::MAX / 60);
    let (first, seeds) = match settings.text("seed", "") {
        "" => (settings.number("first", 0), settings.number("seeds", 100)),
        _ => (settings.number("seed", 0), 1),
    };
    let plans = match settings.text("plan", "all") {
        "all" => Plan::ALL.to_vec(),
        name => vec![Plan::from_name(name).unwrap_or_else(|| panic!("there is no plan {name:?}"))],
    };
    if let Some(name) = Some(settings.text("without", "")).filter(|name| !name.is_empty()) {
        let guard = Guard::from_name(name).unwrap_or_else(|| panic!("there is no guard {name:?}"));
        assert!(remove(guard), "guards can be removed only with debug assertions: --profile proof");
    }
    let begun = Instant::now();
    let mut of_plan: BTreeMap<&str, (Summary, u64, Duration)> = BTreeMap::new();
    for seed in first..first.saturating_add(seeds) {
        for plan in &plans {
            let started = Instant::now();
            if started - begun > Duration::from_secs(minutes * 60) {
                return finished(&settings, jobs, &of_plan);
            }
            match run(*plan, seed, jobs) {
                Ok(done) => {
                    let (sum, count, took) = of_plan.entry(plan.name()).or_default();
                    sum.add(&done);
                    *count += 1;
                    *took += started.elapsed();
                }
                Err(Violation { invariant, sentence }) => {
                    println!("VIOLATED {invariant:?}: {sentence}");
                    println!("replay with: simulate plan={} seed={seed} jobs={jobs}", plan.name());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    finished(&settings, jobs, &of_plan)
}

fn finished(settings: &Settings, jobs: u64, of_plan: &BTreeMap<&str, (Summary, u64, Duration)>) -> ExitCode {
    let mut all = Summary::default();
    let mut report = Report::new("simulator", "Clusters in virtual time");
    let mut rows = Vec::new();
    for (plan, (sum, seeds, took)) in of_plan {
        let a_minute = (sum.firings as f64 / took.as_secs_f64() * 60.0) as u64;
        println!(
            "{plan}: {seeds} seeds, {} firings ({a_minute} a minute), {} due times, {} s of virtual time, trace {:016x}",
            sum.firings, sum.due_times, sum.virtual_s, sum.trace
        );
        let numbers = [*seeds, sum.firings, a_minute, sum.due_times, sum.commits, sum.virtual_s];
        rows.push(std::iter::once((*plan).into()).chain(numbers.map(Into::into)).collect());
        all.add(sum);
    }
    println!("{} firings, {} due times accounted for", all.firings, all.due_times);
    let columns = ["plan", "seeds", "firings", "firings a minute of one core", "due times", "commits", "virtual s"];
    report.fact("jobs", jobs).table("plans", &columns, rows);
    for (title, counts) in [("faults", &all.faults), ("rare paths, in rows", &all.paths)] {
        println!("{title}:");
        counts.iter().for_each(|(what, times)| println!("  {what}: {times}"));
        let rows = counts.iter().map(|(what, times)| vec![(*what).into(), (*times).into()]).collect();
        report.table(title, &["what", "times"], rows);
    }
    if settings.says("keep") {
        let page = report.keep().unwrap_or_else(|error| panic!("the report cannot be kept: {error}"));
        println!("kept as {}", page.display());
    }
    ExitCode::SUCCESS
}
