//! A stand-in for the HTTP API: jobs in memory, small pages, and a record of every request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub const TOKEN: &str = "correct-horse";
pub const RUN: &str = "8000000000000007-1";
/// However many are asked for, so that listings have several pages.
const SMALLEST_PAGE: usize = 2;

#[derive(Default)]
pub struct State {
    pub jobs: BTreeMap<String, Value>,
    pub alerts: BTreeMap<String, Value>,
    /// `METHOD TARGET`
    pub requests: Vec<String>,
    pub bodies: Vec<Value>,
    /// How often a run was looked at: it runs at first and has ended then.
    looks: usize,
    /// Whether the loss of commits was accepted.
    accepted: bool,
    /// How the run ends.
    pub ends_as: &'static str,
    /// A batch item of this schedule is refused.
    pub refused_schedule: &'static str,
    /// A batch after this many items is answered with 503.
    pub batches_until_away: Option<usize>,
}

pub struct Fake {
    pub state: Arc<Mutex<State>>,
    pub url: String,
}

impl Fake {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { ends_as: "succeeded", ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { state, url }
    }

    pub fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carillon"));
        command.args(arguments).env("CARILLON_SERVER", &self.url).env("CARILLON_TOKEN", TOKEN);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// The output of a command, which must exit with `code`.
    pub fn out(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap() + &stderr
    }

