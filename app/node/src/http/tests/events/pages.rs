//! Pages that follow events.

use std::time::Duration;

use carillon_domain::run::Status;
use serde_json::json;

use super::super::Api;
use super::super::page::Browser;
use super::{another_node, read, run_once};

/// The query of the events that a page follows.
async fn followed(browser: &Browser<'_>, path: &str) -> Option<String> {
    let page = browser.get(path).await;
    let (_, rest) = page.text.split_once("data-live=\"/v1/events")?;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}

#[tokio::test]
async fn a_page_follows_from_the_moment_before_it_was_read() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let alone = followed(&browser, "/jobs").await.unwrap();
    assert_eq!(alone, "?namespace=%2A", "nobody looks, so there is no position");
    let mut other = read(&api, "viewer", "", None).await;
    other.begun().await;
    let query = followed(&browser, "/jobs").await.unwrap();
    assert!(query.contains("&since="), "{query}");
    run_once(&api, "a").await;
    let (at, _) = api.started("a").await;
    let runs = ["run.started a", "run.ended a", "run.started a"];
    let mut stream = read(&api, "viewer", &query, None).await;
    assert_eq!(stream.said(3).await, runs);
    api.finish(at, Status::Succeeded, Default::default()).await.unwrap();
    assert_eq!(stream.said(1).await, ["run.ended a"], "nothing is told twice");
    // At another node the position is as good as the id of an event.
    let other = another_node(&api);
    let mut elsewhere = read(&other, "viewer", &query, None).await;
    assert_eq!(elsewhere.said(5).await, [&runs[..], &["run.ended a", "session.changed live"]].concat());
    let last = followed(&browser, "/jobs").await.unwrap();
    let (_, last) = last.split_once("since=").unwrap();
    let mut header = read(&api, "viewer", &query, Some(last)).await;
    header.begun().await;
}

#[tokio::test]
async fn a_job_that_is_paused_at_another_node_leaves_the_next_hour_once_its_event_is_told() {
    let api = Api::new().await;
    api.job("ten-minutely", json!({"schedule": "@every 10m"})).await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let mut stream = read(&api, "viewer", "?types=job.changed", None).await;
    stream.begun().await;
    assert!(browser.get("/").await.text.contains("ten-minutely"));
    assert_eq!(another_node(&api).call("POST", "/v1/jobs/ten-minutely/pause", None).await.status, 200);
    assert_eq!(stream.said(1).await, ["job.changed ten-minutely"]);
    let page = browser.get("/").await.text;
    assert!(!page.contains("ten-minutely"), "{page}");
}

#[tokio::test]
async fn the_page_of_a_token_for_some_namespaces_follows_those() {
    let api = Api::new().await;
    for token in ["prod", "two"] {
        let browser = Browser::signed_in(&api, token).await;
        for path in ["/", "/jobs", "/timeline"] {
            let query = followed(&browser, path).await.unwrap();
            let (namespaces, _) = query.split_once("&since=").unwrap_or((&query, ""));
            assert_eq!(namespaces, "?namespace=%2A", "{token} {path}");
        }
        read(&api, token, "?namespace=%2A", None).await.begun().await;
    }
}

#[tokio::test]
async fn a_notice_is_an_event_and_comes_again_to_who_resumes() {
    use carillon_store::AlertStore;
    let api = Api::new().await;
    let mut stream = read(&api, "viewer", "?types=alert", None).await;
    let mark = stream.begun().await;
    let route = json!({"when": ["failed"], "to": [{"type": "mail", "to": ["root"]}]});
    api.call("PUT", "/v1/alerts/ops", Some(route)).await;
    api.job("a", json!({})).await;
    let (at, _) = api.started("a").await;
    api.finish(at, Status::Failed, Default::default()).await.unwrap();
    api.clock.advance(Duration::from_secs(1));
    api.store.alert_step(100).await.unwrap();
    let told = stream.told().await.unwrap();
    assert_eq!((told.said().as_str(), told.id.as_str()), ("alert a", ""));
    assert_eq!((&told.data["alert"]["when"], &told.data["alert"]["state"]), (&json!("failed"), &json!("open")));
    let mut again = read(&api, "viewer", "?types=alert", Some(&mark)).await;
    assert_eq!(again.told().await.unwrap().data["key"], told.data["key"]);
}
