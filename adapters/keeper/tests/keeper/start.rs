//! How programs start: arguments, environment, directory, stdin, signals, descriptors, and what is said when they cannot.

use carillon_executors::executor::{Exit, Outcome};
use carillon_keeper::{KeeperHandle, UserIds};

use crate::support::*;
use crate::tests;

tests![
    exit_codes_and_signals,
    arguments_pass_no_shell,
    the_environment_is_what_was_given,
    stdin_is_what_was_given_or_empty,
    the_directory_is_entered,
    what_cannot_start_says_why,
    nothing_is_inherited,
    another_user_with_its_groups_and_no_new_privileges,
];

fn one(spawn: carillon_keeper::Spawn) -> Exit {
    run(async { finish(&keeper(true), spawn).await })
}

fn exit_codes_and_signals() {
    run(async {
        let keeper = keeper(true);
        let exit = finish(&keeper, script("exit 0")).await;
        assert_eq!((exit.how, exit.exit_code, exit.signal, exit.reason), (Outcome::Succeeded, Some(0), None, None));
        let exit = finish(&keeper, script("exit 3")).await;
        assert_eq!((exit.how, exit.exit_code, exit.signal), (Outcome::Failed, Some(3), None));
        let exit = finish(&keeper, script("exit 127")).await;
        assert_eq!((exit.how, exit.exit_code, exit.reason), (Outcome::Failed, Some(127), None));
        let exit = finish(&keeper, script("kill -SEGV $$")).await;
        assert_eq!((exit.how, exit.exit_code, exit.signal), (Outcome::Failed, None, Some(libc::SIGSEGV)));
        let exit = finish(&keeper, script("kill -RTMIN+3 $$")).await;
        assert_eq!((exit.how, exit.signal), (Outcome::Failed, Some(libc::SIGRTMIN() + 3)));
    });
}

fn arguments_pass_no_shell() {
    let exit = one(argv(["printf", "%s|", "$HOME", "a b", "*", "`id`", "\"", "", "\u{e9}\n"]));
    assert_eq!(text(&exit), "$HOME|a b|*|`id`|\"||\u{e9}\n|");
}

fn the_environment_is_what_was_given() {
    let mut spawn = argv(["/usr/bin/env"]);
    spawn.env = vec![c"A=1".into(), c"B=two words".into(), c"EMPTY=".into()];
    assert_eq!(text(&one(spawn)), "A=1\nB=two words\nEMPTY=\n");
}

fn stdin_is_what_was_given_or_empty() {
    let big: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let mut spawn = argv(["sha256sum"]);
    spawn.stdin = Some(big.clone().into_bytes());
    let through_stdin = text(&one(spawn)).to_owned();
    let mut spawn = script("seq 0 199999 | sha256sum");
    assert_eq!(through_stdin, text(&one(spawn.clone())));
    spawn = argv(["cat"]);
    let exit = one(spawn);
    assert_eq!((exit.how, exit.output), (Outcome::Succeeded, Vec::new()));
}

fn the_directory_is_entered() {
    let directory = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(directory.path()).unwrap();
    let mut spawn = argv(["pwd"]);
    spawn.dir = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    assert_eq!(text(&one(spawn)).trim_end(), path.to_str().unwrap());
    let mut spawn = argv(["pwd"]);
    (spawn.dir, spawn.dir_or_root) = (c"/no/such/home".into(), true);
    assert_eq!(text(&one(spawn)), "/\n");
}

fn what_cannot_start_says_why() {
    run(async {
        let keeper = keeper(true);
        let mut nowhere = argv(["true"]);
        nowhere.dir = c"/no/such/dir".into();
        let huge = "x".repeat(200_000);
        for (spawn, expected) in [
            (argv(["no-such-program"]), "no such program: \"no-such-program\" is in no directory of the run's PATH"),
            (argv(["/no/such"]), "no such program: \"/no/such\""),
            (argv(["/etc/passwd"]), "may not execute \"/etc/passwd\": permission denied"),
            (nowhere, "cannot enter the directory \"/no/such/dir\": No such file or directory"),
            (argv(["echo", &huge]), "longer than the system allows"),
            (argv([]), "no such program"),
        ] {
            let exit = finish(&keeper, spawn).await;
            let reason = exit.reason.unwrap();
            assert_eq!((exit.how, exit.exit_code, exit.signal), (Outcome::Failed, None, None), "{reason}");
            assert!(reason.contains(expected), "{reason}");
        }
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
    });
}

fn nothing_is_inherited() {
    let mut options = options(true);
    options.lock = Some(tempfile::tempfile().unwrap().into());
    let looks = "ls /proc/self/fd | tr '\\n' ' '; grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; ulimit -n";
    let exit = run(async {
        let keeper = KeeperHandle::start(options).unwrap();
        keeper.extend_deadline(u64::MAX);
        finish(&keeper, script(looks)).await
    });
    let lines: Vec<&str> = text(&exit).lines().collect();
    let files = std::process::Command::new("bash").args(["-c", "ulimit -n"]).output().unwrap().stdout;
    let files = String::from_utf8(files).unwrap();
    // 3 is the directory that ls itself opens.
    let expected = ["0 1 2 3 SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "0022", files.trim_end()];
    assert_eq!(lines, expected);
    let exit = one(argv(["sh", "-c", "ps -o pid=,pgid=,sid= -p $$ | tr -s ' ' '\\n' | sort -u | grep -c ."]));
    assert_eq!(text(&exit), "1\n", "a run leads its own process group and session");
}

fn another_user_with_its_groups_and_no_new_privileges() {
    if !is_root() {
        return skip("switching users needs root");
    }
    let mut spawn =
        script("id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; echo again > /dev/stdout; cat /dev/stdin");
    spawn.user = Some(UserIds { uid: 65534, gid: 65533, groups: vec![65533, 4321] });
    spawn.stdin = Some(b"in".to_vec());
    let exit = one(spawn);
    assert_eq!(text(&exit), "65534\n65533\n65533 4321\nNoNewPrivs:\t1\nagain\nin");
    let mut spawn = script("true");
    spawn.user = Some(UserIds { uid: 65534, gid: 65534, groups: vec![65534] });
    spawn.dir = c"/root".into();
    let exit = one(spawn);
    let reason = exit.reason.unwrap_or_default();
    assert!(exit.how == Outcome::Succeeded || reason.contains("cannot enter the directory \"/root\""), "{reason}");
}
