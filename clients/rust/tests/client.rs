//! The client against a real server, and against answers that a real one seldom gives.
//!
//! It needs the binary: `cargo build -p carillon -p carillon-keeper` first.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carillon_client::models::{
    AlertDefinition, AlertDefinitionTo, AlertWhen, Batch, JobDefinition, PauseRequest, RunRequest, RunStatus,
    ScheduleQuestion,
};
use carillon_client::{
    Client, Error, ListChanges, ListJobs, ListRuns, ListRunsOfJob, PutJob, ReadEvents, Settings, etag, pages,
};
use carillon_tests::jobs::NEVER;
use carillon_tests::server::Server;
use serde_json::json;

#[path = "../examples/nightly.rs"]
mod example;

fn client(server: &Server) -> Client {
    Client::new(server.url(), Some(&server.token())).expect("an address and a token")
}

fn yearly(name: &str, command: &str) -> JobDefinition {
    JobDefinition {
        name: Some(name.into()),
        schedule: "0 0 1 1 *".into(),
        params: [("command".to_owned(), json!(command))].into_iter().collect(),
        ..JobDefinition::default()
    }
}

#[test]
fn the_example_does_what_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    for change in ["created", "unchanged"] {
        let mut said = Vec::new();
        example::nightly(&client(&server), NEVER, &mut said).expect("the example runs");
        let said = String::from_utf8(said).expect("text");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with(&format!("nightly would be {change}; it would be due at 2")), "{said}");
        let middle = ["default/nightly is idle", "saving", "saved", "the run succeeded with exit code Some(0)"];
        assert_eq!(lines[1..5], middle);
        assert!(lines[5].len() > 20 && lines[6].starts_with("refused with 412: the job is at generation 1"), "{said}");
    }
}

#[test]
fn jobs_and_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let client = client(&server);
    let job = client.create_job(None, &yearly("a", "echo one; echo two; exit 3")).expect("created");
    assert_eq!((job.name.as_str(), job.generation), ("a", 1));
    let at_one = PutJob { if_match: Some(etag(job.generation)), ..PutJob::default() };
    let slower = JobDefinition { timeout: Some("5m".into()), ..yearly("a", "echo one; echo two; exit 3") };
    let changed = client.put_job("a", &at_one, &slower).expect("changed");
    assert_eq!((changed.timeout.as_deref(), changed.generation), (Some("5m"), 2));
    let items = (0..5).map(|n| yearly(&format!("b{n}"), "true")).collect();
    let batch = client.put_jobs(None, &Batch { items }).expect("a batch");
    assert!(batch.items.iter().all(|item| item.status.as_str() == "created"), "{batch:?}");
    let two = ListJobs { prefix: Some("b".into()), limit: Some(2), ..ListJobs::default() };
    let listed = pages(|cursor| client.list_jobs(&ListJobs { cursor, ..two.clone() }));
    let names: Vec<String> = listed.map(|job| job.expect("a page").name).collect();
    assert_eq!(names, ["b0", "b1", "b2", "b3", "b4"]);
    let pause = PauseRequest { reason: Some("moving".into()), ..PauseRequest::default() };
    let paused = client.pause_job("a", None, Some(&pause)).expect("paused");
    assert_eq!(paused.pause.and_then(|pause| pause.reason).as_deref(), Some("moving"));
    assert!(!client.resume_job("a", None).expect("resumed").paused);
    assert_eq!(client.next_due_times("a", &Default::default()).expect("due times").next.len(), 10);
    let question = ScheduleQuestion { schedule: "@daily".into(), count: Some(2), ..ScheduleQuestion::default() };
    assert_eq!(client.explain_schedule(&question).expect("explained").next.len(), 2);

    let params = RunRequest { params: Some([("env".to_owned(), json!({"A": "b"}))].into_iter().collect()) };
    let asked = client.run_job("a", None, Some(&params)).expect("asked for");
    let mut output = String::new();
    client.read_output(&asked.id, Some(true)).expect("output").read_to_string(&mut output).expect("text");
    assert_eq!(output, "one\ntwo\n");
    let runs = client.list_runs_of_job("a", &ListRunsOfJob::default()).expect("runs").items;
    assert_eq!(runs.first().map(|run| &run.id), Some(&asked.id));
    let long = client.run_job("b0", None, Some(&RunRequest { params: Some(command("echo begun; sleep 1000")) }));
    let long = long.expect("asked for").id;
    let mut lines = BufReader::new(client.read_output(&long, Some(true)).expect("output")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "begun");
    assert_eq!(client.cancel_run(&long).expect("cancelled").status, RunStatus::Running);
    assert!(lines.next().is_none(), "the output ends with the run");
    client.delete_job("a", &Default::default()).expect("deleted");
    let everywhere = ListRuns { namespace: Some("*".into()), ..ListRuns::default() };
    assert!(client.list_runs(&everywhere).expect("runs").items.len() >= 2, "the history stays");
    let changes =
        pages(|cursor| client.list_changes(&ListChanges { limit: Some(3), cursor, ..ListChanges::default() }));
    let first = changes.map(|entry| entry.expect("a page")).last().expect("an entry");
    assert_eq!((first.action.as_str(), first.job.as_deref()), ("job.created", Some("a")));
}

