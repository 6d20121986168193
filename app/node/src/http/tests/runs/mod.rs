//! Runs: asking for one, watching it, cancelling it, reading what it left.

mod params;
mod why;

use std::time::Duration;

use carillon_domain::run::Status;
use carillon_store::{ControlStore, Output};
use serde_json::{Value, json};
use warp::hyper::body::Bytes;

use super::Api;
use crate::engine::{Ask, Readiness};

fn printed(bytes: &[u8]) -> Output {
    Output { bytes: bytes.to_vec(), truncated: false }
}

#[tokio::test]
async fn a_run_is_asked_for_watched_and_read() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let asked = api.call("POST", "/v1/jobs/a/run", None).await;
    assert_eq!(asked.status, 202);
    let path = format!("/v1/runs/{}", asked.json["id"].as_str().unwrap());
    assert_eq!(asked.header("location"), path);
    let waiting = api.call("GET", &path, None).await;
    assert_eq!((waiting.json["status"].as_str(), waiting.json["trigger"].as_str()), (Some("waiting"), Some("manual")));
    let again = api.call("POST", "/v1/jobs/a/run", None).await;
    assert_eq!(again.status, 409, "one waits already");
    assert_eq!(api.call("POST", &format!("{path}/cancel"), None).await.status, 200, "it never started");

    let (at, held) = api.started("a").await;
    let path = format!("/v1/runs/{}", held.run);
    api.engine.begin_output(held.run);
    api.engine.add_output(held.run, b"hello ");
    let running = api.call("GET", &path, None).await;
    assert_eq!((&running.json["status"], &running.json["output"]), (&json!("running"), &json!("hello ")));
    assert_eq!((&running.json["node"], &running.json["lag_ms"]), (&json!("n1"), &json!(0)));
    let measured = ["claimed_at", "cpu_ms", "peak_memory_bytes"];
    assert_eq!(measured.map(|name| &running.json[name]), [&Value::Null; 3], "it is known at the end");
    let job = api.call("GET", "/v1/jobs/a", None).await;
    assert_eq!((&job.json["state"], &job.json["current_run"]["id"]), (&json!("executing"), &running.json["id"]));
    let listed = api.call("GET", "/v1/runs?status=running", None).await;
    assert_eq!(listed.json["items"][0]["id"], running.json["id"]);
    assert!(listed.json["items"][0].get("output").is_none(), "lists have no output");

    api.finish(at, Status::Failed, printed(b"hello w\xf6rld")).await.unwrap();
    api.engine.end_output(held.run);
    let ended = api.call("GET", &path, None).await;
    assert_eq!((&ended.json["status"], &ended.json["output"]), (&json!("failed"), &json!("hello w\u{fffd}rld")));
    assert_eq!(ended.json["output_truncated"], false);
    let claimed_at = json!((api.store.now().await.unwrap() - Duration::from_secs(3)).to_string());
    assert_eq!(measured.map(|name| &ended.json[name]), [&claimed_at, &json!(1_250), &json!(20_971_520)]);
    let raw = api.call("GET", &format!("{path}/output"), None).await;
    assert_eq!((raw.header("content-type"), raw.body.as_slice()), ("application/octet-stream", &b"hello w\xf6rld"[..]));
    let job = api.call("GET", "/v1/jobs/a", None).await;
    assert_eq!((&job.json["last_run"]["id"], &job.json["current_run"]), (&running.json["id"], &Value::Null));
    assert_eq!(api.call("POST", &format!("{path}/cancel"), None).await.status, 409, "it has ended");
}

#[tokio::test]
async fn a_job_that_runs_says_what_comes_next() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("once", json!({"schedule": "@at 2027-01-01T01:00:00Z"})).await;
    api.clock.advance(std::time::Duration::from_secs(3_600));
    for claimed in api.claimed().await {
        api.store_start(&claimed).await;
    }
    for (name, next) in [("a", json!("2027-01-01T02:00:00.000Z")), ("once", Value::Null)] {
        let job = api.call("GET", &format!("/v1/jobs/{name}"), None).await.json;
        assert_eq!((&job["state"], &job["next_due_at"]), (&json!("executing"), &next), "{name}");
        assert_eq!(job["previous_due_at"], "2027-01-01T01:00:00.000Z");
    }
}

