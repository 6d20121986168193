//! A database that went back in time, and a person who accepts it at the page.

use carillon_tests::browser::Look;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn lost_commits_are_accepted_at_the_cluster() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(&browser, Reader::Operator);
    browser.open(&site.at("/cluster"));
    browser.wait_for_text("p.sentence", "1 node schedules, and nothing was lost.");
    site.go_back_in_time();
    site.server.wait_until("the node notices", || !losses(&site).is_empty());
    browser.open(&site.at("/"));
    browser.wait_for_text("ul.needs", "Commits were lost.");
    browser.open(&site.at("/cluster"));
    browser.wait_for_text("section.bad", "Commits were lost");
    assert!(!browser.has("a.danger"), "an operator sees the command, and no button that would be refused");
    browser.wait_for_text("section.bad", "carillon cluster accept");
    assert!(browser.title().starts_with("("), "{}", browser.title());

    site.sign_in(&browser, Reader::Admin);
    browser.open(&site.at("/cluster"));
    browser.click("a.danger");
    browser.wait_for_text("h1", "Accept the lost commits");
    for part in ["on_lost = skip", "on_lost = rerun", "This cannot be undone.", "bell-1"] {
        browser.wait_for_text("main", part);
    }
    assert!(losses(&site)[0]["accepted_at"].is_null(), "the question alone accepts nothing");
    browser.click("button.danger");
    browser.wait_for_text("#said", "Accepted.");
    assert!(losses(&site)[0]["accepted_at"].is_string());
    site.server.wait_until("the node schedules again", || site.server.is_ready());
    browser.open(&site.at("/cluster"));
    browser.wait_for_text("p.sentence", "A loss of commits was accepted.");
    browser.open(&site.at("/audit"));
    browser.wait_for_text("table.audit", "the cluster");
    assert_eq!(site.server.ended(&site.server.run_now("greet"))["status"], "succeeded");
    no_complaint(&browser);
}

fn losses(site: &Site) -> Vec<serde_json::Value> {
    site.server.get("/v1/cluster")["lost_commits"].as_array().expect("windows").clone()
}
