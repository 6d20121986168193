//! A real server tells real receivers: signed webhooks, recovery, late starts, tests, and a receiver that is not there.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use carillon_tests::ear::{Ear, KEY};
use carillon_tests::fixture::{directory, wait_for_lines};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::Server;
use serde_json::{Value, json};

fn put_route(server: &Server, name: &str, when: &[&str], url: &str) {
    let to = json!([{"type": "webhook", "url": url, "secret": KEY}]);
    let (status, answer) = server.call("PUT", &format!("/v1/alerts/{name}"), Some(&json!({"when": when, "to": to})));
    assert_eq!(status, 201, "{answer}");
}

fn is_test(told: &Value) -> bool {
    told["sentence"].as_str().is_some_and(|sentence| sentence.contains("test"))
}

#[test]
fn a_failure_is_told_signed_and_so_is_its_end() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ear = Ear::open();
    put_route(&server, "ops", &["failed", "recovered"], &format!("{}/hook?k=1", ear.url));
    let flag = dir.path().join("works");
    let command = format!("echo the ledger is locked; test -e {}", flag.display());
    server.post("/v1/jobs", &job("invoice", NEVER, "", json!({"params": {"command": command}})));

    let failed = server.run_now("invoice");
    let call = ear.next();
    assert!(call.is_signed() && call.path == "/hook?k=1", "{:?}", call.headers);
    let told = call.json();
    assert_eq!((&told["when"], &told["state"], &told["job"]), (&json!("failed"), &json!("open"), &json!("invoice")));
    assert_eq!(told["run"], failed.as_str());
    assert!(told["output_tail"].as_str().is_some_and(|tail| tail.contains("the ledger is locked")), "{told}");
    assert_eq!(told["url"], format!("{}/runs/{failed}", server.url()));
    assert!(
        told["sentence"].as_str().is_some_and(|it| it.contains("invoice failed") && it.contains("exit code 1")),
        "{told}"
    );
    assert_eq!(server.get("/v1/incidents")["items"][0]["job"], "invoice");

    std::fs::write(&flag, "").expect("the flag");
    server.run_now("invoice");
    let over = ear.next();
    assert!(over.is_signed());
    assert_eq!((&over.json()["when"], &over.json()["state"]), (&json!("failed"), &json!("recovered")));
    assert_ne!(over.json()["id"], told["id"]);
    assert_eq!(server.get("/v1/incidents")["items"], json!([]));
    server.wait_until("both are sent", || {
        server.get("/v1/deliveries?state=sent")["items"].as_array().unwrap().len() == 2
    });
    assert!(ear.is_silent(), "nothing is told twice");
}

#[test]
fn a_paused_job_that_should_have_started_is_told() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ear = Ear::open();
    put_route(&server, "ops", &["late_start"], &ear.url);
    let expect = json!({"params": {"command": "true"}, "expect": {"start_within": "1s"}});
    server.post("/v1/jobs", &job("nightly", "* * * * * *", "", expect));
    server.post("/v1/jobs/nightly/pause", &json!({"reason": "the disk is being moved"}));
    let told = ear.next().json();
    assert_eq!((&told["when"], &told["job"]), (&json!("late_start"), &json!("nightly")));
    assert!(told["sentence"].as_str().is_some_and(|it| it.contains("paused")), "{told}");
}

/// The kinds that the other tests here do not cause, each by a job of its own.
#[test]
fn each_other_kind_of_fact_about_a_job_is_told() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ear = Ear::open();
    let to = json!([{"type": "webhook", "url": ear.url, "secret": KEY}]);
    let when = ["timed_out", "lost", "skipped", "late_finish", "output"];
    // With `repeat`, a job that goes on so is told once.
    let route = json!({"when": when, "repeat": "1h", "to": to});
    assert_eq!(server.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);
    server.create(&job("slow", NEVER, "sleep 60", json!({"timeout": "1s"})));
    server.create(&job("chatty", NEVER, "echo hello", json!({})));
    // A busy machine may let two of its due times pass at once, and `skip` would record them: that fact is another job's.
    let late = json!({"expect": {"finish_within": "1s"}, "misfire": {"policy": "catch_up"}});
    server.create(&job("late", "* * * * * *", "false", late));
    // The due times that it skips are recorded when it ends. It fails, since a success would end the incident.
    server.create(&job("busy", "* * * * * *", "sleep 3; false", json!({})));
    for name in ["slow", "chatty"] {
        server.run_now(name);
    }
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    while told.len() < 4 {
        let message = ear.next().json();
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(told.insert(text("job"), text("when")), None, "{message}");
    }
    let expected = [("busy", "skipped"), ("chatty", "output"), ("late", "late_finish"), ("slow", "timed_out")];
    assert_eq!(told, expected.map(|(job, when)| (job.to_owned(), when.to_owned())).into());

    let up = dir.path().join("up");
    server.create(&job("long", NEVER, &format!("echo up >> {}; sleep 60", up.display()), json!({})));
    server.run_now("long");
    wait_for_lines(&up, 1);
    server.kill();
    let _again = Server::start(dir.path(), &[]);
    let lost = std::iter::repeat_with(|| ear.next().json()).find(|message| message["job"] == "long");
    assert_eq!(lost.map(|message| message["when"].clone()), Some(json!("lost")));
}

