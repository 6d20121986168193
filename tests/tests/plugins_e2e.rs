//! Plugins as a user meets them: a library is dropped into the plugins directory, the server says what it makes of it, and
//! jobs run it.

use carillon_tests::markdown::blocks;
use carillon_tests::plugins::{Place, set_mode, sources};
use carillon_tests::server::Server;
use serde_json::{Value, json};

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

#[test]
fn a_library_that_is_dropped_in_is_an_executor() {
    let place = Place::new();
    let file = place.drop_built("noop", "noop.so", 0o755);
    let server = Server::start(place.path(), &[]);
    assert!(place.log().contains("plugin noop 0.1.0 is loaded from plugins/noop.so"), "{}", place.log());

    let listed = objects(&place.out(&server, &["plugin", "list", "--json"]));
    let names: Vec<_> = listed.iter().map(|executor| executor["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["noop", "shell"]);
    assert_eq!((&listed[0]["version"], &listed[0]["abi"]), (&json!("0.1.0"), &json!(1)));
    let inspected = place.out(&server, &["plugin", "inspect", file.to_str().expect("a plain path"), "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&inspected).expect("JSON"), listed[0]);

    let params = r#"{"sleep_ms": 1}"#;
    place.out(&server, &["job", "add", "beat", "-s", "@every 1s", "--executor", "noop", "--params", params]);
    server.wait_until("a run of the schedule succeeds", || {
        let runs = server.get("/v1/jobs/beat/runs?status=succeeded");
        runs["items"].as_array().is_some_and(|runs| runs.iter().any(|run| run["trigger"] == "schedule"))
    });
}

#[test]
fn params_are_judged_by_the_schema_when_the_job_is_saved() {
    let place = Place::new();
    place.drop_built("noop", "noop.so", 0o755);
    let server = Server::start(place.path(), &[]);
    for (params, field) in [
        (json!({"sleep_ms": -1}), "params.sleep_ms"),
        (json!({"fail": ["x"]}), "params.fail"),
        (json!({"nap": 1}), "params.nap"),
    ] {
        let job = json!({"name": "a", "schedule": "@daily", "executor": "noop", "params": params});
        let (status, answer) = server.call("POST", "/v1/jobs", Some(&job));
        assert_eq!((status, answer["errors"][0]["field"].as_str()), (400, Some(field)), "{answer}");
    }
    let refused = place.carillon(&server, &["job", "add", "a", "-s", "@daily", "--executor", "none", "-c", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("this node has no executor \"none\"; it has: noop, shell"), "{told}");
}

#[test]
fn a_run_that_fails_says_why() {
    let place = Place::new();
    place.drop_built("noop", "noop.so", 0o755);
    let server = Server::start(place.path(), &[]);
    for (params, reason) in
        [(r#"{"fail": "no luck"}"#, "no luck"), (r#"{"panic": "boom"}"#, "the plugin panicked: boom")]
    {
        place.out(&server, &["job", "add", "a", "-s", "@daily", "--executor", "noop", "--params", params]);
        let (code, run) = place.run_now(&server, "a");
        assert_eq!((code, &run["status"], &run["reason"]), (Some(1), &json!("failed"), &json!(reason)), "{run}");
        place.out(&server, &["job", "delete", "a"]);
    }
}

/// The plugin in C of plugins/README.md, and what becomes of a run whose plugin takes its process down.
#[test]
fn a_crash_is_one_failed_run() {
    let readme = std::fs::read_to_string(sources().join("README.md")).expect("plugins/README.md");
    let greet = blocks(&readme).into_iter().find(|block| block.language == "c").expect("a plugin in C").text;
    let crash = greet.replace("    result->status", "    *(volatile int *)0 = 1;\n    result->status");
    let crash = crash.replace("\"greet-c\"", "\"crash\"");
    assert_ne!(greet, crash);
    let place = Place::new();
    place.drop_c("greet-c.so", &greet);
    place.drop_c("crash.so", &crash);
    let server = Server::start(place.path(), &[]);
    for name in ["crash", "greet-c"] {
        place.out(&server, &["job", "add", name, "-s", "@daily", "--executor", name, "--params", "{}"]);
    }
    let (code, run) = place.run_now(&server, "crash");
    assert_eq!((code, &run["status"], &run["signal"]), (Some(1), &json!("failed"), &json!(11)), "{run}");
    assert_eq!(run["reason"], "the plugin crashed: SIGSEGV");
    let (code, run) = place.run_now(&server, "greet-c");
    assert_eq!((code, &run["output"]), (Some(0), &json!("Hello from C!\n")), "{run}");
}

#[test]
fn what_others_could_have_written_is_refused() {
    let place = Place::new();
    let file = place.drop_built("noop", "noop.so", 0o775);
    let server = Server::start(place.path(), &[]);
    let sentence = "noop.so can be written by its group (mode 775), who could then run code as the server: chmod go-w";
    assert!(place.log().contains(sentence), "{}", place.log());
    assert!(!place.out(&server, &["plugin", "list"]).contains("noop"));
    let inspected = place.carillon(&server, &["plugin", "inspect", file.to_str().expect("a plain path")]);
    assert_eq!(inspected.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&inspected.stderr).contains(sentence));
    assert!(server.drain().success());

    set_mode(&place.plugins(), 0o777);
    let Err((status, told)) = Server::try_start(place.path(), &[]) else { panic!("it came up") };
    assert!(!status.success() && told.contains("plugins can be written by everybody (mode 777)"), "{told}");
}
