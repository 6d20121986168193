//! Plugins as a user meets them: a library is dropped into the plugins directory, the server says what it makes of it, and
//! jobs run it.

use carillon_tests::markdown::blocks;
use carillon_tests::plugins::{Place, set_mode, sources};
use carillon_tests::processes::keeper_of;
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
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    for (field, value) in inspected.as_object().expect("an object") {
        assert_eq!(value, &listed[0][field], "{field}");
    }
    assert_eq!((&listed[0]["file"], &listed[0]["isolation"]), (&json!("plugins/noop.so"), &json!("process")));
    assert_eq!(listed[0]["host"], "not_started");

    let params = r#"{"sleep_ms": 1}"#;
    place.out(&server, &["job", "add", "beat", "-s", "@every 1s", "--executor", "noop", "--params", params]);
    server.wait_until("a run of the schedule succeeds", || {
        let runs = server.get("/v1/jobs/beat/runs?status=succeeded");
        runs["items"].as_array().is_some_and(|runs| runs.iter().any(|run| run["trigger"] == "schedule"))
    });
    assert_eq!(server.get("/v1/executors")["items"][0]["host"], "running");
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
    assert_eq!(run["reason"], "plugin crash crashed: SIGSEGV");
    let (code, run) = place.run_now(&server, "greet-c");
    assert_eq!((code, &run["output"]), (Some(0), &json!("Hello from C!\n")), "{run}");
}

/// A file that comes, is replaced and goes while the server runs, and a plugin that is trusted to run in the server.
#[test]
fn the_executors_follow_the_directory() {
    let place = Place::new();
    std::fs::write(place.path().join("carillon.toml"), "[plugins]\nin_process = [\"inside\"]\n").expect("written");
    let server = Server::start(place.path(), &[]);
    assert!(place.log().contains("plugins.in_process names \"inside\", and there is no such plugin now"));
    let says = |name: &str, version: &str| {
        format!(
            r#"
            #include <stdio.h>
            #include <unistd.h>
            #include "carillon_plugin.h"
            static void run(const carillon_run *run, carillon_result *result) {{
                char line[64];
                printf("it's printed by %s\n", run->job);
                run->write(run->host, line, (size_t)snprintf(line, sizeof line, "{version} %d", getpid()));
                result->status = CARILLON_SUCCEEDED;
            }}
            static const carillon_plugin plugin = {{ CARILLON_ABI_VERSION, sizeof plugin, "{name}", "{version}", NULL, run }};
            const carillon_plugin *carillon_plugin_init(uint32_t host) {{ (void)host; return &plugin; }}
            "#
        )
    };
    place.drop_c("inside.so", &says("inside", "1"));
    place.drop_c("outside.so", &says("outside", "1"));
    let executors = || {
        let listed = server.get("/v1/executors");
        let items = listed["items"].as_array().expect("items").iter();
        items.map(|item| format!("{} {}", item["name"], item["isolation"])).collect::<Vec<_>>()
    };
    let both = ["\"inside\" \"in_process\"", "\"outside\" \"process\"", "\"shell\" null"];
    server.wait_until("both are there", || executors() == both);
    for name in ["inside", "outside"] {
        place.out(&server, &["job", "add", name, "-s", "@daily", "--executor", name, "--params", "{}"]);
    }
    let output = |job: &str| {
        let (code, run) = place.run_now(&server, job);
        assert_eq!(code, Some(0), "{run}");
        let (version, pid) = run["output"].as_str().expect("output").split_once(' ').expect("two words");
        (version.to_owned(), pid.parse::<i32>().expect("a number"))
    };
    assert_eq!(output("inside"), ("1".to_owned(), server.pid()));
    assert_ne!(output("outside").1, server.pid());
    server.wait_for_log("plugin outside printed: it's printed by outside");
    for name in ["inside", "outside"] {
        place.drop_c("next", &says(name, "2"));
        std::fs::rename(place.plugins().join("next"), place.plugins().join(format!("{name}.so"))).expect("moved");
        server.wait_for_log(&format!("plugin {name} 2 is loaded from plugins/{name}.so, in place of 1"));
        assert_eq!(output(name).0, "2");
    }
    std::fs::remove_file(place.plugins().join("outside.so")).expect("removed");
    server.wait_until("it is gone", || executors() == [both[0], both[2]]);
    let (status, answer) = server.call(
        "POST",
        "/v1/jobs",
        Some(&json!({
            "name": "late", "schedule": "@daily", "executor": "outside", "params": {}
        })),
    );
    assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!("executor")), "{answer}");
    assert!(server.drain().success());
}

