//! The executor `http` in a real server: the facts of a run go out as headers, and its limits are the job's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use carillon_tests::collector::Collector;
use carillon_tests::plugins::Place;
use carillon_tests::server::{PATIENCE, Server};
use serde_json::{Value, json};

/// Somebody to call: tells the head of each request, and leaves the answer to the test.
struct Callee {
    url: String,
    calls: Mutex<Receiver<(String, TcpStream)>>,
}

impl Callee {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let (tell, calls): (Sender<(String, TcpStream)>, _) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head =
                    lines.take_while(|line| !line.is_empty()).fold(String::new(), |head, line| head + &line + "\n");
                if tell.send((head, stream)).is_err() {
                    return;
                }
            }
        });
        Self { url, calls: Mutex::new(calls) }
    }

    /// The next request, with the connection on which it waits for an answer.
    fn next(&self) -> (String, TcpStream) {
        self.calls.lock().expect("one test, one callee").recv_timeout(PATIENCE).expect("a call")
    }
}

fn answer(mut stream: &TcpStream, status: &str) {
    let response = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    stream.write_all(response.as_bytes()).expect("answered");
}

/// A server with the plugin.
fn start() -> (Place, Server) {
    let place = Place::new();
    place.drop_built("http", "http.so", 0o755);
    let server = Server::start(place.path(), &[]);
    (place, server)
}

fn save(server: &Server, name: &str, params: Value, more: Value) {
    let mut job = json!({"name": name, "schedule": "@yearly", "executor": "http", "params": params});
    job.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    server.post("/v1/jobs", &job);
}

/// The run as it ended.
fn ended(server: &Server, id: &Value) -> Value {
    let path = format!("/v1/runs/{}", id.as_str().expect("an id"));
    server.wait_until("the run ends", || server.get(&path)["finished_at"].is_string());
    server.get(&path)
}

#[test]
fn each_attempt_carries_the_facts_of_its_run() {
    let (_place, server) = start();
    let callee = Callee::new();
    let params =
        json!({"url": callee.url, "allow_private": true, "headers": {"X-Key": {"value": "hush", "secret": true}}});
    save(&server, "hook", params, json!({"retry": {"max_attempts": 2, "backoff": "1ms"}}));
    server.post("/v1/jobs/hook/run", &json!({}));
    let mut keys = Vec::new();
    let mut tokens = Vec::new();
    for (attempt, status) in [(1, "503 x"), (2, "200 OK")] {
        let (head, stream) = callee.next();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let value = lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned());
            value.unwrap_or_else(|| panic!("no {name} in {head}"))
        };
        let run = server.get(&format!("/v1/runs/{}", header("Carillon-Run-Id")));
        assert_eq!((header("Carillon-Namespace"), header("Carillon-Job")), ("default".into(), "hook".into()));
        assert_eq!(header("Carillon-Attempt"), attempt.to_string());
        assert_eq!(run["due_at"], header("Carillon-Due-At"));
        assert_eq!(run["fencing_token"].to_string().trim_matches('"'), header("Carillon-Fencing-Token"));
        assert_eq!(header("X-Key"), "hush");
        keys.push(header("Idempotency-Key"));
        assert_eq!(keys[0], format!("default/hook/{}", header("Carillon-Due-At")));
        tokens.push(header("Carillon-Fencing-Token").parse::<u64>().expect("a number"));
        answer(&stream, status);
        let run = ended(&server, &run["id"]);
        if attempt == 1 {
            let reason = run["reason"].as_str().expect("a reason");
            assert!(reason.starts_with("the server answered 503 Service Unavailable, expected 2xx"), "{run}");
        } else {
            assert_eq!((&run["status"], &run["reason"]), (&json!("succeeded"), &Value::Null), "{run}");
            assert_eq!(run["output"], "HTTP/1.1 200 OK\ncontent-length: 2\n\nok");
        }
    }
    assert_eq!(keys[0], keys[1], "one firing, one key");
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    assert!(!server.get("/v1/jobs/hook").to_string().contains("hush"));
}

#[test]
fn a_job_may_not_call_what_only_the_server_reaches() {
    let (place, server) = start();
    save(&server, "inward", json!({"url": format!("{}/v1/jobs", server.url())}), json!({}));
    let (code, run) = place.run_now(&server, "inward");
    assert_eq!((code, &run["status"]), (Some(1), &json!("failed")), "{run}");
    let reason = run["reason"].as_str().expect("a reason");
    assert!(reason.contains("127.0.0.1 is a loopback address"), "{reason}");

    for (params, field) in [
        (json!({"url": "http://user:hush@example.com/"}), "params.url"),
        (json!({"url": "http://a", "headers": {"X-A": "v\r\nX-B: w"}}), "params.headers.X-A"),
        (json!({"url": "http://a", "verify": false}), "params.verify"),
    ] {
        let job = json!({"name": "a", "schedule": "@daily", "executor": "http", "params": params});
        let (status, answer) = server.call("POST", "/v1/jobs", Some(&job));
        assert_eq!((status, answer["errors"][0]["field"].as_str()), (400, Some(field)), "{answer}");
        assert!(!answer.to_string().contains("hush"), "{answer}");
    }
}

#[test]
fn cancelling_and_the_jobs_timeout_end_a_call() {
    let (_place, server) = start();
    let callee = Callee::new();
    let params = json!({"url": callee.url, "allow_private": true, "timeout": "1h"});
    for (timeout, status) in [("1h", "cancelled"), ("300ms", "timed_out")] {
        save(&server, status, params.clone(), json!({"timeout": timeout}));
        server.post(&format!("/v1/jobs/{status}/run"), &json!({}));
        let (head, mut stream) = callee.next();
        let id = head.lines().find_map(|line| line.strip_prefix("carillon-run-id: ")).expect("a run id").to_owned();
        if status == "cancelled" {
            server.post(&format!("/v1/runs/{id}/cancel"), &json!({}));
        }
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "the connection is closed");
        let run = ended(&server, &json!(id));
        assert_eq!(run["status"], status, "{run}");
    }
}

#[test]
fn a_call_carries_its_place_in_the_trace() {
    let place = Place::new();
    place.drop_built("http", "http.so", 0o755);
    let (mut collector, callee) = (Collector::open(), Callee::new());
    let server = Server::start_with(place.path(), &format!("[telemetry]\notlp = \"{}\"\n", collector.url()));
    save(&server, "hook", json!({"url": callee.url, "allow_private": true}), json!({}));
    server.post("/v1/jobs/hook/run", &json!({}));
    let (head, stream) = callee.next();
    answer(&stream, "200 OK");
    let told = head.lines().find_map(|line| line.strip_prefix("traceparent: ")).expect("the place in the trace");
    let span = collector.spans(1).remove(0);
    assert_eq!(span.traceparent(), told);
    assert_eq!(span.attribute("carillon.executor").as_deref(), Some("http"));
}
