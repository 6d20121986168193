//! Creating, replacing, reading, pausing and deleting jobs.

mod plan;

use carillon_doubles::Fault;
use serde_json::{Value, json};

use super::{Api, job};
use crate::engine::Ask;

#[tokio::test]
async fn a_job_is_created_read_and_deleted() {
    let mut api = Api::new().await;
    let created = api.call("POST", "/v1/jobs", Some(job("a"))).await;
    assert_eq!(created.status, 201, "{}", created.json);
    assert_eq!((created.header("location"), created.header("etag")), ("/v1/jobs/a?namespace=default", "\"1\""));
    assert_eq!(api.parts.asks.recv().await, Some(Ask::Look));
    let read = api.call("GET", created.header("location"), None).await;
    assert_eq!(read.json, created.json);
    let expected = json!({
        "namespace": "default", "name": "a", "schedule": "0 * * * *", "timezone": null, "executor": "shell",
        "params": {"command": "true"}, "overlap": "skip", "misfire": {"policy": "fire_once", "grace": "30s"},
        "timeout": null, "kill_grace": "10s", "retry": {"max_attempts": 1, "backoff": "10s", "max_backoff": "5m"},
        "on_lost": "skip", "jitter": "0s", "dst": {"gap": "after", "overlap": "first"}, "start_at": null,
        "end_at": null, "paused": false, "labels": {}, "expect": null, "ping": null, "pause": null, "state": "idle",
        "next_due_at": "2027-01-01T01:00:00.000Z", "previous_due_at": null, "last_run": null, "current_run": null,
        "node": null, "generation": 1, "created_at": "2027-01-01T00:00:00.000Z",
        "updated_at": "2027-01-01T00:00:00.000Z",
    });
    assert_eq!(read.json, expected);
    assert_eq!(api.call("HEAD", "/v1/jobs/a", None).await.status, 200);
    assert_eq!(api.call("POST", "/v1/jobs", Some(job("a"))).await.status, 409);
    assert_eq!(api.call("DELETE", "/v1/jobs/a", None).await.status, 204);
    for method in ["GET", "DELETE"] {
        assert_eq!(api.call(method, "/v1/jobs/a", None).await.status, 404);
    }
}

#[tokio::test]
async fn everything_that_can_be_said_is_kept() {
    let api = Api::new().await;
    let full = json!({
        "namespace": "prod", "name": "full", "schedule": "30 3 * * 1-5", "timezone": "Europe/Berlin",
        "executor": "shell", "params": {"command": "x", "more": [1, {"deep": null}]}, "overlap": "delay",
        "misfire": {"policy": "catch_up", "grace": "1m30s"}, "timeout": "1h", "kill_grace": "5s",
        "retry": {"max_attempts": 3, "backoff": "10s", "max_backoff": "5m"}, "on_lost": "rerun", "jitter": "20s",
        "dst": {"gap": "skip", "overlap": "both"}, "start_at": "2027-02-01T00:00:00.000Z",
        "end_at": "2028-01-01T00:00:00.000Z", "paused": true, "labels": {"team": "data", "empty": ""},
        "expect": {"start_within": "5m", "finish_within": "2h", "finish_by": "06:00"},
        "ping": "https://hc-ping.com/0f0e",
    });
    let created = api.call("PUT", "/v1/jobs/full?namespace=prod", Some(full.clone())).await;
    assert_eq!(created.status, 201, "{}", created.json);
    for (key, value) in full.as_object().unwrap() {
        assert_eq!(&created.json[key], value, "{key}");
    }
    assert!(created.json["pause"]["since"].is_string());
    let again = api.call("PUT", "/v1/jobs/full?namespace=prod", Some(created.json.clone())).await;
    assert_eq!((again.status.as_u16(), again.header("etag")), (200, "\"1\""), "what was read may be put back");
    let unpaused = api
        .call("PUT", "/v1/jobs/full?namespace=prod", Some(json!({"schedule": "@daily", "params": {"command": "x"}})))
        .await;
    assert_eq!(unpaused.json["paused"], true, "a put without paused leaves the pause alone");
    assert_eq!(unpaused.json["generation"], 2);
}

#[tokio::test]
async fn a_schedule_that_is_refused_is_named_once() {
    let api = Api::new().await;
    for (schedule, timezone, told) in [
        ("0 0 30 2 *", "UTC", "schedule: \"0 0 30 2 *\" can never fire"),
        ("61 * * * *", "UTC", "schedule: minute: \"61\" is out of range"),
        ("@daily", "Mars", "timezone: \"Mars\" is unknown"),
    ] {
        let mut body = job("a");
        (body["schedule"], body["timezone"]) = (json!(schedule), json!(timezone));
        let put = api.call("PUT", "/v1/jobs/a", Some(body)).await;
        let ask = json!({"schedule": schedule, "timezone": timezone});
        let explained = api.call("POST", "/v1/schedules/explain", Some(ask)).await;
        for reply in [put, explained] {
            assert_eq!(reply.status, 400);
            let detail = reply.json["detail"].as_str().unwrap();
            assert!(detail.starts_with(told), "{detail}");
        }
    }
}

