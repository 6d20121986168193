//! The model checker by hand, within larger bounds than the tests have.
//!
//! `cargo run --profile proof -p carillon-tests --bin model -- nodes=3 firings=3 runs=5 faults=2 [only=NAME] [without=GUARD]
//! [seconds=600] [threads=2] [keep=yes]`

use std::process::ExitCode;
use std::time::Duration;

use carillon_domain::guard::{self, Guard};
use carillon_tests::model::{Bounds, Outcome, Sight, check};
use carillon_tests::report::Report;
use carillon_tests::settings::Settings;

fn main() -> ExitCode {
    let settings = Settings::of(std::env::args().skip(1));
    let number = |name, preset| settings.number(name, preset);
    if let Err(sentence) = remove_guard(settings.text("without", "")) {
        eprintln!("{sentence}");
        return ExitCode::from(2);
    }
    let small = |name, preset| usize::try_from(number(name, preset)).expect("a small number");
    let deviations = u8::try_from(number("faults", 2)).expect("faults are few");
    let mut explorations = Bounds::all(number("nodes", 2), number("firings", 2), small("runs", 4), deviations);
    let only = settings.text("only", "");
    explorations.retain(|bounds| only.is_empty() || bounds.name == only);
    let (threads, seconds) = (small("threads", 2), number("seconds", 0));
    let limit = (seconds > 0).then(|| Duration::from_secs(seconds));

    let mut outcomes = Vec::new();
    for bounds in &explorations {
        let outcome = check(bounds, threads, limit);
        println!("{outcome}");
        let broken = outcome.broken.is_some();
        outcomes.push(outcome);
        if broken {
            break;
        }
    }
    if settings.says("keep") {
        let place = report(&outcomes).keep().expect("the report is kept");
        println!("kept in {}", place.display());
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

fn remove_guard(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Ok(());
    }
    let guard = Guard::from_name(name).ok_or_else(|| format!("there is no guard {name:?}"))?;
    if guard::remove(guard) { Ok(()) } else { Err("guards can be removed with --profile proof only".to_owned()) }
}

fn report(outcomes: &[Outcome]) -> Report {
    let mut report = Report::new("model", "Model checking");
    let row = |outcome: &Outcome| {
        let found =
            outcome.broken.as_ref().map_or("every promise holds".to_owned(), |(violation, _)| violation.to_string());
        let all = if outcome.complete { "all" } else { "some" };
        vec![
            outcome.name.into(),
            outcome.states.into(),
            outcome.unique.into(),
            outcome.depth.into(),
            (outcome.took.as_millis() as f64 / 1_000.0).into(),
            all.into(),
            found.into(),
        ]
    };
    let columns = ["exploration", "steps", "states", "depth", "seconds", "seen", "found"];
    report.table("explorations", &columns, outcomes.iter().map(row).collect());
    let sights = Sight::ALL.map(|sight| {
        let times: u64 = outcomes.iter().map(|outcome| outcome.sights.of(sight)).sum();
        vec![format!("{sight:?}").into(), times.into()]
    });
    report.table("come across", &["what", "times"], sights.to_vec());
    report
}
