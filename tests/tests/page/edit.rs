//! An edit that meets another one: the second to save sees both versions and decides, and the log has both changes.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::jobs::{job, merged};
use carillon_tests::page_site::{Reader, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint};

const AT: &str = "/jobs/default/invoice";

#[test]
fn the_second_of_two_edits_sees_both_versions_and_decides() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    site.server.create(&job("invoice", "20 5 * * *", "true", json!({"labels": {"team": "billing"}, "timeout": "5m"})));
    site.sign_in(&browser, Reader::Admin);
    mine_goes_over_theirs(&browser, &site);
    both_changes_are_in_the_log(&browser, &site);
    theirs_stays(&browser, &site);
    no_complaint(&browser);
}

/// The other one changes the job through the API.
fn another_changes(site: &Site, change: Value) {
    let stored = site.server.get("/v1/jobs/invoice");
    let kept = json!({"schedule": stored["schedule"], "params": stored["params"], "labels": stored["labels"], "timeout": stored["timeout"]});
    let (status, answer) = site.server.call("PUT", "/v1/jobs/invoice", Some(&merged(kept, change)));
    assert_eq!(status, 200, "{answer}");
}

fn stored(site: &Site, field: &str) -> String {
    site.server.get("/v1/jobs/invoice")[field].as_str().expect("text").to_owned()
}

fn mine_goes_over_theirs(browser: &Browser, site: &Site) {
    browser.open(&site.at(&format!("{AT}/edit")));
    browser.fill("[id='timeout']", "20m");
    another_changes(site, json!({"schedule": "40 6 * * *"}));
    browser.click("button[value=review]");
    browser.wait_for_text("h1", "Somebody else changed invoice");
    let shown = browser.text(".diff");
    for part in ["timeout\n− 5m\n+ 20m", "schedule\n− 40 6 * * *\n+ 20 5 * * *"] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    assert_eq!((stored(site, "timeout"), stored(site, "schedule")), ("5m".into(), "40 6 * * *".into()));

    // A third change comes before it is saved.
    browser.click_words("Go on with mine");
    browser.wait_for_text("h1", "Change invoice");
    another_changes(site, json!({"schedule": "45 6 * * *"}));
    browser.click("button[value=save]");
    browser.wait_for_text("h1", "Somebody else changed invoice");
    assert!(browser.text(".diff").contains("− 45 6 * * *\n+ 20 5 * * *"), "{}", browser.text(".diff"));
    assert_eq!(stored(site, "schedule"), "45 6 * * *", "nothing was stored over it");

    browser.click_words("Go on with mine");
    browser.wait_for_text("h1", "Change invoice");
    browser.click("button[value=save]");
    browser.wait_for_text("#said", "Saved.");
    assert_eq!((stored(site, "timeout"), stored(site, "schedule")), ("20m".into(), "20 5 * * *".into()));
}

fn both_changes_are_in_the_log(browser: &Browser, site: &Site) {
    browser.open(&site.at("/audit?job=invoice&action=job.updated"));
    assert_eq!(browser.count("table.audit tbody tr"), 3);
    let mine = browser.text("table.audit tbody tr:nth-child(1)");
    let (third, second) =
        (browser.text("table.audit tbody tr:nth-child(2)"), browser.text("table.audit tbody tr:nth-child(3)"));
    for (entry, parts) in [
        (mine, &["timeout\n− 5m\n+ 20m", "− 45 6 * * *\n+ 20 5 * * *"][..]),
        (third, &["− 40 6 * * *\n+ 45 6 * * *"][..]),
        (second, &["− 20 5 * * *\n+ 40 6 * * *"][..]),
    ] {
        for part in parts {
            assert!(entry.contains(part), "{part:?} is missing in {entry}");
        }
    }
}

fn theirs_stays(browser: &Browser, site: &Site) {
    browser.open(&site.at(&format!("{AT}/edit")));
    browser.fill("[id='timeout']", "1h");
    another_changes(site, json!({"timeout": "30m"}));
    browser.click("button[value=review]");
    browser.wait_for_text("h1", "Somebody else changed invoice");
    browser.click_words("Take the stored one");
    browser.wait_for_text("h1", "Edit invoice");
    assert_eq!(browser.script("return document.getElementById('timeout').value", vec![]), "30m");
    assert_eq!(stored(site, "timeout"), "30m");
    browser.click("button[value=review]");
    browser.wait_for_text("main .say", "Nothing differs from what is stored.");
}