#[tokio::test]
async fn every_fault_of_a_body_is_told_at_once() {
    let api = Api::new().await;
    let body = json!({
        "name": "b", "namespace": 7, "schedule": "61 * * * *", "timezone": [], "executor": "shell",
        "params": {"command": 1}, "overlap": "never", "misfire": {"policy": "x", "grace": "-1s", "y": 1},
        "timeout": "366d", "kill_grace": "2h", "retry": {"max_attempts": 101, "backoff": 10, "max_backoff": "1s"},
        "on_lost": true, "jitter": "25h", "dst": {"gap": "after", "overlap": "twice"}, "start_at": "tomorrow",
        "end_at": 5, "paused": "yes", "labels": {"a b": "x", "c": 1, "d": "\u{7}"}, "colour": "red",
    });
    let reply = api.call("PUT", "/v1/jobs/a", Some(body)).await;
    assert_eq!(reply.status, 400);
    let mut faults = reply.faults();
    faults.sort_unstable();
    let mut expected = [
        "name",
        "namespace",
        "schedule",
        "timezone",
        "params.command",
        "overlap",
        "misfire.policy",
        "misfire.grace",
        "misfire.y",
        "timeout",
        "kill_grace",
        "retry.max_attempts",
        "retry.backoff",
        "retry.max_backoff",
        "on_lost",
        "jitter",
        "dst.overlap",
        "start_at",
        "end_at",
        "paused",
        "labels",
        "labels.c",
        "labels.d",
        "colour",
    ];
    expected.sort_unstable();
    assert_eq!(faults, expected, "{}", reply.json);
    assert_eq!(api.call("GET", "/v1/jobs/a", None).await.status, 404);
}

#[tokio::test]
async fn single_faults_have_sentences() {
    let api = Api::new().await;
    let with = |key: &str, value: Value| {
        let mut body = job("a");
        body[key] = value;
        body
    };
    let many_labels: serde_json::Map<_, _> = (0..65).map(|n| (format!("l{n}"), json!("x"))).collect();
    for (body, field, said) in [
        (json!({}), "name", "it is required"),
        (json!([]), "", "a job is a JSON object, not an array"),
        (json!({"name": "a", "schedule": null, "params": {}}), "schedule", "it is required"),
        (json!({"name": "a", "schedule": "@daily"}), "params", "it is required"),
        (with("params", json!("true")), "params", "it must be an object, not a string"),
        (with("params", json!({"command": "x".repeat(300_000)})), "params", "at most 262144"),
        (with("name", json!("a/b")), "name", "only A-Z a-z 0-9"),
        (with("name", json!("..")), "name", "directories"),
        (with("namespace", json!("*")), "namespace", "only A-Z a-z 0-9"),
        (with("schedule", json!("* * *")), "schedule", "3 fields"),
        (with("schedule", json!("0 0 30 2 *")), "schedule", "can never fire"),
        (with("schedule", json!("x".repeat(2_000))), "schedule", "at most 1024"),
        (with("timezone", json!("Mars/Olympus")), "timezone", "unknown"),
        (with("executor", json!("rocket")), "executor", "this node has no executor \"rocket\"; it has: shell"),
        (with("timeout", json!("0s")), "timeout", "0s is out of bounds: allowed are 1ms to 365d"),
        (with("timeout", json!(5)), "timeout", "a duration such as \"90s\", not a number"),
        (with("retry", json!({"max_attempts": 0})), "retry.max_attempts", "from 1 to 100, not 0"),
        (with("retry", json!({"max_attempts": 1.5})), "retry.max_attempts", "not 1.5"),
        (with("retry", json!({"backoff": "1h", "max_backoff": "1m"})), "retry.max_backoff", "shorter than backoff"),
        (with("retry", json!([])), "retry", "it must be an object, not an array"),
        (with("start_at", json!("2027-13-01T00:00:00Z")), "start_at", "is not an RFC 3339 time"),
        (with("labels", json!(many_labels)), "labels", "at most 64"),
        (with("overlap", json!("SKIP")), "overlap", "one of skip, delay, replace, allow, not \"SKIP\""),
        (with("expect", json!({})), "expect", "it expects nothing: give start_within"),
        (with("expect", json!({"start_within": "0s"})), "expect.start_within", "allowed are 1s to 7d"),
        (with("expect", json!({"finish_by": "25:00"})), "expect.finish_by", "\"25:00\" is not a time of day"),
        (with("expect", json!({"until": "1h"})), "expect.until", "there is no such field"),
        (
            with("expect", json!({"start_within": "2h", "finish_within": "1h"})),
            "expect.finish_within",
            "it is shorter than start_within",
        ),
        (with("ping", json!("hc-ping.com/1")), "ping", "it must be a URL that begins with https:// or http://"),
        (with("ping", json!({"failure": ""})), "ping.failure", "it is empty: a URL is expected"),
        (with("ping", json!({})), "ping", "it names no address"),
        (with("ping", json!({"fail": "https://a"})), "ping.fail", "there is no such field"),
        (with("ping", json!(["https://a"])), "ping", "it must be a URL or an object, not an array"),
        (with("x".repeat(500).as_str(), json!(1)), &"x".repeat(64), "there is no such field"),
    ] {
        let reply = api.call("POST", "/v1/jobs", Some(body)).await;
        assert_eq!(reply.status, 400, "{field}");
        let found = reply.json["errors"]
            .as_array()
            .unwrap()
            .iter()
            .any(|error| error["field"] == field && error["message"].as_str().unwrap().contains(said));
        assert!(found, "{field}: {said} not in {}", reply.json);
    }
    let ended =
        json!({"name": "a", "schedule": "@daily", "params": {"command": "x"}, "end_at": "2026-01-01T00:00:00Z"});
    assert_eq!(api.call("POST", "/v1/jobs", Some(ended)).await.status, 422, "its due times have all passed");
}

