//! Servers that mean no good.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use carillon_plugin::testing::Trial;
use serde_json::json;

use crate::server::{Server, reason, response, run, run_on};

#[test]
fn an_answer_that_drips_for_ever_ends_with_the_timeout() {
    for beginning in ["HTTP/1.1 200 ", "HTTP/1.1 200 OK\r\nX-Slow: ", "HTTP/1.1 200 OK\r\n\r\n"] {
        let (hung_up, heard) = channel();
        let hung_up = Mutex::new(hung_up);
        let server = Server::start(move |_, stream| {
            let mut alive = stream.write_all(beginning.as_bytes()).is_ok();
            while alive {
                thread::park_timeout(std::time::Duration::from_millis(5));
                alive = stream.write_all(b"x").is_ok();
            }
            hung_up.lock().unwrap().send(()).unwrap();
        });
        let sentence = reason(json!({"url": server.url("/"), "timeout": "300ms"}));
        let port = server.port();
        assert_eq!(sentence, format!("there was no complete answer from 127.0.0.1:{port} within 300ms"));
        heard.recv().expect("the connection is closed too");
    }
}

#[test]
fn a_body_without_an_end_is_not_read_for_ever() {
    let server = Server::start(|_, stream| {
        let mut alive = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok();
        let piece = [b'x'; 64 << 10];
        while alive {
            alive = stream.write_all(&piece).is_ok();
        }
    });
    let (outcome, output) = run(json!({"url": server.url("/"), "max_response": 10, "timeout": "10m"}));
    assert_eq!(outcome, Ok(()));
    let shown = "xxxxxxxxxx\n[the first 10 bytes of a body that goes on after 16 MiB, unread]\n";
    assert!(output.ends_with(shown), "{output}");
}

#[test]
fn what_is_no_http_is_said_to_be_none() {
    let endless = format!("HTTP/1.1 200 OK\r\nX-Long: {}", "x".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: 1\r\n".repeat(10_000));
    for bytes in ["SSH-2.0-OpenSSH_9\r\n\r\n".to_owned(), "HTTP/1.1 99999 x\r\n\r\n".to_owned(), endless, many] {
        let server = Server::saying(bytes);
        let sentence = reason(json!({"url": server.url("/")}));
        assert!(sentence.contains("is not valid HTTP: "), "{sentence}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_no_success() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
    ] {
        let server = Server::saying(bytes);
        let sentence = reason(json!({"url": server.url("/")}));
        let port = server.port();
        assert_eq!(sentence, format!("127.0.0.1:{port} closed the connection before its answer was complete"));
    }
    // A wrong status is the better reason.
    let server = Server::saying("HTTP/1.1 500 x\r\nContent-Length: 10\r\n\r\nshort");
    assert!(reason(json!({"url": server.url("/")})).contains("answered 500"));
}

#[test]
fn bytes_that_are_no_text_cannot_take_over_a_terminal() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: a\xff\tb\r\nConnection: close\r\n\r\n".to_vec();
    bytes.extend_from_slice(b"\x1b[2J\xff\xfe ok \0\n");
    let server = Server::saying(bytes);
    let (outcome, output) = run(json!({"url": server.url("/"), "expect_body": " ok "}));
    assert_eq!(outcome, Ok(()));
    let shown = "HTTP/1.1 200 OK\ncontent-type: a\u{fffd}\tb\n\n\u{fffd}[2J\u{fffd}\u{fffd} ok \u{fffd}\n";
    assert_eq!(output, shown);
}

#[test]
fn a_run_that_is_cancelled_ends_its_call() {
    let (asked, hears_asked) = channel();
    let (hung_up, hears_hung_up) = channel();
    let ends = Mutex::new((asked, hung_up));
    let server = Server::start(move |_, stream| {
        let (asked, hung_up) = &*ends.lock().unwrap();
        stream.write_all(b"HTTP/1.1 500 x\r\n\r\nbegun").unwrap();
        asked.send(()).unwrap();
        hung_up.send(stream.read(&mut [0]).unwrap_or(0)).unwrap();
    });
    let trial = Trial::new();
    let params = json!({"url": server.url("/"), "allow_private": true, "timeout": "1h"});
    thread::scope(|scope| {
        let run = scope.spawn(|| run_on(&trial, params));
        hears_asked.recv().unwrap();
        trial.stop();
        assert_eq!(run.join().unwrap(), Err("stopped, because it was asked to stop".to_owned()));
    });
    assert_eq!(hears_hung_up.recv(), Ok(0), "the connection is closed");
}

#[test]
fn a_response_that_answers_twice_is_read_once() {
    let twice = response("200 OK", "", "one") + &response("500 x", "", "two");
    let (outcome, output) = run(json!({"url": Server::saying(twice).url("/")}));
    assert_eq!(outcome, Ok(()));
    assert!(output.ends_with("\n\none"), "{output}");
}
