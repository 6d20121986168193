//! Redirects: followed as far as the job says, and never with what was meant for somebody else.

use std::io::Write;

use serde_json::json;

use crate::server::{Server, reason, response, run};

/// Redirects from every path but `/end` to `location`.
fn redirecting(status: &'static str, location: impl Into<String>) -> Server {
    let location = location.into();
    Server::start(move |request, stream| {
        let at_end = request.split(' ').nth(1) == Some("/end");
        let to = format!("Location: {location}\r\n");
        let answer = if at_end { response("200 OK", "", "there") } else { response(status, &to, "") };
        let _ = stream.write_all(answer.as_bytes());
    })
}

#[test]
fn a_redirect_is_an_answer_unless_the_job_follows_it() {
    let server = redirecting("302 Found", "/end");
    let sentence = reason(json!({"url": server.url("/")}));
    let hint = "redirects are followed only where follow_redirects says so";
    assert_eq!(sentence, format!("the server answered 302 Found, expected 2xx; {hint}"));
    assert_eq!(server.asked().len(), 1);

    let (outcome, output) = run(json!({"url": server.url("/"), "follow_redirects": 1, "expect_body": "there"}));
    assert_eq!(outcome, Ok(()));
    assert!(
        output.starts_with(&format!("302 Found: on to 127.0.0.1:{}\nHTTP/1.1 200 OK\n", server.port())),
        "{output}"
    );
}

#[test]
fn a_loop_ends() {
    let server = redirecting("301 Moved Permanently", "/again");
    let sentence = reason(json!({"url": server.url("/"), "follow_redirects": 5}));
    assert_eq!(sentence, "the server redirected more than 5 times");
    assert_eq!(server.asked().len(), 6);
}

#[test]
fn the_method_changes_as_everywhere() {
    for (status, method, then) in [
        ("301 x", "POST", "GET /end"),
        ("302 x", "POST", "GET /end"),
        ("303 x", "PUT", "GET /end"),
        ("302 x", "PUT", "PUT /end"),
        ("303 x", "HEAD", "HEAD /end"),
        ("307 x", "POST", "POST /end"),
        ("308 x", "DELETE", "DELETE /end"),
    ] {
        let server = redirecting(status, "/end");
        let body = if method == "HEAD" { json!(null) } else { json!("payload") };
        let mut params = json!({"url": server.url("/"), "method": method, "follow_redirects": 1});
        if !body.is_null() {
            params["body"] = body;
        }
        assert_eq!(run(params).0, Ok(()));
        let asked = server.asked();
        assert!(asked[1].starts_with(then), "{status} {method}: {asked:?}");
        assert_eq!(asked[1].contains("payload"), method != "HEAD" && !then.starts_with("GET"), "{asked:?}");
        assert_eq!(asked[1].contains("content-type"), asked[1].contains("payload"), "{asked:?}");
    }
}

#[test]
fn what_is_for_one_server_is_not_given_to_another() {
    let other = Server::answering("200 OK", "");
    // Another name for the same machine is another server.
    let elsewhere = format!("http://localhost:{}/", other.port());
    let server = redirecting("307 x", elsewhere);
    let hush = json!({"Authorization": {"value": "Bearer hush", "secret": true}, "X-Key": "hush"});
    let params = json!({"url": server.url("/"), "headers": hush, "follow_redirects": 1});
    assert_eq!(run(params.clone()).0, Ok(()));
    assert!(server.asked()[0].contains("hush"));
    let asked = other.asked();
    assert!(!asked[0].contains("hush") && asked[0].contains("\ncarillon-fencing-token: 7\n"), "{asked:?}");

    let mut with_body = params;
    with_body["body"] = json!("hush");
    let sentence = reason(with_body);
    let port = other.port();
    assert_eq!(sentence, format!("the server redirected the body to localhost:{port}, which the job did not name"));
    assert_eq!(other.asked().len(), 1);
}

#[test]
fn a_redirect_to_what_cannot_be_called_is_told() {
    for location in ["ftp://a/", "http://user:hush@127.0.0.1/", "file:///etc/passwd", "http://["] {
        let server = redirecting("302 x", location);
        let sentence = reason(json!({"url": server.url("/"), "follow_redirects": 3}));
        assert!(sentence.starts_with("a redirect cannot be followed: ") && !sentence.contains("hush"), "{sentence}");
    }
}
