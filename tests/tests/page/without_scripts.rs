//! Everything with scripts switched off: links and forms do it.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, SCREENS, Site};
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn every_screen_is_there_without_scripts() {
    let Some(browser) = browser(Look { scripts: false, ..Look::default() }) else { return };
    let site = Site::with_history();
    site.sign_in(&browser, Reader::Admin);
    for screen in SCREENS {
        site.show(&browser, &screen);
        for dead in ["#pause-live", "[data-copy]", "#find", "#news"] {
            assert_eq!(browser.text(dead), "", "{}: {dead} does nothing without scripts", screen.name);
        }
    }
    no_complaint(&browser);
}

#[test]
fn every_action_is_a_form() {
    let Some(browser) = browser(Look { scripts: false, ..Look::default() }) else { return };
    let site = Site::start();
    for (name, command) in [("greet", "echo hello"), ("long", "exec sleep 600")] {
        site.server.create(&job(name, NEVER, command, json!({})));
    }
    let link = site.server.post("/v1/sign-in-links", &json!({}));
    browser.open(&site.at(link["path"].as_str().expect("a path")));
    browser.click_words("Sign in as admin");
    browser.click_words("Jobs");
    browser.fill("#q", "gree");
    browser.click_words("Filter");
    browser.wait_until_gone("tr[id='row:default/long']");
    browser.click_words("greet");
    browser.click_words("Run now");
    browser.click("main button.primary");
    browser.wait_for_text("#said", "A run was asked for.");
    site.server.wait_for_runs("greet", 1, |run| run["status"] == "succeeded");
    browser.reload();
    browser.wait_for_text("#output", "hello");
    pauses(&browser, &site);
    cancels(&browser, &site);
    browser.open(&site.at("/jobs/default/greet/delete"));
    browser.click("button.danger");
    browser.wait_for_text("#said", "The job was deleted.");
    browser.click(".status .menu summary");
    browser.click_words("Sign out");
    browser.wait_for("#token");
    no_complaint(&browser);
}

fn pauses(browser: &Browser, site: &Site) {
    browser.open(&site.at("/jobs/default/greet"));
    browser.click("a[data-do=pause]");
    browser.fill("#reason", "no scripts here");
    browser.click("main button.primary");
    browser.wait_for_text("main p.say.warn", "no scripts here");
    browser.click("button[data-do=pause]");
    browser.wait_for_text("#said", "Resumed.");
    browser.open(&site.at("/jobs"));
    browser.click("input[value='default/greet']");
    browser.click("button[value=pause]");
    browser.wait_for_text("#said", "Done for the selected jobs.");
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], true);
}

fn cancels(browser: &Browser, site: &Site) {
    let run = site.server.run_now("long");
    site.server.started(&run);
    browser.open(&site.at(&format!("/runs/{run}")));
    browser.click_words("Cancel");
    browser.wait_for_text("#said", "The run was asked to end.");
    assert_eq!(site.server.ended(&run)["status"], "cancelled");
}
