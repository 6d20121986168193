//! Output of a run at another node.

use std::sync::Arc;

use carillon_domain::id::SessionId;
use carillon_domain::node::port::{RunRef, StartAnswer};
use carillon_domain::run::{Ending, Status};
use carillon_store::{ClaimRequest, Finished, LivePart, Me, NewSession, NodeStore, Output, PeekRequest};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Api, ApiState, Hosts, Tokens, start_of_2027};

/// Another node that runs a job, as its engine would.
struct Other<'a> {
    api: &'a Api,
    session: SessionId,
    at: RunRef,
}

impl<'a> Other<'a> {
    async fn runs(api: &'a Api) -> Other<'a> {
        let session = SessionId::from_random(8);
        let new = NewSession { id: session, node: "n2".into(), address: "n2:7650".into(), version: "0".into() };
        api.store.open_session(&new).await.unwrap();
        api.job("a", json!({})).await;
        assert_eq!(api.call("POST", "/v1/jobs/a/run", None).await.status, 202);
        let claim = ClaimRequest {
            me: Me::new(session),
            partitions: (0..4).collect(),
            until: start_of_2027(),
            runs: vec![api.engine.draw_run_id()],
            places: 0,
            executors: vec!["shell".into()],
        };
        let claimed = api.store.claim(&claim).await.unwrap();
        let started = api.store.start(Me::new(session), &[claimed[0].at]).await.unwrap().remove(0);
        let StartAnswer::Started { at, .. } = started else { panic!("{started:?}") };
        Self { api, session, at }
    }

    fn path(&self) -> String {
        format!("/v1/runs/{}/output", self.at.run)
    }

    /// Publishes as soon as somebody asks.
    async fn publish(&self, written: u64, tail: &str) {
        let until = start_of_2027();
        let look = PeekRequest { session: self.session, partitions: Vec::new(), until, executors: Vec::new() };
        while self.api.store.peek(&look).await.unwrap().wanted_outputs.is_empty() {
            tokio::task::yield_now().await;
        }
        let part = LivePart { written, tail: tail.into() };
        self.api.store.publish_output(&[(self.at.run, part)]).await.unwrap();
    }

    async fn finish(&self, output: &str) {
        let ended_at = start_of_2027();
        let ending = Ending { exit_code: Some(0), ..Ending::new(Status::Succeeded, ended_at) };
        let output = Output { bytes: output.into(), truncated: false };
        let finished = Finished { at: self.at, ending, next: None, output: output.into() };
        self.api.store.finish(Me::new(self.session), &[finished], &[]).await.unwrap();
    }

    /// A reader at this node, and what it gets.
    fn follow(&self) -> mpsc::Receiver<warp::hyper::body::Bytes> {
        let hosts = Hosts::new("127.0.0.1:7650".parse().unwrap(), &[]);
        let store = Arc::new(self.api.store.clone());
        let state = ApiState::new(store, self.api.engine.clone(), Tokens::configured(&[]), hosts);
        let (reader, chunks) = mpsc::channel(16);
        let run = self.at.run;
        tokio::spawn(async move { crate::http::routes::output::follow(&state, run, &reader).await });
        chunks
    }
}

#[tokio::test]
async fn what_was_printed_so_far_is_told_by_the_node_that_runs_it() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let path = other.path();
    let (reply, ()) = tokio::join!(api.call("GET", &path, None), other.publish(3, "one"));
    assert_eq!((reply.status.as_u16(), reply.body.as_slice()), (200, &b"one"[..]));
    assert_eq!(reply.header("carillon-output-truncated"), "false");
    other.publish(100, "two").await;
    let reply = api.call("GET", &path, None).await;
    assert_eq!((reply.body.as_slice(), reply.header("carillon-output-truncated")), (&b"two"[..], "true"));
    other.finish("one two").await;
    assert_eq!(api.call("GET", &path, None).await.body, b"one two");
}

#[tokio::test]
async fn a_run_is_shown_with_what_it_printed_at_another_node() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let path = format!("/v1/runs/{}", other.at.run);
    let (reply, ()) = tokio::join!(api.call("GET", &path, None), other.publish(100, "one"));
    assert_eq!((&reply.json["status"], &reply.json["node"]), (&json!("running"), &json!("n2")));
    assert_eq!((&reply.json["output"], &reply.json["output_truncated"]), (&json!("one"), &json!(true)));
}

#[tokio::test]
async fn a_node_that_tells_nothing_is_named() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let shown = api.call("GET", &format!("/v1/runs/{}", other.at.run), None).await;
    assert_eq!((&shown.json["status"], &shown.json["output"]), (&json!("running"), &json!(null)));
    let reply = api.call("GET", &other.path(), None).await;
    assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (503, "1"));
    let told = reply.json["detail"].as_str().unwrap();
    assert_eq!(told, "the run is on n2, which has not told its output within 3 s; ask again");
}

#[tokio::test]
async fn a_run_that_ends_while_its_node_is_asked_is_answered_from_its_record() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let path = other.path();
    let (reply, ()) = tokio::join!(api.call("GET", &path, None), other.finish("all of it"));
    assert_eq!((reply.status.as_u16(), reply.body.as_slice()), (200, &b"all of it"[..]));
}

#[tokio::test]
async fn a_reader_gets_each_part_before_the_run_ends_and_then_the_rest() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let mut chunks = other.follow();
    for (written, tail, news) in [(4, "one\n", "one\n"), (8, "one\ntwo\n", "two\n")] {
        other.publish(written, tail).await;
        assert_eq!(chunks.recv().await.unwrap(), news);
    }
    other.finish("one\ntwo\nthree\n").await;
    assert_eq!(chunks.recv().await.unwrap(), "three\n");
    assert_eq!(chunks.recv().await, None);
}

#[tokio::test]
async fn a_reader_does_not_outlast_the_node_that_ran_it() {
    let api = Api::new().await;
    let other = Other::runs(&api).await;
    let mut chunks = other.follow();
    other.publish(4, "one\n").await;
    assert_eq!(chunks.recv().await.unwrap(), "one\n");
    assert!(api.store.expire(None, other.session, 0).await.unwrap());
    api.store.sweep(other.session, 10).await.unwrap();
    let mut rest = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        rest.extend_from_slice(&chunk);
    }
    assert_eq!(String::from_utf8(rest).unwrap(), "\n[some output was left out here]\n", "nothing was kept of it");
}
