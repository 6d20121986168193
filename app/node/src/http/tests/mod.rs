//! The API against the memory store: what every route answers to good, bad and hostile requests.

mod access;
mod alerts;
mod audit;
mod batch;
mod cluster;
mod contract;
mod elsewhere;
mod events;
mod hostile;
mod jobs;
mod listing;
mod page;
mod runs;
mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::firing::Held;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::measured::{ClaimedAt, Usage};
use carillon_domain::node::port::{Claimed, RunRef, StartAnswer};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::Timestamp;
use carillon_doubles::{MemoryStore, memory_store};
use carillon_executors::executor::{Executor, ExecutorDescription, Exit, Live, Outcome, RunFacts};
use carillon_executors::registry::Executors;
use carillon_store::{ClaimRequest, Finished, ManualClock, Me, NewSession, NodeStore, Output, StoreError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use warp::filters::BoxedFilter;
use warp::http::{HeaderMap, StatusCode};
use warp::reply::Response;

use super::{ApiState, Hosts, Tokens, routes};
use crate::config::{Role, TokenConfig, TokenDigest};
use crate::engine::{EngineHandle, HandleParts};

/// Runs nothing; knows what a command is.
struct Shell;

#[async_trait]
impl Executor for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> ExecutorDescription {
        ExecutorDescription { version: "1".into(), abi: None, params_schema: None, plugin: None }
    }

    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>> {
        match params.get("command") {
            Some(Value::String(_)) => Ok(()),
            _ => Err(vec![("params.command".into(), "it must be a string".into())]),
        }
    }

    async fn run(&self, _: RunFacts, _: Live, _: CancellationToken) -> Exit {
        Exit { exit_code: Some(0), reason: None, ..Exit::without_process(Outcome::Succeeded, "") }
    }
}

/// An API over an empty store at 2027-01-01T00:00:00Z, with the tokens `admin`, `operator`, `viewer`, `prod` and `two`. The token
/// `prod` is an admin of the namespace prod, `two` a viewer of prod and team.
pub struct Api {
    pub store: MemoryStore,
    pub clock: ManualClock,
    pub engine: EngineHandle,
    pub parts: HandleParts,
    pub routes: BoxedFilter<(Response,)>,
}

/// An answer, its body parsed where it is JSON.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub json: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The fields that are at fault, in order.
    pub fn faults(&self) -> Vec<&str> {
        self.json["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect()
    }
}

pub fn token(name: &str, role: Role, namespaces: Option<Vec<String>>) -> TokenConfig {
    use sha2::Digest;
    let sha256 = Some(TokenDigest(sha2::Sha256::digest(name).into()));
    TokenConfig { name: name.into(), sha256, certificate: None, role, namespaces }
}

pub fn start_of_2027() -> Timestamp {
    Timestamp::parse_rfc3339("2027-01-01T00:00:00Z").unwrap()
}

impl Api {
    pub async fn new() -> Self {
        let clock = ManualClock::at(start_of_2027());
        let store = memory_store(Arc::new(clock.clone()), 4);
        let session = SessionId::from_random(7);
        let executors = Executors::new(Duration::ZERO);
        executors.offer(Arc::new(Shell));
        let (engine, parts) = EngineHandle::new(session, "n1".into(), executors);
        let new = NewSession { id: session, node: "n1".into(), address: "127.0.0.1:7650".into(), version: "0".into() };
        store.open_session(&new).await.unwrap();
        let tokens = Tokens::configured(&[
            token("admin", Role::Admin, None),
            token("operator", Role::Operator, None),
            token("viewer", Role::Viewer, None),
            token("prod", Role::Admin, Some(vec!["prod".into()])),
            token("two", Role::Viewer, Some(vec!["prod".into(), "team".into()])),
        ]);
        let hosts = Hosts::new("127.0.0.1:7650".parse().unwrap(), &[]);
        let mut state = ApiState::new(Arc::new(store.clone()), engine.clone(), tokens, hosts);
        state.partitions = Some(4);
        Self { store, clock, engine, parts, routes: routes(Arc::new(state)) }
    }

