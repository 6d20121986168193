//! One run after another, as its command and its record see it.

use std::collections::BTreeMap;

use carillon_tests::fixture::{Gate, directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use serde_json::{Value, json};

fn output(run: &Value) -> &str {
    text(run, "output")
}

#[test]
fn exit_codes_and_signals_are_recorded_as_they_were() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    for (name, command, status, exit_code, signal) in [
        ("zero", "exit 0", "succeeded", json!(0), json!(null)),
        ("seven", "exit 7", "failed", json!(7), json!(null)),
        ("most", "exit 255", "failed", json!(255), json!(null)),
        ("segv", "kill -SEGV $$", "failed", json!(null), json!(11)),
        ("kill", "kill -KILL $$", "failed", json!(null), json!(9)),
        ("real-time", "kill -34 $$", "failed", json!(null), json!(34)),
        ("syntax", "if then", "failed", json!(2), json!(null)),
    ] {
        let run = server.run_once(name, json!({"command": command}), json!({}));
        let seen = (run["status"].clone(), run["exit_code"].clone(), run["signal"].clone());
        assert_eq!(seen, (json!(status), exit_code, signal), "{run}");
        assert_eq!((&run["trigger"], &run["attempt"]), (&json!("manual"), &json!(1)));
        assert!(text(&run, "started_at") <= text(&run, "finished_at"), "{run}");
        let job = server.get(&format!("/v1/jobs/{name}"));
        assert_eq!(job["last_run"]["id"], run["id"]);
        assert_eq!((&job["state"], &job["current_run"]), (&json!("idle"), &json!(null)));
    }
}

/// The server is killed between the request and the second attempt.
#[test]
fn params_of_one_run_outlive_the_server() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let command = "echo $MONTH; test $CARILLON_ATTEMPT = 2";
    let retry = json!({"max_attempts": 2, "backoff": "2s"});
    let definition = json!({"name": "a", "schedule": NEVER, "params": {"command": command, "env": {"MONTH": "none"}}, "retry": retry});
    assert_eq!(server.call("POST", "/v1/jobs", Some(&definition)).0, 201);
    let asked = server.post("/v1/jobs/a/run", &json!({"params": {"env": {"MONTH": "2027-01"}}}));
    let first = format!("/v1/runs/{}", text(&asked, "id"));
    server.wait_until("the first attempt has failed", || server.get(&first)["status"] == "failed");
    assert_eq!(output(&server.get(&first)), "2027-01\n");
    server.kill();
    let server = Server::start(dir.path(), &[]);
    let runs = "/v1/jobs/a/runs?status=succeeded";
    server.wait_until("the second attempt has succeeded", || !server.all(runs).is_empty());
    let second = server.get(&format!("/v1/runs/{}", text(&server.all(runs)[0], "id")));
    assert_eq!((output(&second), &second["attempt"]), ("2027-01\n", &json!(2)));
    assert_eq!(second["params"], json!({"env": {"MONTH": "2027-01"}}));
}

#[test]
fn what_cannot_be_started_says_why() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let denied = dir.path().join("denied");
    std::fs::write(&denied, "#!/bin/sh\n").unwrap();
    for (name, params, sentence) in [
        ("nowhere", json!({"argv": ["no-such-program-here"]}), "\"no-such-program-here\" is in no directory"),
        ("missing", json!({"argv": ["/no/such/program"]}), "no such program: \"/no/such/program\""),
        ("denied", json!({"argv": [denied]}), "permission denied"),
        ("directory", json!({"command": "true", "dir": "/no/such/directory"}), "\"/no/such/directory\""),
        ("shell", json!({"command": "true", "shell": "no-such-shell"}), "no-such-shell"),
    ] {
        let run = server.run_once(name, params, json!({}));
        assert_eq!(run["status"], "failed", "{run}");
        assert!(text(&run, "reason").contains(sentence), "{run}");
    }
    let run = server.run_once("command", json!({"command": "no-such-command-here"}), json!({}));
    assert_eq!((&run["status"], &run["exit_code"]), (&json!("failed"), &json!(127)));
    assert!(output(&run).contains("no-such-command-here: command not found"), "{run}");
}

