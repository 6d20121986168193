//! Whole crontabs: those that packages ship, the result of each line, and the names of jobs.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::crontab::{self, CrontabJob, ImportOptions, Line, LineKind};
use carillon_domain::name::check_job_name;
use proptest::prelude::*;

const USER: ImportOptions = ImportOptions { file: "jobs", system: false, ignore_user: false, timezone: None };
const SYSTEM: ImportOptions = ImportOptions { system: true, ..USER };

fn parse(text: impl AsRef<[u8]>, options: &ImportOptions) -> Vec<Line> {
    crontab::parse(text.as_ref(), options, &|_, _| Ok(()))
}

fn jobs(lines: &[Line]) -> Vec<CrontabJob> {
    let job = |line: &Line| if let LineKind::Job(job) = &line.what { Some(job.clone()) } else { None };
    lines.iter().filter_map(job).collect()
}

fn only_job(text: &str, options: &ImportOptions) -> CrontabJob {
    let lines = parse(text, options);
    match jobs(&lines).as_slice() {
        [job] => job.clone(),
        others => panic!("{} jobs in {lines:?}", others.len()),
    }
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The result of each line as `NUMBER STATUS NAME`, without comments.
fn outline(lines: &[Line]) -> Vec<String> {
    let told = lines.iter().filter(|line| line.status() != "comment");
    told.map(|line| format!("{} {} {}", line.number, line.status(), line.name().unwrap_or("-"))).collect()
}

#[test]
fn a_package_with_a_guarded_program() {
    let text = "\
# checks the arrays on the first Sunday of each month, \u{a9} nobody

57 0 * * 0 root if [ -x /usr/share/raid/checkraid ] && [ $(date +\\%d) -le 7 ]; then /usr/share/raid/checkraid --all; fi
";
    let options = ImportOptions { file: "raid", ..SYSTEM };
    let expected = CrontabJob {
        name: "raid-checkraid-518a0ca".into(),
        schedule: "57 0 * * 0".into(),
        timezone: None,
        command:
            "if [ -x /usr/share/raid/checkraid ] && [ $(date +%d) -le 7 ]; then /usr/share/raid/checkraid --all; fi"
                .into(),
        stdin: None,
        env: BTreeMap::new(),
        shell: "/bin/sh".into(),
        dir: None,
        user: Some("root".into()),
        labels: BTreeMap::new(),
    };
    assert_eq!(only_job(text, &options), expected);

    let labelled = only_job(text, &ImportOptions { ignore_user: true, ..options });
    assert_eq!(labelled, CrontabJob { user: None, labels: env(&[("user", "root")]), ..expected });
}

#[test]
fn a_package_with_mail_and_long_shell_lines() {
    let text = r#"
MAILTO=root

*/5 * * * *     graphs if [ -x /usr/bin/graphs-cron ]; then /usr/bin/graphs-cron; fi
14 10 * * *     graphs if [ -x /usr/share/graphs/limits ]; then /usr/share/graphs/limits --force; fi
27 03 * * *     graphs dir=$({ cat /etc/graphs/*.conf 2>/dev/null || true; } | sed -nE 's/^\s*dir\s+(\S.*)$/\1/p' | tail -1); dir=${dir:-/var/cache/graphs}; if [ -d "$dir" ]; then find "$dir/" -mtime +30 -delete; fi
32 03 * * *     www-data dir=$({ cat /etc/graphs/*.conf 2>/dev/null || true; } | sed -nE 's/^\s*tmp\s+(\S.*)$/\1/p' | tail -1); if [ -d "$dir" ]; then find "$dir/" -mtime +1 -delete; fi
"#;
    let lines = parse(text, &ImportOptions { file: "graphs", ..SYSTEM });
    assert_eq!(
        outline(&lines),
        [
            "2 env MAILTO",
            "4 job graphs-graphs-cron-3656e23",
            "5 job graphs-limits-88da4e2",
            "6 job graphs-find-f1e3ced",
            "7 job graphs-find-e24fcb6",
        ]
    );
    assert!(lines[1].reason().unwrap().contains("makes a route that mails"));
    let jobs = jobs(&lines);
    assert!(jobs[2].command.contains(r"'s/^\s*dir\s+(\S.*)$/\1/p'"), "backslashes stay");
    assert_eq!(jobs[3].user.as_deref(), Some("www-data"));
    assert!(jobs.iter().all(|job| job.env.is_empty()), "MAILTO is no variable of the commands");
}

#[test]
fn a_package_with_a_lone_test_and_padded_fields() {
    let text = "09,39 *     * * *     root   [ -x /usr/lib/web/clean ] && if [ ! -d /run/systemd ]; then /usr/lib/web/clean; fi\n";
    let job = only_job(text, &ImportOptions { file: "web-common", ..SYSTEM });
    assert_eq!(job.name, "web-common-clean-ef48521");
    assert_eq!(job.schedule, "09,39 * * * *");
    assert!(job.command.starts_with("[ -x /usr/lib/web/clean ] && if"));
}

#[test]
fn a_package_with_a_path_and_two_lines_of_one_program() {
    let text = "\
PATH=/usr/lib/stat:/usr/sbin:/usr/bin:/sbin:/bin

5-55/10 * * * * root command -v stat-sa1 > /dev/null && stat-sa1 1 1
59 23 * * * root command -v stat-sa1 > /dev/null && stat-sa1 60 2
";
    let lines = parse(text, &ImportOptions { file: "stat", ..SYSTEM });
    assert_eq!(outline(&lines), ["1 env PATH", "3 job stat-stat-sa1-f590a6a", "4 job stat-stat-sa1-b99e7ec"]);
    assert!(jobs(&lines).iter().all(|job| job.env["PATH"].starts_with("/usr/lib/stat:")));
}

#[test]
fn a_package_with_variables_of_its_own() {
    let text = r#"
DEFAULT=/etc/default/watch
NICE=10
0 * * * *      root    test -x /usr/sbin/watchcron && { [ -r "$DEFAULT" ] && . "$DEFAULT" ; nice -n$NICE /usr/sbin/watchcron -q ; }
"#;
    let job = only_job(text, &ImportOptions { file: "watch", ..SYSTEM });
    assert_eq!(job.name, "watch-watchcron-8d98350");
    assert_eq!(job.env, env(&[("DEFAULT", "/etc/default/watch"), ("NICE", "10")]));
}

#[test]
fn variables_apply_to_the_lines_after_them() {
    let text = "\
0 1 * * * a
A = one two
SHELL=/bin/bash
HOME=\"/srv/app \"
CRON_TZ=Europe/Berlin
0 2 * * * b
A=''
SHELL=/bin/sh
CRON_TZ=
0 3 * * * c
";
    let jobs = jobs(&parse(text, &ImportOptions { timezone: Some("Asia/Tokyo"), ..USER }));
    let told: Vec<_> = jobs.iter().map(|j| (j.timezone.as_deref(), j.shell.as_str(), j.dir.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Some("Asia/Tokyo"), "/bin/sh", None),
            (Some("Europe/Berlin"), "/bin/bash", Some("/srv/app ")),
            (Some("Asia/Tokyo"), "/bin/sh", Some("/srv/app ")),
        ]
    );
    assert_eq!(jobs[0].env, env(&[]));
    assert_eq!(jobs[1].env, env(&[("A", "one two"), ("HOME", "/srv/app ")]));
    assert_eq!(jobs[2].env, env(&[("A", ""), ("HOME", "/srv/app ")]));
}

#[test]
fn every_line_has_a_result() {
    for (line, status, name, reason) in [
        ("# comment", "comment", None, None),
        (" \t ", "comment", None, None),
        ("PATH=/bin", "env", Some("PATH"), None),
        ("MAILTO=\"\"", "env", Some("MAILTO"), Some("no mail about the jobs below")),
        ("MAILFROM=x", "env", Some("MAILFROM"), Some("[mail] from")),
        ("LOGNAME=x", "env", Some("LOGNAME"), Some("cron does not let")),
        ("CONTENT_TYPE=x", "env", Some("CONTENT_TYPE"), Some("it only shapes cron's mail")),
        ("CONTENT_TRANSFER_ENCODING=x", "env", Some("CONTENT_TRANSFER_ENCODING"), Some("it only shapes cron's mail")),
        ("TZ=UTC", "env", Some("TZ"), Some("CRON_TZ= is for the schedules")),
        ("TZ=UTC 0 3 * * * x", "error", None, Some("\"UTC 0 3 * * * x\" is not a time zone: in a crontab TZ= stands")),
        ("A=\"b", "error", None, Some("is not closed")),
        ("@reboot x", "skipped", None, Some("a cluster does not boot")),
        ("@dayly x", "error", None, Some("there is no \"@dayly\"")),
        ("5 4 * *", "error", None, Some("\"5 4 * *\" lacks the day of week and the command")),
        ("0 0 * * * %in", "error", None, Some("there is no command before the %")),
        ("bad * * * * x", "error", None, Some("the minute is bad")),
        ("* * * * * a\0b", "error", None, Some("the control character U+0000")),
        ("* * * * * \u{1b}[2J", "error", None, Some("the control character U+001B")),
        ("@daily backup", "job", Some("jobs-backup-6d0f23b"), None),
        ("@daily backup\r", "job", Some("jobs-backup-6d0f23b"), None),
        ("-0 4 * * * backup", "job", Some("jobs-backup-6d0f23b"), Some("not to write to syslog")),
        ("0 4 * * * root x", "job", Some("jobs-root-5b44586"), Some("import the file with --system")),
        ("0 4 * * * x \\\\", "job", Some("jobs-x-5d9f355"), Some("as in Debian's cron")),
    ] {
        let check = |schedule: &str, _: Option<&str>| match schedule.starts_with("bad") {
            true => Err("the minute is bad".to_owned()),
            false => Ok(()),
        };
        let lines = crontab::parse(format!("{line}\n").as_bytes(), &USER, &check);
        assert_eq!(lines.len(), 1);
        let told = lines[0].reason();
        assert_eq!((lines[0].status(), lines[0].name()), (status, name), "{line:?}: {told:?}");
        assert!(told.is_some() == reason.is_some() && told.unwrap_or("").contains(reason.unwrap_or("")), "{told:?}");
    }
}

#[test]
fn a_system_crontab_read_as_a_user_crontab_gets_a_note() {
    for (command, is_noticed) in [
        ("munin if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi", true),
        ("munin dir=$(pwd); ls $dir", true),
        ("www-data /opt/web", true),
        ("stats-user cd /srv && ./stats", true),
        ("/opt/backup test", false),
        ("mysql -e 'select 1'", false),
        ("sudo test -x /a", false),
        ("env A=$(pwd) x", false),
        ("cd /srv && ./x", false),
        ("root", false),
    ] {
        let line = format!("* * * * * {command}\n");
        let lines = crontab::parse(line.as_bytes(), &USER, &|_, _| Ok(()));
        assert_eq!(lines[0].reason().is_some_and(|told| told.contains("--system")), is_noticed, "{command}");
        let lines = crontab::parse(line.as_bytes(), &SYSTEM, &|_, _| Ok(()));
        assert!(!lines[0].reason().is_some_and(|told| told.contains("--system")), "{command}");
    }
}

#[test]
fn skipped_and_refused_lines_keep_their_schedule() {
    let lines = crontab::parse(b"@reboot x  y\n1 2 3 4 5 x\n", &USER, &|_, _| Err("no".into()));
    assert_eq!(lines[0].schedule(), Some("@reboot"));
    assert!(matches!(&lines[0].what, LineKind::Skipped { command, .. } if command == "x  y"));
    assert_eq!((lines[1].schedule(), lines[1].reason()), (Some("1 2 3 4 5"), Some("no")));
}

#[test]
fn schedules_are_checked_in_their_zone() {
    let seen = std::cell::RefCell::new(Vec::new());
    let check = |schedule: &str, zone: Option<&str>| {
        seen.borrow_mut().push((schedule.to_owned(), zone.map(str::to_owned)));
        Ok(())
    };
    crontab::parse(b"@daily x\nCRON_TZ=Mars/Crater 0 3 * * * y\n1  2 * * * z\n", &USER, &check);
    let wrong_zone = "Mars/Crater 0 3 * * * y".to_owned();
    assert_eq!(seen.take(), [("@daily".into(), None), ("1 2 * * *".into(), Some(wrong_zone))]);
}

#[test]
fn bytes_that_are_not_text_affect_only_their_line() {
    let long = [b"0 0 * * * ".as_slice(), &vec![b'x'; 70_000]].concat();
    let mut text = b"\xef\xbb\xbf# caf\xe9\r\n* * * * * caf\xe9\n@daily a\n".to_vec();
    text.extend(long);
    text.extend(b"\n@daily b");
    let lines = parse(&text, &USER);
    let told: Vec<_> = lines.iter().map(|line| (line.number, line.status(), line.reason().unwrap_or(""))).collect();
    assert_eq!(
        told,
        [
            (1, "comment", "the byte order mark is ignored"),
            (2, "error", "the line is not UTF-8: the byte 0xe9 is invalid there"),
            (3, "job", ""),
            (4, "error", "the line is 70010 bytes long: at most 65536 are allowed"),
            (5, "job", "the file does not end with a newline, for which cron would refuse it"),
        ]
    );
}

#[test]
fn every_line_of_the_file_is_reported() {
    for (text, count) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n\na", 3), ("\u{feff}", 0)] {
        assert_eq!(parse(text, &USER).len(), count, "{text:?}");
    }
}

#[test]
fn the_size_of_variables_is_limited() {
    let text: String = (0..3).map(|n| format!("A{n}={}\n", "x".repeat(30_000))).collect();
    let lines = parse(text, &USER);
    assert_eq!(lines.iter().map(Line::status).collect::<Vec<_>>(), ["env", "env", "error"]);

    let of_size = |bytes: usize| format!("A={}\nB={}\n", "x".repeat(40_000 - 1), "x".repeat(bytes - 40_000 - 1));
    for (bytes, status) in [(64 * 1024, "env"), (64 * 1024 + 1, "error")] {
        assert_eq!(parse(of_size(bytes), &USER)[1].status(), status, "{bytes} bytes");
    }
}

#[test]
fn a_line_may_have_the_longest_length() {
    for (bytes, status) in [(crontab::MAX_LINE, "job"), (crontab::MAX_LINE + 1, "error")] {
        assert_eq!(parse(format!("@daily {}", "x".repeat(bytes - 7)), &USER)[0].status(), status, "{bytes} bytes");
    }
}

#[test]
fn a_name_changes_only_with_its_command() {
    let before = jobs(&parse("0 1 * * * nice /opt/a x\n0 2 * * * /opt/a y\n", &USER));
    let after = jobs(&parse("A=b\n@hourly /opt/a z\n5 5 * * 1 /opt/a y\n\n@daily nice /opt/a x \n", &USER));
    assert_eq!([&before[0].name, &before[1].name], [&after[2].name, &after[1].name]);
    assert_eq!(after.iter().map(|job| job.name.as_str()).collect::<BTreeSet<_>>().len(), 3);

    let twice = jobs(&parse("0 1 * * * /opt/a y\n0 2 * * * /opt/a y\n", &USER));
    assert_eq!(twice[0].name, before[1].name);
    assert_eq!(twice[1].name, format!("{}.2", before[1].name));

    let user = only_job("0 1 * * * root /opt/a\n", &SYSTEM).name;
    assert_eq!(user, only_job("0 1 * * * root /opt/a\n", &ImportOptions { ignore_user: true, ..SYSTEM }).name);
    assert_ne!(user, only_job("0 1 * * * www /opt/a\n", &SYSTEM).name);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_become_one_line_each(text in proptest::collection::vec(any::<u8>(), 0..400), system: bool) {
        let lines = parse(&text, &ImportOptions { system, ..USER });
        let body = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let ends = body.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines.len(), ends + usize::from(!body.is_empty() && !body.ends_with(b"\n")));
    }

    #[test]
    fn any_text_like_a_crontab_becomes_valid_jobs(
        lines in proptest::collection::vec("[-@*0-9a%\\\\=\"'#H ]{0,6}( [*0]){0,5}[ \ta-z/$(){}`;&|<>%\\\\\"']{0,16}", 0..12),
        system: bool,
        ignore_user: bool,
    ) {
        let options = ImportOptions { file: "any file", system, ignore_user, timezone: None };
        let parsed = jobs(&parse(lines.join("\n"), &options));
        for job in &parsed {
            prop_assert_eq!(check_job_name(&job.name), Ok(()));
            prop_assert!(!job.command.trim().is_empty());
        }
        prop_assert_eq!(parsed.iter().map(|job| &job.name).collect::<BTreeSet<_>>().len(), parsed.len());
    }

    #[test]
    fn a_new_line_renames_no_other_job(
        commands in proptest::collection::btree_set("[ab]{1,2} [/a-c$]{1,4}", 1..6),
        added in "[d-f]{1,3}",
        at in 0usize..6,
    ) {
        let names = |texts: &[String]| -> BTreeSet<String> {
            jobs(&parse(texts.concat(), &USER)).into_iter().map(|job| job.name).collect()
        };
        let mut texts: Vec<String> = commands.iter().map(|command| format!("0 1 * * * {command}\n")).collect();
        let before = names(&texts);
        texts.insert(at.min(texts.len()), format!("@hourly {added}\n"));
        prop_assert!(before.is_subset(&names(&texts)));
    }
}

#[test]
fn jobs_know_whom_cron_would_mail() {
    let text = "* * * * * a\nMAILTO=\"ops@example.org, root\"\n* * * * * b\nMAILTO=\n* * * * * c\n";
    let lines = parse(text, &ImportOptions::default());
    let labels: Vec<_> = lines
        .iter()
        .filter_map(|line| match &line.what {
            LineKind::Job(job) => Some(job.labels.get(carillon_domain::crontab::MAIL_LABEL).map(String::as_str)),
            _ => None,
        })
        .collect();
    assert_eq!(labels, [None, Some("ops@example.org,root"), None]);
    assert!(lines[1].reason().is_some_and(|reason| reason.contains("mailto")), "{:?}", lines[1]);
}
