//! The keyboard alone: from the link of the command line to a paused job, without a pointer.

use carillon_tests::browser::{Browser, Key, Look};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::Site;
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn everything_can_be_reached_by_keys() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    for name in ["alpha", "beta", "gamma"] {
        site.server.create(&job(name, NEVER, "echo said by keys", json!({})));
    }
    let link = site.server.post("/v1/sign-in-links", &json!({}));
    browser.open(&site.at(link["path"].as_str().expect("a path")));
    browser.key(Key::Enter);
    browser.wait_for_text(".status .menu", "admin");

    browser.press("gj");
    browser.wait_for("table.jobs");
    browser.press("?");
    browser.wait_for("#help[open]");
    browser.key(Key::Escape);
    browser.wait_until_gone("#help[open]");
    rows(&browser, &site);

    browser.press("r");
    browser.wait_for_text("h1", "Run now beta");
    browser.key(Key::Enter);
    browser.wait_for_text("#output", "said by keys");
    browser.wait_for("main .o-succeeded");
    browser.open(&site.at("/jobs/default/beta"));
    browser.press("o");
    browser.wait_for_text("#output", "said by keys");
    browser.open(&site.at("/jobs/default/beta"));
    browser.press("p");
    browser.wait_for("#reason");
    browser.press("by hand, not by mouse");
    browser.key(Key::Enter);
    browser.wait_for_text("main p.say.warn", "by hand, not by mouse");
    browser.press("p");
    browser.wait_for_text("#said", "Resumed.");
    for (keys, heading) in [("gt", "Timeline"), ("gs", "Schedules"), ("gl", "Alerts"), ("ga", "Audit")] {
        browser.press(keys);
        browser.wait_for_text("h1", heading);
    }
    browser.press("go");
    browser.wait_for("p.sentence");
    no_complaint(&browser);
}

/// Moves through the list, selects, searches, and opens the second row.
fn rows(browser: &Browser, site: &Site) {
    browser.press("jjjjk");
    assert_eq!(browser.text("tr.at .name"), "beta", "the last row is the last");
    browser.press("x");
    browser.wait_for_text("#bulk output", "1 selected");
    browser.press("x");
    browser.wait_for_text("#bulk output", "None selected");
    browser.script("window.mark = 'there'", vec![]);
    browser.press("/");
    assert_eq!(browser.script("return document.activeElement.id", vec![]), "q");
    browser.press("ET");
    browser.wait_until_gone("tr[id='row:default/alpha']");
    browser.wait("the address to hold the search", || browser.url() == site.at("/jobs?q=ET"));
    assert_eq!(browser.script("return [window.mark, document.activeElement.id]", vec![]), json!(["there", "q"]));
    browser.reload();
    assert_eq!(browser.count("tbody > tr"), 1, "the address holds the search");
    browser.press("j");
    browser.key(Key::Enter);
    browser.wait_for_text("h1", "beta");
    assert_eq!(browser.url(), site.at("/jobs/default/beta"));
}