#[test]
fn a_test_goes_out_at_once_and_a_monitor_hears_of_each_run() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ear = Ear::open();
    put_route(&server, "ops", &["failed"], &ear.url);
    server.post("/v1/alerts/ops/test", &json!({}));
    let call = ear.next();
    assert!(call.is_signed());
    assert!(is_test(&call.json()), "{}", call.body);

    let ping = json!({"params": {"command": "echo done"}, "ping": format!("{}/ping/x", ear.url)});
    server.post("/v1/jobs", &job("pinged", NEVER, "", ping));
    server.run_now("pinged");
    let calls = [ear.next(), ear.next()];
    let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["/ping/x/start", "/ping/x"]);
    assert_eq!((calls[0].body.as_str(), calls[1].body.as_str()), ("", "done\n"));
}

/// Neither a message nor the call of a monitor tells a secret of the job or of the run, whose params are its own.
#[test]
fn secrets_are_masked_in_messages_and_calls() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ear = Ear::open();
    put_route(&server, "ops", &["failed"], &ear.url);
    let of = |value: &str| json!({"KEY": {"value": value, "secret": true}, "USER_NAME": "ops"});
    let params = json!({"command": "echo \"$USER_NAME:$KEY at db\"; exit 3", "env": of("hunter2-of-the-job")});
    server.post(
        "/v1/jobs",
        &job("leaky", NEVER, "", json!({"params": params, "ping": {"failure": format!("{}/ping", ear.url)}})),
    );
    for own in [json!({}), json!({"params": {"env": of("hunter2-of-the-run")}})] {
        server.post("/v1/jobs/leaky/run", &own);
        let calls = [ear.next(), ear.next()];
        let (ping, told): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.path == "/ping");
        assert_eq!(
            (ping[0].body.as_str(), &told[0].json()["output_tail"]),
            ("ops:*** at db\n", &json!("ops:*** at db\n"))
        );
    }
}

#[test]
fn a_receiver_that_is_not_there_is_seen_and_sent_to_again() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("an address");
    drop(free);
    put_route(&server, "ops", &["failed"], &format!("http://{address}/hook"));
    let made = server.post("/v1/alerts/ops/test", &json!({}));
    let id = made["items"][0]["id"].as_u64().expect("an id");
    let seen = || server.get("/v1/deliveries?route=ops")["items"][0].clone();
    server.wait_until("it was refused", || !seen()["answer"].is_null());
    let waiting = seen();
    assert_eq!((&waiting["state"], &waiting["tries"]), (&json!("waiting"), &json!(1)));
    assert!(
        !waiting["next_at"].is_null() && waiting["answer"].as_str().is_some_and(|words| words.len() > 20),
        "{waiting}"
    );
    let metrics = server.call_raw("GET", "/metrics", &[], None).2;
    assert!(metrics.contains("carillon_alert_deliveries{state=\"waiting\"} 1"), "{metrics}");

    let ear = Ear::on(TcpListener::bind(address).expect("the port is still free"));
    let first = ear.next().json();
    assert!(is_test(&first), "it is tried again after ten seconds: {first}");
    server.wait_until("it is sent", || seen()["state"] == "sent");
    server.post(&format!("/v1/deliveries/{id}/resend"), &json!({}));
    assert_eq!(ear.next().json()["id"], first["id"], "a repeat is told by its id");
}

#[test]
fn a_command_gets_the_message_and_its_failure_is_kept() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let file = dir.path().join("told");
    let command = format!("cat > {0}.part && echo $CARILLON_ALERT_WHEN >> {0}.part && mv {0}.part {0}", file.display());
    let to = json!([{"type": "command", "command": command}, {"type": "command", "command": "echo no pager; exit 3"}]);
    let (status, answer) = server.call("PUT", "/v1/alerts/ops", Some(&json!({"when": ["failed"], "to": to})));
    assert_eq!(status, 201, "{answer}");
    server.post("/v1/jobs", &job("a", NEVER, "", json!({"params": {"command": "exit 7"}})));
    server.run_now("a");
    server.wait_until("the command ran", || file.exists());
    let told = std::fs::read_to_string(&file).expect("what it was told");
    assert!(told.contains("\"job\":\"a\"") && told.ends_with("failed\n"), "{told}");
    let answers = || {
        let items = server.get("/v1/deliveries")["items"].as_array().expect("items").clone();
        items.iter().filter_map(|item| item["answer"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    server.wait_until("both have an answer", || answers().len() == 2);
    assert!(
        answers().iter().any(|words| words.contains("exit code 3") && words.contains("no pager")),
        "{:?}",
        answers()
    );
}

/// One target that never answers holds up no other.
#[test]
fn a_receiver_that_hangs_holds_up_nobody_else() {
    let dir = directory();
    let server = Server::start_with(dir.path(), "[alerts]\nat_once = 4\ntimeout = \"30s\"\n");
    let hung = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", hung.local_addr().expect("an address"));
    put_route(&server, "hangs", &["failed"], &url);
    for _ in 0..3 {
        server.post("/v1/alerts/hangs/test", &json!({}));
    }
    let ear = Ear::open();
    put_route(&server, "ops", &["failed"], &ear.url);
    server.post("/v1/alerts/ops/test", &json!({}));
    let call = ear.next_within(Duration::from_secs(15));
    assert!(is_test(&call.json()), "{}", call.body);
}
