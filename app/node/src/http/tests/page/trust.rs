//! The screens by which people judge the cluster and each other: Cluster and Audit.

use carillon_domain::run::Status;
use carillon_store::Output;
use serde_json::json;

use super::super::Api;
use super::super::cluster::lost_commits;
use super::Browser;
use crate::engine::Readiness;

#[tokio::test]
async fn the_cluster_says_whether_it_can_be_trusted() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get("/cluster").await;
    assert!(page.status == 200 && page.text.contains("This node does not schedule"), "{}", page.text);
    api.parts.readiness.send_replace(Readiness::Ready);
    let page = browser.get("/cluster").await;
    for part in [
        "1 node schedules, and nothing was lost.",
        "n1",
        "live",
        " of 4",
        "127.0.0.1:7650",
        "shell",
        "carillon cluster",
    ] {
        assert!(page.text.contains(part), "{part:?} is missing");
    }
    assert!(page.text.contains("/v1/cluster"), "the same by program");
    api.clock.advance(std::time::Duration::from_secs(60));
    let page = browser.get("/cluster").await;
    assert!(page.text.contains("The node n1 has gone silent.") && page.text.contains("<title>(1) Cluster"));
}

#[tokio::test]
async fn lost_commits_are_accepted_after_saying_the_meaning() {
    let api = Api::new().await;
    lost_commits(&api).await;
    for (token, sees_button, status) in
        [("viewer", false, 403), ("operator", false, 403), ("prod", false, 403), ("admin", true, 200)]
    {
        let browser = Browser::signed_in(&api, token).await;
        let page = browser.get("/cluster").await;
        assert!(page.text.contains("Commits were lost"), "{token}");
        assert_eq!(page.text.contains("href=\"/cluster/accept\""), sees_button, "{token}");
        assert_eq!(browser.get("/cluster/accept").await.status, status, "{token}");
    }
    for token in ["viewer", "operator", "prod"] {
        let browser = Browser::signed_in(&api, token).await;
        assert_eq!(browser.submit("/cluster/accept", "until=1").await.status, 403, "{token}");
    }
    let browser = Browser::signed_in(&api, "admin").await;
    let page = browser.get("/cluster/accept").await;
    assert!(page.text.contains("on_lost = rerun") && page.text.contains("cannot be undone"), "{}", page.text);
    let (_, rest) = page.text.split_once("name=\"until\" value=\"").unwrap();
    let until = rest.split('"').next().unwrap();
    assert_eq!(
        browser.post("/cluster/accept", &[], &format!("until={until}")).await.status,
        403,
        "without the CSRF token"
    );
    assert_eq!(browser.submit("/cluster/accept", "until=1").await.status, 409, "another loss than the one shown");
    let page = browser.submit("/cluster/accept", &format!("until={until}")).await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/cluster?said=accepted"));
    assert!(!browser.get("/cluster").await.text.contains("href=\"/cluster/accept\""));
    api.parts.readiness.send_replace(Readiness::Ready);
    let page = browser.get("/cluster").await;
    assert!(page.text.contains("A loss of commits was accepted.") && !page.text.contains("nothing was lost"));
    assert!(browser.get("/audit").await.text.contains("the cluster"), "the log has it");
}

#[tokio::test]
async fn the_audit_log_shows_each_change_field_by_field() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    assert!(browser.get("/audit").await.text.contains("Nobody has changed anything yet."));
    api.job("a", json!({"labels": {"team": "<b>one</b>"}})).await;
    api.job("a", json!({"labels": {"team": "two"}})).await;
    api.job("other", json!({})).await;
    let page = browser.get("/audit").await;
    for part in
        ["job.created", "job.updated", "labels.team", "&lt;b&gt;one&lt;/b&gt;", "<code>two</code>", "fields set"]
    {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    assert!(!page.text.contains("<b>one"), "names never become markup");
    let rows = |text: &str| text.matches("<tr id=\"audit:").count();
    for (filters, expected) in
        [("job=a", 2), ("job=a&action=job.updated", 1), ("who=admin", 3), ("who=nobody", 0), ("namespace=prod", 0)]
    {
        assert_eq!(rows(&browser.get(&format!("/audit?{filters}")).await.text), expected, "{filters}");
    }
    let page = browser.get("/audit?job=a%27%22%3E&who=x").await;
    assert!(page.text.contains("No entry fits.") && page.text.contains("value=\"a'&quot;&gt;\""), "{}", page.text);
}

#[tokio::test]
async fn the_audit_log_keeps_to_the_namespaces_of_a_token_and_goes_on_by_page() {
    let api = Api::new().await;
    api.job("secret-of-default", json!({})).await;
    for n in 0..60 {
        api.job("p", json!({"namespace": "prod", "labels": {"n": n.to_string()}})).await;
    }
    let browser = Browser::signed_in(&api, "prod").await;
    let page = browser.get("/audit").await;
    let rows = |text: &str| text.matches("<tr id=\"audit:").count();
    assert_eq!(rows(&page.text), 50);
    assert!(!page.text.contains("secret-of-default"));
    assert_eq!(browser.get("/audit?namespace=default").await.status, 403);
    let (_, rest) = page.text.split_once("rel=\"next\" href=\"").unwrap();
    let older = browser.get(&rest.split('"').next().unwrap().replace("&amp;", "&")).await;
    assert_eq!(rows(&older.text), 10);
    assert!(older.text.contains("job.created") && older.text.contains("Newest"));
}

#[tokio::test]
async fn a_run_in_the_audit_log_leads_to_its_page() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let (at, held) = api.started("a").await;
    api.finish(at, Status::Succeeded, Output::default()).await.unwrap();
    let page = Browser::signed_in(&api, "viewer").await.get("/audit?job=a").await;
    assert!(page.text.contains(&format!("href=\"/runs/{}\"", held.run)), "{}", page.text);
}
