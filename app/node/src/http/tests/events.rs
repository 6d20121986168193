//! `GET /v1/events`: who may read which events, and the stream of one reader.

mod pages;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::run::Status;
use carillon_executors::registry::Executors;
use serde_json::{Value, json};
use warp::hyper::body::{Body, Bytes, Frame};

use super::{Api, token};
use crate::config::Role;
use crate::engine::EngineHandle;
use crate::http::{ApiState, Hosts, Tokens, routes};

/// The stream of one reader, piece by piece.
struct Stream {
    poll: Box<Piece>,
    text: String,
}

/// The next piece, if it has come.
type Piece = dyn FnMut(&mut Context<'_>) -> Poll<Option<String>> + Send;

/// One event as it came.
#[derive(Debug, Clone, Default)]
struct Told {
    name: String,
    id: String,
    data: Value,
}

impl Told {
    /// The type, and the job or the node's state.
    fn said(&self) -> String {
        let job = self.data["job"].as_str().or(self.data["job"]["name"].as_str());
        let about = job.or(self.data["session"]["state"].as_str()).unwrap_or_default();
        format!("{} {about}", self.name)
    }
}

async fn read(api: &Api, token: &str, query: &str, last: Option<&str>) -> Stream {
    let mut request = warp::test::request().path(&format!("/v1/events{query}")).header("host", "localhost:7650");
    request = request.header("authorization", format!("Bearer {token}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = request.filter(&api.routes).await.unwrap();
    assert_eq!(response.status(), 200);
    for (name, value) in
        [("content-type", "text/event-stream"), ("x-accel-buffering", "no"), ("cache-control", "no-store")]
    {
        assert_eq!(response.headers()[name], value);
    }
    let mut body = Box::pin(response.into_body());
    let text = |frame: Frame<Bytes>| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    let poll = move |context: &mut Context<'_>| {
        body.as_mut().poll_frame(context).map(|frame| frame.map(|frame| text(frame.unwrap())))
    };
    Stream { poll: Box::new(poll), text: String::new() }
}

impl Stream {
    /// The next block of the stream; `None` at its end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let next = poll_fn(|context| (self.poll)(context));
            let piece = tokio::time::timeout(Duration::from_secs(30), next).await.expect("something is told")?;
            self.text.push_str(&piece);
        }
    }

    /// The next event, or the id of a block without one.
    async fn told(&mut self) -> Option<Told> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| {
                let found = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                found.unwrap_or_default().to_owned()
            };
            let told = Told {
                name: field("event"),
                id: field("id"),
                data: serde_json::from_str(&field("data")).unwrap_or_default(),
            };
            if !told.name.is_empty() {
                assert_eq!(told.data["type"], told.name.as_str(), "{block}");
                return Some(told);
            }
            if !told.id.is_empty() {
                return Some(told);
            }
        }
    }

    async fn said(&mut self, count: usize) -> Vec<String> {
        let mut said = Vec::new();
        while said.len() < count {
            said.push(self.told().await.expect("the stream goes on").said());
        }
        said
    }

    /// The mark that a reader gets before the first event.
    async fn begun(&mut self) -> String {
        let told = self.told().await.unwrap();
        assert!(told.name.is_empty() && !told.id.is_empty(), "{told:?}");
        told.id
    }
}

/// The API of another node on the same database.
fn another_node(api: &Api) -> Api {
    let (engine, parts) =
        EngineHandle::new(SessionId::from_random(8), "n2".into(), Executors::new(Duration::from_secs(1)));
    let tokens = Tokens::configured(&[token("viewer", Role::Viewer, None), token("admin", Role::Admin, None)]);
    let hosts = Hosts::new("127.0.0.1:7650".parse().unwrap(), &[]);
    let state = ApiState::new(Arc::new(api.store.clone()), engine.clone(), tokens, hosts);
    let routes = routes(Arc::new(state));
    Api { store: api.store.clone(), clock: api.clock.clone(), engine, parts, routes }
}

/// The newest run as a listing shows it.
async fn listed(api: &Api) -> Value {
    api.call("GET", "/v1/runs", None).await.json["items"][0].clone()
}

/// Runs a job once.
async fn run_once(api: &Api, name: &str) {
    let (at, _) = api.started(name).await;
    api.finish(at, Status::Succeeded, Default::default()).await.unwrap();
}