    /// A request as the admin's client sends it.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        self.call_as("admin", &[], method, path, body.map(|body| body.to_string().into_bytes())).await
    }

    pub async fn call_with(&self, headers: &[(&str, &str)], method: &str, path: &str, body: Option<Value>) -> Reply {
        self.call_as("admin", headers, method, path, body.map(|body| body.to_string().into_bytes())).await
    }

    /// A request with any body; `token` may be empty.
    pub async fn call_as(
        &self,
        token: &str,
        headers: &[(&str, &str)],
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Reply {
        let mut request = warp::test::request().method(method).path(path).header("host", "localhost:7650");
        if method != "GET" && method != "HEAD" {
            request = request.header("content-type", "application/json");
        }
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.reply(&self.routes).await;
        let body = response.body().to_vec();
        let reply = Reply {
            status: response.status(),
            headers: response.headers().clone(),
            json: serde_json::from_slice(&body).unwrap_or_default(),
            body,
        };
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{method} {path}");
        contract::check(method, path, &reply);
        if reply.status.is_client_error() || reply.status.is_server_error() {
            assert_eq!(reply.header("content-type"), "application/problem+json", "{method} {path}");
            assert_eq!(reply.json["status"], reply.status.as_u16());
            assert!(!reply.json["detail"].as_str().unwrap().is_empty());
            assert!(
                reply.json["errors"].is_array() && reply.json["type"].is_string() && reply.json["title"].is_string()
            );
        }
        reply
    }

    /// A stored job, due every hour, from the fields that it needs and `more`.
    pub async fn job(&self, name: &str, more: Value) -> Reply {
        let mut body = job(name);
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let namespace = body["namespace"].as_str().unwrap_or("default").to_owned();
        let reply = self.call("PUT", &format!("/v1/jobs/{name}?namespace={namespace}"), Some(body)).await;
        assert!(reply.status.is_success(), "{}", reply.json);
        reply
    }

    /// Asks for a run of a job and starts it as the engine would.
    pub async fn started(&self, name: &str) -> (RunRef, Held) {
        self.clock.advance(Duration::from_secs(1));
        let reply = self.call("POST", &format!("/v1/jobs/{name}/run"), None).await;
        let run: RunId = reply.json["id"].as_str().unwrap().parse().unwrap();
        let claimed = self.claimed().await;
        let claimed = claimed.iter().find(|claimed| claimed.held.run == run).unwrap();
        self.store_start(claimed).await
    }

    pub async fn claimed(&self) -> Vec<Claimed> {
        use carillon_store::ControlStore;
        let request = ClaimRequest {
            me: Me::new(self.engine.session()),
            partitions: (0..4).collect(),
            until: self.store.now().await.unwrap(),
            runs: (0..10).map(|_| self.engine.draw_run_id()).collect(),
            places: 0,
            executors: vec!["shell".into()],
        };
        self.store.claim(&request).await.unwrap()
    }

    /// Starts what was claimed.
    pub async fn store_start(&self, claimed: &Claimed) -> (RunRef, Held) {
        let answers = self.store.start(Me::new(self.engine.session()), &[claimed.at]).await.unwrap();
        match answers.into_iter().next() {
            Some(StartAnswer::Started { at, held, .. }) => (at, held),
            other => panic!("not started: {other:?}"),
        }
    }

    pub async fn finish(&self, at: RunRef, status: Status, output: Output) -> Result<(), StoreError> {
        use carillon_store::ControlStore;
        let ended_at = self.store.now().await?;
        let claimed_at = ClaimedAt(Some(ended_at - Duration::from_secs(3)));
        let usage = Usage { cpu_ms: Some(1_250), peak_memory_kib: Some(20_480) };
        let ending = Ending { exit_code: Some(0), claimed_at, usage, ..Ending::new(status, ended_at) };
        let finished = Finished { at, ending, next: None, output: output.into() };
        self.store.finish(Me::new(self.engine.session()), &[finished], &[]).await.map(drop)
    }
}

/// A definition with nothing but what is required.
pub fn job(name: &str) -> Value {
    json!({"name": name, "schedule": "0 * * * *", "params": {"command": "true"}})
}
