//! Schedules: an expression explained while it is typed, a crontab pasted and imported, and times in the zones of readers.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{CRONTAB, Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

#[test]
fn schedules_are_explained_and_crontabs_imported() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    site.sign_in(&browser, Reader::Admin);
    an_expression_is_explained_while_it_is_typed(&browser, &site);
    a_pasted_crontab_is_looked_at_and_imported(&browser, &site);
    no_complaint(&browser);
}

fn an_expression_is_explained_while_it_is_typed(browser: &Browser, site: &Site) {
    browser.open(&site.at("/schedules"));
    browser.script("window.mark = 'there'", vec![]);
    browser.fill("#schedule", "0 3 L * *");
    browser.wait_for_text("#explained", "At 03:00 on the last day of the month, UTC");
    browser.press(" *");
    browser.wait_for_text("#explained .fault", ".");
    browser.fill("#schedule", "30 8 1 * *");
    browser.fill("[name=timezone]", "Europe/Berlin");
    let told = browser.wait_for_text("#explained", "Europe/Berlin");
    assert!(
        browser.text("#explained").contains("The clock of Europe/Berlin goes"),
        "ten months have a clock change: {told}"
    );
    assert_eq!(browser.script("return window.mark", vec![]), "there", "nothing was loaded again");
    browser.reload();
    browser.wait_for_text("#explained", "At 08:30 on day 1 of the month, Europe/Berlin");
    browser.open(&site.at("/schedules"));
    browser.click_words("@every 90s");
    browser.wait_for_text("#explained", "Every 1 minute 30 seconds");
}

fn a_pasted_crontab_is_looked_at_and_imported(browser: &Browser, site: &Site) {
    browser.open(&site.at("/schedules"));
    browser.fill("#text", CRONTAB);
    browser.click("button[value=check]");
    browser.wait_for_text("#said", "Nothing is stored yet. It has 2 jobs, 2 created, 1 line at fault.");
    let lines = browser.text("table.lines");
    for part in ["At 02:15 every day", "/opt/support/polling", "Minute: ", "MAILTO=ops@example.org", "skipped"] {
        assert!(lines.contains(part), "{part:?} is missing in {lines}");
    }
    assert_eq!(site.server.all("/v1/jobs").len(), 0, "a look stores nothing");
    let kept = browser.script("return document.querySelector('#text').value", vec![]);
    assert_eq!(kept, CRONTAB, "the lines stay to be mended");
    browser.click("button[value=import]");
    browser.wait_for_text("#said", "Imported 2 jobs, 2 created, 1 line at fault.");
    let stored = site.server.all("/v1/jobs?label=crontab");
    let commands: Vec<&str> = stored.iter().filter_map(|job| job["params"]["command"].as_str()).collect();
    assert!(commands.len() == 2 && commands.contains(&"/opt/support/polling"), "{commands:?}");
    browser.click("button[value=import]");
    browser.wait_for_text("#said", "2 unchanged");
    browser.click("table.lines td.name a");
    browser.wait_for_text("h1", stored[0]["name"].as_str().unwrap_or_default().split('-').next().unwrap_or_default());
}

#[test]
fn times_are_in_the_zone_of_the_reader_and_of_the_job() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    // One instant on three clocks: it lies in July, when New York is at -04:00 and Berlin at +02:00.
    let berlin = json!({"timezone": "Europe/Berlin"});
    site.server.create(&job("report", "@at 2089-07-01T12:00:00Z", "true", json!({})));
    site.server.create(&job("noon", "0 12 1 7 *", "true", berlin));
    site.server.create(&job("held", NEVER, "true", json!({})));
    browser.in_zone("America/New_York");
    site.sign_in(&browser, Reader::Operator);
    browser.wait_for_text(".foot", "America/New_York");
    browser.open(&site.at("/jobs/default/report"));
    browser.wait_for_text("table.next", "Fri 1 Jul 2089 08:00:00 EDT");
    assert_eq!(title(&browser, "table.next time"), "2089-07-01 12:00:00 UTC");
    browser.open(&site.at("/jobs/default/noon"));
    let next = browser.wait_for_text("table.next", "06:00:00 EDT");
    assert!(next.contains("12:00:00 CEST"), "the job's own zone stands beside: {next}");
    browser.open(&site.at("/schedules?schedule=0+12+1+7+*&timezone=Europe/Berlin"));
    let explained = browser.wait_for_text("#explained", "America/New_York (yours)");
    assert!(explained.contains("06:00:00 EDT") && explained.contains("12:00:00 CEST"), "{explained}");
    a_pause_ends_on_the_clock_of_its_reader(&browser, &site);

    // One switch, held by the address; the way back is there too.
    browser.open(&site.at("/jobs/default/report"));
    browser.click_words("Show UTC");
    browser.wait_for_text("table.next", "Fri 1 Jul 2089 12:00:00 UTC");
    assert!(browser.url().ends_with("?zone=UTC"), "{}", browser.url());
    browser.click_words("Show mine");
    browser.wait_for_text("table.next", "08:00:00 EDT");
    no_complaint(&browser);
}

fn a_pause_ends_on_the_clock_of_its_reader(browser: &Browser, site: &Site) {
    browser.open(&site.at("/jobs/default/held/pause"));
    browser.wait_for_text("label[for=until]", "America/New_York");
    browser.fill("#reason", "until the summer");
    // The keys that fill such a field differ from language to language.
    browser.script("document.querySelector('#until').value = '2089-06-30T20:15'", vec![]);
    browser.click("main button.primary");
    browser.wait_for_text("main p.say.warn", "until 30 Jun 2089 20:15: “until the summer”.");
    let pause = &site.server.get("/v1/jobs/held")["pause"];
    assert_eq!((&pause["until"], &pause["reason"]), (&json!("2089-07-01T00:15:00.000Z"), &json!("until the summer")));
    browser.open(&site.at("/jobs"));
    browser.wait_for_text("tr[id='row:default/held']", "paused until 30 Jun 2089 20:15");
}

fn title(browser: &Browser, css: &str) -> serde_json::Value {
    browser.script("return document.querySelector(arguments[0]).title", vec![json!(css)])
}