#[tokio::test]
async fn a_query_is_checked_and_a_token_keeps_to_its_namespaces() {
    let api = Api::new().await;
    for (query, faults) in [
        ("?types=run.ended,nonsense", vec!["types"]),
        ("?types=", vec!["types"]),
        ("?job=a%2Fb", vec!["job"]),
        ("?namespace=*&job=a", vec!["job"]),
        ("?namespace=a%2Fb", vec!["namespace"]),
        ("?until=1", vec!["until"]),
    ] {
        let reply = api.call("GET", &format!("/v1/events{query}"), None).await;
        assert_eq!((reply.status.as_u16(), reply.faults()), (400, faults), "{query}");
    }
    let wrong = api.call("GET", "/v1/events?types=nonsense", None).await;
    let known = "run.started, run.ended, run.skipped, job.changed, session.changed, alert, audit.written";
    assert!(wrong.json["detail"].as_str().unwrap().contains(known), "{}", wrong.json);
    for (token, query, status) in [
        ("", "", 401),
        ("nobody", "", 401),
        ("prod", "", 403),
        ("prod", "?namespace=default&job=a", 403),
        ("two", "?namespace=default", 403),
    ] {
        let reply = api.call_as(token, &[], "GET", &format!("/v1/events{query}"), None).await;
        assert_eq!(reply.status.as_u16(), status, "{token} {query}");
    }
    for (token, query) in [
        ("prod", "?namespace=prod"),
        ("prod", "?namespace=*"),
        ("two", "?namespace=team"),
        ("viewer", ""),
        ("viewer", "?namespace=*"),
        ("admin", "?job=a"),
    ] {
        read(&api, token, query, None).await.begun().await;
    }
}

#[tokio::test]
async fn runs_are_told_as_they_are_listed() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let mut stream = read(&api, "viewer", "", None).await;
    assert_eq!(stream.block().await.unwrap(), "retry: 2000");
    stream.begun().await;
    let (at, held) = api.started("a").await;
    let started = stream.told().await.unwrap();
    assert_eq!((started.name.as_str(), started.id.as_str()), ("run.started", ""));
    let shown = listed(&api).await;
    assert_eq!(started.data["run"], shown);
    assert_eq!(started.data["key"], format!("run:{}:started", held.run));
    assert_eq!(started.data["at"], shown["started_at"]);
    api.finish(at, Status::Failed, Default::default()).await.unwrap();
    let ended = stream.told().await.unwrap();
    let shown = listed(&api).await;
    assert_eq!((ended.name.as_str(), &ended.data["run"]), ("run.ended", &shown));
    assert_eq!((&ended.data["namespace"], &ended.data["job"]), (&json!("default"), &json!("a")));
    assert!(!ended.id.is_empty() && ended.data["at"] == shown["finished_at"], "{ended:?}");
}

#[tokio::test]
async fn a_change_of_a_job_is_told_with_its_author_and_without_its_content() {
    let api = Api::new().await;
    let mut stream = read(&api, "viewer", "?types=job.changed", None).await;
    assert_eq!(stream.block().await.unwrap(), "retry: 2000");
    stream.begun().await;
    api.job("a", json!({"params": {"command": "true", "env": {"P": {"value": "hush", "secret": true}}}})).await;
    let created = stream.block().await.unwrap();
    assert!(!created.contains("hush") && !created.contains("command"), "{created}");
    // A run that is asked for is no change of the job.
    assert_eq!(api.call("POST", "/v1/jobs/a/run", None).await.status, 202);
    assert_eq!(api.call("DELETE", "/v1/jobs/a", None).await.status, 204);
    let deleted = stream.told().await.unwrap();
    let log = api.call("GET", "/v1/audit", None).await.json;
    let shown = &log["items"][0];
    assert_eq!(shown["action"], "job.deleted");
    let expected = json!({
        "type": "job.changed",
        "key": deleted.data["key"],
        "at": shown["at"],
        "namespace": "default",
        "job": {"name": "a", "generation": 1},
        "action": "job.deleted",
        "who": shown["who"],
    });
    assert!(!deleted.id.is_empty() && deleted.data == expected, "{deleted:?}");
}