fn command(command: &str) -> serde_json::Map<String, serde_json::Value> {
    [("command".to_owned(), json!(command))].into_iter().collect()
}

#[test]
fn alerts_events_and_the_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let client = client(&server);
    let to = vec![AlertDefinitionTo::Mail { to: vec!["ops@example.org".into()] }];
    let route = AlertDefinition { when: vec![AlertWhen::Failed], to, ..AlertDefinition::default() };
    let stored = client.put_alert("ops", &Default::default(), &route).expect("stored");
    assert_eq!((stored.name.as_str(), stored.when), ("ops", vec![AlertWhen::Failed]));
    assert_eq!(client.list_alerts().expect("routes").items.len(), 1);
    assert!(client.list_incidents(&Default::default()).expect("incidents").items.is_empty());
    assert!(client.list_deliveries(&Default::default()).expect("deliveries").items.is_empty());
    client.delete_alert("ops", None).expect("deleted");

    let all = ReadEvents { types: Some("job.changed".into()), ..ReadEvents::default() };
    let mut events = client.read_events(&all).expect("events");
    client.create_job(None, &yearly("a", "true")).expect("created");
    let event = events.find_map(|event| Some(event.expect("an event")).filter(|event| event.kind == "job.changed"));
    let event = event.expect("the stream goes on");
    assert_eq!(event.data["job"]["name"], "a");
    let behind = ReadEvents { last_event_id: event.id, ..all };
    let mut events = client.read_events(&behind).expect("events");
    client.create_job(None, &yearly("b", "true")).expect("created");
    let event = events.find_map(|event| Some(event.expect("an event")).filter(|event| event.kind == "job.changed"));
    assert_eq!(event.expect("the stream goes on").data["job"]["name"], "b", "what was read does not come again");

    assert_eq!(client.is_ready().expect("ready").status.as_str(), "ready");
    assert_eq!(client.read_cluster().expect("a cluster").items[0].state.as_str(), "live");
    let executors = client.list_executors().expect("executors").items;
    assert!(executors.iter().any(|executor| executor.name == "shell"), "{executors:?}");
    assert!(client.read_metrics().expect("metrics").contains("carillon_runs_started_total"));
    assert_eq!(client.read_document().expect("the document")["openapi"], "3.1.0");
    assert!(client.make_sign_in_link().expect("a link").path.starts_with('/'));
}

