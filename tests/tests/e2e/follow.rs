//! Output that is read while its run lives.

use std::io::{Read, Write};

use carillon_tests::fixture::{Gate, directory};
use carillon_tests::follower::{follow, line, rest};
use carillon_tests::jobs::{NEVER, job, status};
use carillon_tests::processes::resident_kib;
use carillon_tests::raw_client::{connect, request};
use carillon_tests::server::Server;
use serde_json::json;

#[test]
fn every_follower_gets_each_chunk_before_the_run_ends_and_the_end() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    server.create(&job("slow", NEVER, &format!("echo one; {0}; echo two; {0}; echo three", gate.wait()), json!({})));
    let id = server.run_now("slow");
    let mut early: Vec<_> = (0..3).map(|_| follow(&server, &id)).collect();
    for reader in &mut early {
        assert_eq!(line(reader), "one\n");
    }
    gate.open();
    for reader in &mut early {
        assert_eq!(line(reader), "two\n");
    }
    assert_eq!(status(&server.run(&id)), "running");
    let mut late = follow(&server, &id);
    assert_eq!(line(&mut late), "one\n", "who comes late gets what was printed before");
    assert_eq!(line(&mut late), "two\n");
    let so_far = server.call_raw("GET", &format!("/v1/runs/{id}/output"), &[], None);
    assert_eq!((so_far.0, so_far.2.as_str()), (200, "one\ntwo\n"));
    gate.open();
    for reader in early.iter_mut().chain([&mut late]) {
        assert_eq!(rest(reader), "three\n");
    }
    assert_eq!(rest(&mut follow(&server, &id)), "one\ntwo\nthree\n", "an ended run can be followed");
}

#[test]
fn a_waiting_run_can_be_followed_before_it_starts() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let command = format!("{}; echo done $CARILLON_RUN_ID", gate.wait());
    server.create(&job("delayed", NEVER, &command, json!({"overlap": "delay"})));
    let first = server.run_now("delayed");
    server.started(&first);
    let second = server.run_now("delayed");
    assert_eq!(status(&server.run(&second)), "waiting");
    let (mut of_first, mut of_second) = (follow(&server, &first), follow(&server, &second));
    gate.open();
    assert_eq!(line(&mut of_first), format!("done {first}\n"));
    gate.open();
    assert_eq!(line(&mut of_second), format!("done {second}\n"));
    assert_eq!(line(&mut of_second), "", "it ends when the run ends");
}

#[test]
fn a_follower_that_stops_reading_hurts_nobody() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let command = format!("{}; head -c 60000000 /dev/zero | tr '\\0' x; echo end", gate.wait());
    server.create(&job("loud", NEVER, &command, json!({})));
    let id = server.run_now("loud");
    server.started(&id);
    let stalled: Vec<_> = (0..5)
        .map(|_| {
            let mut stream = connect(&server);
            let target = format!("/v1/runs/{id}/output?follow=true");
            stream.write_all(&request(&server, "GET", &target, &[], b"")).expect("a request can be sent");
            let mut begun = [0; 12];
            stream.read_exact(&mut begun).expect("an answer begins");
            assert_eq!(&begun, b"HTTP/1.1 200");
            stream
        })
        .collect();
    let mut reader = follow(&server, &id);
    gate.open();
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("the stream ends in good order");
    assert!(all.ends_with(b"xxxend\n"), "whatever is lost on the way, the end is not");
    assert_eq!(status(&server.ended(&id)), "succeeded");
    let kib = resident_kib(server.pid());
    assert!(kib < 150 * 1024, "the server holds {kib} KiB for those who do not read");
    drop(stalled);
    assert_eq!(status(&server.run_once("next", json!({"command": "true"}), json!({}))), "succeeded");
}