#[tokio::test]
async fn entries_that_change_no_job_are_told_to_those_who_ask_and_may_see_them() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("c", json!({"namespace": "prod"})).await;
    let mut of_all = read(&api, "viewer", "?namespace=*&types=audit.written", None).await;
    let mut of_prod = read(&api, "prod", "?namespace=prod&types=audit.written", None).await;
    of_all.begun().await;
    of_prod.begun().await;
    assert_eq!(api.call("POST", "/v1/jobs/a/run", None).await.status, 202);
    let route = json!({"when": ["failed"], "to": [{"type": "mail", "to": ["root@localhost"]}]});
    assert_eq!(api.call("PUT", "/v1/alerts/ops", Some(route)).await.status, 201);
    assert_eq!(api.call("POST", "/v1/jobs/c/run?namespace=prod", None).await.status, 202);
    for (action, job) in [("job.run", json!("a")), ("alert.put", json!(null)), ("job.run", json!("c"))] {
        let told = of_all.told().await.unwrap();
        assert_eq!((&told.data["action"], &told.data["job"]), (&json!(action), &job), "{told:?}");
    }
    assert_eq!(of_prod.said(1).await, ["audit.written c"], "the log of others is not told");
}

#[tokio::test]
async fn readers_get_what_they_asked_for() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("b", json!({})).await;
    api.job("c", json!({"namespace": "prod"})).await;
    api.job("d", json!({"namespace": "team"})).await;
    api.job("e", json!({"namespace": "hidden"})).await;
    let mut streams = Vec::new();
    for (token, query, expected) in [
        (
            "admin",
            "?namespace=*&types=run.started,run.ended",
            vec!["run.started a", "run.ended a", "run.started b", "run.ended b"],
        ),
        ("admin", "", vec!["run.started a", "run.ended a", "run.started b", "run.ended b"]),
        ("admin", "?job=b", vec!["run.started b", "run.ended b"]),
        ("admin", "?types=run.ended,run.skipped", vec!["run.ended a", "run.ended b"]),
        ("prod", "?namespace=prod", vec!["job.changed c", "run.skipped c", "job.changed c"]),
        (
            "viewer",
            "?namespace=*&types=job.changed",
            vec!["job.changed c", "job.changed c", "job.changed e", "job.changed d"],
        ),
        ("two", "?namespace=*&types=job.changed", vec!["job.changed c", "job.changed c", "job.changed d"]),
        ("two", "?namespace=*&types=run.ended,job.changed", vec!["job.changed c", "job.changed c", "job.changed d"]),
        ("two", "?namespace=team", vec!["job.changed d"]),
    ] {
        let mut stream = read(&api, token, query, None).await;
        stream.begun().await;
        streams.push((query, stream, expected));
    }
    run_once(&api, "a").await;
    // Each look tells what it finds in the order of the journal, so the two runs are told one after the other.
    run_once(&api, "b").await;
    assert_eq!(api.call("POST", "/v1/jobs/c/pause?namespace=prod", None).await.status, 200);
    api.clock.advance(Duration::from_secs(3 * 3_600));
    assert_eq!(api.call("POST", "/v1/jobs/c/resume?namespace=prod", None).await.status, 200);
    for (job, namespace) in [("e", "hidden"), ("d", "team")] {
        let path = format!("/v1/jobs/{job}/pause?namespace={namespace}");
        assert_eq!(api.call("POST", &path, None).await.status, 200);
    }
    for (query, mut stream, expected) in streams {
        assert_eq!(stream.said(expected.len()).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let mut first = read(&api, "viewer", "", None).await;
    let begun = first.begun().await;
    run_once(&api, "a").await;
    assert_eq!(first.said(2).await, ["run.started a", "run.ended a"]);
    drop(first);
    run_once(&api, "a").await;
    api.started("a").await;
    let runs =
        ["run.started a", "run.ended a", "run.started a", "run.ended a", "run.started a", "session.changed live"];
    let mut again = read(&api, "viewer", "", Some(&begun)).await;
    assert_eq!(again.said(6).await, runs, "and then how things stand");
    // Another node has told nobody anything.
    let other = another_node(&api);
    let mut elsewhere = read(&other, "viewer", "", Some(&begun)).await;
    assert_eq!(elsewhere.said(6).await, runs);
    let mut anew = read(&api, "viewer", "", Some("1-9")).await;
    assert_eq!(anew.told().await.unwrap().name, "reset");
    let mark = anew.begun().await;
    assert_ne!(mark, begun);
}