/// A run in the server cannot be killed by anybody else: a server that must end does so, whatever its plugins want.
#[test]
fn a_server_that_must_end_does_not_wait_for_its_plugins() {
    let place = Place::new();
    let source = r#"
        #include <stdlib.h>
        #include <unistd.h>
        #include "carillon_plugin.h"
        static void forever(void) { for (;;) sleep(1000); }
        static void run(const carillon_run *run, carillon_result *result) {
            (void)result;
            run->write(run->host, "up", 2);
            forever();
        }
        static const carillon_plugin plugin = { CARILLON_ABI_VERSION, sizeof plugin, "deaf", "1", NULL, run };
        const carillon_plugin *carillon_plugin_init(uint32_t host) { (void)host; atexit(forever); return &plugin; }
    "#;
    place.drop_c("deaf.so", source);
    std::fs::write(place.path().join("carillon.toml"), "[plugins]\nisolation = \"in_process\"\n").expect("written");
    let server = Server::start(place.path(), &[]);
    server.post("/v1/jobs", &json!({"name": "deaf", "schedule": "@daily", "executor": "deaf", "params": {}}));
    let started = server.post("/v1/jobs/deaf/run", &json!({}));
    let run = format!("/v1/runs/{}", started["id"].as_str().expect("the run's id"));
    server.wait_until("it runs", || server.call("GET", &run, None).1["status"] == "running");
    let keeper = nix::unistd::Pid::from_raw(keeper_of(server.pid()));
    nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("the keeper is there");
    assert_eq!(server.wait().code(), Some(70));
    // The next server says what became of it.
    let server = Server::start(place.path(), &[]);
    assert_eq!(server.get(&run)["status"], "lost");
}

/// A hundred jobs of the shell and of another plugin, while one plugin does all that a plugin should not.
#[test]
fn others_go_on_while_a_plugin_misbehaves() {
    let place = Place::new();
    place.drop_built("noop", "noop.so", 0o755);
    let broken = r#"
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        #include "carillon_plugin.h"
        static void run(const carillon_run *run, carillon_result *result) {
            (void)result;
            if (strstr(run->params_json, "crash")) abort();
            if (strstr(run->params_json, "leave")) _exit(0);
            if (strstr(run->params_json, "close")) for (int fd = 0; fd < 1024; fd++) close(fd);
            for (;;) {}
        }
        static const carillon_plugin plugin = { CARILLON_ABI_VERSION, sizeof plugin, "broken", "1", NULL, run };
        const carillon_plugin *carillon_plugin_init(uint32_t host) { (void)host; return &plugin; }
    "#;
    place.drop_c("broken.so", broken);
    let server = Server::start(place.path(), &[]);
    let jobs: Vec<Value> = (0..100)
        .map(|number| match number % 2 {
            0 => json!({"name": format!("good-{number}"), "schedule": "@every 1s", "executor": "noop", "params": {}}),
            _ => json!({"name": format!("good-{number}"), "schedule": "@every 1s", "params": {"command": "true"}}),
        })
        .chain(["crash", "leave", "close", "loop"].map(|what| {
            json!({"name": what, "schedule": "@every 1s", "executor": "broken", "params": {"do": what},
                   "timeout": "1s", "kill_grace": "100ms"})
        }))
        .collect();
    let (status, answer) = server.call("POST", "/v1/jobs:batch", Some(&json!({"items": jobs})));
    assert_eq!(status, 200, "{answer}");
    let ended = |job: &str, status: &str| {
        let runs = server.get(&format!("/v1/jobs/{job}/runs?status={status}"));
        runs["items"].as_array().expect("items").len()
    };
    server.wait_until("each of the good ones has succeeded twice", || {
        (0..100).all(|number| ended(&format!("good-{number}"), "succeeded") >= 2)
    });
    for what in ["crash", "leave", "close", "loop"] {
        server.wait_until("the bad ones have failed", || ended(what, "failed") + ended(what, "timed_out") > 0);
        assert_eq!(ended(what, "succeeded"), 0);
    }
    for number in 0..100 {
        assert_eq!(ended(&format!("good-{number}"), "failed"), 0);
    }
    assert_eq!(server.get("/v1/executors")["items"][1]["name"], "noop");
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
