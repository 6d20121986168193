//! TLS from outside: versions, renewal, slow and wrong clients, where a server may listen.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use carillon_tests::fixture::{Gate, directory};
use carillon_tests::follower::{follow, line, rest};
use carillon_tests::jobs::{NEVER, job, status};
use carillon_tests::raw_client::read_reply;
use carillon_tests::server::{PATIENCE, Server, binary};
use carillon_tests::tls_site::TlsSite;
use serde_json::json;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url().trim_start_matches("https://")).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn versions_1_2_and_1_3_are_spoken_and_nothing_older() {
    let site = TlsSite::new();
    let server = site.start();
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let (made, said) = site.openssl(&server, &[version]);
        assert!(made && said.contains(name) && said.contains("Verify return code: 0"), "{version}: {said}");
    }
    let (made, said) = site.openssl(&server, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
    assert!(!made && said.contains("Cipher is (NONE)") && said.contains("SSL alert number"), "{said}");
    let (made, said) = site.openssl(&server, &["-tls1_2", "-cipher", "AES128-SHA:AES128-GCM-SHA256"]);
    assert!(!made && said.contains("alert handshake failure"), "without forward secrecy: {said}");
}

#[test]
fn a_renewed_certificate_is_served_and_who_follows_output_notices_nothing() {
    let site = TlsSite::new();
    let server = site.start();
    let gate = Gate::new(site.path(), "gate");
    server.create(&job("slow", NEVER, &format!("echo one; {0}; echo two", gate.wait()), json!({})));
    let id = server.run_now("slow");
    let mut follower = follow(&server, &id);
    assert_eq!(line(&mut follower), "one\n");
    let (_, before) = site.openssl(&server, &[]);

    site.write("server.pem", "broken");
    let line_of_log = server.wait_for_log("TLS goes on with the former certificate");
    assert!(line_of_log.contains("http.tls.cert = server.pem is not PEM"), "{line_of_log}");
    assert_eq!(server.get_open("/healthz"), 200, "new connections are served with the former one");

    site.put("server", &site.authority.server());
    server.wait_for_log("the certificate server.pem was read anew");
    let (made, after) = site.openssl(&server, &[]);
    let pem = |said: &str| said.split("-----").nth(2).expect("openssl shows the certificate").to_owned();
    assert!(made && pem(&before) != pem(&after), "another certificate is served: {after}");
    let said_once = server.log().matches("TLS goes on with the former").count();
    assert_eq!(said_once, 1, "one warning for one broken file");
    gate.open();
    assert_eq!(rest(&mut follower), "two\n", "the old connection goes on");
    assert_eq!(status(&server.ended(&id)), "succeeded");
    let metrics = server.call_raw("GET", "/metrics", &[], None).2;
    assert!(metrics.contains("\ncarillon_tls_reloads_refused_total 1\n"), "{metrics}");
    assert!(metrics.contains("\ncarillon_tls_certificate_expires_timestamp_seconds "), "{metrics}");
}

#[test]
fn slow_handshakes_hold_up_nobody() {
    let site = TlsSite::new();
    let server = site.start();
    let silent: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    // The beginning of a record that never comes.
    let half: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00]).unwrap();
            stream
        })
        .collect();
    let begun = std::time::Instant::now();
    assert_eq!(site.call(&[&format!("{}/v1/jobs", server.url())]).1, 200);
    assert!(begun.elapsed().as_secs() < 8, "a handshake that is under way held up another: {:?}", begun.elapsed());
    let failed = "\ncarillon_tls_handshakes_failed_total ";
    server.wait_until("each is counted", || {
        let metrics = server.call_raw("GET", "/metrics", &[], None).2;
        let count = metrics.split_once(failed).and_then(|(_, rest)| rest.lines().next()?.parse::<u32>().ok());
        count.expect("handshakes are counted") >= 200
    });
    for mut stream in silent.into_iter().chain(half) {
        let mut left = Vec::new();
        assert!(stream.read_to_end(&mut left).is_ok(), "the server ends a handshake that takes too long");
    }
    assert!(server.drain().success());
}

#[test]
fn plain_http_on_the_port_is_told_to_write_https() {
    let site = TlsSite::new();
    let server = site.start();
    let mut stream = connect(&server);
    stream.write_all(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let reply = read_reply(&mut stream);
    assert_eq!(reply.status, 400);
    assert!(reply.text.contains("this port speaks TLS: write https://"), "{}", reply.text);
    let mut stream = connect(&server);
    stream.write_all(&[0xff; 2_000]).unwrap();
    let mut left = Vec::new();
    let _ = stream.read_to_end(&mut left);
    assert!(left.len() < 100, "nonsense is ended with an alert: {left:?}");
    assert_eq!(server.get_open("/healthz"), 200);
}

#[test]
fn a_server_listens_everywhere_with_tls_and_tokens_only() {
    let site = TlsSite::new();
    let server = Server::start(site.path(), &["--bind", "0.0.0.0:0"]);
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
    assert!(server.drain().success());
    let refused = |config: &str| {
        let dir = directory();
        std::fs::write(dir.path().join("carillon.toml"), config).unwrap();
        let serve = Command::new(binary()).args(["serve", "--bind", "0.0.0.0:0"]).current_dir(dir.path()).output();
        let output = serve.expect("the binary can be started");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused("");
    assert!(said.contains("http.tokens is empty") && said.contains("give http.tls a certificate"), "{said}");
    let said = refused("[http]\ntls = {cert = \"server.pem\", key = \"server.key\"}");
    assert!(said.contains("http.tokens is empty") && !said.contains("in the clear"), "{said}");
}

#[test]
fn files_that_cannot_be_used_end_the_start_with_a_sentence() {
    let site = TlsSite::new();
    site.put("server", &site.clients.client("other"));
    site.write("server.key", "nonsense");
    let (status, said) = Server::try_start(site.path(), &[]).err().expect("the server does not start");
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("carillon: http.tls.key = server.key is not PEM"), "{said}");
    site.put("server", &site.authority.expired_server());
    let server = Server::try_listen(site.path(), |command| command).expect("an expired certificate is served");
    assert!(server.log().contains("the certificate server.pem expired at 2020-02-01T00:00:00Z"), "{}", server.log());
}
