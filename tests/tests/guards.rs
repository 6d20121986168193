//! Every guard is needed: with it removed, what it keeps breaks.
//!
//! `cargo test -p carillon-tests --test guards [NAME...]` runs the list, or some of it; `keep=yes` keeps the report. Guards
//! are removed for a whole process, so each story runs in a process of its own: this program with `tell`.

use std::collections::VecDeque;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use carillon_domain::guard::{self, Guard};
use carillon_domain::invariants::Invariant;
use carillon_tests::databases::{Brand, Server};
use carillon_tests::guards::{DATABASE, Proof, Story, keeper_main, needs_a_server, proof};
use carillon_tests::report::Report;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        Some("keeper") => keeper_main(arguments.skip(1)),
        Some("tell") => tell(&std::env::args().skip(2).collect::<Vec<_>>()),
        _ => run_all(&std::env::args().skip(1).collect::<Vec<_>>()),
    }
}

/// The child's part: tells the story of a guard without those that are named; what it saw goes to stdout.
fn tell(words: &[String]) -> ExitCode {
    let [of, without @ ..] = words else { return ExitCode::from(2) };
    let named = |name: &String| Guard::from_name(name).expect("the name of a guard");
    match without.iter().map(named).collect::<Vec<_>>()[..] {
        [] => {}
        [one] => _ = guard::remove(one),
        [one, other, ..] => _ = guard::remove_both([one, other]),
    }
    let story = story_of(named(of)).expect("a guard with a story");
    match story() {
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            println!("VIOLATED {violation}");
            ExitCode::FAILURE
        }
    }
}

fn story_of(guard: Guard) -> Option<Story> {
    match proof(guard) {
        Proof::Alone(story) | Proof::WithBehind(_, story) => Some(story),
        Proof::Comfort(_) => None,
    }
}

/// How long a story may take. Without its guard one may go on for ever.
const PATIENCE_S: u32 = 60;

/// The finding of a child: nothing, or the violation.
fn told(of: Guard, without: &[Guard]) -> Result<(), String> {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE_S.to_string()).arg(std::env::current_exe().expect("this program"));
    command.arg("tell").arg(of.name()).args(without.iter().map(|guard| guard.name()));
    if needs_a_server(of) {
        command.env(DATABASE, database());
    }
    let output = command.stdin(Stdio::null()).output().expect("this program starts");
    let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match (output.status.code(), said.lines().last().and_then(|line| line.strip_prefix("VIOLATED "))) {
        (Some(0), None) => Ok(()),
        (Some(1), Some(violation)) => Err(violation.to_owned()),
        (code, _) => Err(format!("the story broke off ({code:?}): {said}{log}")),
    }
}

/// A new database on the server of all stories.
fn database() -> String {
    let server = Server::shared(Brand::MariaDb);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    format!("{} {}", database.port(), database.name)
}

/// How it went with one guard.
struct Outcome {
    guard: Guard,
    how: String,
    seen: String,
    proved: bool,
}

fn outcome(guard: Guard) -> Outcome {
    let outcome = |how: &str, seen: Result<String, String>| {
        let (seen, proved) = match seen {
            Ok(seen) => (seen, true),
            Err(seen) => (seen, false),
        };
        Outcome { guard, how: how.to_owned(), seen, proved }
    };
    match proof(guard) {
        Proof::Comfort(why) => outcome("breaks nothing", Ok(why.to_owned())),
        Proof::Alone(_) => outcome("alone", clean(guard, &[]).and_then(|()| violates(guard, &[guard]))),
        Proof::WithBehind(other, _) => {
            let each = clean(guard, &[]).and_then(|()| clean(guard, &[guard])).and_then(|()| clean(guard, &[other]));
            outcome(&format!("with {}", other.name()), each.and_then(|()| violates(guard, &[guard, other])))
        }
    }
}

fn clean(of: Guard, without: &[Guard]) -> Result<(), String> {
    told(of, without).map_err(|seen| format!("its story fails without {without:?}: {seen}"))
}

fn violates(of: Guard, without: &[Guard]) -> Result<String, String> {
    let kept = |invariant: Invariant| format!("{invariant:?}: ");
    let invariants: Vec<String> = without.iter().map(|guard| kept(guard.keeps())).collect();
    match told(of, without) {
        Err(seen) if invariants.iter().any(|invariant| seen.starts_with(invariant)) => Ok(seen),
        Err(seen) => Err(format!("breaks something else than what it keeps: {seen}")),
        Ok(()) => Err(format!("nothing breaks without {without:?}")),
    }
}

/// Stories wait a lot.
const THREADS: usize = 6;

fn run_all(words: &[String]) -> ExitCode {
    if !cfg!(debug_assertions) {
        carillon_tests::skipped::tell("guards cannot be removed from a build without debug assertions");
        return ExitCode::SUCCESS;
    }
    let wanted = |guard: &Guard| {
        let mut names = words.iter().filter(|word| !word.starts_with('-') && !word.contains('=')).peekable();
        names.peek().is_none() || names.any(|name| guard.name().contains(name.as_str()))
    };
    let chosen: VecDeque<Guard> = Guard::ALL.into_iter().filter(wanted).collect();
    if words.iter().any(|word| word == "--list") {
        chosen.iter().for_each(|guard| println!("{}: test", guard.name()));
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let (queue, done) = (Mutex::new(chosen), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(guard) = { queue.lock().unwrap().pop_front() } {
                    let outcome = outcome(guard);
                    done.lock().unwrap().push(outcome);
                }
            });
        }
    });
    let mut outcomes = done.into_inner().unwrap();
    outcomes.sort_by_key(|outcome| outcome.guard);
    for Outcome { guard, how, seen, proved } in &outcomes {
        let mark = if *proved { "ok" } else { "FAILED" };
        println!("{mark:6} {:22} {:?} {how:24} {seen}", guard.name(), guard.keeps());
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.proved).count();
    println!("\n{} guards, {failed} not proved, {:?}", outcomes.len(), began.elapsed());
    if words.iter().any(|word| word == "keep=yes") {
        keep(&outcomes);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn keep(outcomes: &[Outcome]) {
    let mut report = Report::new("guards", "Every guard is needed");
    let row = |outcome: &Outcome| {
        let Outcome { guard, how, seen, .. } = outcome;
        vec![
            guard.name().into(),
            guard.place().into(),
            format!("{:?}", guard.keeps()).into(),
            how.as_str().into(),
            seen.as_str().into(),
        ]
    };
    let columns = ["guard", "where", "keeps", "removed", "what was seen"];
    report.table("guards", &columns, outcomes.iter().map(row).collect());
    println!("kept as {}", report.keep().expect("the report can be written").display());
}
