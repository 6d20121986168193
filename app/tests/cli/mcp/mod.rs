//! `carillon mcp` as a process: the protocol is spoken to it over pipes, before a real server.

mod session;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::session::Session;
use crate::server::Server;

fn yearly(name: &str, command: &str) -> Value {
    json!({"name": name, "schedule": "0 0 1 1 *", "params": {"command": command}})
}

#[test]
fn an_agent_looks_explains_schedules_and_runs() {
    let server = Server::start();
    let mut session = Session::open(&server);
    let s = &mut session;

    let explained = s.call(
        "explain_schedule",
        json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "count": 2, "after": "2027-03-27T12:00:00Z"}),
    );
    assert_eq!(explained["next"], json!(["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]));
    let executors = s.call("list_executors", json!({}));
    assert!(executors["items"].as_array().unwrap().iter().any(|executor| executor["name"] == "shell"), "{executors}");
    assert_eq!(s.call("show_cluster", json!({}))["items"][0]["state"], "live");

    let dry = s.call("create_job", json!({"job": yearly("backup", "echo saved; exit 3")}));
    assert_eq!((&dry["applied"], &dry["version"]), (&json!(false), &Value::Null));
    assert_eq!(dry["plan"]["next"].as_array().unwrap().len(), 10);
    assert_eq!(s.call("list_jobs", json!({}))["items"], json!([]), "a dry run stores nothing");
    let made = s.call("create_job", json!({"job": yearly("backup", "echo saved; exit 3"), "dry_run": false}));
    assert_eq!((&made["applied"], &made["version"], &made["job"]["name"]), (&json!(true), &json!(1), &json!("backup")));
    let listed = s.call("list_jobs", json!({"namespace": "*", "prefix": "back", "paused": false, "state": "idle"}));
    assert_eq!((&listed["items"][0]["name"], &listed["next_cursor"]), (&json!("backup"), &Value::Null));
    assert_eq!(s.call("show_job", json!({"name": "backup"}))["generation"], 1);
    assert_eq!(s.call("next_due_times", json!({"name": "backup", "count": 3}))["next"].as_array().unwrap().len(), 3);

    change(s);
    runs(s);

    let paused = s.call("pause_job", json!({"name": "backup", "reason": "moving", "until": "2999-01-01T00:00:00Z"}));
    assert_eq!((&paused["paused"], &paused["pause"]["reason"]), (&json!(true), &json!("moving")));
    let why = s.call("explain_due_time", json!({"name": "backup"}));
    assert!(why["sentence"].as_str().is_some_and(|sentence| sentence.len() > 20), "{why}");
    assert_eq!(s.call("resume_job", json!({"name": "backup"}))["paused"], false);

    let dry = s.call("delete_job", json!({"name": "backup"}));
    assert_eq!(s.call("show_job", json!({"name": "backup"}))["generation"], dry["version"]);
    let gone = s.call("delete_job", json!({"name": "backup", "dry_run": false, "version": dry["version"]}));
    assert_eq!((&gone["applied"], &gone["job"]), (&json!(true), &Value::Null));
    assert!(s.refusal("show_job", json!({"name": "backup"})).contains("there is no job backup"));

    let unused: Vec<&String> = s.tools.keys().filter(|tool| !s.used.contains(*tool)).collect();
    assert!(unused.is_empty(), "these tools were not tried: {unused:?}");
    session.close();
    let log = server.out(&["audit"], 0);
    assert!(log.contains("job.deleted") && log.contains("job.run"), "what an agent does is in the audit log: {log}");
}

/// A change is looked at, and stored only with the version that was looked at.
fn change(s: &mut Session) {
    let changes = json!({"schedule": "0 3 * * *", "params": {"env": {"A": "b"}}, "retry": {"max_attempts": 2}});
    let dry = s.call("change_job", json!({"name": "backup", "changes": changes}));
    assert_eq!(
        (&dry["applied"], &dry["version"], &dry["plan"]["change"]),
        (&json!(false), &json!(1), &json!("updated"))
    );
    let fields: Vec<&str> =
        dry["plan"]["changes"].as_array().unwrap().iter().map(|change| change["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["params.env", "retry.max_attempts", "schedule"]);
    assert_ne!(dry["plan"]["next"], dry["plan"]["next_before"]);
    assert!(dry["sentence"].as_str().unwrap().contains("version = 1"), "{dry}");
    assert_eq!(s.call("show_job", json!({"name": "backup"}))["schedule"], "0 0 1 1 *", "a dry run stores nothing");

    let without = s.refusal("change_job", json!({"name": "backup", "changes": changes, "dry_run": false}));
    assert!(without.starts_with("version: it is required with dry_run = false"), "{without}");
    let arguments = |version: u64| json!({"name": "backup", "changes": changes, "dry_run": false, "version": version});
    let done = s.call("change_job", arguments(1));
    assert_eq!((&done["applied"], &done["version"]), (&json!(true), &json!(2)));
    let (params, retry) = (&done["job"]["params"], &done["job"]["retry"]);
    assert_eq!(params, &json!({"command": "echo saved; exit 3", "env": {"A": "b"}}), "the rest stays");
    assert_eq!((&retry["max_attempts"], &retry["backoff"]), (&json!(2), &json!("10s")));
    let stale = s.refusal("change_job", arguments(1));
    assert!(stale.contains("at generation 2, not at 1"), "{stale}");
    let same = s.call("change_job", json!({"name": "backup", "changes": changes}));
    assert_eq!(same["plan"]["change"], "unchanged");
    let back = json!({"name": "backup", "changes": {"retry": null}, "dry_run": false, "version": 2});
    assert_eq!(s.call("change_job", back)["job"]["retry"]["max_attempts"], 1, "null takes a field back to its default");
}

fn runs(s: &mut Session) {
    let run = s.call("run_job", json!({"name": "backup", "wait_seconds": 60}));
    assert_eq!((&run["status"], &run["exit_code"], &run["ended"]), (&json!("failed"), &json!(3), &json!(true)));
    assert_eq!(run["output"], "saved\n");
    let once = s.call(
        "run_job",
        json!({"name": "backup", "params": {"command": "echo $((6 * 7)); echo last"},
        "wait_seconds": 60}),
    );
    assert_eq!((&once["status"], &once["output"]), (&json!("succeeded"), &json!("42\nlast\n")));
    let end = s.call("read_output", json!({"id": once["id"], "last_bytes": 5}));
    assert_eq!((&end["output"], &end["output_cut"]), (&json!("last\n"), &json!(true)));
    let shown = s.call("show_run", json!({"id": once["id"]}));
    assert_eq!(shown["params"]["command"], "echo $((6 * 7)); echo last");
    let failed = s.call("list_runs", json!({"job": "backup", "status": "failed"}));
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    assert_eq!(s.call("list_runs", json!({"limit": 1}))["items"][0]["id"], once["id"], "newest first");

    // It prints, and then it waits until somebody ends it.
    let long = s.call("run_job", json!({"name": "backup", "params": {"command": "echo begun; sleep 1000"}}));
    assert_eq!(long["ended"], false);
    let waiting =
        s.ask("tools/call", json!({"name": "read_output", "arguments": {"id": long["id"], "wait_seconds": 300}}));
    s.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}}).to_string(),
    );
    // Nobody waits any more: the next answer is that of the next question.
    assert!(s.request("ping", json!({}))["result"].is_object());
    let waiting =
        s.ask("tools/call", json!({"name": "read_output", "arguments": {"id": long["id"], "wait_seconds": 300}}));
    let cancelling = s.ask("tools/call", json!({"name": "cancel_run", "arguments": {"id": long["id"]}}));
    let answers = [s.receive(), s.receive()];
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap()["result"]["structuredContent"].clone();
    assert_eq!(of(cancelling)["id"], long["id"], "one call does not keep another waiting: {answers:?}");
    assert_eq!((&of(waiting)["status"], &of(waiting)["ended"]), (&json!("cancelled"), &json!(true)), "{answers:?}");
    let over = s.refusal("cancel_run", json!({"id": long["id"]}));
    assert!(over.contains("has already ended"), "{over}");
    s.used.insert("cancel_run".to_owned());
}