#[test]
fn output_keeps_its_order_and_is_cut_in_the_middle() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let both = "for n in 1 2 3 4 5; do echo out $n; echo err $n >&2; done";
    let run = server.run_once("both", json!({"command": both}), json!({}));
    let expected: String = (1..=5).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!((output(&run), &run["output_truncated"]), (expected.as_str(), &json!(false)));

    let long = server.run_once("long", json!({"argv": ["seq", "1", "200000"]}), json!({}));
    assert_eq!((&long["status"], &long["output_truncated"]), (&json!("succeeded"), &json!(true)));
    assert!(output(&long).starts_with("1\n2\n3\n") && output(&long).ends_with("\n199999\n200000\n"));
    assert_eq!(output(&long).len(), 64 * 1024);

    let run = server.run_once("bytes", json!({"command": "printf 'a\\377b\\0c'"}), json!({}));
    assert_eq!(output(&run), "a\u{fffd}b\0c");
    let (status, headers, _) = server.call_raw("GET", &format!("/v1/runs/{}/output", text(&run, "id")), &[], None);
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "application/octet-stream"));
}

#[test]
fn the_environment_is_the_documented_one_and_nothing_of_the_servers() {
    let dir = directory();
    let server = Server::start_as(dir.path(), |command| {
        command.env("AWS_SECRET_ACCESS_KEY", "hunter2").env("LD_LIBRARY_PATH", "/nowhere").env("PATH", "/bin:/usr/bin")
    });
    let env = json!({"PGUSER": "app", "LANG": "de_DE.UTF-8", "EMPTY": ""});
    let run = server.run_once("env", json!({"argv": ["/usr/bin/env"], "env": env}), json!({}));
    let found: BTreeMap<_, _> = output(&run).lines().filter_map(|line| line.split_once('=')).collect();
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().expect("the test has a user");
    let token = run["fencing_token"].to_string();
    let expected = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", user.dir.to_str().unwrap()),
        ("USER", user.name.as_str()),
        ("LANG", "de_DE.UTF-8"),
        ("PGUSER", "app"),
        ("EMPTY", ""),
        ("CARILLON_NAMESPACE", "default"),
        ("CARILLON_JOB", "env"),
        ("CARILLON_RUN_ID", text(&run, "id")),
        ("CARILLON_DUE_AT", text(&run, "due_at")),
        ("CARILLON_ATTEMPT", "1"),
        ("CARILLON_FENCING_TOKEN", token.as_str()),
    ];
    assert_eq!(found, BTreeMap::from(expected));

    let run = server.run_once("files", json!({"command": "ls /proc/$$/fd; true"}), json!({}));
    let inherited: Vec<_> = output(&run).lines().filter(|fd| !["255"].contains(fd)).collect();
    assert_eq!(inherited, ["0", "1", "2"], "no descriptor of the server reaches a command");
    let run = server.run_once("signals", json!({"command": "grep -E 'Sig(Blk|Ign)' /proc/$$/status"}), json!({}));
    assert_eq!(output(&run), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

#[test]
fn a_secret_reaches_the_command_and_nobody_else() {
    let dir = directory();
    let server = Server::start_as(dir.path(), |command| command.env("CARILLON_LOG", "trace"));
    let env = json!({"PASSWORD": {"value": "hunter2-of-the-job", "secret": true}});
    let command = "test $(echo $PASSWORD | rev) = boj-eht-fo-2retnuh && echo told";
    let run = server.run_once("secret", json!({"command": command, "env": env}), json!({}));
    assert_eq!(output(&run), "told\n");
    let shown = server.get("/v1/jobs/secret")["params"]["env"].to_string();
    assert_eq!(shown, r#"{"PASSWORD":{"secret":true}}"#);
    assert!(server.drain().success());
    let log = std::fs::read_to_string(dir.path().join("server.log")).expect("a log");
    let token = std::fs::read_to_string(dir.path().join("carillon.token")).expect("a token");
    assert!(!log.contains("hunter2-of-the-job") && !log.contains(token.trim()), "{log}");
}

#[test]
fn arguments_and_stdin_reach_the_program_as_they_are() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let hostile = ["$(touch pwned)", "`id`", "; rm -rf x", "a  b", "*", "\"'\\", "", "-n", "é\u{1f600}", "two\nlines"];
    let argv: Vec<_> = ["printf", "<%s>"].into_iter().chain(hostile).collect();
    let run = server.run_once("argv", json!({"argv": argv}), json!({}));
    assert_eq!(output(&run), hostile.map(|argument| format!("<{argument}>")).concat());

    let stdin = "line of standard input\n".repeat(10_000);
    let params = json!({"argv": ["wc", "-c"], "stdin": stdin});
    assert_eq!(output(&server.run_once("wc", params, json!({}))).trim(), stdin.len().to_string());
    let unread = server.run_once("unread", json!({"argv": ["true"], "stdin": stdin}), json!({}));
    assert_eq!(unread["status"], "succeeded", "{unread}");
    let none = server.run_once("none", json!({"argv": ["cat"]}), json!({}));
    assert_eq!((status(&none), output(&none)), ("succeeded", ""), "without stdin a program finds its end at once");
}

#[test]
fn a_run_past_its_timeout_gets_sigterm_and_then_sigkill() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let polite = json!({"command": "trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done"});
    let run = server.run_once("polite", polite, json!({"timeout": "2s"}));
    assert_eq!((&run["status"], &run["exit_code"]), (&json!("timed_out"), &json!(3)), "{run}");
    assert!(output(&run).ends_with("bye\n"), "{run}");
    assert!(text(&run, "reason").contains("timeout of 2s"), "{run}");

    let deaf = json!({"command": "trap '' TERM; sleep 300 & sleep 300; sleep 300"});
    let run = server.run_once("deaf", deaf, json!({"timeout": "2s", "kill_grace": "500ms"}));
    assert_eq!((&run["status"], &run["signal"]), (&json!("timed_out"), &json!(9)), "{run}");
    assert!(text(&run, "reason").contains("SIGTERM did not end it"), "{run}");
}

