//! The outcome that follows from an answer.

use std::net::TcpListener;

use serde_json::json;

use crate::server::{Server, reason, response, run};

#[test]
fn the_run_shows_status_headers_and_body() {
    let headers = "Content-Type: text/plain\r\nSet-Cookie: hush\r\nRetry-After: 5\r\n";
    let server = Server::saying(response("201 Made", headers, "all\r\nfine"));
    let (outcome, output) = run(json!({"url": server.url("/")}));
    assert_eq!(outcome, Ok(()));
    let shown = "HTTP/1.1 201 Created\ncontent-type: text/plain\ncontent-length: 9\nretry-after: 5\n\nall\nfine";
    assert_eq!(output, shown);
}

#[test]
fn the_status_decides() {
    for (status, expected, outcome) in [
        ("204 x", json!("2xx"), None),
        ("404 x", json!([200, "404-410"]), None),
        ("302 x", json!(302), None),
        ("503 x", json!("2xx"), Some("the server answered 503 Service Unavailable, expected 2xx")),
        ("200 x", json!([204, "3xx"]), Some("the server answered 200 OK, expected 204, 3xx")),
        ("599 x", json!(200), Some("the server answered 599, expected 200")),
    ] {
        let server = Server::answering(status, "");
        let (ended, output) = run(json!({"url": server.url("/"), "expect_status": expected}));
        assert_eq!(ended.err().as_deref(), outcome, "{status}");
        assert!(output.starts_with(&format!("HTTP/1.1 {}", &status[..3])), "{output}");
    }
}

#[test]
fn the_body_decides_where_the_job_says_so() {
    let server = Server::answering("200 OK", "the answer is 42, of course");
    let url = server.url("/");
    assert_eq!(run(json!({"url": url, "expect_body": "is 42"})).0, Ok(()));
    assert_eq!(
        reason(json!({"url": url, "expect_body": "is 43"})),
        "the server answered 200 OK, but \"is 43\" does not stand in its body"
    );
    assert_eq!(
        reason(json!({"url": url, "expect_body": "course", "max_response": 10})),
        "the server answered 200 OK, but \"course\" does not stand in the first 10 bytes of its body (max_response)"
    );
}

#[test]
fn what_is_kept_of_a_body_is_bounded() {
    let body = "x".repeat(100_000);
    let server = Server::answering("200 OK", &body);
    let kept = |params| {
        let output = run(params).1;
        output.split_once("\n\n").unwrap().1.to_owned()
    };
    let note = "\n[the first 65536 of 100000 bytes]\n";
    assert_eq!(kept(json!({"url": server.url("/")})), format!("{}{note}", &body[..65_536]));
    assert_eq!(kept(json!({"url": server.url("/"), "max_response": 0})), "\n[the first 0 of 100000 bytes]\n");
    assert_eq!(kept(json!({"url": server.url("/"), "max_response": 200_000})), body);
}

#[test]
fn answers_without_a_body_and_in_chunks_are_read() {
    let server = Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
    assert_eq!(run(json!({"url": server.url("/"), "method": "HEAD"})).0, Ok(()));
    let server =
        Server::saying("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert!(run(json!({"url": server.url("/"), "expect_body": "abcde"})).1.ends_with("\n\nabcde"));
    // An interim answer is none.
    let server = Server::saying(format!("HTTP/1.1 103 Early Hints\r\n\r\n{}", response("200 OK", "", "x")));
    assert_eq!(run(json!({"url": server.url("/"), "expect_body": "x"})).0, Ok(()));
}

#[test]
fn what_keeps_a_call_from_being_answered_is_told() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/?token=hush");
    assert_eq!(reason(json!({"url": url})), format!("the connection to 127.0.0.1:{port} was refused"));

    let sentence = reason(json!({"url": "http://no..body/?token=hush"}));
    assert!(sentence.starts_with("the name no..body:80 cannot be resolved: "), "{sentence}");
    assert!(!sentence.contains("hush"), "{sentence}");
}

#[test]
fn nothing_private_is_called_without_leave() {
    let server = Server::answering("200 OK", "");
    let port = server.port();
    for host in
        ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"]
    {
        let trial = carillon_plugin::testing::Trial::new();
        let outcome = crate::server::run_on(&trial, json!({"url": format!("http://{host}:{port}/")}));
        let sentence = outcome.expect_err(host);
        assert!(sentence.contains(" is not called: ") && sentence.contains("\"allow_private\": true"), "{sentence}");
    }
    assert_eq!(server.asked(), [""; 0]);
}
