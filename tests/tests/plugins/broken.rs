//! Plugins with one defect each (plugins/broken): what a user sees of it, while the node and all other jobs go on.

use carillon_tests::accounting::account;
use carillon_tests::plugins::{Place, sources};
use carillon_tests::server::Server;
use serde_json::{Value, json};

/// The outcome of a run.
struct Broken {
    name: &'static str,
    /// The statuses that it may end with.
    ends: &'static [&'static str],
    /// Words in the reason of a run that did not succeed.
    says: &'static [&'static str],
    output: &'static str,
}

const fn broken(name: &'static str, ends: &'static [&'static str], says: &'static [&'static str]) -> Broken {
    Broken { name, ends, says, output: "" }
}

const RUNS: &[Broken] = &[
    broken("segfault", &["failed"], &["plugin", "crashed", "SIGSEGV"]),
    broken("abort", &["failed"], &["plugin", "crashed", "SIGABRT"]),
    broken("exit-zero", &["failed"], &["plugin", "exit code 0"]),
    broken("endless", &["timed_out"], &["killed"]),
    broken("memory-hog", &["failed"], &["plugin", "crashed"]),
    broken("close-all", &["failed"], &["plugin"]),
    broken("no-verdict", &["failed"], &["the plugin failed and did not say why"]),
    broken("torn-verdict", &["failed"], &[]),
    Broken {
        output: "no \u{fffd}\u{fffd} luck\u{fffd}\n",
        ..broken("garbled-message", &["failed"], &["no \u{fffd}\u{fffd} luck"])
    },
    broken("thread-left", &["failed"], &["plugin thread-left left a thread behind"]),
    // Its acts after its run may take its process down before the thread is found.
    Broken { output: "in time\n", ..broken("late-writer", &["failed"], &["plugin"]) },
];

/// A plugin that is refused, and what the log and `carillon plugin inspect` say.
const REFUSED: &[(&str, &str)] = &[
    ("wrong-version", "it was built for ABI version 999, and this server speaks version 1"),
    ("short-descriptor", "its descriptor has 8 bytes, and ABI version 1 has "),
    ("no-init", "it is not a Carillon plugin: it does not export carillon_plugin_init"),
    ("unwilling", "it says that it cannot work with ABI version 1"),
    ("crashing-constructor", "it could not be inspected: the plugin crashed: SIGSEGV"),
    ("exit-in-init", "it ended the process with exit code 0 while being loaded"),
    ("taken-name", "its name \"shell\" is that of a built-in executor"),
    ("garbled-name", "the name in its descriptor is not UTF-8"),
    ("no-json-schema", "its params schema is not JSON: "),
    ("bad-schema", "its params schema is not a valid JSON Schema: "),
];

fn drop_in(place: &Place, name: &str) {
    place.drop_c_file(&format!("{name}.so"), &sources().join("broken").join(name).with_extension("c"));
}

fn save(server: &Server, job: Value) {
    server.post("/v1/jobs", &job);
}

/// A job beside the broken ones that must come due and succeed each second.
fn save_tick(server: &Server) {
    // It may overlap itself and catches up, so that a machine that is slow or stands still skips nothing.
    let params = json!({"command": "echo tick"});
    let misfire = json!({"policy": "catch_up"});
    let tick =
        json!({"name": "tick", "schedule": "@every 1s", "params": params, "overlap": "allow", "misfire": misfire});
    save(server, tick);
}

fn ticks(server: &Server) -> usize {
    server.all("/v1/jobs/tick/runs?status=succeeded").len()
}

fn assert_no_tick_was_missed(server: &Server) {
    let before = ticks(server);
    server.wait_until("two more ticks", || ticks(server) >= before + 2);
    let account = account(&server.all("/v1/jobs/tick/runs"), 1000);
    assert!(account.silent_misses.is_empty() && account.duplicates.is_empty(), "{account:?}");
    assert!(account.skipped.is_empty(), "{account:?}");
    let ended_badly = account.runs.keys().find(|status| !["succeeded", "running"].contains(&status.as_str()));
    assert_eq!(ended_badly, None, "{account:?}");
}

fn check(broken: &Broken, run: &Value) {
    let status = run["status"].as_str().expect("a run has a status");
    assert!(broken.ends.contains(&status), "{}: {run}", broken.name);
    if status == "succeeded" {
        assert_eq!(run["reason"], Value::Null, "{run}");
    } else {
        let reason = run["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty() && broken.says.iter().all(|part| reason.contains(part)), "{}: {run}", broken.name);
    }
    let output = run["output"].as_str().expect("a run has an output");
    assert!(output.starts_with(broken.output), "{}: {run}", broken.name);
}

/// Each runs twice: the second run has what it needs, whatever the first one did.
#[test]
fn a_broken_plugin_ends_its_own_run() {
    let place = Place::new();
    RUNS.iter().for_each(|broken| drop_in(&place, broken.name));
    place.drop_built("noop", "noop.so", 0o755);
    let server = Server::start(place.path(), &[]);
    save_tick(&server);
    let whole = json!({"name": "whole", "schedule": "@every 1s", "executor": "noop", "params": {}, "overlap": "allow"});
    save(&server, whole);
    for broken in RUNS {
        let mut job = json!({"name": broken.name, "schedule": "@yearly", "executor": broken.name, "params": {}});
        // A call that would hang fails instead.
        job["timeout"] = json!("20s");
        if broken.ends == ["timed_out"] {
            (job["timeout"], job["kill_grace"]) = (json!("300ms"), json!("100ms"));
        }
        save(&server, job);
        for _ in 0..2 {
            let (code, run) = place.run_now(&server, broken.name);
            check(broken, &run);
            assert_eq!(code == Some(0), run["status"] == "succeeded", "{run}");
        }
    }
    assert_no_tick_was_missed(&server);
    let of_noop = account(&server.all("/v1/jobs/whole/runs"), 1000);
    assert!(of_noop.runs.keys().all(|status| status == "succeeded" || status == "running"), "{of_noop:?}");
    assert!(of_noop.silent_misses.is_empty() && of_noop.runs.contains_key("succeeded"), "{of_noop:?}");
    assert!(server.drain().success());
}

#[test]
fn a_plugin_that_cannot_be_used_is_refused_with_the_reason() {
    let place = Place::new();
    REFUSED.iter().for_each(|(name, _)| drop_in(&place, name));
    drop_in(&place, "twin");
    std::fs::copy(place.plugins().join("twin.so"), place.plugins().join("twin-too.so")).expect("a twin");
    let server = Server::start(place.path(), &[]);
    save_tick(&server);
    let log = place.log();
    for (name, reason) in REFUSED {
        let line = log.lines().find(|line| line.contains(&format!("{name}.so is refused: ")));
        assert!(line.is_some_and(|line| line.contains(reason)), "{name}: {line:?} in\n{log}");
        let file = place.plugins().join(format!("{name}.so"));
        let inspected = place.carillon(&server, &["plugin", "inspect", file.to_str().expect("a plain path")]);
        let told = String::from_utf8_lossy(&inspected.stderr).into_owned();
        assert!(inspected.status.code() == Some(1) && told.contains(reason), "{name}: {told}");
    }
    // Sorted by their names, the first file is taken.
    let second = "twin.so is refused: its name \"twin\" is already taken by plugins/twin-too.so";
    assert!(log.contains(second), "{log}");
    let listed = place.out(&server, &["plugin", "list", "--json"]);
    let names = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["shell", "twin"]);
    assert_no_tick_was_missed(&server);
    assert!(server.drain().success());
}

#[test]
fn every_broken_plugin_is_tried() {
    let files = std::fs::read_dir(sources().join("broken")).expect("plugins/broken");
    let names = files.map(|file| file.expect("listed").file_name().into_string().expect("a plain name"));
    let mut found: Vec<String> = names.filter_map(|name| name.strip_suffix(".c").map(str::to_owned)).collect();
    found.sort();
    let tried = RUNS.iter().map(|broken| broken.name).chain(REFUSED.iter().map(|(name, _)| *name)).chain(["twin"]);
    let mut tried: Vec<String> = tried.map(str::to_owned).collect();
    tried.sort();
    assert_eq!(found, tried);
}
