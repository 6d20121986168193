//! The actions of the page: each by its button, with its question where it has one.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn every_action_works_by_its_button() {
    let Some(browser) = browser(Look::default()) else { return };
    a_job_is_run_paused_resumed_and_deleted(&browser);
    a_pause_that_has_passed_is_told_at_its_form(&browser);
    selected_jobs_are_paused_resumed_and_run_at_once(&browser);
}

fn a_job_is_run_paused_resumed_and_deleted(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "echo hello from here", json!({})));
    site.sign_in(browser, Reader::Admin);
    let (at_job, state) = (site.at("/jobs/default/greet"), || site.server.get("/v1/jobs/greet"));

    browser.open(&at_job);
    browser.click_words("Run now");
    browser.wait_for_text("h1", "Run now greet");
    browser.click("main button.primary");
    browser.wait_for_text("main .o-succeeded", "succeeded");
    browser.wait_for_text("#output", "hello from here");
    assert_eq!(site.server.runs("greet").len(), 1);

    browser.open(&at_job);
    browser.click("a[data-do=pause]");
    browser.fill("#reason", "the printer burns");
    browser.click("main button.primary");
    browser.wait_for_text("#said", "Paused.");
    browser.wait_for_text("main p.say.warn", "the printer burns");
    assert_eq!(state()["pause"]["reason"], "the printer burns");

    browser.click("button[data-do=pause]");
    browser.wait_for_text("#said", "Resumed.");
    assert_eq!(state()["paused"], false);

    browser.click("a.danger");
    browser.wait_for_text("main", "The history stays until it expires.");
    browser.back();
    browser.wait_for("a.danger");
    assert_eq!(site.server.call("GET", "/v1/jobs/greet", None).0, 200, "the question alone deletes nothing");
    browser.click("a.danger");
    browser.click("button.danger");
    browser.wait_for_text("#said", "The job was deleted.");
    assert_eq!(site.server.call("GET", "/v1/jobs/greet", None).0, 404);
    no_complaint(browser);
}

fn a_pause_that_has_passed_is_told_at_its_form(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Operator);
    browser.open(&site.at("/jobs/default/greet/pause"));
    browser.fill("#reason", "kept as it was typed");
    // Not through the field, which would not take it.
    browser.script(
        "const until = document.querySelector('#until'); until.min = ''; until.value = '2020-01-01T00:00'",
        vec![],
    );
    browser.click("main button.primary");
    browser.wait_for_text("#fault", "it has passed");
    assert_eq!(browser.script("return document.querySelector('#reason').value", vec![]), "kept as it was typed");
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], false);
    no_complaint(browser);
}

fn selected_jobs_are_paused_resumed_and_run_at_once(browser: &Browser) {
    let site = Site::start();
    for name in ["a", "b", "c", "d", "e"] {
        site.server.create(&job(name, NEVER, "true", json!({})));
    }
    site.sign_in(browser, Reader::Operator);
    browser.open(&site.at("/jobs?sort=next"));
    browser.click("#bulk button[value=pause]");
    browser.wait_for_text("#said", "Nothing was selected.");
    select(browser, &["b", "d"]);
    browser.wait_for_text("#bulk output", "2 selected");
    browser.click("#bulk button[value=pause]");
    browser.wait_for_text("#said", "Done for the selected jobs.");
    assert!(browser.url().contains("sort=next"), "the list stays as it was: {}", browser.url());
    let paused = |name: &str| site.server.get(&format!("/v1/jobs/{name}"))["paused"] == true;
    assert_eq!(["a", "b", "c", "d", "e"].map(paused), [false, true, false, true, false]);
    select(browser, &["b"]);
    browser.click("#bulk button[value=resume]");
    browser.wait_until_gone("tr[id='row:default/b'] .o-paused");
    assert_eq!(["b", "d"].map(paused), [false, true]);
    range(browser, "a", "c");
    browser.wait_for_text("#bulk output", "3 selected");
    browser.click("#bulk button[value=run]");
    browser.wait_for_text("#said", "Done for the selected jobs.");
    for name in ["a", "b", "c"] {
        site.server.wait_for_runs(name, 1, |run| run["status"] == "succeeded");
    }
    assert!(site.server.runs("e").is_empty());
    no_complaint(browser);
}

fn select(browser: &Browser, names: &[&str]) {
    for name in names {
        browser.click(&format!("input[type=checkbox][value='default/{name}']"));
    }
}

/// Selects from one row to another by a click with Shift.
fn range(browser: &Browser, from: &str, to: &str) {
    browser.click(&format!("input[type=checkbox][value='default/{from}']"));
    let click =
        "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true}))";
    browser.script(click, vec![json!(format!("input[type=checkbox][value='default/{to}']"))]);
}