#[tokio::test]
async fn names_and_namespaces_must_agree() {
    let api = Api::new().await;
    for (path, body, field) in [
        ("/v1/jobs/a", json!({"name": "b"}), "name"),
        ("/v1/jobs/a?namespace=x", json!({"namespace": "y"}), "namespace"),
        ("/v1/jobs/a?namespace=a/b", json!({}), "namespace"),
        ("/v1/jobs/a?namespace=x&namespace=x", json!({}), "namespace"),
        ("/v1/jobs/a?force=1", json!({}), "force"),
    ] {
        let mut whole = job("a");
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let reply = api.call("PUT", path, Some(whole)).await;
        assert_eq!((reply.status.as_u16(), reply.faults()), (400, vec![field]), "{path}");
    }
    let reply = api.call("PUT", "/v1/jobs/a?namespace=x", Some(job("a"))).await;
    assert_eq!(reply.json["namespace"], "x", "the query is enough");
    let mut elsewhere = job("a");
    elsewhere["namespace"] = json!("y");
    assert_eq!(api.call("POST", "/v1/jobs", Some(elsewhere)).await.header("location"), "/v1/jobs/a?namespace=y");
}

#[tokio::test]
async fn lost_updates_are_refused() {
    let api = Api::new().await;
    let put = |schedule: &str, header: Option<(&'static str, &'static str)>| {
        let mut body = job("a");
        body["schedule"] = json!(schedule);
        let headers: Vec<_> = header.into_iter().collect();
        let api = &api;
        async move { api.call_with(&headers, "PUT", "/v1/jobs/a", Some(body)).await.status.as_u16() }
    };
    assert_eq!(put("@daily", Some(("if-match", "\"1\""))).await, 412, "there is none");
    assert_eq!(put("@daily", Some(("if-match", "*"))).await, 412, "there is none");
    assert_eq!(put("@daily", Some(("if-none-match", "*"))).await, 201);
    assert_eq!(put("@daily", Some(("if-none-match", "*"))).await, 412, "there is one");
    assert_eq!(put("@hourly", Some(("if-match", "\"1\""))).await, 200);
    assert_eq!(put("@weekly", Some(("if-match", "\"1\""))).await, 412, "it is at 2");
    assert_eq!(put("@weekly", Some(("if-match", "*"))).await, 200);
    assert_eq!(put("@weekly", Some(("if-match", "3"))).await, 400, "no quotes");
    assert_eq!(put("@monthly", None).await, 200);
    let delete = |tag: &'static str| {
        let api = &api;
        async move { api.call_with(&[("if-match", tag)], "DELETE", "/v1/jobs/a", None).await.status.as_u16() }
    };
    assert_eq!(delete("\"1\"").await, 412);
    assert_eq!(delete("nonsense").await, 400);
    assert_eq!(delete("\"4\"").await, 204);
}

