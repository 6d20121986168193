//! The model checker by hand, within larger bounds than the tests have.
//!
//! `cargo run --profile proof -p carillon-tests --bin model -- nodes=3 firings=3 runs=5 faults=2 [only=NAME|outbox] [without=GUARD]
//! [seconds=600] [threads=2] [keep=yes]`; `seconds` is for each exploration. With `sweep=yes` each guard is removed in turn.

use std::process::ExitCode;
use std::time::Duration;

use carillon_domain::alert::When;
use carillon_domain::guard::{self, Guard};
use carillon_simulation::model::{Bounds, Outcome, Removed, Situation, check, check_outbox, run_without};
use carillon_tests::report::Report;
use carillon_tests::settings::Settings;

fn main() -> ExitCode {
    let settings = Settings::of(std::env::args().skip(1));
    if settings.says("sweep") {
        return sweep(&settings);
    }
    if let Err(sentence) = remove_guard(settings.text("without", "")) {
        eprintln!("{sentence}");
        return ExitCode::from(2);
    }
    let outcomes = explore(&settings);
    if settings.says("keep") {
        keep(&report(&outcomes));
    }
    match outcomes.iter().find_map(|outcome| outcome.broken.as_ref()) {
        None => ExitCode::SUCCESS,
        Some((violation, path)) => {
            path.iter().for_each(|line| println!("{line}"));
            println!("VIOLATED {violation}");
            ExitCode::FAILURE
        }
    }
}

/// One exploration after another, until something breaks.
fn explore(settings: &Settings) -> Vec<Outcome> {
    let number = |name, preset| settings.number(name, preset);
    let small = |name, preset| usize::try_from(number(name, preset)).expect("a small number");
    let deviations = u8::try_from(number("faults", 2)).expect("faults are few");
    let mut explorations = Bounds::all(number("nodes", 2), number("firings", 2), small("runs", 4), deviations);
    let only = settings.text("only", "");
    explorations.retain(|bounds| only.is_empty() || bounds.name == only);
    let with_outbox = only.is_empty() || only == "outbox";
    let (threads, seconds) = (small("threads", 2), number("seconds", 0));
    let limit = (seconds > 0).then(|| Duration::from_secs(seconds));

    let mut outcomes = Vec::new();
    for bounds in &explorations {
        let outcome = check(bounds, threads, limit);
        println!("{outcome}");
        let broken = outcome.broken.is_some();
        outcomes.push(outcome);
        if broken {
            return outcomes;
        }
    }
    if with_outbox {
        for kinds in [&[When::LateStart], &[When::Failed]] {
            let outcome = check_outbox(kinds, number("nodes", 2), deviations, threads, limit);
            println!("{outcome}");
            let broken = outcome.broken.is_some();
            outcomes.push(outcome);
            if broken {
                break;
            }
        }
    }
    outcomes
}

fn remove_guard(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Ok(());
    }
    let guard = Guard::from_name(name).ok_or_else(|| format!("there is no guard {name:?}"))?;
    if guard::remove(guard) { Ok(()) } else { Err("guards can be removed with --profile proof only".to_owned()) }
}

/// Whether the model runs the code in which a guard stands: it has the memory store, and keepers of its own.
fn is_run(guard: &Guard) -> bool {
    !["keeper", "sqlite", "mysql"].iter().any(|other| guard.place().contains(other))
}

/// Every guard that the model can meet is removed in turn, each for a process of its own.
fn sweep(settings: &Settings) -> ExitCode {
    let program = std::env::current_exe().expect("this program");
    let own = |word: &String| !["sweep=", "keep=", "without="].iter().any(|name| word.starts_with(name));
    let words: Vec<String> = std::env::args().skip(1).filter(own).collect();
    let mut all = Vec::new();
    for guard in Guard::ALL.into_iter().filter(is_run) {
        let removed = run_without(&program, guard, &words);
        let found = removed.violation.as_deref().unwrap_or("nothing");
        println!("{}: {found} ({:.1} s)", guard.name(), removed.took.as_secs_f64());
        all.push(removed);
        // As far as it has come: a sweep takes long.
        if settings.says("keep") {
            keep(&report_of_guards(&all));
        }
    }
    ExitCode::SUCCESS
}

fn keep(report: &Report) {
    println!("kept in {}", report.keep().expect("the report is kept").display());
}

fn seconds(took: Duration) -> serde_json::Value {
    (took.as_millis() as f64 / 1_000.0).into()
}

fn report(outcomes: &[Outcome]) -> Report {
    let mut report = Report::new("model", "Model checking");
    let row = |outcome: &Outcome| {
        let found =
            outcome.broken.as_ref().map_or("every promise holds".to_owned(), |(violation, _)| violation.to_string());
        vec![
            outcome.name.into(),
            outcome.states.into(),
            outcome.unique.into(),
            outcome.depth.into(),
            seconds(outcome.took),
            outcome.seen().into(),
            found.into(),
        ]
    };
    let columns = ["exploration", "steps", "states", "depth", "seconds", "seen", "found"];
    report.table("explorations", &columns, outcomes.iter().map(row).collect());
    let coverage = Situation::ALL.map(|sight| {
        let times: u64 = outcomes.iter().map(|outcome| outcome.coverage.of(sight)).sum();
        vec![format!("{sight:?}").into(), times.into()]
    });
    report.table("come across", &["what", "times"], coverage.to_vec());
    report
}

fn report_of_guards(all: &[Removed]) -> Report {
    let mut report = Report::new("model-guards", "Model checking without each guard");
    let found = all.iter().filter(|removed| removed.violation.is_some()).count();
    let others: Vec<&str> = Guard::ALL.iter().filter(|guard| !is_run(guard)).map(|guard| guard.name()).collect();
    report
        .fact("guards", all.len())
        .fact("found", found)
        .fact("in code that the model does not run", others.join(", "));
    let row = |removed: &Removed| {
        let (exploration, told) = removed.exploration.split_once(": ").unwrap_or_default();
        let steps_and_states = told.split(", ").take(2).collect::<Vec<_>>().join(", ");
        let violation = removed.violation.as_deref();
        vec![
            removed.guard.name().into(),
            if violation.is_some() { "yes" } else { "no" }.into(),
            violation.and_then(|sentence| sentence.split(':').next()).unwrap_or("").into(),
            if violation.is_some() { exploration } else { "" }.into(),
            steps_and_states.into(),
            seconds(removed.took),
        ]
    };
    let columns = ["without", "found", "property", "exploration", "last exploration explored", "seconds"];
    report.table("guards", &columns, all.iter().map(row).collect());
    report
}
