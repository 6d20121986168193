//! Clients over TLS: HTTP/2, certificates in place of tokens, and what the command line says of a server that it cannot trust.

use std::process::Command;

use carillon_doubles::certificates::Authority;
use carillon_tests::fixture::directory;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::{Server, binary};
use carillon_tests::tls_site::TlsSite;
use serde_json::json;

const JSON: [&str; 2] = ["-H", "Content-Type: application/json"];

#[test]
fn http_2_is_spoken_with_clients_that_know_it() {
    let site = TlsSite::new();
    let server = site.start();
    let jobs = format!("{}/v1/jobs", server.url());
    assert_eq!(site.call(&["--http1.1", &jobs]).0, "1.1");
    let (version, status, body) = site.call(&["--http2", &jobs]);
    assert_eq!((version.as_str(), status, &body["items"]), ("2", 200, &json!([])));
    let new = job("a", NEVER, "echo hello", json!({})).to_string();
    let (version, status, body) = site.call(&[&["--http2", "-d", &new, &jobs], &JSON[..]].concat());
    assert_eq!((version.as_str(), status, &body["name"]), ("2", 201, &json!("a")));
    // Several requests on one connection, refusals among them: none of them ends it.
    site.write("large", &format!("{}{new}", " ".repeat(1_100_000)));
    for (words, status) in [
        (vec!["-d", "@large", &jobs], 413),
        (vec!["-H", "Host: evil.example", &jobs], 403),
        (vec!["-H", "Origin: https://evil.example", &jobs], 403),
        (vec!["-X", "PATCH", &jobs], 405),
        (vec!["-H", "Authorization: Bearer wrong", &jobs], 401),
    ] {
        let (version, found, body) = site.call(&[&["--http2"], &words[..], &JSON[..]].concat());
        assert_eq!((version.as_str(), found), ("2", status), "{words:?} {body}");
    }
    let twice = site.curl(&["--http2", "-w", "%{num_connects} ", "-o", "/dev/null", "-o", "/dev/null", &jobs, &jobs]);
    assert_eq!(String::from_utf8_lossy(&twice.stdout), "1 0 ", "the second request takes the first one's connection");
    let id = server.run_now("a");
    server.ended(&id);
    let output = format!("{}/v1/runs/{id}/output?follow=true", server.url());
    let followed = site.curl(&["--http2", "-H", &format!("Authorization: Bearer {}", server.token()), &output]);
    assert_eq!(String::from_utf8_lossy(&followed.stdout), "hello\n");
    assert!(server.drain().success());
}

#[test]
fn a_certificate_stands_for_a_token() {
    let site = TlsSite::new();
    let server = site.start();
    let jobs = format!("{}/v1/jobs", server.url());
    site.put("stranger", &Authority::new("clients").client("known"));
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let max = if version == "--tlsv1.2" { "1.2" } else { "1.3" };
        let with = |name: &str, words: &[&str]| {
            let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
            let shown = [version, "--tls-max", max, "--cert", &cert, "--key", &key];
            (
                site.curl(&[&shown[..], &["-o", "/dev/null", "-w", "%{http_code}", &jobs], words].concat()),
                name.to_owned(),
            )
        };
        let status = |(output, name): (std::process::Output, String)| {
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(status(with("known", &[])), "200");
        assert_eq!(status(with("known", &[&["-d", "{}"], &JSON[..]].concat())), "403", "a viewer");
        assert_eq!(status(with("unknown", &[])), "401", "of the authority, and no token");
        let bearer = format!("Authorization: Bearer {}", server.token());
        assert_eq!(status(with("unknown", &["-H", &bearer])), "200", "the token of the request counts");
        assert_eq!(status(with("known", &["-H", "Authorization: Bearer wrong"])), "401");
        let (output, _) = with("stranger", &[]);
        assert!(!output.status.success(), "an authority of the same name with another key is refused");
    }
    assert_eq!(site.answer(&[&jobs]).1, 401, "without a certificate a token is needed");
    assert_eq!(server.get_open("/healthz"), 200);
    let (made, said) = site.openssl(&server, &["-tls1_2", "-reconnect"]);
    assert!(made && !said.contains("Reused,"), "no session goes on without the certificate's check: {said}");
}

fn cli(server: &str, site: &TlsSite, words: &[&str], token: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(["job", "list", "--server", server]).args(words).current_dir(site.path());
    for variable in ["CARILLON_CA", "CARILLON_CERT", "CARILLON_KEY", "CARILLON_TOKEN"] {
        command.env_remove(variable);
    }
    if let Some(token) = token {
        command.env("CARILLON_TOKEN", token);
    }
    let output = command.output().expect("the binary can be started");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_command_line_speaks_tls_and_says_why_it_does_not() {
    let site = TlsSite::new();
    let server = site.start();
    server.create(&job("a", NEVER, "true", json!({})));
    let url = server.url();
    let ca = ["--ca", "authority.pem"];
    let (code, said) = cli(url, &site, &ca, None);
    assert!(code == Some(0) && said.contains('a'), "{code:?} {said}");
    // The token file of the directory does not hide the certificate; a token that was asked for goes before it.
    let known = [&ca[..], &["--cert", "known.pem", "--key", "known.key"]].concat();
    assert_eq!(cli(url, &site, &known, None).0, Some(0));
    assert_eq!(cli(url, &site, &known, Some("wrong")).0, Some(1));
    let unknown = [&ca[..], &["--cert", "unknown.pem", "--key", "unknown.key"]].concat();
    let (code, said) = cli(url, &site, &unknown, None);
    assert!(code == Some(1) && said.contains("the certificate of this connection is no token here"), "{said}");
    site.put("stranger", &site.authority.client("stranger"));
    let stranger = [&ca[..], &["--cert", "stranger.pem", "--key", "stranger.key"]].concat();
    for (server, words, expected, part) in [
        (url.to_owned(), &[][..], 1, "its certificate is of an authority that is not trusted here"),
        (url.to_owned(), &["--ca", "clients.pem"], 1, "name a PEM file with its authority's certificate with --ca"),
        (url.replace("https", "http"), &ca, 2, "this port speaks TLS: write https://"),
        (url.to_owned(), &stranger, 1, "it does not take this client's certificate"),
        (url.to_owned(), &["--cert", "known.pem"], 2, "--key"),
        (url.to_owned(), &["--cert", "known.pem", "--key", "unknown.key"], 2, "is not the key of the certificate"),
    ] {
        let (code, said) = cli(&server, &site, words, None);
        assert!(code == Some(expected) && said.contains(part), "{server} {words:?}: {code:?} {said}");
    }
}

#[test]
fn the_command_line_tells_an_expired_certificate_and_a_port_without_tls() {
    let site = TlsSite::new();
    site.put("server", &site.authority.expired_server());
    let server = Server::try_listen(site.path(), |command| command).expect("an expired certificate is served");
    let ca = ["--ca", "authority.pem"];
    let (code, said) = cli(server.url(), &site, &ca, None);
    assert!(code == Some(1) && said.contains("its certificate has expired; renew it at the server"), "{said}");
    let dir = directory();
    let plain = Server::start(dir.path(), &[]);
    let (code, said) = cli(&plain.url().replace("http", "https"), &site, &ca, None);
    assert!(code == Some(1) && said.contains("it does not speak TLS; write http://"), "{said}");
}
