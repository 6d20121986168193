//! The requests that go out.

use serde_json::{Value, json};

use crate::server::{Server, run};

/// The one request that a run with these params makes.
fn request(mut params: Value) -> String {
    let server = Server::answering("200 OK", "");
    params["url"] = json!(server.url("/hook?x=%20"));
    assert_eq!(run(params).0, Ok(()));
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    asked[0].clone()
}

#[test]
fn the_facts_of_the_run_go_out_with_every_call() {
    let request = request(json!({}));
    assert!(request.starts_with("GET /hook?x=%20 HTTP/1.1\n"), "{request}");
    for line in [
        "carillon-namespace: default",
        "carillon-job: trial",
        "carillon-due-at: 2027-01-15T08:00:00.123Z",
        "carillon-attempt: 2",
        "carillon-run-id: trial-run",
        "carillon-fencing-token: 7",
        "idempotency-key: default/trial/2027-01-15T08:00:00.123Z",
        "accept-encoding: identity",
    ] {
        assert!(request.lines().any(|sent| sent == line), "{line} is not in {request}");
    }
    assert!(request.contains("\nuser-agent: carillon-http/"), "{request}");
}

#[test]
fn method_and_body_are_the_jobs() {
    for (params, first, content_type, body) in [
        (json!({"method": "DELETE"}), "DELETE ", None, ""),
        (json!({"method": "HEAD"}), "HEAD ", None, ""),
        (json!({"body": "a\nb"}), "POST ", Some("text/plain; charset=utf-8"), "a\nb"),
        (json!({"body": {"value": "hush", "secret": true}}), "POST ", Some("text/plain; charset=utf-8"), "hush"),
        (json!({"body": "x", "method": "GET"}), "GET ", Some("text/plain; charset=utf-8"), "x"),
        (json!({"body": "x", "headers": {"content-type": "a/b"}}), "POST ", Some("a/b"), "x"),
        (json!({"json": {"a": [1, null]}, "method": "PUT"}), "PUT ", Some("application/json"), r#"{"a":[1,null]}"#),
        (json!({"json": null}), "POST ", Some("application/json"), "null"),
    ] {
        let request = request(params);
        let (head, sent) = request.split_once("\n\n").unwrap();
        assert!(head.starts_with(first), "{request}");
        assert_eq!(head.lines().find_map(|line| line.strip_prefix("content-type: ")), content_type);
        assert_eq!(sent, body);
    }
}

#[test]
fn a_job_has_headers_of_its_own() {
    let request = request(json!({"headers": {
        "X-Name": "Zoë",
        "Authorization": {"value": "Bearer hush", "secret": true},
        "Idempotency-Key": "mine",
        "User-Agent": "me",
        "Host": "inner.example",
    }}));
    for line in ["x-name: Zoë", "authorization: Bearer hush", "idempotency-key: mine", "user-agent: me"] {
        assert_eq!(request.lines().filter(|sent| *sent == line).count(), 1, "{line} in {request}");
    }
    for name in ["host: ", "idempotency-key: ", "user-agent: "] {
        assert_eq!(request.lines().filter(|sent| sent.starts_with(name)).count(), 1, "{name} in {request}");
    }
    assert!(request.contains("\nhost: inner.example\n"), "{request}");
}