#[test]
fn a_refusal_is_a_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let wrong = JobDefinition { schedule: "61 * * * *".into(), params: Default::default(), ..yearly("a", "true") };
    let refused = client(&server).create_job(None, &wrong).expect_err("refused");
    assert_eq!((refused.status(), refused.was_not_applied()), (Some(400), true));
    let Error::Refused(problem) = refused else { panic!("{refused:?}") };
    let fields: Vec<&str> = problem.errors.iter().map(|fault| fault.field.as_str()).collect();
    assert!(fields.contains(&"schedule"), "{problem:?}");
    let stranger = Client::new(server.url(), Some("wrong")).expect("a client");
    assert_eq!(stranger.list_jobs(&ListJobs::default()).expect_err("refused").status(), Some(401));
    assert!(client(&server).read_job("a/../b", None).is_err(), "a name is no path");
    assert!(matches!(Client::new("127.0.0.1:1", None), Err(Error::Settings(_))));
    assert!(matches!(Client::new("http://127.0.0.1:1", Some("two words")), Err(Error::Settings(_))));
    let url = server.url().to_owned();
    server.kill();
    let away = Client::new(&url, None).expect("a client").run_job("a", None, None).expect_err("away");
    assert!(matches!(&away, Error::Away { sent: false, .. }) && away.was_not_applied(), "{away:?}");
}

/// Answers each request with the next of some answers; the methods that came.
fn fake(answers: Vec<String>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let mut lines = reader.by_ref().lines().map(|line| line.expect("a line"));
            let first = lines.next().expect("a request");
            let length = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                if name.eq_ignore_ascii_case("content-length") { value.parse::<u64>().ok() } else { None }
            });
            let length = length.last().unwrap_or(0);
            std::io::copy(&mut reader.take(length), &mut std::io::sink()).expect("a body");
            seen.lock().expect("no panic").push(first.split(' ').next().unwrap_or_default().to_owned());
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
    });
    let settings = Settings { pause: Duration::ZERO, ..Settings::default() };
    (Client::with(&url, None, settings).expect("a client"), asked)
}

fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn problem(status: u16, outcome: Option<&str>) -> String {
    let mut body = json!({"type": "about:blank", "title": "t", "status": status, "detail": "a sentence", "errors": []});
    if let Some(outcome) = outcome {
        body["outcome"] = json!(outcome);
    }
    response(status, &body.to_string())
}

#[test]
fn only_what_may_be_repeated_is_sent_again() {
    let page = response(200, r#"{"items": [], "next_cursor": null}"#);
    let asked_run = response(200, r#"{"id": "8000000000000007-1"}"#);
    let (client, asked) = fake(vec![problem(503, None), problem(503, Some("unknown")), page.clone()]);
    client.list_jobs(&ListJobs::default()).expect("the third answer is good");
    assert_eq!(*asked.lock().expect("no panic"), ["GET"; 3]);
    let (client, asked) = fake(vec![response(502, "<html>"), page]);
    client.list_jobs(&ListJobs::default()).expect("the second answer is good");
    assert_eq!(*asked.lock().expect("no panic"), ["GET"; 2]);
    let (client, asked) = fake(vec![problem(503, Some("not_applied")), problem(429, None), asked_run]);
    client.run_job("a", None, None).expect("the third answer is good");
    assert_eq!(*asked.lock().expect("no panic"), ["POST"; 3]);
    for (status, outcome) in [(503, Some("unknown")), (503, None), (409, None)] {
        let (client, asked) = fake(vec![problem(status, outcome)]);
        let refused = client.run_job("a", None, None).expect_err("refused");
        assert_eq!(refused.to_string(), "a sentence");
        assert_eq!(refused.was_not_applied(), outcome.is_none(), "{refused:?}");
        assert_eq!((refused.status(), asked.lock().expect("no panic").len()), (Some(status.into()), 1));
    }
    let (client, asked) = fake(vec![problem(503, None); 3]);
    assert_eq!(client.list_jobs(&ListJobs::default()).expect_err("refused").status(), Some(503));
    assert_eq!(*asked.lock().expect("no panic"), ["GET"; 3]);
}

#[test]
fn what_is_no_server_of_ours_is_told() {
    for (answer, told) in [
        (response(404, "<html>"), "answered 404, and not as Carillon does"),
        (response(302, ""), "answered 302, and not as Carillon does"),
        (response(200, "<html>"), "the answer of the server cannot be read"),
    ] {
        let (client, _) = fake(vec![answer]);
        let error = client.read_job("a", None).expect_err("no job").to_string();
        assert!(error.contains(told), "{error}");
    }
}
