//! Strangers at the socket: whatever they send, nothing is a 5xx but 503, nothing panics, and the server still schedules.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use carillon_tests::fixture::{directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::processes::resident_kib;
use carillon_tests::raw_client::{Reply, connect, exchange, read_reply, request};
use carillon_tests::server::Server;
use serde_json::{Value, json};

/// A server with a job that ticks, to see that it still does.
fn start(dir: &Path) -> Server {
    let server = Server::start(dir, &[]);
    let ticks = dir.join("ticks");
    server.create(&job("tick", "@every 1s", &format!("echo x >> {}", ticks.display()), json!({})));
    server
}

/// The server lives, schedules, and has not panicked.
fn check(server: &Server) {
    let ticks = server.dir().join("ticks");
    let seen = lines(&ticks).len();
    wait_for_lines(&ticks, seen + 1);
    assert_eq!(server.get_open("/readyz"), 200);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

fn ok(reply: &Reply) {
    assert!(reply.status < 500 || reply.status == 503, "{reply:?}");
    if reply.status >= 400 && reply.text.contains("application/problem+json") {
        let body = reply.text.split("\r\n\r\n").nth(1).expect("a body");
        let problem: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply:?}"));
        assert_eq!(problem["status"], reply.status);
        assert!(!text(&problem, "detail").is_empty() && problem["errors"].is_array(), "{problem}");
    }
}

#[test]
fn who_is_not_let_in_is_told_so() {
    let dir = directory();
    let server = start(dir.path());
    for (headers, expected) in [
        (vec![("Authorization", "")], 401),
        (vec![("Authorization", "Bearer wrong")], 401),
        (vec![("Authorization", "Basic YWRtaW46YWRtaW4=")], 401),
        (vec![("Host", "evil.example")], 403),
        (vec![("Host", "")], 400),
        (vec![("Host", "localhost:1@evil.example")], 403),
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Content-Type", "")], 415),
        (vec![("Content-Type", "text/plain")], 415),
        (vec![("Content-Type", "application/x-www-form-urlencoded")], 415),
        (vec![("Content-Encoding", "gzip")], 415),
    ] {
        let body = job("stranger", NEVER, "true", json!({})).to_string();
        let reply = exchange(&server, &request(&server, "POST", "/v1/jobs", &headers, body.as_bytes()));
        ok(&reply);
        assert_eq!(reply.status, expected, "{headers:?}: {reply:?}");
    }
    assert_eq!(server.call("GET", "/v1/jobs/stranger", None).0, 404, "nothing of it was applied");
    for path in ["/v1/jobs", "/metrics", "/v1/cluster", "/v1/runs", "/v1/executors"] {
        let reply = exchange(&server, &request(&server, "GET", path, &[("Authorization", "")], b""));
        assert_eq!(reply.status, 401, "{path}");
    }
    check(&server);
}

#[test]
fn hostile_bodies_are_refused_with_a_sentence() {
    let dir = directory();
    let server = start(dir.path());
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let duplicate = r#"{"name":"a","name":"b","schedule":"@daily","params":{"command":"true"}}"#;
    let named = |name: &str| job(name, NEVER, "true", json!({})).to_string();
    let too_long = "x".repeat(129);
    for body in [deep.as_str(), duplicate, "", "nul", "{", "[]", "\u{feff}{}", "{\"name\":\"\\ud800\"}", "\0\0\0"]
        .map(str::to_owned)
        .into_iter()
        .chain(["", ".", "..", "a/b", "/", "a b", "\u{1f600}", "a\0b", "a\nb", &too_long, "%2e%2e"].map(named))
    {
        let reply = exchange(&server, &request(&server, "POST", "/v1/jobs", &[], body.as_bytes()));
        ok(&reply);
        assert_eq!(reply.status, 400, "{:.80}: {reply:?}", body);
    }
    let invalid = b"{\"name\":\"\xff\xfe\"}";
    assert_eq!(exchange(&server, &request(&server, "POST", "/v1/jobs", &[], invalid)).status, 400);
    for target in
        ["/v1/jobs/..", "/v1/jobs/%2e%2e", "/v1/jobs/a%2Fb", "/v1/jobs/%00", "/v1/jobs/%ff", "/v1/jobs/%F0%9F%98%80"]
    {
        let reply = exchange(&server, &request(&server, "GET", target, &[], b""));
        ok(&reply);
        assert_eq!(reply.status, 400, "{target}: {reply:?}");
    }
    for (schedule, params) in [
        ("0 0 30 2 *", json!({"command": "true"})),
        ("* * * *", json!({"command": "true"})),
        ("@every 0s", json!({"command": "true"})),
        ("@every 99999999999999999999h", json!({"command": "true"})),
        ("99999999999999999999 * * * *", json!({"command": "true"})),
        ("*/0 * * * *", json!({"command": "true"})),
        ("@daily", json!({"command": ""})),
        ("@daily", json!({"command": "true", "user": "../root"})),
        ("@daily", json!({"argv": []})),
        ("@daily", json!({"command": "true", "env": {"A=B": "x"}})),
        ("@daily", json!({"command": "true", "env": {"CARILLON_RUN_ID": "x"}})),
    ] {
        let body = json!({"name": "bad", "schedule": schedule, "params": params});
        let (code, answer) = server.call("POST", "/v1/jobs", Some(&body));
        assert!(code == 400 || code == 422, "{body}: {code} {answer}");
        assert!(!text(&answer, "detail").is_empty());
    }
    check(&server);
}

