//! The client commands through the built binary, against a stand-in for the API.

use std::process::{Command, Stdio};

use super::fake::{Fake, RUN};
use serde_json::{Value, json};

#[test]
fn a_job_is_added_shown_changed_and_deleted() {
    let fake = Fake::start();
    let added = fake.out(
        &[
            "job",
            "add",
            "backup",
            "--schedule",
            "0 3 * * *",
            "--command",
            "pg_dump app",
            "-e",
            "PGUSER=app",
            "--timezone",
            "Europe/Berlin",
            "--retries",
            "2",
            "--backoff",
            "5s",
            "--label",
            "team=data",
            "--timeout",
            "1h",
            "--grace",
            "1m",
        ],
        0,
    );
    assert_eq!(added, "default/backup is added; next due at 2026-01-01T03:00:00Z\n");
    let job = fake.job("backup");
    assert_eq!(job["params"], json!({"command": "pg_dump app", "env": {"PGUSER": "app"}}));
    assert_eq!(
        (&job["retry"], &job["misfire"]),
        (&json!({"max_attempts": 3, "backoff": "5s"}), &json!({"grace": "1m"}))
    );
    assert_eq!(
        (&job["timezone"], &job["timeout"], &job["labels"]),
        (&json!("Europe/Berlin"), &json!("1h"), &json!({"team": "data"}))
    );
    assert!(fake.out(&["job", "add", "backup", "-s", "@daily", "-c", "x"], 4).contains("error: the name is taken"));

    fake.out(&["job", "pause", "backup", "--reason", "moving"], 0);
    let updated = fake.out(
        &[
            "job",
            "update",
            "backup",
            "--timezone",
            "none",
            "--timeout",
            "none",
            "--no-label",
            "team",
            "-e",
            "A=b=c",
            "--",
            "true",
            "-x",
        ],
        0,
    );
    assert_eq!(updated, "default/backup is updated; it is paused\n");
    let job = fake.job("backup");
    assert_eq!(job["params"], json!({"argv": ["true", "-x"], "env": {"PGUSER": "app", "A": "b=c"}}));
    assert_eq!((&job["timezone"], &job["timeout"], &job["labels"]), (&Value::Null, &Value::Null, &json!({})));
    assert_eq!((&job["schedule"], &job["paused"]), (&json!("0 3 * * *"), &json!(true)));
    let put = fake.state.lock().unwrap().bodies.last().unwrap().clone();
    assert!(put.get("paused").is_none() && put.get("state").is_none(), "{put}");

    let shown: Value = serde_json::from_str(&fake.out(&["job", "show", "backup", "--json"], 0)).unwrap();
    assert_eq!(shown["generation"], 2);
    assert!(fake.out(&["job", "show", "backup"], 0).contains("\nschedule     0 3 * * *\n"));
    assert_eq!(fake.out(&["job", "delete", "backup"], 0), "default/backup is deleted\n");
    assert_eq!(fake.out(&["job", "show", "backup"], 3), "error: there is no job backup\n");
    assert_eq!(fake.out(&["job", "update", "backup", "-s", "@daily"], 3), "error: there is no job backup\n");
}

#[test]
fn a_definition_comes_from_a_file_or_from_standard_input() {
    let fake = Fake::start();
    let input = r#"{"name": "a", "namespace": "prod", "schedule": "@daily", "params": {"url": "x"}, "executor": "http", "generation": 7}"#;
    let output = fake.run(&["job", "add", "--file", "-", "--paused", "--schedule", "@hourly"], input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sent = fake.state.lock().unwrap().bodies[0].clone();
    let expected = json!({"name": "a", "namespace": "prod", "schedule": "@hourly", "params": {"url": "x"}, "executor": "http", "paused": true});
    assert_eq!(sent, expected);
    for (input, sentence) in [
        ("[]", "is not a job: write its fields"),
        ("[", "standard input, line 1, column 1: this is not a job as JSON"),
        ("{\"name\": \"a\"}", "the job has no schedule: give --schedule"),
    ] {
        let output = fake.run(&["job", "add", "--file", "-"], input);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(sentence));
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("b.yaml", "name: b\nschedule: \"*/5 * * * *\"\nparams:\n  command: \"true\"\n"),
        ("c.toml", "name = \"c\"\nschedule = \"*/5 * * * *\"\n[params]\ncommand = \"true\"\n"),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        fake.out(&["job", "add", "--file", file.to_str().unwrap()], 0);
        let sent = fake.state.lock().unwrap().bodies.last().unwrap().clone();
        let expected = json!({"name": name[..1], "namespace": "default", "schedule": "*/5 * * * *", "params": {"command": "true"}});
        assert_eq!(sent, expected);
    }
    assert!(fake.out(&["job", "add", "--file", "/nowhere/job.json"], 1).contains("cannot read"));
}

