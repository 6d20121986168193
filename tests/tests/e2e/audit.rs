//! The audit log of a real server: one entry for each request that changed something, with who and from where.

use std::process::Command;

use carillon_tests::fixture::{Gate, directory};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::{Server, binary};
use serde_json::{Value, json};

/// Calls the API as another client would.
fn curl(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let (status, _, text) = server.call_raw(method, path, &[("User-Agent", "curl/8")], Some(body));
    assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

/// Action, job, who and from of the entries that came since the last call, oldest first.
fn told(server: &Server, seen: &mut usize) -> Vec<[String; 4]> {
    let all = server.all("/v1/audit");
    let new = all.len() - std::mem::replace(seen, all.len());
    let field = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let fields = |entry: &Value| ["action", "job", "who", "from"].map(|name| field(entry, name));
    all[..new].iter().rev().map(fields).collect()
}

#[test]
fn each_change_leaves_one_entry_with_its_author() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let mut seen = 0;
    let mut leaves = |action: &str| {
        let expected = [action, "nightly", "carillon.token", "127.0.0.1 curl/8"].map(str::to_owned);
        assert_eq!(told(&server, &mut seen), [expected], "{action}");
    };
    let secret = json!({"P": {"value": "hush", "secret": true}});
    let params = json!({"params": {"command": gate.wait(), "env": secret}});
    let nightly = job("nightly", NEVER, "", params);
    curl(&server, "PUT", "/v1/jobs/nightly", &nightly);
    leaves("job.created");
    let mut changed = nightly.clone();
    changed["labels"] = json!({"team": "data"});
    curl(&server, "PUT", "/v1/jobs/nightly", &changed);
    leaves("job.updated");
    curl(&server, "POST", "/v1/jobs/nightly/pause", &json!({"reason": "moving"}));
    leaves("job.paused");
    curl(&server, "POST", "/v1/jobs/nightly/resume", &json!({}));
    leaves("job.resumed");
    let run = curl(&server, "POST", "/v1/jobs/nightly/run", &json!({}))["id"].as_str().unwrap().to_owned();
    leaves("job.run");
    server.wait_until("it runs", || server.run(&run)["status"] == "running");
    curl(&server, "POST", &format!("/v1/runs/{run}/cancel"), &json!({}));
    leaves("run.cancelled");
    server.wait_until("it ended", || server.run(&run)["status"] == "cancelled");
    curl(&server, "DELETE", "/v1/jobs/nightly", &json!({}));
    leaves("job.deleted");

    let log = server.all("/v1/audit");
    assert!(!json!(log).to_string().contains("hush"), "a secret is told: {log:?}");
    let of_run: Vec<&str> =
        log.iter().filter(|entry| entry["run"] == run).map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(of_run, ["run.cancelled", "job.run"]);
}

#[test]
fn an_import_leaves_an_entry_for_each_job_that_it_changes() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let crontab = dir.path().join("crontab");
    let import = |text: &str| {
        std::fs::write(&crontab, text).expect("a crontab can be written");
        let mut command = Command::new(binary());
        command.arg("import").arg(&crontab).env("CARILLON_SERVER", server.url()).env("CARILLON_TOKEN", server.token());
        let output = command.output().expect("the command line runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut seen = 0;
    import("TZ=UTC\n0 3 * * * /opt/a\n0 4 * * * /opt/b\n");
    let first = told(&server, &mut seen);
    assert_eq!(first.len(), 2, "{first:?}");
    for [action, _, who, from] in &first {
        assert_eq!((action.as_str(), who.as_str()), ("job.created", "carillon.token"));
        assert!(from.starts_with("127.0.0.1 carillon CLI/"), "{from}");
    }
    import("TZ=UTC\n0 3 * * * /opt/a\n5 4 * * * /opt/b\n");
    let second = told(&server, &mut seen);
    assert_eq!(second.iter().map(|[action, ..]| action.as_str()).collect::<Vec<_>>(), ["job.updated"]);
}