#[tokio::test]
async fn secrets_are_kept_and_never_shown() {
    let api = Api::new().await;
    let params = |secret: Value| json!({"params": {"command": "x", "env": {"PASSWORD": secret, "USER": "app"}}});
    let created = api.job("a", params(json!({"value": "hush", "secret": true}))).await;
    assert_eq!(created.json["params"]["env"], json!({"PASSWORD": {"secret": true}, "USER": "app"}));
    let listed = api.call("GET", "/v1/jobs", None).await;
    assert!(!String::from_utf8_lossy(&listed.body).contains("hush"));
    let mut edited = api.call("GET", "/v1/jobs/a", None).await.json;
    edited["schedule"] = json!("@daily");
    let put = api.call("PUT", "/v1/jobs/a", Some(edited)).await;
    assert_eq!((put.status.as_u16(), put.json["generation"].as_u64()), (200, Some(2)), "{}", put.json);
    use carillon_store::{ControlStore, JobKey};
    let key = JobKey { namespace: "default".into(), name: "a".into() };
    assert!(api.store.job(&key).await.unwrap().job.params.contains("hush"), "the value is still stored");
    let mut moved = job("b");
    moved["params"] = params(json!({"secret": true}))["params"].clone();
    let refused = api.call("PUT", "/v1/jobs/b", Some(moved.clone())).await;
    assert_eq!((refused.status.as_u16(), refused.faults()), (400, vec!["params.env.PASSWORD"]));
    assert_eq!(api.call("POST", "/v1/jobs", Some(moved)).await.status, 400);
}

#[tokio::test]
async fn a_job_is_paused_and_resumed() {
    let mut api = Api::new().await;
    api.job("a", json!({})).await;
    api.parts.asks.recv().await;
    let body = json!({"reason": "migration", "until": "2027-01-02T00:00:00Z"});
    let paused = api.call("POST", "/v1/jobs/a/pause", Some(body)).await;
    assert_eq!(paused.status, 200);
    let expected = json!({
        "since": "2027-01-01T00:00:00.000Z", "until": "2027-01-02T00:00:00.000Z", "reason": "migration",
    });
    assert_eq!((&paused.json["paused"], &paused.json["pause"]), (&json!(true), &expected));
    assert_eq!(api.parts.asks.recv().await, Some(Ask::Look));
    let resumed = api.call("POST", "/v1/jobs/a/resume", Some(json!({}))).await;
    assert_eq!((&resumed.json["paused"], &resumed.json["pause"]), (&json!(false), &Value::Null));
    for (path, body, status) in [
        ("/v1/jobs/a/pause", None, 200),
        ("/v1/jobs/a/pause", Some(json!({"until": "2026-01-01T00:00:00Z"})), 400),
        ("/v1/jobs/a/pause", Some(json!({"until": "soon"})), 400),
        ("/v1/jobs/a/pause", Some(json!({"reason": 1})), 400),
        ("/v1/jobs/a/pause", Some(json!({"reason": "x".repeat(1_001)})), 400),
        ("/v1/jobs/a/pause", Some(json!({"reason": "a\nb"})), 400),
        ("/v1/jobs/a/pause", Some(json!({"why": "x"})), 400),
        ("/v1/jobs/a/pause", Some(json!([])), 400),
        ("/v1/jobs/a/resume", Some(json!({"x": 1})), 400),
        ("/v1/jobs/none/pause", None, 404),
        ("/v1/jobs/none/resume", None, 404),
        ("/v1/jobs/a/resume?namespace=other", None, 404),
    ] {
        let shown = format!("{path} {body:?}");
        assert_eq!(api.call("POST", path, body).await.status, status, "{shown}");
    }
}

#[tokio::test]
async fn a_database_that_is_away_says_what_became_of_the_request() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for (fault, outcome) in
        [(Fault::Refused, "not_applied"), (Fault::NeverSent, "unknown"), (Fault::AnswerLost, "unknown")]
    {
        for (method, path, body) in [
            ("POST", "/v1/jobs", Some(job("b"))),
            ("PUT", "/v1/jobs/a", Some(job("a"))),
            ("GET", "/v1/jobs/a", None),
            ("GET", "/v1/jobs", None),
            ("GET", "/v1/jobs/a/next", None),
            ("GET", "/v1/jobs/a/runs", None),
            ("GET", "/v1/runs", None),
            ("GET", "/v1/cluster", None),
            ("POST", "/v1/cluster/accept", None),
            ("POST", "/v1/jobs/a/pause", None),
            ("POST", "/v1/jobs/a/resume", None),
            ("POST", "/v1/jobs/a/run", None),
            ("POST", "/v1/jobs:batch", Some(json!({"items": [job("c")]}))),
            ("POST", "/v1/schedules/explain", Some(json!({"schedule": "@daily"}))),
            ("DELETE", "/v1/jobs/a", None),
        ] {
            api.store.faults().choose(move |_| Some(fault));
            let reply = api.call(method, path, body).await;
            api.store.faults().clear();
            if fault == Fault::AnswerLost && method == "DELETE" {
                continue;
            }
            let shown = format!("{fault:?} {method} {path} {}", reply.json);
            if reply.status != 503 {
                assert_eq!(fault, Fault::AnswerLost, "{shown}");
                continue;
            }
            assert_eq!(reply.json["outcome"], outcome, "{shown}");
        }
    }
}
