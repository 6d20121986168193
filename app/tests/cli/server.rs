//! The client commands against the real server: what both sides must agree on, on an embedded database.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

pub(super) struct Server {
    child: Option<Child>,
    pub(super) url: String,
    pub(super) dir: tempfile::TempDir,
}

impl Server {
    pub(super) fn start() -> Self {
        Self::start_with("")
    }

    /// A server with a `carillon.toml` of this text.
    pub(super) fn start_with(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("carillon.toml"), config).unwrap();
        let mut child = carillon(dir.path(), &["serve", "--bind", "127.0.0.1:0", "--log-format", "json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = log.find(|line| line.as_ref().is_ok_and(|line| line.contains("serves http://"))).unwrap().unwrap();
        let url = line.split_once("serves ").unwrap().1.split(' ').next().unwrap().to_owned();
        // A log needs a reader.
        std::thread::spawn(move || log.for_each(drop));
        Self { child: Some(child), url, dir }
    }

    /// One that does not answer: a directory, and an address where nobody listens.
    pub(super) fn away(url: &str) -> Self {
        Self { child: None, url: url.to_owned(), dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn output(&self, arguments: &[&str]) -> Output {
        carillon(self.dir.path(), arguments).env("CARILLON_SERVER", &self.url).output().unwrap()
    }

    pub(super) fn out(&self, arguments: &[&str], code: i32) -> String {
        let output = self.output(arguments);
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        told
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let _ = Command::new("kill").arg(child.id().to_string()).status();
        let _ = child.wait();
    }
}

pub(super) fn carillon(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carillon"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    for variable in ["CARILLON_TOKEN", "CARILLON_SERVER"] {
        command.env_remove(variable);
    }
    command
}

#[test]
fn jobs_and_runs() {
    let server = Server::start();
    assert!(server.out(&["cluster"], 0).contains(" live "));
    let added = [
        "job",
        "add",
        "hello",
        "-s",
        "0 0 1 1 *",
        "-c",
        "echo one; sleep 0.3; echo two",
        "-e",
        "A=b",
        "--retries",
        "1",
    ];
    assert!(server.out(&added, 0).starts_with("default/hello is added; next due at 2"));
    assert!(server.out(&added, 4).contains("there is a job hello"));
    assert!(server.out(&["job", "run", "hello", "--wait"], 0).starts_with("one\ntwo\nrun "));
    server.out(&["job", "add", "bad", "-s", "@daily", "--", "sh", "-c", "exit 3"], 0);
    assert!(server.out(&["job", "run", "bad", "--wait"], 1).contains("(exit code 3)"));

    let run: Value = serde_json::from_str(&server.out(&["job", "run", "hello", "--wait", "--json"], 0)).unwrap();
    let id = run["id"].as_str().unwrap();
    assert_eq!(run["output"], "one\ntwo\n");
    assert_eq!(server.out(&["run", "output", id], 0), "one\ntwo\n");
    assert!(server.out(&["run", "show", id], 0).contains("succeeded"));
    assert!(server.out(&["run", "cancel", id], 4).contains("has already ended"));
    server.out(&["run", "show", "8000000000000007-1"], 3);
    assert_eq!(server.out(&["job", "runs", "hello", "--json", "--status", "succeeded"], 0).lines().count(), 2);

    for listing in
        [&["job", "list"][..], &["job", "list", "-n", "*", "--utc"], &["job", "runs", "bad"], &["run", "list"]]
    {
        let table = server.out(listing, 0);
        assert!(table.lines().count() > 1 && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }
    let exact = server.out(&["run", "list", "--utc", "-n", "*"], 0);
    assert!(exact.lines().nth(1).is_some_and(|line| line.contains("default/") && line.contains("Z ")), "{exact}");
    assert!(server.out(&["job", "logs", "hello"], 0).starts_with("one\ntwo\nrun "));
    assert!(server.out(&["job", "logs", "hello", "-f"], 0).starts_with("one\ntwo\nrun "));

    assert!(server.out(&["job", "update", "hello", "--timeout", "1m"], 0).contains("hello is updated"));
    assert!(server.out(&["job", "update", "hello", "--timeout", "1m"], 0).contains("hello is as it was"));
    server.out(&["job", "pause", "hello", "--reason", "moving", "--until", "2999-01-01T00:00:00Z"], 0);
    let job: Value = serde_json::from_str(&server.out(&["job", "show", "hello", "--json"], 0)).unwrap();
    assert_eq!(
        (&job["paused"], &job["timeout"], &job["pause"]["reason"]),
        (&json!(true), &json!("1m"), &json!("moving"))
    );
    assert_eq!((&job["params"]["env"], &job["retry"]["max_attempts"]), (&json!({"A": "b"}), &json!(2)));
    server.out(&["job", "resume", "hello"], 0);
    assert_eq!(server.out(&["job", "next", "hello", "--count", "3"], 0).lines().count(), 3);
    assert!(server.out(&["job", "update", "hello", "-s", "61 * * * *"], 2).contains("minute: \"61\" is out of range"));
    server.out(&["job", "delete", "hello"], 0);
    server.out(&["job", "delete", "hello"], 3);
    audit(&server);
}

/// The log of the changes that [`jobs_and_runs`] made.
fn audit(server: &Server) {
    let table = server.out(&["audit"], 0);
    assert!(table.starts_with("TIME ") && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let actions: Vec<&str> = table.lines().skip(1).map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    let expected = [
        "job.deleted",
        "job.resumed",
        "job.paused",
        "job.updated",
        "job.run",
        "job.run",
        "job.created",
        "job.run",
        "job.created",
    ];
    assert_eq!(actions, expected, "{table}");
    assert_eq!(server.out(&["audit", "--limit", "2"], 0).lines().count(), 3);
    let entry: Value = serde_json::from_str(&server.out(&["audit", "--json", "--action", "job.updated"], 0)).unwrap();
    assert_eq!((&entry["who"], &entry["job"]), (&json!("carillon.token"), &json!("hello")));
    assert!(entry["from"].as_str().unwrap().starts_with("127.0.0.1 carillon CLI/"), "{entry}");
    let told = server.out(&["audit", "--diff", "--job", "hello", "--action", "job.updated"], 0);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with("Z  job.updated  default/hello"), "{told}");
    assert!(lines[1].starts_with("  by carillon.token from 127.0.0.1 carillon CLI/"), "{told}");
    assert_eq!(lines[2..], ["  + timeout: \"1m\""]);
    assert!(server.out(&["audit", "--who", "nobody"], 0).contains("no entry fits"));
    assert!(server.out(&["audit", "--action", "job.burned"], 2).contains("job.created"));
}

#[test]
fn a_job_is_changed_in_an_editor() {
    let server = Server::start();
    server.out(&["job", "add", "hello", "-s", "0 0 1 1 *", "-c", "true"], 0);
    let edit = |editor: &str, code: i32| {
        let mut command = carillon(server.dir.path(), &["job", "edit", "hello"]);
        command.env("CARILLON_SERVER", &server.url).env("TMPDIR", server.dir.path()).env_remove("VISUAL");
        let output = command.env("EDITOR", editor).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{editor}: {told}");
        told
    };
    let drafts = || {
        std::fs::read_dir(server.dir.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("carillon-hello-"))
            .count()
    };
    assert!(edit("true", 0).contains("default/hello is as it was"));
    assert!(edit("sed -i s/true/false/", 0).contains("default/hello is updated"));
    let job: Value = serde_json::from_str(&server.out(&["job", "show", "hello", "--json"], 0)).unwrap();
    assert_eq!(job["params"]["command"], "false");
    assert!(edit("false", 1).contains("Nothing is changed"));
    assert_eq!(drafts(), 0);
    assert!(edit("sed -i s/skip/maybe/", 2).contains("your text is kept in"));
    assert!(edit("sed -i 's/{/[/'", 2).contains("is not a job as JSON"));
    assert_eq!(drafts(), 2);
    for (format, expression) in [
        ("yaml", "s/command: .false.*/command: \"true\"/;s/command: false/command: \"true\"/"),
        ("toml", "s/= \"true\"/= \"false\"/"),
    ] {
        let mut command = carillon(server.dir.path(), &["job", "edit", "hello", "--format", format]);
        command.env("CARILLON_SERVER", &server.url).env("TMPDIR", server.dir.path()).env_remove("VISUAL");
        let output = command.env("EDITOR", format!("sed -i '{expression}'")).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("default/hello is updated"), "{format}: {told}");
    }
    let faster = format!("{} job update hello --timeout 2m && sed -i s/false/true/", env!("CARGO_BIN_EXE_carillon"));
    assert!(edit(&faster, 4).contains("your text is kept in"));
    assert_eq!(drafts(), 3);
    let job: Value = serde_json::from_str(&server.out(&["job", "show", "hello", "--json"], 0)).unwrap();
    assert_eq!((&job["timeout"], &job["params"]["command"]), (&json!("2m"), &json!("false")), "the faster one stays");
}

#[test]
fn crontabs() {
    let server = Server::start();
    let path = server.dir.path().join("night");
    std::fs::write(&path, "TZ=UTC\n0 3 * * * /opt/a\n0 4 * * * /opt/b%x\n61 * * * * /opt/c\n").unwrap();
    let path = path.to_str().unwrap();
    assert!(server.out(&["import", path], 1).contains("4 lines: 2 jobs (2 created), 1 variable, 1 error"));
    assert!(server.out(&["import", path], 1).contains("2 jobs (2 unchanged)"));
    std::fs::write(path, "TZ=UTC\n5 3 * * * /opt/a\n").unwrap();
    assert!(server.out(&["import", path, "--prune"], 0).contains("1 job (1 updated), 1 deleted"));

    let exported = server.output(&["export"]).stdout;
    std::fs::write(path, &exported).unwrap();
    assert!(server.out(&["import", path], 0).contains("1 job (1 unchanged)"), "{}", String::from_utf8_lossy(&exported));
    let json: Value = serde_json::from_str(&server.out(&["export", "--format", "json"], 0)).unwrap();
    assert_eq!(json["items"][0]["schedule"], "5 3 * * *");

    let lines: String = (0..2_500).map(|n| format!("{} 3 * * * /opt/job {n}\n", n % 60)).collect();
    std::fs::write(path, lines).unwrap();
    assert!(server.out(&["import", path, "--prune"], 0).contains("2500 jobs (2500 created), 1 deleted"));
    assert!(server.out(&["import", path, "--prune"], 0).contains("2500 jobs (2500 unchanged)"));
    assert_eq!(server.out(&["job", "list", "--json"], 0).lines().count(), 2_500);
}

#[test]
fn a_run_with_params_of_its_own() {
    let server = Server::start();
    let echo = r#"echo "$GREETING $NAME""#;
    server.out(&["job", "add", "hello", "-s", "0 0 1 1 *", "-c", echo, "-e", "GREETING=hello", "-e", "NAME=you"], 0);
    let run = |more: &[&str], code| server.out(&[&["job", "run", "hello", "--wait"], more].concat(), code);
    assert!(run(&[], 0).starts_with("hello you\n"));
    assert!(run(&["--param", "env.NAME=all=of you"], 0).starts_with("hello all=of you\n"));
    let laid_over = ["--params", r#"{"env": {"GREETING": "hi", "NAME": "x"}}"#, "--param", "env.NAME=them"];
    assert!(run(&laid_over, 0).starts_with("hi them\n"));
    assert!(run(&[], 0).starts_with("hello you\n"), "the job is as it was");
    assert!(run(&["--params", "[]"], 2).contains("--params is not a JSON object"));
    assert!(run(&["--params", "{"], 2).contains("--params is not JSON"));
    assert!(run(&["--param", "no=such"], 2).contains("params.no"));
    let run: Value = serde_json::from_str(&run(&["--json", "--param", "env.NAME=me"], 0)).unwrap();
    assert_eq!((&run["params"], &run["output"]), (&json!({"env": {"NAME": "me"}}), &json!("hello me\n")));
}

#[test]
fn a_due_time_is_explained() {
    let server = Server::start();
    server.out(&["job", "add", "hello", "-s", "0 0 1 1 *", "-c", "true"], 0);
    assert!(server.out(&["job", "logs", "hello"], 3).contains("has no run yet"));
    let first = server.out(&["why", "hello"], 0);
    assert!(first.contains("The firing of ") && first.contains(" comes up in "), "{first}");
    let not_due = server.out(&["why", "hello", "2999-06-01T00:00:00Z"], 0);
    assert!(
        not_due.starts_with("2999-06-01 00:00 is not a due time of this schedule: the nearest ones are "),
        "{not_due}"
    );
    let json: Value = serde_json::from_str(&server.out(&["why", "hello", "--json"], 0)).unwrap();
    assert_eq!((&json["state"], &json["run"]), (&json!("upcoming"), &Value::Null));
    server.out(&["why", "nobody"], 3);
    assert!(server.out(&["why", "hello", "yesterday"], 2).contains("RFC 3339"));
}
