//! The plugin in C that comes with Carillon, built by the line in its README and used as a plugin.

use std::path::Path;
use std::process::Command;

use carillon_tests::markdown::blocks;
use carillon_tests::plugins::{Place, set_mode, sources};
use carillon_tests::server::Server;
use serde_json::{Value, json};

/// A server with the plugin, built as its README says.
fn start() -> (Place, Server) {
    let place = Place::new();
    let page = std::fs::read_to_string(sources().join("example-c/README.md")).expect("a README");
    let build = blocks(&page).remove(0).text;
    let line = build.lines().next().expect("a line that builds it");
    let built = place.plugins().join("wait-for-file.so");
    let line = line.replace("-o wait-for-file.so", &format!("-Wextra -Werror -pedantic -o '{}'", built.display()));
    assert!(line.starts_with("cc ") && line.contains("-Werror"), "{line}");
    let status = Command::new("sh").args(["-c", &line]).current_dir(sources().join("..")).status().expect("sh");
    assert!(status.success(), "{line}");
    set_mode(&built, 0o755);
    let server = Server::start(place.path(), &[]);
    (place, server)
}

fn save(server: &Server, file: &Path, timeout: &str) {
    let params = json!({"path": file});
    let job =
        json!({"name": "w", "schedule": "@yearly", "executor": "wait-for-file", "params": params, "timeout": timeout});
    let (status, answer) = server.call("PUT", "/v1/jobs/w", Some(&job));
    assert!((200..300).contains(&status), "{answer}");
}

/// Starts a run and answers where it is read, once the plugin has said that it waits.
fn begin(server: &Server) -> String {
    let answer = server.post("/v1/jobs/w/run", &json!({}));
    let path = format!("/v1/runs/{}", answer["id"].as_str().expect("a run id"));
    let output = format!("{path}/output");
    server.wait_until("the plugin waits", || server.call_raw("GET", &output, &[], None).2.contains("waits for"));
    path
}

fn ended(server: &Server, path: &str) -> Value {
    server.wait_until("the run ends", || server.get(path)["finished_at"].is_string());
    server.get(path)
}

#[test]
fn it_waits_until_the_file_is_there() {
    let (place, server) = start();
    let file = place.path().join("dönë.txt");
    save(&server, &file, "1h");
    let run = begin(&server);
    assert_eq!(server.get(&run)["status"], "running");
    std::fs::write(&file, "12345").expect("written");
    let run = ended(&server, &run);
    let said = format!("attempt 1 of default/w waits for {}\nit is there, with 5 bytes\n", file.display());
    assert_eq!((&run["status"], &run["output"]), (&json!("succeeded"), &json!(said)), "{run}");
}

#[test]
fn it_stops_when_it_is_asked_to() {
    let (place, server) = start();
    let file = place.path().join("never");
    save(&server, &file, "1h");
    let run = begin(&server);
    server.post(&format!("{run}/cancel"), &json!({}));
    let run = ended(&server, &run);
    // It returned by itself: killing it would have been a signal.
    assert_eq!((&run["status"], &run["signal"]), (&json!("cancelled"), &Value::Null), "{run}");

    save(&server, &file, "200ms");
    let (_, run) = place.run_now(&server, "w");
    assert_eq!((&run["status"], &run["signal"]), (&json!("timed_out"), &Value::Null), "{run}");
    let reason = run["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("asked to stop before there was a file {}", file.display())), "{reason}");
}

#[test]
fn its_params_and_failures_are_told() {
    let (place, server) = start();
    for path in [json!("relative"), json!("/a\"b"), json!("/a\\b"), json!("/a\nb"), json!(7)] {
        let job = json!({"name": "a", "schedule": "@daily", "executor": "wait-for-file", "params": {"path": path}});
        let (status, answer) = server.call("POST", "/v1/jobs", Some(&job));
        assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!("params.path")), "{answer}");
    }
    // One name on the way is too long to be looked for.
    save(&server, &Path::new("/tmp").join("x".repeat(300)), "1h");
    let (code, run) = place.run_now(&server, "w");
    assert_eq!((code, &run["status"], &run["exit_code"]), (Some(1), &json!("failed"), &json!(2)), "{run}");
    assert_eq!(run["reason"], "the file cannot be looked for: File name too long");
}