#[test]
fn faults_are_told_and_the_session_goes_on() {
    let server = Server::start();
    let mut session = Session::open(&server);
    let s = &mut session;
    let unknown = s.request("tools/call", json!({"name": "drop_all", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there is no tool \"drop_all\""));
    assert_eq!(s.request("nothing/known", json!({}))["error"]["code"], -32601);
    // A line that is no JSON has no id that an answer could name: it is passed over.
    s.send("{\"jsonrpc\": \"2.0\", \"id\": 1, ");
    s.send("what?");
    s.send("");
    s.send("{\"neither\": \"request nor answer\"}");
    assert_eq!(s.receive()["error"]["code"], -32600);
    for (tool, arguments, told) in [
        ("show_job", json!({}), "name: it is required"),
        ("show_job", json!({"name": "a/b"}), "name: "),
        ("show_job", json!({"name": "a", "namespace": "../x"}), "namespace: "),
        ("show_job", json!({"name": "a", "nmae": "b"}), "nmae: there is no such field"),
        (
            "list_jobs",
            json!({"limit": 0, "state": "busy"}),
            "not \"busy\"\nlimit: it must be a whole number from 1 to 200, not 0",
        ),
        ("show_run", json!({"id": "../jobs"}), "id: "),
        ("read_output", json!({"id": "8000000000000007-1"}), "there is no run 8000000000000007-1"),
        ("explain_schedule", json!({"schedule": "61 * * * *"}), "minute: \"61\" is out of range"),
        ("create_job", json!({"job": yearly("a", "true"), "dry_run": "no"}), "dry_run: it must be true or false"),
        ("create_job", json!({"job": {"name": "a", "schedule": "61 * * * *", "params": {}}}), "minute: \"61\""),
        ("change_job", json!({"name": "a", "changes": {"schedule": "@daily"}}), "there is no job a"),
        ("run_job", json!({"name": "nightly"}), "there is no job nightly"),
    ] {
        let refusal = s.refusal(tool, arguments.clone());
        assert!(refusal.contains(told), "{tool} {arguments}: {refusal}");
    }
    session.close();

    let url = server.url.clone();
    drop(server);
    let mut session = Session::open(&Server::away(&url));
    let away = session.refusal("list_jobs", json!({}));
    assert!(away.contains("cannot reach the server at http://") && away.contains("carillon serve"), "{away}");
    let explained = session.call("explain_schedule", json!({"schedule": "@daily"}));
    assert_eq!(explained["next"].as_array().unwrap().len(), 5, "this one needs no server");
    assert_eq!(session.request("resources/list", json!({}))["error"]["code"], -32603);
    session.close();
}

#[test]
fn a_client_that_does_not_begin_as_it_should_is_told() {
    let server = Server::away("http://127.0.0.1:9");
    let mut session = Session::start(&server, None, &[]);
    assert!(session.request("tools/list", json!({}))["error"]["message"].is_string());
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    drop(session);
    let silent = Session::start(&server, None, &[]);
    silent.close();
}

/// The newest revision of the protocol has no opening: each request says by itself who asks and in which revision.
#[test]
fn the_newest_revision_is_spoken_too() {
    let server = Server::start();
    let mut session = Session::start(&server, None, &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let discovered = session.request("server/discover", json!({"_meta": meta}));
    assert!(discovered["result"]["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))));
    let called = json!({"name": "list_jobs", "arguments": {}, "_meta": meta});
    assert_eq!(session.request("tools/call", called)["result"]["structuredContent"]["items"], json!([]));
    session.close();
}

#[test]
fn a_viewer_is_refused_in_a_sentence() {
    let token = |name: &str, role: &str| {
        let digest: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[http.tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\nrole = \"{role}\"\n")
    };
    let server = Server::start_with(&(token("watcher", "viewer") + &token("chief", "admin")));
    let mut chief = Session::open_as(&server, Some("chief"), &["--namespace", "prod"]);
    let made = chief.call("create_job", json!({"job": yearly("a", "true"), "dry_run": false}));
    assert_eq!(made["job"]["namespace"], "prod", "the namespace of the command line counts where none is given");
    chief.close();

    let mut watcher = Session::open_as(&server, Some("watcher"), &["--namespace", "prod"]);
    assert_eq!(watcher.call("show_job", json!({"name": "a"}))["name"], "a");
    for (tool, arguments) in [
        ("create_job", json!({"job": yearly("b", "true")})),
        ("change_job", json!({"name": "a", "changes": {"schedule": "@daily"}})),
        ("delete_job", json!({"name": "a", "dry_run": false, "version": 1})),
        ("pause_job", json!({"name": "a"})),
        ("run_job", json!({"name": "a"})),
    ] {
        let refusal = watcher.refusal(tool, arguments);
        assert!(refusal.contains("the role viewer") || refusal.contains("viewer"), "{tool}: {refusal}");
    }
    watcher.close();
    let mut stranger = Session::open_as(&server, Some("nobody"), &[]);
    let refusal = stranger.refusal("list_jobs", json!({}));
    assert!(refusal.contains("the token is not one of this server"), "{refusal}");
    stranger.close();
}

#[test]
fn jobs_and_runs_are_resources() {
    let server = Server::start();
    let lines: String = (0..101).map(|n| format!("0 0 1 1 * true {n}\n")).collect();
    std::fs::write(server.dir.path().join("crontab"), lines).unwrap();
    server.out(&["import", "crontab"], 0);
    server.out(&["job", "add", "zz-hello", "-s", "0 0 1 1 *", "-c", "echo hello"], 0);
    server.out(&["job", "run", "zz-hello", "--wait"], 0);
    let mut session = Session::open(&server);
    let s = &mut session;
    let templates = s.request("resources/templates/list", json!({}));
    let of_template = |template: &Value| template["uriTemplate"].as_str().unwrap().to_owned();
    let templates: Vec<String> =
        templates["result"]["resourceTemplates"].as_array().unwrap().iter().map(of_template).collect();
    assert_eq!(
        templates,
        ["carillon://jobs/{namespace}/{name}", "carillon://runs/{id}", "carillon://runs/{id}/output"]
    );

    let (mut uris, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: String| json!({"cursor": cursor}));
        let page = s.request("resources/list", params)["result"].clone();
        let resources = page["resources"].as_array().unwrap();
        uris.extend(resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!((uris.len(), pages), (103, 3), "102 jobs on two pages, and one of runs");
    assert_eq!(uris.iter().collect::<BTreeSet<_>>().len(), uris.len(), "none stands twice");

    let mut read = |uri: &str| s.request("resources/read", json!({"uri": uri}));
    let job = read("carillon://jobs/default/zz-hello");
    let job: Value = serde_json::from_str(job["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&job["name"], &job["params"]["command"]), (&json!("zz-hello"), &json!("echo hello")));
    let run = uris.last().unwrap();
    let shown = read(run);
    let shown: Value = serde_json::from_str(shown["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&shown["job"], &shown["status"]), (&json!("zz-hello"), &json!("succeeded")));
    assert_eq!(read(&format!("{run}/output"))["result"]["contents"][0]["text"], "hello\n");
    for uri in ["carillon://jobs/default/none", "carillon://jobs/default", "file:///etc/passwd", "carillon://runs/../x"]
    {
        assert_eq!(read(uri)["error"]["code"], -32002, "{uri}");
    }
    let wrong = s.request("resources/list", json!({"cursor": "x"}));
    assert_eq!(wrong["error"]["code"], -32602);
    session.close();
}

/// The rows of the page are the tools, in their order, with their titles and effects.
#[test]
fn the_page_lists_the_tools_as_they_are() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let mut session = Session::open(&Server::away("http://127.0.0.1:9"));
    let listed = session.request("tools/list", json!({}))["result"]["tools"].clone();
    session.close();
    let expected = listed.as_array().unwrap().iter().map(|tool| {
        let hints = &tool["annotations"];
        let effect = match (&hints["readOnlyHint"], &hints["destructiveHint"]) {
            (Value::Bool(true), Value::Bool(false)) => "reads",
            (Value::Bool(false), Value::Bool(false)) => "adds",
            (Value::Bool(false), Value::Bool(true)) => "overwrites",
            other => panic!("{}: {other:?}", tool["name"]),
        };
        let takes = tool["inputSchema"]["properties"].as_object().unwrap();
        let required: BTreeSet<&str> =
            tool["inputSchema"]["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let mark = |name: &String| if required.contains(name.as_str()) { format!("**{name}**") } else { name.clone() };
        let takes: Vec<String> = takes.keys().map(mark).collect();
        let (name, title) = (tool["name"].as_str().unwrap(), tool["title"].as_str().unwrap());
        format!("| `{name}` | {title} | {effect} | {} |", takes.join(", "))
    });
    let expected: Vec<String> = expected.collect();
    assert_eq!(rows, expected, "write into docs/mcp.md:\n{}", expected.join("\n"));
}
