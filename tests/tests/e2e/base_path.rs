//! A server behind a proxy that hands a part of its own paths on.

use carillon_tests::fixture::directory;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::raw_client::{read_reply, request};
use carillon_tests::server::{Server, binary};
use serde_json::json;
use std::io::Write;

#[test]
fn every_path_is_under_the_prefix_and_none_beside_it() {
    let dir = directory();
    let server = Server::start_with(dir.path(), "[http]\nbase_path = \"/cron\"\n");
    assert!(server.url().ends_with("/cron"), "{}", server.url());
    let (status, headers, _) = server.call_raw("POST", "/v1/jobs", &[], Some(&job("a", NEVER, "true", json!({}))));
    assert_eq!((status, &headers["location"]), (201, &"/cron/v1/jobs/a?namespace=default".parse().unwrap()));
    server.ended(&server.run_now("a"));
    let root = server.url().trim_end_matches("/cron").to_owned();
    let status = |method: &str, path: &str| {
        let mut stream = std::net::TcpStream::connect(root.trim_start_matches("http://")).unwrap();
        stream.write_all(&request(&server, method, path, &[], b"")).unwrap();
        read_reply(&mut stream)
    };
    for (path, expected) in [
        ("/cron/v1/jobs", 200),
        ("/v1/jobs", 404),
        ("/cron/cron/v1/jobs", 404),
        ("/cronos/v1/jobs", 404),
        ("/metrics", 404),
        ("/cron/healthz", 200),
        ("/healthz", 200),
        ("/cron/readyz", 200),
        ("/readyz", 200),
    ] {
        assert_eq!(status("GET", path).status, expected, "{path}");
    }
    let outside = status("GET", "/v1/jobs").text;
    assert!(outside.contains("begin with /cron") && outside.contains("application/problem+json"), "{outside}");
    assert!(outside.contains("nosniff"), "{outside}");
    let listed = std::process::Command::new(binary())
        .args(["job", "list", "--server", server.url()])
        .current_dir(dir.path())
        .output()
        .expect("the binary can be started");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}
