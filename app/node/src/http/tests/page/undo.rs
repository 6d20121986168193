//! A pause and a resumption offer the way back, and the page of a job tells who changed it.

use serde_json::json;

use super::super::Api;
use super::{Browser, Page};

/// The hidden fields of the form that takes the last action back, and where it leads.
fn way_back(page: &Page) -> Option<(String, String)> {
    let (_, notice) = page.text.split_once("data-undo")?;
    let (form, _) = notice.split_once("</form>")?;
    let value = |text: &str| text.split('"').next().unwrap_or_default().replace("&amp;", "&");
    let (_, action) = form.split_once("action=\"")?;
    let fields = form.split("<input type=\"hidden\" name=\"").skip(1).map(|input| {
        let (_, rest) = input.split_once("value=\"").unwrap();
        format!("{}={}", value(input), value(rest).replace('&', "%26").replace('+', "%2B"))
    });
    let chosen = form.split_once("button name=\"do\" value=\"").map(|(_, rest)| format!("do={}", value(rest)));
    Some((value(action), fields.chain(chosen).collect::<Vec<_>>().join("&")))
}

#[tokio::test]
async fn a_pause_and_a_resumption_can_be_taken_back_as_they_were() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let browser = Browser::signed_in(&api, "operator").await;
    let job = async || api.call("GET", "/v1/jobs/a", None).await.json;
    let paused = browser.submit("/jobs/default/a/pause", "reason=it+breaks+%26+burns&until=2027-01-02T00:00").await;
    let page = browser.get(paused.header("location")).await;
    let (path, _) = way_back(&page).unwrap();
    assert!(path.ends_with("/a/resume") && page.text.contains("Undo"), "{path}");
    let before = job().await["pause"].clone();
    let resumed = browser.submit("/jobs/default/a/resume", "").await;
    let page = browser.get(resumed.header("location")).await;
    assert_eq!(job().await["paused"], json!(false));
    assert!(
        resumed.header("location").contains("undo-until=") && !page.text.contains("undo-until"),
        "links lead on without it"
    );
    let (path, fields) = way_back(&page).unwrap();
    let again = browser.post(&path, &[], &fields).await;
    assert_eq!((again.status.as_u16(), again.header("location")), (303, "/jobs/default/a?said=paused"));
    let after = job().await["pause"].clone();
    assert_eq!((&after["reason"], &after["until"]), (&before["reason"], &before["until"]));
    // The job stands otherwise by now, or the reader may not do it: there is nothing to press.
    assert!(way_back(&browser.get("/jobs/default/a?said=resumed").await).is_none());
    let viewer = Browser::signed_in(&api, "viewer").await;
    let page = viewer.get("/jobs/default/a?said=paused").await;
    assert!(page.text.contains("Paused. What runs may finish") && way_back(&page).is_none());
}

#[tokio::test]
async fn an_action_on_many_can_be_taken_back_where_nothing_is_lost() {
    let api = Api::new().await;
    for name in ["a", "b"] {
        api.job(name, json!({})).await;
    }
    let browser = Browser::signed_in(&api, "operator").await;
    let paused = async || {
        let jobs = api.call("GET", "/v1/jobs?paused=true", None).await.json["items"].clone();
        jobs.as_array().unwrap().len()
    };
    let done = browser.submit("/jobs/do", "job=default/a&job=default/b&do=pause&back=%3Fq%3Da").await;
    assert!(done.header("location").starts_with("/jobs?q=a&said=done"), "{}", done.header("location"));
    assert_eq!(paused().await, 2);
    let (path, fields) = way_back(&browser.get(done.header("location")).await).unwrap();
    let back = browser.post(&path, &[], &fields).await;
    assert_eq!(paused().await, 0);
    let page = browser.get(back.header("location")).await;
    assert!(back.header("location").starts_with("/jobs?q=a&") && way_back(&page).unwrap().1.contains("do=pause"));
    browser.submit("/jobs/default/a/pause", "reason=mine").await;
    for (action, why) in [("pause", "one was paused before"), ("resume", "a reason would be lost"), ("run", "it runs")]
    {
        let done = browser.submit("/jobs/do", &format!("job=default/a&job=default/b&do={action}")).await;
        assert_eq!(done.header("location"), "/jobs?said=done", "{why}");
        browser.submit("/jobs/default/a/pause", "reason=mine").await;
    }
}

#[tokio::test]
async fn the_page_of_a_job_tells_who_changed_it() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("a", json!({"namespace": "prod", "schedule": "5 * * * *"})).await;
    let browser = Browser::signed_in(&api, "operator").await;
    browser.submit("/jobs/default/a/pause", "").await;
    let definition = json!({"name": "a", "schedule": "7 * * * *", "params": {"command": "true"}, "labels": {"x": "y"}});
    assert_eq!(api.call("PUT", "/v1/jobs/a", Some(definition)).await.status, 200);
    assert_eq!(api.call("POST", "/v1/jobs/a/run", None).await.status, 202);
    let text = browser.get("/jobs/default/a").await.text;
    let (_, changes) = text.split_once("<h2>Changes</h2>").unwrap();
    let (changes, _) = changes.split_once("</ul>").unwrap();
    let places: Vec<_> = ["Updated by <strong>admin", "Paused by <strong>operator", "Created by <strong>admin"]
        .iter()
        .map(|part| changes.find(part).unwrap_or_else(|| panic!("{part} is missing in {changes}")))
        .collect();
    assert!(places.is_sorted(), "the newest first: {changes}");
    assert!(changes.contains("labels.x") && changes.contains("schedule"), "{changes}");
    assert_eq!(changes.matches("<li>").count(), 3, "neither a run nor a job of another namespace: {changes}");
    assert!(
        text.contains("/audit?namespace=default&amp;job=a") && text.contains(" by <strong>admin</strong>, created")
    );
}

#[tokio::test]
async fn a_fragment_tells_the_zone_in_which_it_is() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get_with("/", &[("cookie", &format!("{}; carillon_zone=Europe/Berlin", browser.cookie))]).await;
    assert!(page.text.contains("data-zone=\"Europe/Berlin\""), "{}", page.text);
    let berlin = browser.get("/jobs?fragment=main&zone=Europe/Berlin").await.text;
    assert!(berlin.contains("id=\"times\" data-zone=\"Europe/Berlin\"") && berlin.contains("Show UTC"), "{berlin}");
}
