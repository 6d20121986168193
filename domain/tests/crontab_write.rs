//! Crontabs written from jobs: their layout, the reasons for jobs that are left out, and that they are read back.

use std::collections::BTreeMap;

use carillon_domain::crontab::{self, CrontabJob, Executor, ExportJob, Form, ImportOptions, Line, LineKind};
use proptest::prelude::*;

fn parse(text: &str, form: Form) -> Vec<Line> {
    let options = ImportOptions { file: "jobs", system: form == Form::System, ignore_user: false, timezone: None };
    crontab::parse(text.as_bytes(), &options, &|_, _| Ok(()))
}

fn jobs(lines: &[Line]) -> Vec<CrontabJob> {
    let job = |line: &Line| if let LineKind::Job(job) = &line.what { Some(job.clone()) } else { None };
    lines.iter().filter_map(job).collect()
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn export(command: &str) -> ExportJob {
    let job = CrontabJob {
        name: "backup".into(),
        schedule: "0 3 * * *".into(),
        timezone: None,
        command: command.into(),
        stdin: None,
        env: BTreeMap::new(),
        shell: "/bin/sh".into(),
        dir: None,
        user: None,
        labels: BTreeMap::new(),
    };
    ExportJob { job, executor: Executor::Shell, paused: false, unsaid: vec![] }
}

fn with(change: impl FnOnce(&mut ExportJob)) -> ExportJob {
    let mut export = export("x");
    change(&mut export);
    export
}

#[test]
fn a_user_or_a_zone_of_several_words_is_refused() {
    let system = |user: &str| crontab::write(&[with(|e| e.job.user = Some(user.into()))], Form::System);
    for user in ["", " ", "a b", "a\tb", "a\u{1}b"] {
        assert!(system(user).contains("is not one word"), "{user:?}: {}", system(user));
    }
    assert!(system("root").contains("\n0 3 * * * root x\n"));
    let zoned = |zone: &str| crontab::write(&[with(|e| e.job.timezone = Some(zone.into()))], Form::User);
    for zone in ["", "Europe/ Berlin", "Europe\tBerlin"] {
        assert!(zoned(zone).contains("its time zone is not one word"), "{zone:?}: {}", zoned(zone));
    }
}

#[test]
fn the_header_mentions_zones_only_if_a_job_has_one() {
    let speaks = |zone: Option<&str>| {
        let text = crontab::write(&[with(|e| e.job.timezone = zone.map(str::to_owned))], Form::User);
        text.contains("cronie follow CRON_TZ=")
    };
    assert_eq!((speaks(None), speaks(Some("Europe/Berlin"))), (false, true));
}

#[test]
fn mail_is_written_where_a_job_has_its_label() {
    let mailed = |command: &str, to: Option<&str>| {
        with(|e| {
            e.job.command = command.into();
            e.job.env = env(&[("HOME", "/"), ("X", command)]);
            e.job.dir = Some("/".into());
            e.job.labels = to.map(|to| ("mailto".to_owned(), to.to_owned())).into_iter().collect();
        })
    };
    let (plain, two) = (mailed("c", None), mailed("b", Some("ops@example.org,root")));
    let paused = with(|e| (e.paused, e.job.labels) = (true, env(&[("mailto", "root")])));
    let more = with(|e| {
        *e = mailed("d", None);
        e.job.env.extend(env(&[("Y", "1"), ("Z", "1")]));
    });
    let text = crontab::write(&[plain, two, paused, more], Form::User);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("MAILTO") || line.contains("mailto")).collect();
    assert_eq!(
        lines,
        ["MAILTO=ops@example.org,root", "MAILTO=\"\"", "# backup (not in the crontab: label mailto=root)"],
        "{text}"
    );
    let read: Vec<_> = jobs(&parse(&text, Form::User)).into_iter().map(|job| (job.command, job.labels)).collect();
    let to_ops = env(&[("mailto", "ops@example.org,root")]);
    assert_eq!(read, [("c".into(), env(&[])), ("b".into(), to_ops), ("d".into(), env(&[]))], "{text}");
}

