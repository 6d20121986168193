//! Faults of many classes on real nodes and a real database, and what an independent checker says of every due time.
//!
//! `cargo run --release -p carillon-tests --bin chaos -- [name=value ...]`
//!
//! - `database=mariadb|mysql|galera|galera-multi-writer|group|mariadb-replica|mysql-replica`: a private server of this brand, a private
//!   cluster of three members, or a source and its asynchronous replica
//! - `seed=1`: what is drawn follows from it (when things happen also depends on the machine)
//! - `seconds=600`: how long jobs are due; `nodes=4`; `jobs=250`
//! - `classes=a,b,c`: only these faults (`classes=list` prints all and what each does); without it all that make sense on the database
//! - `ways=named|balanced|mixed`: each node names all members of a cluster, has a balancer before them, or some do; without it
//!   `balanced` on `galera` and `mixed` on the other kinds of several servers
//! - `timing=brisk|fast|default`: the session timing of the nodes; `default` configures none, so it follows the servers
//! - `messages=600`: so many seconds alerts are waited for that are on their way at the end; a sender that was killed holds one for 330
//! - `pauses=100`: percent of the usual pauses between faults
//! - `without=GUARD`: the nodes run without that guard (they need debug assertions: `--profile proof`), and the checker must
//!   find something
//! - `keep=yes`: what the checker read stays, also if nothing was found
//!
//! The report is kept in `tests/reports/` as `chaos-DATABASE-TIMING` or `chaos-without-GUARD`, as Markdown and JSON. Exit code 0: nothing
//! was found, or, without a guard, something was. The binary `carillon` must have been built with the same profile
//! (`cargo build --release`).

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use carillon_checker::Group;
use carillon_tests::chaos::{Class, Kind, Ways};
use carillon_tests::chaos_run::faults::Pace;
use carillon_tests::chaos_run::{ChaosRun, Told};
use carillon_tests::cluster::{BRISK, FAST};
use carillon_tests::report::{Report, said};
use carillon_tests::server::binary;
use carillon_tests::settings::Settings;
use serde_json::Value;

/// Where nodes read which guard they run without.
const WITHOUT: &str = "CARILLON_WITHOUT_GUARD";
/// The session timing of the nodes, if none is asked for.
const TIMING: &str = "brisk";
/// So many findings of each group are shown.
const SHOWN: usize = 10;

fn main() -> ExitCode {
    let settings = Settings::of(std::env::args().skip(1));
    if settings.text("classes", "") == "list" {
        for class in Class::ALL {
            println!("{:24} {}", class.name(), class.what());
        }
        return ExitCode::SUCCESS;
    }
    let without = settings.text("without", "");
    if !without.is_empty() && std::env::var(WITHOUT).as_deref() != Ok(without) {
        return again_without(without);
    }
    let chaos_run = chaos_run(&settings);
    let told = chaos_run.run();
    let report = report(&settings, &chaos_run, &told);
    print!("{}", report.markdown());
    println!("\nkept as {}", report.keep().expect("the report can be kept").display());
    if told.is_clean() && told.needless.is_empty() && told.lost_updates.is_empty() && !settings.says("keep") {
        let _left_over = std::fs::remove_dir_all(&chaos_run.dir);
    } else {
        println!("`carillon-check {}` judges it again", chaos_run.dir.display());
    }
    let as_expected = if without.is_empty() { told.is_clean() } else { !told.verdict.is_clean() };
    if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Begins anew in an environment that the nodes inherit.
fn again_without(guard: &str) -> ExitCode {
    if !cfg!(debug_assertions) {
        eprintln!("a guard can only be removed from a build with debug assertions: --profile proof");
        return ExitCode::from(2);
    }
    let this = std::env::current_exe().expect("a program has a path");
    let failed = Command::new(this).args(std::env::args().skip(1)).env(WITHOUT, guard).exec();
    panic!("it cannot begin anew: {failed}");
}

fn chaos_run(settings: &Settings) -> ChaosRun {
    let named = |name: &str| {
        Class::of_name(name).unwrap_or_else(|| panic!("{name:?} is no class of faults; classes=list prints all"))
    };
    let database = settings.text("database", "mariadb");
    let kind = Kind::of_name(database).unwrap_or_else(|| {
        panic!("database={database} is none of {}", Kind::ALL.map(Kind::name).join(", "));
    });
    let ways = match settings.text("ways", "") {
        "" => Ways::of(kind),
        name => Ways::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, ways)| ways).unwrap_or_else(|| {
            panic!("ways={name} is none of {}", Ways::ALL.map(|(known, _)| known).join(", "));
        }),
    };
    let classes = match settings.text("classes", "") {
        "" => kind
            .classes()
            .into_iter()
            .filter(|class| *class != Class::BalancerRotates || ways.have_balancers())
            .collect(),
        names => names.split(',').map(named).collect(),
    };
    let seed = settings.number("seed", 1);
    let name = format!("carillon-chaos-{}-{seed}", std::process::id());
    ChaosRun {
        kind,
        seed,
        ways,
        length: Duration::from_secs(settings.number("seconds", 600)),
        nodes: usize::try_from(settings.number("nodes", 4)).expect("a number of nodes"),
        jobs: usize::try_from(settings.number("jobs", 250)).expect("a number of jobs"),
        classes,
        pace: Pace { pauses_percent: settings.number("pauses", 100), ..Pace::HARD },
        session: match settings.text("timing", TIMING) {
            "brisk" => BRISK,
            "fast" => FAST,
            "default" => "",
            other => panic!("timing={other} is none of brisk, fast, default"),
        },
        last_messages: Duration::from_secs(settings.number("messages", 600)),
        dir: PathBuf::from(settings.text("dir", &std::env::temp_dir().join(name).display().to_string())),
    }
}