    pub fn job(&self, name: &str) -> Value {
        self.state.lock().unwrap().jobs.get(name).cloned().unwrap_or_default()
    }

    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    assert!(!headers.contains_key("transfer-encoding"), "every body is short enough to say its length: {line}");
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Request { line, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let mut state = state.lock().unwrap();
        state.requests.push(request.line.clone());
        state.bodies.push(request.body.clone());
        if request.line == format!("GET /v1/runs/{RUN}/output?follow=true") {
            drop(state);
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n";
            writer.write_all(head.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            writer.write_all(b"7\r\nsecond\n\r\n0\r\n\r\n").unwrap();
            continue;
        }
        let (status, body) = answer(&mut state, &request);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let _ = write!(writer, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    }
}

fn problem(status: u16, detail: &str) -> (u16, Value) {
    (status, json!({"title": "t", "status": status, "detail": detail, "errors": []}))
}

fn answer(state: &mut State, request: &Request) -> (u16, Value) {
    if request.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return problem(401, "a token is needed");
    }
    let (method, target) = request.line.split_once(' ').unwrap();
    if method != "GET" && request.headers.get("content-type").map(String::as_str) != Some("application/json") {
        return problem(415, "writes need the header Content-Type: application/json");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let segments: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    match (method, segments.as_slice()) {
        ("GET", ["jobs"]) => list(state, &query),
        ("POST", ["jobs"]) => match request.body["name"].as_str().map(|name| state.jobs.contains_key(name)) {
            Some(true) => problem(409, "the name is taken"),
            _ => (201, put(state, request.body.clone()).1),
        },
        ("POST", ["jobs:batch"]) => batch(state, &request.body),
        ("GET", ["runs", _]) => {
            state.looks += 1;
            let status = if state.looks < 3 { "running" } else { state.ends_as };
            let code = i32::from(status != "succeeded");
            (
                200,
                json!({"id": RUN, "status": status, "exit_code": code, "output": "kept\n", "output_truncated": false}),
            )
        }
        ("POST", ["runs", id, "cancel"]) => (202, json!({"id": id, "status": "running"})),
        ("GET", ["cluster"]) => (
            200,
            json!({"items": [{"id": "8000000000000007", "node": "n1", "address":
            "127.0.0.1:7650", "version": "0.1.0", "partitions": [0, 1, 2], "prepared": 1, "executing": 2, "state": "live",
            "started_at": "2026-01-01T00:00:00.000Z", "heartbeat_at": "2026-01-01T00:00:03.000Z"}],
            "lost_commits": window(state.accepted),
            "still_unknown": (!state.accepted).then(still_unknown)}),
        ),
        ("POST", ["cluster", "accept"]) => {
            let accepted = if std::mem::replace(&mut state.accepted, true) { json!([]) } else { window(true) };
            (200, json!({"lost_commits": accepted}))
        }
        ("GET", ["alerts"]) => (200, json!({"items": state.alerts.values().collect::<Vec<_>>()})),
        ("GET", ["deliveries"]) => (200, json!({"items": [delivery("sent", json!("200 OK"))], "next_cursor": null})),
        ("POST", ["deliveries", _, "resend"]) => (200, delivery("waiting", json!(null))),
        ("GET", ["incidents"]) => (
            200,
            json!({"items": [{"route": "ops", "namespace": "default", "job": "a", "part": null, "since":
            "2026-01-01T00:00:00.000Z", "told_at": null, "sentence": "Job a failed."}]}),
        ),
        (_, ["alerts", name, rest @ ..]) => alert(state, method, name, rest, request),
        (_, ["jobs", name, rest @ ..]) => one(state, method, name, rest, request),
        _ => problem(404, "there is no such call"),
    }
}

fn delivery(state: &str, answer: Value) -> Value {
    json!({"id": 7, "route": "ops", "type": "mail", "host": "mail", "made_at": "2026-01-01T00:00:00.000Z", "state": state,
        "tries": 1, "answer": answer, "ping": null, "notice": {"when": "failed", "state": "test", "namespace": null,
        "job": null}})
}

fn alert(state: &mut State, method: &str, name: &str, rest: &[&str], request: &Request) -> (u16, Value) {
    if (method, rest) == ("PUT", &[]) {
        let version = state.alerts.get(name).map_or(0, |route| route["version"].as_u64().unwrap());
        if request.headers.get("if-match").is_some_and(|tag| *tag != format!("\"{version}\"")) {
            return problem(412, "somebody else was faster");
        }
        let mut route = request.body.clone();
        (route["name"], route["version"]) = (json!(name), json!(version + 1));
        state.alerts.insert(name.to_owned(), route.clone());
        return (200, route);
    }
    let Some(route) = state.alerts.get(name).cloned() else {
        return problem(404, &format!("there is no route {name}"));
    };
    match (method, rest) {
        ("GET", []) => (200, route),
        ("DELETE", []) => {
            state.alerts.remove(name);
            (204, Value::Null)
        }
        ("POST", ["test"]) => (202, json!({"items": [delivery("waiting", json!(null))]})),
        _ => problem(404, "there is no such call"),
    }
}

fn still_unknown() -> Value {
    json!({"nodes": ["n2"], "until": "2026-01-01T00:00:29.000Z", "why": "n2 writes", "more_jobs": true,
        "jobs": [{"namespace": "default", "name": "nightly", "due_at": "2026-01-01T00:00:04.000Z", "on_lost": "rerun"}]})
}

fn window(accepted: bool) -> Value {
    json!([{"from_at": "2026-01-01T00:00:03.000Z", "until_at": "2026-01-01T00:00:09.000Z", "noticed_at":
        "2026-01-01T00:00:08.000Z", "node": null, "session": "8000000000000009",
        "accepted_at": accepted.then_some("2026-01-01T00:01:00.000Z")}])
}

fn one(state: &mut State, method: &str, name: &str, rest: &[&str], request: &Request) -> (u16, Value) {
    let Some(job) = state.jobs.get_mut(name) else { return problem(404, &format!("there is no job {name}")) };
    match (method, rest) {
        ("GET", []) => (200, job.clone()),
        ("PUT", []) => match request.headers.get("if-match") == Some(&format!("\"{}\"", job["generation"])) {
            true => (200, put(state, request.body.clone()).1),
            false => problem(412, "somebody else was faster"),
        },
        ("DELETE", []) => {
            state.jobs.remove(name);
            (204, Value::Null)
        }
        ("POST", ["pause"]) => {
            job["paused"] = json!(true);
            (200, job.clone())
        }
        ("POST", ["resume"]) => {
            job["paused"] = json!(false);
            (200, job.clone())
        }
        ("POST", ["run"]) => (202, json!({"id": RUN})),
        ("GET", ["next"]) => (200, json!({"next": ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.500Z"]})),
        ("GET", ["runs"]) => (
            200,
            json!({"items": [{"id": RUN, "namespace": "default", "job": name, "status": "failed",
            "due_at": "2026-01-01T00:00:00.000Z", "started_at": "2026-01-01T00:00:00.004Z", "attempt": 1, "exit_code": 3,
            "finished_at": "2026-01-01T00:00:02.004Z", "trigger": "schedule", "lag_ms": 4}], "next_cursor": null}),
        ),
        _ => problem(404, "there is no such call"),
    }
}

fn list(state: &State, query: &BTreeMap<&str, &str>) -> (u16, Value) {
    let label = query.get("label").and_then(|label| label.split_once("%3D"));
    let fits = |job: &&Value| label.is_none_or(|(key, value)| job["labels"][key] == value);
    let from: usize = query.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let page = SMALLEST_PAGE.max(state.jobs.len() / 4);
    let items: Vec<_> = state.jobs.values().filter(fits).skip(from).take(page).collect();
    let more = state.jobs.values().filter(fits).count() > from + page;
    (200, json!({"items": items, "next_cursor": more.then(|| (from + page).to_string())}))
}

fn batch(state: &mut State, body: &Value) -> (u16, Value) {
    match &mut state.batches_until_away {
        Some(0) => return problem(503, "the request was not applied: the database is away"),
        Some(left) => *left -= 1,
        None => {}
    }
    let refused = state.refused_schedule;
    let items = body["items"].as_array().unwrap().iter().map(|item| match item["schedule"] == refused {
        true => json!({"name": item["name"], "status": "error", "errors": [{"field": "params.user", "message": "not allowed"}]}),
        false => json!({"name": item["name"], "status": put(state, item.clone()).0}),
    });
    let items: Vec<_> = items.collect();
    (200, json!({"items": items}))
}

/// Stores a definition as the API does: with defaults, what reading adds, and the pause as it was.
fn put(state: &mut State, definition: Value) -> (&'static str, Value) {
    let before = state.jobs.get(definition["name"].as_str().unwrap()).cloned();
    let mut job = json!({
        "namespace": "default", "timezone": null, "executor": "shell", "overlap": "skip", "timeout": null,
        "misfire": {"policy": "fire_once", "grace": "30s"}, "kill_grace": "10s", "on_lost": "skip", "jitter": "0s",
        "retry": {"max_attempts": 1, "backoff": "10s", "max_backoff": "5m"}, "dst": {"gap": "after", "overlap": "first"},
        "start_at": null, "end_at": null, "labels": {}, "expect": null, "ping": null, "paused": before.as_ref().is_some_and(|job| job["paused"] == true),
        "pause": null, "state": "idle", "next_due_at": "2026-01-01T03:00:00.000Z", "previous_due_at": null, "last_run": null,
        "current_run": null, "node": null, "created_at": "2025-01-01T00:00:00.000Z", "updated_at": "2025-01-01T00:00:00.000Z",
        "generation": before.as_ref().map_or(1, |job| job["generation"].as_u64().unwrap()),
    });
    for (key, value) in definition.as_object().unwrap() {
        job[key] = value.clone();
    }
    let change = match &before {
        None => "created",
        Some(before) if *before == job => "unchanged",
        Some(_) => "updated",
    };
    if change == "updated" {
        job["generation"] = json!(job["generation"].as_u64().unwrap() + 1);
    }
    state.jobs.insert(definition["name"].as_str().unwrap().to_owned(), job.clone());
    (change, job)
}