#[test]
fn the_longest_written_line_can_be_read() {
    let line = |bytes: usize| crontab::write(&[export(&"x".repeat(bytes - "0 3 * * * ".len()))], Form::User);
    assert!(!line(crontab::MAX_LINE).contains("bytes long"));
    assert!(line(crontab::MAX_LINE + 1).contains("its line would be 65537 bytes long"));
}

#[test]
fn a_written_crontab_has_comments_variables_and_lines() {
    let nightly = with(|e| {
        e.job.name = "nightly".into();
        e.job.command = "pg_dump app".into();
        e.job.timezone = Some("Europe/Berlin".into());
        e.job.env = env(&[("PGUSER", "app")]);
        e.job.labels = env(&[("team", "data")]);
        e.unsaid = vec!["timeout 1h".into()];
    });
    let tick = with(|e| {
        e.job.name = "tick".into();
        e.job.schedule = "*/5 * * * * *".into();
    });
    let feed = with(|e| {
        e.job.command = "feed".into();
        e.job.stdin = Some("50%\n".into());
        e.job.env = env(&[("A", " ")]);
    });
    let text = crontab::write(&[nightly, tick, feed, export("date +%s")], Form::User);
    assert_eq!(
        text,
        "\
# A crontab written by Carillon; `carillon import` reads it back, under names made from this file's name.
# Carillon and cronie follow CRON_TZ=; Debian's cron takes all schedules in the machine's zone.

# backup
0 3 * * * date +\\%s

A=\" \"
# backup
0 3 * * * feed%50\\%%

# Carillon follows the next comment; cron cannot, and keeps what it names for the lines below.
# carillon: unset A
CRON_TZ=Europe/Berlin
PGUSER=app
# nightly (not in the crontab: timeout 1h, label team=data)
0 3 * * * pg_dump app

# A crontab cannot express these jobs; `carillon export --format json` has all of them.

# tick
#   not exported: its schedule has seconds, and cron's clock ticks once a minute
#   schedule: */5 * * * * *
#   command: x
"
    );
    let commands: Vec<_> =
        jobs(&parse(&text, Form::User)).into_iter().map(|job| (job.command, job.env.len())).collect();
    assert_eq!(commands, [("date +%s".into(), 0), ("feed".into(), 1), ("pg_dump app".into(), 1)]);
}

#[test]
fn a_job_that_a_crontab_cannot_express_is_a_comment_with_the_reason() {
    for (export, reason) in [
        (with(|e| e.executor = Executor::Argv(vec!["a".into(), "b\n".into()])), "without a shell"),
        (with(|e| e.executor = Executor::Other("http".into())), "its executor is \"http\""),
        (with(|e| e.paused = true), "it is paused"),
        (with(|e| e.job.schedule = "@every 90s".into()), "cron has no \"@every\""),
        (with(|e| e.job.schedule = "0 0 L * *".into()), "its day of month is \"L\""),
        (with(|e| e.job.user = Some("root".into())), "only a system crontab"),
        (with(|e| e.job.command = "a\n* * * * * b".into()), "several lines"),
        (with(|e| e.job.command = "a\u{1b}".into()), "control characters"),
        (with(|e| e.job.command = " ".into()), "no command"),
        (
            with(|e| {
                e.job.schedule = "@daily".into();
                e.job.command = "= x".into();
            }),
            "as an assignment",
        ),
        (with(|e| e.job.stdin = Some("a".into())), "does not end with a newline"),
        (with(|e| e.job.dir = Some("/srv".into())), "it starts in \"/srv\""),
        (with(|e| e.job.env = env(&[("HOME", "/srv")])), "it starts in the home of its user"),
        (with(|e| e.job.env = env(&[("MAILTO", "x")])), "cron takes for itself"),
        (with(|e| e.job.env = env(&[("A", "b\nc")])), "its variable \"A\""),
        (with(|e| e.job.shell = String::new()), "no shell"),
        (with(|e| e.job.command = "x".repeat(70_000)), "bytes long"),
    ] {
        let text = crontab::write(&[export], Form::User);
        assert!(text.contains("#   not exported: ") && text.contains(reason), "{reason}: {text}");
        assert!(parse(&text, Form::User).iter().all(|line| line.status() == "comment"), "{text}");
    }
    let text = crontab::write(&[export("x")], Form::System);
    assert!(text.contains("it names no user"), "{text}");
}