#[test]
fn a_body_of_a_hundred_megabytes_is_cut_off() {
    let dir = directory();
    let server = start(dir.path());
    let before = resident_kib(server.pid());
    for target in ["/v1/jobs", "/v1/jobs:batch", "/v1/jobs/tick/pause", "/v1/schedules/explain"] {
        let announced = request(&server, "POST", target, &[("Content-Length", "104857600")], b"");
        let reply = send_much(&server, &announced, 100 << 20, None);
        assert!(reply.status == 413, "{target}: {reply:?}");
        let chunked =
            request(&server, "POST", target, &[("Content-Length", ""), ("Transfer-Encoding", "chunked")], b"");
        let reply = send_much(&server, &chunked, 100 << 20, Some(65_536));
        assert!(reply.status == 413, "{target} in chunks: {reply:?}");
    }
    let grown = resident_kib(server.pid()).saturating_sub(before);
    assert!(grown < 100 * 1024, "the server has grown by {grown} KiB");
    check(&server);
}

/// Sends a head and then spaces, as long as the server takes them; its answer.
fn send_much(server: &Server, head: &[u8], bytes: usize, chunk: Option<usize>) -> Reply {
    let mut stream = connect(server);
    stream.write_all(head).expect("a head can be sent");
    let size = chunk.unwrap_or(65_536);
    let mut piece = vec![b' '; size];
    if chunk.is_some() {
        piece = [format!("{size:x}\r\n").as_bytes(), &piece, b"\r\n"].concat();
    }
    let mut reader = stream.try_clone().expect("a socket can be cloned");
    // The answer may come before all is sent, and is lost where the connection is reset first.
    let answer = std::thread::spawn(move || read_reply(&mut reader));
    for _ in 0..bytes / size {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    answer.join().expect("reading does not panic")
}

#[test]
fn what_is_no_http_is_dropped() {
    let dir = directory();
    let server = start(dir.path());
    let token = server.token();
    let big = |name: &str, length: usize| format!("{name}: {}\r\n", "h".repeat(length));
    let head = format!("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    let post = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Connection: close\r\n"
    );
    let many: String = (0..10_000).map(|n| format!("x-{n}: y\r\n")).collect();
    for bytes in [
        format!("{head}{}\r\n", big("x", 1 << 20)),
        format!("{head}{many}\r\n"),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "u".repeat(200_000)),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{{}}"),
        format!("{post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
        format!("{post}Content-Length: -1\r\n\r\n{{}}"),
        format!("{post}Content-Length: 99999999999999999999999\r\n\r\n{{}}"),
        "\u{16}\u{3}\u{1}\u{2}TLS hello".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "GET / HTTP/9.9\r\n\r\n".into(),
        "\r\n\r\n\r\n\r\n".into(),
        "GET\0/ HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        format!("{head}bad header\r\n\r\n"),
        format!("{head}x: a\0b\r\n\r\n"),
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(),
        "GET http://evil.example/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
    ] {
        let mut stream = connect(&server);
        let _ = stream.write_all(bytes.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let reply = read_reply(&mut stream);
        ok(&reply);
        assert!(!(200..300).contains(&reply.status), "{:.120}: {reply:?}", bytes);
    }
    check(&server);
}

#[test]
fn slow_and_silent_connections_hurt_nobody() {
    let dir = directory();
    let server = start(dir.path());
    let address = server.url().trim_start_matches("http://").to_owned();
    let held: Vec<_> = (0..500)
        .map(|n| {
            let mut stream = TcpStream::connect(&address).expect("the server accepts connections");
            // A third says nothing, a third stops within its head, a third within its body.
            let begun: &[u8] = match n % 3 {
                0 => b"",
                1 => b"GET /v1/jobs HTTP/1.1\r\nHost: local",
                _ => &request(&server, "POST", "/v1/jobs", &[("Content-Length", "1000")], b"{\"na"),
            };
            stream.write_all(begun).expect("a few bytes can be sent");
            stream
        })
        .collect();
    let run = server.run_once("beside", json!({"command": "true"}), json!({}));
    assert_eq!(status(&run), "succeeded");
    check(&server);
    assert!(server.drain().success(), "open connections do not hold up the end");
    drop(held);
}

#[test]
fn five_hundred_requests_at_once_are_all_answered() {
    let dir = directory();
    let server = start(dir.path());
    let replies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..500)
            .map(|n| {
                let server = &server;
                scope.spawn(move || {
                    let body = job(&format!("parallel-{}", n % 100), NEVER, "true", json!({})).to_string();
                    exchange(server, &request(server, "POST", "/v1/jobs", &[], body.as_bytes()))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no client panics")).collect()
    });
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(201), count(409)), (100, 400), "one of five gets the name, the others are told");
    assert_eq!(server.all("/v1/jobs?prefix=parallel-").len(), 100);
    check(&server);
}

/// The rest of the body would be taken for the next request, so the connection ends, and its keeper must know.
#[test]
fn an_answer_before_its_body_has_come_says_that_the_connection_ends() {
    let dir = directory();
    let server = start(dir.path());
    let body = job("shared", NEVER, "true", json!({})).to_string();
    for (headers, expected, ends) in
        [(vec![("If-Match", "garbage")], 400, true), (vec![], 201, false), (vec![("Authorization", "")], 401, true)]
    {
        let mut stream = connect(&server);
        let whole = request(&server, "PUT", "/v1/jobs/shared", &headers, body.as_bytes());
        let kept = String::from_utf8(whole).expect("plain text").replace("Connection: close\r\n", "");
        let (head, rest) = kept.split_at(kept.len() - body.len());
        stream.write_all(head.as_bytes()).expect("the head can be sent");
        if !ends {
            stream.write_all(rest.as_bytes()).expect("the body can be sent");
        }
        let reply = read_reply(&mut stream);
        ok(&reply);
        let says = reply.text.to_ascii_lowercase().contains("\r\nconnection: close\r\n");
        assert_eq!((reply.status, says), (expected, ends), "{reply:?}");
    }
    check(&server);
}