#[test]
fn listings_go_through_all_pages() {
    let fake = Fake::start();
    for name in ["a", "b", "c", "d", "e"] {
        fake.out(&["job", "add", name, "-s", "@daily", "-c", "x"], 0);
    }
    let table = fake.out(&["job", "list", "--utc"], 0);
    assert_eq!(table.lines().count(), 6);
    assert!(table.starts_with(
        "NAME  SCHEDULE  STATE  NEXT                  LAST RUN\na     @daily    idle   2026-01-01T03:00:00Z  -\n"
    ));
    let table = fake.out(&["job", "list"], 0);
    assert!(table.lines().nth(1).unwrap().contains(" ago"), "{table}");
    assert!(fake.out(&["job", "list", "-n", "*"], 0).starts_with("NAMESPACE  NAME  "));
    assert_eq!(fake.out(&["job", "list", "--json", "--limit", "3"], 0).lines().count(), 3);
    fake.take_requests();
    fake.out(&["job", "list", "-n", "*", "--paused", "--label", "team=a b", "--prefix", "x", "--state", "idle"], 0);
    assert_eq!(
        fake.take_requests(),
        ["GET /v1/jobs?namespace=*&prefix=x&label=team%3Da%20b&state=idle&paused=true&limit=1000"]
    );
    let runs = fake.out(&["job", "runs", "a", "--utc", "--status", "failed", "--since", "2026-01-01T00:00:00Z"], 0);
    let row = format!("{RUN}  2026-01-01T00:00:00Z  failed  2 s   exit 3");
    assert_eq!(runs.lines().nth(1), Some(row.as_str()), "{runs}");
    assert_eq!(
        fake.take_requests(),
        ["GET /v1/jobs/a/runs?namespace=default&status=failed&since=2026-01-01T00%3A00%3A00.000Z&limit=20"]
    );
    let painted = fake.out(&["run", "list", "a", "--color", "always"], 0);
    assert!(painted.contains("\u{1b}[31mfailed\u{1b}[0m"), "{painted}");
    assert!(!fake.out(&["run", "list", "a"], 0).contains('\u{1b}'), "a pipe has no colours");
    assert_eq!(fake.out(&["job", "next", "a", "--count", "2"], 0), "2026-01-01T00:00:00Z\n2026-01-01T00:00:00.500Z\n");
    assert!(fake.out(&["cluster"], 0).contains("8000000000000007  n1    live   3           1         2"));
}

#[test]
fn a_mistyped_name_is_told_the_nearest_one() {
    let fake = Fake::start();
    for name in ["nightly-backup", "hourly"] {
        fake.out(&["job", "add", name, "-s", "@daily", "-c", "x"], 0);
    }
    let told = fake.out(&["job", "show", "nigthly-backup"], 3);
    assert_eq!(told, "error: there is no job nigthly-backup; did you mean nightly-backup?\n");
    assert_eq!(
        fake.out(&["job", "pause", "hourl", "-n", "default"], 3),
        "error: there is no job hourl; did you mean hourly?\n"
    );
    assert_eq!(fake.out(&["job", "show", "xyz"], 3), "error: there is no job xyz\n");
}

#[test]
fn lost_commits_are_shown_and_accepted() {
    let fake = Fake::start();
    let row = "2026-01-01T00:00:03.000Z  2026-01-01T00:00:09.000Z  2026-01-01T00:00:08.000Z";
    let shown = fake.out(&["cluster"], 0);
    assert!(shown.contains(row) && shown.contains("carillon cluster accept"), "{shown}");
    assert!(shown.contains("It cannot be accepted yet: n2 writes."), "{shown}");
    let job = "default    nightly  2026-01-01T00:00:04.000Z  rerun";
    assert!(shown.contains(job) && shown.contains("More jobs are not shown"), "{shown}");
    let lines = fake.out(&["cluster", "--json"], 0);
    let unknown: serde_json::Value = serde_json::from_str(lines.lines().nth(2).unwrap()).unwrap();
    assert_eq!(unknown["still_unknown"]["nodes"][0], "n2");
    let window: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(window["loss_window"]["session"], "8000000000000009");
    let accepted = fake.out(&["cluster", "accept"], 0);
    assert!(accepted.contains(row) && accepted.contains("2026-01-01T00:01:00.000Z"), "{accepted}");
    assert_eq!(fake.out(&["cluster", "accept"], 0), "There was nothing to accept.\n");
    assert!(!fake.out(&["cluster"], 0).contains("carillon cluster accept"));
}