/// Firings that fell due while an earlier run of the backlog lived has its record.
#[tokio::test]
async fn the_last_run_of_a_backlog_says_what_comes_after_what_is_recorded() {
    let api = Api::new().await;
    api.job("a", json!({"misfire": {"policy": "catch_up", "grace": "1s"}})).await;
    api.clock.advance(std::time::Duration::from_secs(2 * 3_600 + 1_800));
    for next in ["2027-01-01T02:00:00.000Z", "2027-01-01T04:00:00.000Z"] {
        let claimed = api.claimed().await.remove(0);
        api.store_start(&claimed).await;
        let job = api.call("GET", "/v1/jobs/a", None).await.json;
        assert_eq!((&job["state"], &job["next_due_at"]), (&json!("executing"), &json!(next)), "{job}");
        api.clock.advance(std::time::Duration::from_secs(3_600));
        api.finish(claimed.at, Status::Succeeded, printed(b"")).await.unwrap();
    }
}

#[tokio::test]
async fn a_running_run_is_cancelled() {
    let mut api = Api::new().await;
    api.job("a", json!({})).await;
    let (_, held) = api.started("a").await;
    while api.parts.asks.try_recv().is_ok() {}
    let cancelled = api.call("POST", &format!("/v1/runs/{}/cancel", held.run), Some(json!({}))).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json["cancelling"]), (202, &json!(true)));
    assert_eq!(api.parts.asks.recv().await, Some(Ask::Cancel(held.run)));
}

#[tokio::test]
async fn runs_that_are_not_there_are_told() {
    let api = Api::new().await;
    for (method, path, status) in [
        ("GET", "/v1/runs/8000000000000007-ffff", 404),
        ("GET", "/v1/runs/8000000000000007-ffff/output", 404),
        ("GET", "/v1/runs/8000000000000007-ffff/output?follow=true", 404),
        ("GET", "/v1/runs/8000000000000007-ffff/output?follow=1", 400),
        ("POST", "/v1/runs/8000000000000007-ffff/cancel", 404),
        ("GET", "/v1/runs/..", 400),
        ("GET", "/v1/runs/%00", 400),
        ("GET", "/v1/runs/nonsense/output", 400),
        ("POST", "/v1/runs/nonsense/cancel", 400),
        ("POST", "/v1/jobs/none/run", 404),
        ("GET", "/v1/jobs/none/runs", 404),
        ("GET", "/v1/runs?status=waiting", 400),
        ("GET", "/v1/runs?since=yesterday", 400),
        ("GET", "/v1/runs?cursor=6a3a612f62", 400),
    ] {
        assert_eq!(api.call(method, path, None).await.status, status, "{method} {path}");
    }
}