#[test]
fn a_zone_in_the_schedule_becomes_a_variable() {
    let text = crontab::write(&[with(|e| e.job.schedule = "TZ=Asia/Tokyo 0 3 * * *".into())], Form::User);
    let job = jobs(&parse(&text, Form::User)).remove(0);
    assert_eq!((job.schedule.as_str(), job.timezone.as_deref()), ("0 3 * * *", Some("Asia/Tokyo")));
}

#[test]
fn the_form_follows_the_users() {
    let root = || with(|e| e.job.user = Some("root".into()));
    assert_eq!(Form::fitting(&[]), Form::User);
    assert_eq!(Form::fitting(&[export("x")]), Form::User);
    assert_eq!(Form::fitting(&[root(), root(), export("x")]), Form::System);
}

prop_compose! {
    fn any_export()(
        schedule in prop_oneof!["[0-5]?[0-9] [*0] [*1] (\\*|jan) (\\*|mon-fri)", Just("@daily".to_owned())],
        timezone in proptest::option::of("(UTC|Europe/Berlin)"),
        command in "[a\u{e9}%\\\\#=@'\"-][a\u{e9} %\\\\\t#='\"|;-]{0,10}",
        stdin in proptest::option::of("([a%\\\\ ]{0,4}a?\n){1,3}"),
        env in proptest::collection::btree_map("[A-C]|HOME|PATH|TZ", "[a'\"=%#\\\\ ]{0,4}", 0..4),
        shell in "/bin/(sh|bash)",
        user in proptest::option::of("root|www"),
    ) -> ExportJob {
        with(|e| {
            e.job.dir = env.get("HOME").cloned();
            e.job = CrontabJob { schedule, timezone, command, stdin, env, shell, user, ..e.job.clone() };
        })
    }
}

/// The jobs of a crontab without their order and names.
fn essence(jobs: impl IntoIterator<Item = CrontabJob>) -> Vec<String> {
    let nameless = |job| format!("{:?}", CrontabJob { name: String::new(), ..job });
    let mut all: Vec<_> = jobs.into_iter().map(nameless).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_crontab_is_read_back(exports in proptest::collection::vec(any_export(), 0..6), system: bool) {
        let form = if system { Form::System } else { Form::User };
        let fits = |e: &&ExportJob| !crontab::write(std::slice::from_ref(*e), form).contains("not exported");
        let fitting: Vec<CrontabJob> = exports.iter().filter(fits).map(|e| e.job.clone()).collect();
        let text = crontab::write(&exports, form);
        prop_assert_eq!(text.matches("not exported").count(), exports.len() - fitting.len());
        let lines = parse(&text, form);
        prop_assert!(lines.iter().all(|line| !matches!(line.status(), "error" | "skipped")), "{}", text);
        prop_assert_eq!(essence(jobs(&lines)), essence(fitting), "{}", text);
    }

    #[test]
    fn no_job_breaks_out_of_its_line(texts in proptest::collection::vec("\\PC{0,6}|[\n\r\t%\\\\\"' #*0]{0,8}", 8)) {
        let hostile = with(|e| {
            e.job.name = texts[0].clone();
            e.job.command = texts[1].clone();
            e.job.stdin = Some(texts[2].clone());
            e.job.env = [(texts[3].clone(), texts[4].clone())].into();
            e.job.shell = texts[5].clone();
            e.job.timezone = Some(texts[6].clone());
            e.unsaid = vec![texts[7].clone()];
        });
        let found = jobs(&parse(&crontab::write(std::slice::from_ref(&hostile), Form::User), Form::User));
        prop_assert!(found.len() <= 1);
        prop_assert!(found.iter().all(|job| job.command == hostile.job.command.trim_start_matches([' ', '\t'])));
    }
}