fn report(settings: &Settings, chaos_run: &ChaosRun, told: &Told) -> Report {
    let verdict = &told.verdict;
    let (name, title) = match settings.text("without", "") {
        "" => {
            let timing = settings.text("timing", TIMING);
            (format!("chaos-{}-{timing}", chaos_run.kind.name()), format!("Chaos on {}", chaos_run.kind.title()))
        }
        guard => {
            (format!("chaos-without-{guard}"), format!("Chaos on {} without the guard {guard}", chaos_run.kind.title()))
        }
    };
    let mut report = Report::new(&name, &title);
    report.fact("database", &*told.database);
    report.fact("binary", said(&binary().display().to_string(), &["--version"]));
    report.fact("seed", chaos_run.seed).fact("seconds", chaos_run.length.as_secs());
    report.fact("nodes", chaos_run.nodes).fact("jobs", chaos_run.jobs);
    report.fact("session timing", settings.text("timing", "brisk"));
    if chaos_run.kind.has_several_servers() {
        let (way, _) = Ways::ALL.into_iter().find(|(_, ways)| *ways == chaos_run.ways).expect("it has a name");
        report.fact("ways to the members", way);
    }
    report.fact("effective faults", told.strikes.effective());
    report.fact("classes with an effective fault", told.strikes.classes());
    report.fact("due times", verdict.due).fact("starts, by the jobs' own files", verdict.starts);
    for group in Group::ALL {
        report.fact(group.name(), verdict.count(group));
    }
    report.fact("nodes that ended with exit code 70", told.fenced);
    report.fact("of them while a server took writes", told.needless.len());
    report.fact("losses of commits that were none", told.false_alarms.len());
    report.fact("compare-and-swaps of other clients", told.swaps);
    report.fact("of them lost by the servers", told.lost_updates.len());
    let alerts = verdict.alerts;
    report.fact("alerts sent", alerts.sent).fact("calls that repeated an alert", alerts.repeated);
    report.fact("alerts on their way at the end", alerts.on_their_way);
    report.fact("panics and broken invariants in the logs of the nodes", told.bad_lines.len());
    match &told.rested {
        Ok(took) => report.fact("at rest after the last due time, s", took.as_secs()),
        Err(why) => report.fact("did not come to rest", &**why),
    };
    tables(&mut report, chaos_run.kind, told);
    report
}

fn tables(report: &mut Report, kind: Kind, told: &Told) {
    let verdict = &told.verdict;
    let tally = told.strikes.tally.iter().map(|(class, tally)| -> Vec<Value> {
        vec![class.name().into(), tally.strikes.into(), tally.effective.into(), tally.why_not.clone().into()]
    });
    report.table("Faults", &["class", "strikes", "effective", "why one was not"], tally.collect());
    let left_out =
        Class::ALL.into_iter().filter_map(|class| Some(vec![class.name().into(), kind.why_not(class)?.into()]));
    report.table("Faults that make no sense here", &["class", "why"], left_out.collect());
    let fates = verdict.fates.iter().map(|(fate, count)| vec![fate.clone().into(), (*count).into()]);
    report.table("What became of the due times", &["fate", "due times"], fates.collect());
    let shown = Group::ALL.iter().flat_map(|group| {
        let of_group = verdict.findings.iter().filter(move |finding| finding.kind.group() == *group);
        of_group.take(SHOWN).map(|finding| vec![finding.kind.group().name().into(), finding.to_string().into()])
    });
    let lines = told.bad_lines.iter().take(SHOWN).map(|line| vec!["logs".into(), line.clone().into()]);
    let sentences = |group: &'static str, all: &[String]| -> Vec<Vec<Value>> {
        all.iter().take(SHOWN).map(|what| vec![group.into(), what.clone().into()]).collect()
    };
    let liveness = [
        ("false alarm", &told.false_alarms),
        ("needless exit 70", &told.needless),
        ("lost by the servers", &told.lost_updates),
    ]
    .map(|(group, all)| sentences(group, all))
    .concat();
    report.table("Findings", &["group", "what"], shown.chain(lines).chain(liveness).collect());
    let late = verdict.lateness.kinds().map(|(name, values)| (format!("late: {name}"), values.clone()));
    let taken = verdict.takeover_ms().map(|(name, values)| (format!("takeover: {name}"), values));
    let spread = late.into_iter().chain(taken).map(|(name, values)| -> Vec<Value> {
        let at = |share| values.at(share).into();
        vec![name.into(), values.count().into(), at(0.5), at(0.9), at(0.99), at(0.999), at(1.0)]
    });
    report.table("Milliseconds", &["what", "count", "p50", "p90", "p99", "p99.9", "max"], spread.collect());
    let ends = told.ends.iter().map(|(how, count)| vec![how.clone().into(), (*count).into()]);
    let drained = told.drained.iter().map(|how| vec![format!("at last: {how}").into(), 1.into()]);
    report.table("How nodes ended", &["exit", "times"], ends.chain(drained).collect());
}