#[tokio::test]
async fn runs_are_listed_newest_first_in_pages() {
    let api = Api::new().await;
    for name in ["a", "b"] {
        api.job(name, json!({})).await;
    }
    let mut expected = Vec::new();
    for (round, name) in ["a", "b", "a", "a"].into_iter().enumerate() {
        api.clock.advance(std::time::Duration::from_secs(60));
        let (at, held) = api.started(name).await;
        let status = if round == 2 { Status::Failed } else { Status::Succeeded };
        api.finish(at, status, Output::default()).await.unwrap();
        expected.insert(0, (name, held.run.to_string()));
    }
    let ids = |reply: &Value| -> Vec<String> {
        reply["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<_> = expected.iter().map(|(_, id)| id.clone()).collect();
    let of_a: Vec<_> = expected.iter().filter(|(name, _)| *name == "a").map(|(_, id)| id.clone()).collect();
    assert_eq!(ids(&api.call("GET", "/v1/runs", None).await.json), all);
    assert_eq!(ids(&api.call("GET", "/v1/jobs/a/runs", None).await.json), of_a);
    assert_eq!(ids(&api.call("GET", "/v1/runs?status=failed", None).await.json), of_a[1..2]);
    assert_eq!(ids(&api.call("GET", "/v1/runs?since=2027-01-01T00:04:00Z", None).await.json), all[..1]);
    assert_eq!(ids(&api.call("GET", "/v1/runs?until=2027-01-01T00:02:00Z", None).await.json), all[3..]);
    assert_eq!(ids(&api.call("GET", "/v1/runs?namespace=prod", None).await.json), Vec::<String>::new());
    let first = api.call("GET", "/v1/runs?limit=3", None).await.json;
    assert_eq!(ids(&first), all[..3]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = api.call("GET", &format!("/v1/runs?limit=3&cursor={cursor}"), None).await.json;
    assert_eq!((ids(&second), &second["next_cursor"]), (all[3..].to_vec(), &Value::Null));
}

#[tokio::test]
async fn output_is_followed_until_the_run_ends() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let (at, held) = api.started("a").await;
    api.engine.begin_output(held.run);
    api.engine.add_output(held.run, b"one\n");
    let path = format!("/v1/runs/{}/output?follow=true", held.run);
    let follower = api.call("GET", &path, None);
    let rest = async {
        // Without a reader the chunks are kept, so that it does not matter who comes first.
        api.engine.add_output(held.run, b"two\n");
        api.finish(at, Status::Succeeded, printed(b"one\ntwo\n")).await.unwrap();
        api.engine.end_output(held.run);
    };
    let (reply, ()) = tokio::join!(follower, rest);
    assert_eq!((reply.status.as_u16(), reply.body.as_slice()), (200, &b"one\ntwo\n"[..]));
    assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
    let after = api.call("GET", &path, None).await;
    assert_eq!(after.body, b"one\ntwo\n", "an ended run is answered at once");
}

#[tokio::test]
async fn a_waiting_run_is_followed_from_its_start() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let asked = api.call("POST", "/v1/jobs/a/run", None).await;
    let path = format!("/v1/runs/{}/output", asked.json["id"].as_str().unwrap());
    assert_eq!(api.call("GET", &path, None).await.body, b"", "nothing was printed yet");
    let path = format!("{path}?follow=true");
    let follower = api.call("GET", &path, None);
    let engine = async {
        let claimed = api.claimed().await;
        let (at, _) = api.store_start(&claimed[0]).await;
        let run = claimed[0].held.run;
        api.engine.begin_output(run);
        api.engine.add_output(run, b"live");
        api.engine.end_output(run);
        api.finish(at, Status::Succeeded, printed(b"live")).await.unwrap();
    };
    let (reply, ()) = tokio::join!(follower, engine);
    assert_eq!(reply.body, b"live");
}

#[tokio::test]
async fn a_follower_that_lags_is_told_so() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let (at, held) = api.started("a").await;
    api.engine.begin_output(held.run);
    let live = api.engine.live_output(held.run).unwrap();
    for _ in 0..1_000 {
        api.engine.add_output(held.run, b"x");
    }
    api.engine.end_output(held.run);
    let (reader, mut chunks) = tokio::sync::mpsc::channel::<Bytes>(1_000);
    crate::http::routes::output::pass_on(live, &reader).await;
    drop(reader);
    let mut text = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        text.extend_from_slice(&chunk);
    }
    assert!(String::from_utf8_lossy(&text).contains("pieces of output were left out"));
    api.finish(at, Status::Succeeded, Output::default()).await.unwrap();
}

#[tokio::test]
async fn the_node_tells_about_itself() {
    let api = Api::new().await;
    let cluster = api.call("GET", "/v1/cluster", None).await;
    let session = &cluster.json["items"][0];
    assert_eq!((&session["node"], &session["state"]), (&json!("n1"), &json!("live")));
    assert_eq!(session["id"], api.engine.session().to_string());
    let executors = api.call("GET", "/v1/executors", None).await;
    assert_eq!(executors.json["items"][0]["name"], "shell");
    assert_eq!(api.call("GET", "/healthz", None).await.json, json!({"status": "ok"}));
    let ready = api.call("GET", "/readyz", None).await;
    assert_eq!((ready.status.as_u16(), &ready.json["detail"]), (503, &json!("the node is starting")));
    api.parts.readiness.send(Readiness::Ready).unwrap();
    assert_eq!(api.call("GET", "/readyz", None).await.status, 200);
    let metrics = api.call("GET", "/metrics", None).await;
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("carillon_ready 1") && text.contains("process_resident_memory_bytes "), "{text}");
}