#[test]
fn a_run_is_waited_for_and_its_output_printed() {
    let fake = Fake::start();
    fake.out(&["job", "add", "a", "-s", "@daily", "-c", "x"], 0);
    assert_eq!(fake.out(&["job", "run", "a"], 0), format!("run {RUN} of default/a is asked for\n"));
    assert_eq!(fake.out(&["job", "run", "a", "--wait"], 0), format!("first\nsecond\nrun {RUN} succeeded\n"));
    fake.state.lock().unwrap().ends_as = "failed";
    assert_eq!(fake.out(&["job", "run", "a", "--wait"], 1), format!("first\nsecond\nrun {RUN} failed (exit code 1)\n"));
    let json: Value = serde_json::from_str(&fake.out(&["job", "run", "a", "--wait", "--json"], 1)).unwrap();
    assert_eq!(json["status"], "failed");
    assert_eq!(fake.out(&["run", "output", RUN, "--follow"], 0), "first\nsecond\n");
    assert!(fake.out(&["run", "show", RUN], 0).contains("status            failed\n"));
    assert_eq!(fake.out(&["run", "cancel", RUN], 0), format!("asked to end: run {RUN} running\n"));
    assert_eq!(fake.out(&["job", "run", "b", "--wait"], 3), "error: there is no job b\n");
}

#[test]
fn bad_usage_never_reaches_the_server() {
    let fake = Fake::start();
    for (arguments, sentence) in [
        (vec!["job", "show", "a/b"], "holds '/'"),
        (vec!["job", "show", ".."], "a step between directories"),
        (vec!["job", "list", "-n", "a b"], "holds ' '"),
        (vec!["job", "show", "a", "-n", "*"], "holds '*'"),
        (vec!["job", "runs", "a", "-n", "*"], "a job is in one namespace"),
        (vec!["job", "add"], "required arguments were not provided"),
        (vec!["job", "add", "a", "-c", "x"], "the job has no schedule"),
        (vec!["job", "add", "a", "-s", "@daily"], "the job has no params"),
        (vec!["job", "add", "a", "-s", "@daily", "-c", "x", "--", "y"], "cannot be used with"),
        (vec!["job", "add", "a", "--timeout", "1 hour"], "is not a duration"),
        (vec!["job", "add", "a", "--overlap", "maybe"], "possible values: skip, delay, replace, allow"),
        (vec!["job", "add", "a", "--params", "[]"], "is not a JSON object"),
        (vec!["job", "add", "a", "--env", "A"], "is not KEY=VALUE"),
        (vec!["job", "pause", "a", "--until", "monday"], "is not an RFC 3339 time"),
        (vec!["run", "show", "nope"], "is not a run id"),
        (vec!["run", "output", RUN, "--json", "--follow"], "cannot be used with"),
        (vec!["import"], "required arguments were not provided"),
        (vec!["import", "-", "--ignore-user"], "--system"),
        (vec!["import", "-", "--timezone", "Mars/Base"], "\"Mars/Base\" is unknown"),
        (vec!["cluster", "--server", "nowhere"], "is not the address of a server"),
        (vec!["cluster", "--ca", "/nowhere"], "cannot read /nowhere"),
    ] {
        let output = fake.run(&arguments, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
    assert_eq!(fake.take_requests(), Vec::<String>::new());
}

#[test]
fn tokens_come_from_the_environment_or_the_working_directory() {
    let (fake, dir) = (Fake::start(), tempfile::tempdir().unwrap());
    let run = |token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carillon"));
        command.args(["cluster", "--server", &fake.url]).current_dir(&dir).env_remove("CARILLON_TOKEN");
        let output = command.envs(token.map(|token| ("CARILLON_TOKEN", token))).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = run(None);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: a token is needed\nset CARILLON_TOKEN, or run this where"), "{stderr}");
    std::fs::write(dir.path().join("carillon.token"), format!("{}\n", super::fake::TOKEN)).unwrap();
    assert_eq!(run(None).0, Some(0));
    assert!(run(Some("wrong")).1.contains("the token is not one of this server"));
    assert!(run(Some("a b\r\nX: y")).1.contains("CARILLON_TOKEN does not hold a token"));
    assert_eq!(run(Some(super::fake::TOKEN)).0, Some(0));
}

#[test]
fn a_server_that_is_away_or_no_carillon_is_a_sentence() {
    let at = |url: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_carillon")).args(["job", "list", "--server", url]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stranger = std::thread::spawn(move || {
        for answer in [
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
            "HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    assert!(at(&url).1.starts_with(&format!("error: cannot reach the server at {url}: ")));
    assert!(at(&url).1.contains("is it a Carillon server?"));
    assert!(at(&url).1.contains("the server answered 302 Found"));
    stranger.join().unwrap();
    let (code, stderr) = at(&url);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("nothing listens there; start one with `carillon serve`"), "{stderr}");
}
