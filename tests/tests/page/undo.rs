//! The way back that is offered for 10 seconds, and then is gone from the page and from its address.

use carillon_tests::browser::Look;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn a_pause_is_taken_back_within_ten_seconds() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(&browser, Reader::Operator);
    browser.open(&site.at("/jobs/default/greet/pause"));
    browser.fill("#reason", "the printer burns");
    browser.click("main button.primary");
    browser.wait_for_text("#said", "Paused.");
    browser.click("[data-undo] button");
    browser.wait_for_text("#said", "Resumed.");
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], false);
    browser.click("[data-undo] button");
    browser.wait_for_text("#said", "Paused.");
    assert_eq!(site.server.get("/v1/jobs/greet")["pause"]["reason"], "the printer burns");
    browser.wait_until_gone("[data-undo]");
    assert_eq!(browser.url(), site.at("/jobs/default/greet"), "a reload does not offer it again");
    browser.wait_for_text("main p.say.warn", "the printer burns");
    no_complaint(&browser);
}

#[test]
fn without_scripts_the_way_back_is_there_too() {
    let Some(browser) = browser(Look { scripts: false, ..Look::default() }) else { return };
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(&browser, Reader::Operator);
    browser.open(&site.at("/jobs"));
    browser.click("input[name=job]");
    browser.click("button[value=pause]");
    browser.wait_for_text("#said", "Done for the selected jobs.");
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], true);
    browser.click("[data-undo] button");
    browser.wait("the pause is taken back", || site.server.get("/v1/jobs/greet")["paused"] == false);
    no_complaint(&browser);
}