#[test]
fn a_running_run_can_be_cancelled_and_an_ended_one_cannot() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let (up, gate) = (dir.path().join("up"), Gate::new(dir.path(), "gate"));
    let command = format!("echo $CARILLON_RUN_ID >> {}; {}", up.display(), gate.wait());
    server.create(&job("long", NEVER, &command, json!({"retry": {"max_attempts": 5, "backoff": "1s"}})));
    let id = server.run_now("long");
    assert_eq!(wait_for_lines(&up, 1), [id.as_str()]);
    let running = server.run(&id);
    assert_eq!((status(&running), &running["cancelling"]), ("running", &json!(false)), "{running}");
    assert_eq!(server.get("/v1/jobs/long")["state"], "executing");
    let (code, answer) = server.call("POST", &format!("/v1/runs/{id}/cancel"), Some(&json!({})));
    assert_eq!((code, &answer["cancelling"]), (202, &json!(true)), "{answer}");
    let run = server.ended(&id);
    assert_eq!((status(&run), text(&run, "reason"), &run["signal"]), ("cancelled", "cancelled", &json!(15)), "{run}");
    let (code, answer) = server.call("POST", &format!("/v1/runs/{id}/cancel"), Some(&json!({})));
    assert_eq!(code, 409, "{answer}");
    assert!(text(&answer, "detail").contains(&id), "{answer}");
    server.wait_until("idle", || server.get("/v1/jobs/long")["state"] == "idle");
    assert_eq!(lines(&up).len(), 1, "what a person cancelled is not tried again");
}

#[test]
fn failed_attempts_are_retried_with_growing_backoff() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let retry = json!({"retry": {"max_attempts": 4, "backoff": "200ms", "max_backoff": "10s"}});
    server.create(&job("flaky", NEVER, "echo try $CARILLON_ATTEMPT; test $CARILLON_ATTEMPT = 3", retry));
    let first = server.ended(&server.run_now("flaky"));
    let runs = server.wait_for_runs("flaky", 3, |run| run["finished_at"].is_string());
    let mut seen: Vec<_> = runs.iter().map(|run| (run["attempt"].as_u64().unwrap(), status(run))).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(1, "failed"), (2, "failed"), (3, "succeeded")]);
    assert!(runs.iter().all(|run| run["due_at"] == first["due_at"]), "attempts belong to one firing");
    let ms =
        |run: &Value, field: &str| carillon_domain::time::Timestamp::parse_rfc3339(text(run, field)).unwrap().as_ms();
    let of = |attempt: u64| runs.iter().find(|run| run["attempt"] == attempt).unwrap();
    for (attempt, least) in [(2, 200), (3, 400)] {
        let wait = ms(of(attempt), "started_at") - ms(of(attempt - 1), "finished_at");
        assert!(wait >= least, "attempt {attempt} came after {wait} ms");
    }
    assert_eq!(output(&server.run(text(of(2), "id"))), "try 2\n");

    let all_fail = json!({"retry": {"max_attempts": 2, "backoff": "100ms"}});
    server.create(&job("hopeless", NEVER, "exit 9", all_fail));
    server.run_now("hopeless");
    server.wait_for_runs("hopeless", 2, |run| status(run) == "failed");
    server.wait_until("idle", || {
        let job = server.get("/v1/jobs/hopeless");
        job["state"] == "idle" && job["last_run"]["attempt"] == 2
    });
    assert_eq!(server.runs("hopeless").len(), 2);
}
