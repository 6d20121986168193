//! The timeline: lanes of past and coming runs, as a drawing and as a table.

use std::time::Duration;

use carillon_domain::run::Status;
use carillon_store::Output;
use serde_json::json;

use super::super::Api;
use super::Browser;

#[tokio::test]
async fn past_and_coming_runs_stand_in_lanes_and_in_a_table() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    assert!(browser.get("/timeline").await.text.contains("No jobs yet."));
    api.job("worker", json!({})).await;
    api.job("other", json!({"namespace": "prod"})).await;
    let (at, _) = api.started("worker").await;
    api.clock.advance(Duration::from_secs(600));
    api.finish(at, Status::Failed, Output::default()).await.unwrap();
    let page = browser.get("/timeline").await;
    for part in
        ["At once", "class=\"t-failed\"", "class=\"t-waiting\"", "class=\"s-now\"", "prod/", "as=table", "/v1/runs"]
    {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    assert!(!page.text.contains(" style="), "the policy forbids it");
    let table = browser.get("/timeline?as=table").await;
    for part in ["worker", "failed", "10 min", "to come", "usually"] {
        assert!(table.text.contains(part), "{part:?} is missing in {}", table.text);
    }
    let before = browser.get("/timeline?as=table&from=2026-12-31T00:00:00Z&hours=3").await;
    assert!(before.text.contains("Nothing ran in this range") && before.text.contains("Now"), "{}", before.text);
    let searched = browser.get("/timeline?q=work&hours=12&as=table").await;
    assert!(searched.text.contains("worker") && !searched.text.contains("other"));
    for odd in ["from=x&hours=7", "from=9999-12-31T23:59:59Z", "from=1970-01-01T00:00:00Z", "q=%3Cb%3E&label=%3D"] {
        let page = browser.get(&format!("/timeline?{odd}")).await;
        assert!(page.status == 200 && !page.text.contains("<b>"), "{odd}");
    }
}

#[tokio::test]
async fn a_part_of_the_range_is_looked_at_by_links_and_by_an_end() {
    let api = Api::new().await;
    api.job("worker", json!({})).await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get("/timeline?from=2027-03-27T21:00:00Z&hours=6&zone=Europe/Berlin").await.text;
    assert!(page.contains("data-brush data-from=\"2027-03-27T21:00:00.000Z\" data-until=\"2027-03-28T03:00:00.000Z\""));
    assert!(
        page.contains("from=2027-03-27T22%3A00%3A00Z&amp;until=2027-03-27T23%3A00%3A00Z\">23:00–00:00</a>"),
        "{page}"
    );
    assert!(
        page.contains("class=\"s-clock\"") && page.contains("goes forward by 60 minutes"),
        "a clock change is seen"
    );
    let part = browser.get("/timeline?from=2027-03-27T22:00:00Z&until=2027-03-27T22:05:00Z").await.text;
    assert!(part.contains("22:02:30") && !part.contains("s-clock"), "{part}");
    assert!(
        part.contains("from=2027-03-27T22%3A02%3A30Z&amp;until=2027-03-27T22%3A07%3A30Z"),
        "later keeps the length"
    );
    assert!(part.contains(">Wider</a>") && !part.contains("Closer"), "less than a minute is not told apart");
    for (until, end) in [
        ("2027-03-27T22:00:00Z", "2027-03-27T22:01:00.000Z"),
        ("2027-03-20T22:00:00Z", "2027-03-27T22:01:00.000Z"),
        ("2028-03-27T22:00:00Z", "2027-03-29T22:00:00.000Z"),
        ("x", "2027-03-28T04:00:00.000Z"),
    ] {
        let page = browser.get(&format!("/timeline?from=2027-03-27T22:00:00Z&until={until}")).await.text;
        assert!(page.contains(&format!("data-until=\"{end}\"")), "{until}");
    }
}

#[tokio::test]
async fn the_timeline_keeps_to_the_namespaces_of_a_token_and_to_its_size() {
    let api = Api::new().await;
    api.job("hidden-one", json!({})).await;
    for n in 0..210 {
        api.job(&format!("j{n:03}"), json!({"namespace": "prod", "schedule": "@every 10s"})).await;
    }
    let browser = Browser::signed_in(&api, "prod").await;
    let page = browser.get("/timeline?hours=48").await;
    assert!(!page.text.contains("hidden-one") && page.text.contains("the 200 jobs that come up first"));
    assert!(page.text.len() < 250_000, "{} bytes", page.text.len());
    assert_eq!(browser.get("/timeline?namespace=default").await.status, 403);
}

#[tokio::test]
async fn all_runs_are_drawn_of_a_job_that_ran_more_often_than_its_schedule_says() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    api.job("worker", json!({"schedule": "@yearly"})).await;
    for _ in 0..30 {
        let (at, _) = api.started("worker").await;
        api.finish(at, Status::Failed, Output::default()).await.unwrap();
    }
    let table = browser.get("/timeline?as=table").await;
    let rows = table.text.split("<tbody").nth(1).unwrap_or_default().split("</tbody>").next().unwrap_or_default();
    assert_eq!(rows.matches("o-failed").count(), 30, "{rows}");
}
