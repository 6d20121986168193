//! Jobs and runs found again: labels, prefixes, states, pages, entity tags, one shots and jitter.

use std::collections::BTreeSet;

use carillon_domain::time::Timestamp;
use carillon_tests::fixture::directory;
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use serde_json::{Value, json};

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().expect("a listing has items").iter().map(|item| text(item, "name")).collect()
}

#[test]
fn jobs_are_found_by_label_prefix_state_and_namespace() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    for (name, more) in [
        ("backup-a", json!({"labels": {"team": "data"}})),
        ("backup-b", json!({"labels": {"team": "web"}, "paused": true})),
        ("report", json!({"labels": {"team": "data", "tier": "1"}})),
        ("backup-c", json!({"namespace": "other", "labels": {"team": "data"}})),
    ] {
        server.create(&job(name, NEVER, "true", more));
    }
    for (query, expected) in [
        ("", vec!["backup-a", "backup-b", "report"]),
        ("?namespace=other", vec!["backup-c"]),
        ("?namespace=*", vec!["backup-a", "backup-b", "report", "backup-c"]),
        ("?prefix=backup-", vec!["backup-a", "backup-b"]),
        ("?label=team%3Ddata", vec!["backup-a", "report"]),
        ("?label=tier", vec!["report"]),
        ("?paused=true", vec!["backup-b"]),
        ("?paused=false&prefix=backup", vec!["backup-a"]),
        ("?state=executing", vec![]),
        ("?namespace=nobody", vec![]),
    ] {
        assert_eq!(names(&server.get(&format!("/v1/jobs{query}"))), expected, "{query}");
    }
    for query in ["?state=sleeping", "?limit=0", "?limit=x", "?cursor=forged", "?colour=red", "?paused=maybe"] {
        let (code, answer) = server.call("GET", &format!("/v1/jobs{query}"), None);
        assert_eq!(code, 400, "{query}: {answer}");
        assert!(!text(&answer, "detail").is_empty());
    }
}

#[test]
fn pages_hold_everything_once_also_while_jobs_come() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let items: Vec<_> = (0..250).map(|n| job(&format!("job-{n:03}"), NEVER, "true", json!({}))).collect();
    let answer = server.post("/v1/jobs:batch", &json!({ "items": items }));
    assert_eq!(answer["items"].as_array().map(Vec::len), Some(250), "{answer}");
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/jobs?limit=100{cursor}"));
        found.extend(names(&page).into_iter().map(str::to_owned));
        server.create(&job(&format!("aaa-{}", found.len()), NEVER, "true", json!({})));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<_> = (0..250).map(|n| format!("job-{n:03}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn runs_are_listed_newest_first_by_status_and_time() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    server.create(&job("ends", NEVER, "true", json!({})));
    server.create(&job("fails", NEVER, "exit 1", json!({})));
    let good: Vec<_> = (0..5).map(|_| server.ended(&server.run_now("ends"))).collect();
    let bad = server.ended(&server.run_now("fails"));
    let ids = |path: &str| -> Vec<String> { server.all(path).iter().map(|run| text(run, "id").to_owned()).collect() };
    let expected: Vec<_> = good.iter().rev().map(|run| text(run, "id").to_owned()).collect();
    assert_eq!(ids("/v1/jobs/ends/runs"), expected);
    assert_eq!(ids("/v1/runs?status=failed"), [text(&bad, "id")]);
    assert_eq!(ids("/v1/runs").len(), 6);
    assert_eq!(ids(&format!("/v1/jobs/ends/runs?since={}", text(&good[3], "due_at"))).len(), 2);
    assert_eq!(ids(&format!("/v1/jobs/ends/runs?until={}", text(&good[3], "due_at"))).len(), 3);
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/jobs/ends/runs?limit=2{cursor}"));
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2 && items.iter().all(|run| found.insert(text(run, "id").to_owned())), "{page}");
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found.len(), 5);
}

#[test]
fn entity_tags_prevent_lost_updates() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let put = |tag: &str, command: &str| {
        let body = job("shared", NEVER, command, json!({}));
        server.call_raw("PUT", "/v1/jobs/shared", &[("If-Match", tag)], Some(&body))
    };
    assert_eq!(put("\"1\"", "true").0, 412, "there is none yet");
    let (status, headers, _) = server.call_raw("POST", "/v1/jobs", &[], Some(&job("shared", NEVER, "true", json!({}))));
    assert_eq!((status, headers["etag"].to_str().unwrap()), (201, "\"1\""));
    assert_eq!(headers["location"].to_str().unwrap(), "/v1/jobs/shared?namespace=default");
    assert_eq!(put("\"1\"", "false").0, 200);
    let (status, _, answer) = put("\"1\"", "echo lost");
    assert_eq!(status, 412, "{answer}");
    assert_eq!(server.get("/v1/jobs/shared")["params"]["command"], "false");
    assert_eq!(server.call("POST", "/v1/jobs", Some(&job("shared", NEVER, "true", json!({})))).0, 409);
    let deleted = server.call_raw("DELETE", "/v1/jobs/shared", &[("If-Match", "\"1\"")], None);
    assert_eq!(deleted.0, 412);
    assert_eq!(put("garbage", "true").0, 400);
    assert_eq!(server.call_raw("DELETE", "/v1/jobs/shared", &[("If-Match", "\"2\"")], None).0, 204);
}

#[test]
fn a_one_shot_runs_once_and_jitter_is_one_offset() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let created = server.create(&job("jittery", "* * * * * *", "true", json!({"jitter": "900ms"})));
    let ms = |text: &str| Timestamp::parse_rfc3339(text).expect("a time").as_ms();
    let due = ms(text(&created, "created_at")) + 2_000;
    server.create(&job("once", &format!("@at {}", Timestamp::from_ms(due)), "true", json!({})));
    let runs = server.wait_for_runs("jittery", 3, |run| status(run) == "succeeded");
    let offsets: BTreeSet<_> = runs.iter().map(|run| ms(text(run, "due_at")) % 1_000).collect();
    assert_eq!(offsets.len(), 1, "{offsets:?}");
    assert!(offsets.iter().all(|offset| (0..900).contains(offset)), "{offsets:?}");
    let run = server.wait_for_runs("once", 1, |run| status(run) == "succeeded").remove(0);
    assert_eq!((ms(text(&run, "due_at")), text(&run, "trigger")), (due, "schedule"));
    assert!(ms(text(&run, "started_at")) >= due, "nothing starts early: {run}");
    let once = server.get("/v1/jobs/once");
    assert_eq!((&once["next_due_at"], &once["state"]), (&json!(null), &json!("idle")), "{once}");
    assert_eq!(server.get("/v1/jobs/once/next")["next"], json!([]));
    let next: Vec<_> = server.get("/v1/jobs/jittery/next?count=3")["next"].as_array().unwrap().clone();
    let ahead: BTreeSet<_> = next.iter().map(|due| ms(due.as_str().unwrap()) % 1_000).collect();
    assert_eq!(ahead, offsets);
}
