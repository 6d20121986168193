//! Live updates: rows, the overview, the output of a run. A mark on the window tells that nothing was loaded again.

use std::time::{Duration, Instant};

use carillon_tests::browser::{Browser, Look};
use carillon_tests::fixture::Gate;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

const ROW: &str = "tr[id='row:default/held']";

#[test]
fn what_moves_moves_by_itself() {
    let Some(browser) = browser(Look::default()) else { return };
    a_row_changes_in_its_place_when_its_job_runs(&browser);
    the_overview_and_its_title_tell_of_trouble_by_themselves(&browser);
    output_is_followed_as_it_comes(&browser);
    a_run_is_cancelled_and_its_page_tells_so_by_itself(&browser);
    pages_that_were_left_hold_no_connection(&browser);
}

fn a_row_changes_in_its_place_when_its_job_runs(browser: &Browser) {
    let site = Site::start();
    let gate = Gate::new(site.directory(), "gate");
    site.server.create(&job("held", NEVER, &format!("{}; exit 3", gate.wait()), json!({})));
    site.server.create(&job("other", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Operator);
    browser.open(&site.at("/jobs"));
    browser.click(&format!("{ROW} input"));
    browser.script("window.mark = 'there'; document.querySelector(arguments[0]).mark = 'there'", vec![json!(ROW)]);
    let run = site.server.run_now("held");
    browser.wait_for_text(&format!("{ROW} .state"), "running");
    gate.open();
    browser.wait_for_text(&format!("{ROW} .state"), "failed");
    assert_eq!(site.server.ended(&run)["exit_code"], 3);
    let kept = "return [window.mark, document.querySelector(arguments[0]).mark, document.querySelector(arguments[0] + ' input').checked]";
    assert_eq!(browser.script(kept, vec![json!(ROW)]), json!(["there", "there", true]));

    // A new one is announced, and put in when the reader asks.
    site.server.create(&job("a-new-one", NEVER, "true", json!({})));
    browser.wait_for_text("#news", "1 new, show");
    assert!(!browser.has("tr[id='row:default/a-new-one']"), "rows do not move under the pointer");
    browser.click("#news");
    browser.wait_for("tr[id='row:default/a-new-one']");
    assert_eq!(browser.script("return window.mark", vec![]), "there");
    no_complaint(browser);
}

fn the_overview_and_its_title_tell_of_trouble_by_themselves(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("breaks", NEVER, "exit 1", json!({})));
    site.sign_in(browser, Reader::Viewer);
    browser.wait_for_text("p.sentence", "All jobs are on time.");
    let calm = browser.script("return document.getElementById('icon').getAttribute('href')", vec![]);
    mark(browser);
    site.server.ended(&site.server.run_now("breaks"));
    browser.wait_for_text("p.sentence", "1 job needs you.");
    browser.wait_for_text("ul.needs", "failed");
    assert!(browser.title().starts_with("(1) "), "{}", browser.title());
    assert_ne!(browser.script("return document.getElementById('icon').getAttribute('href')", vec![]), calm);
    assert_marked(browser);

    // Paused, it asks for nothing more, whatever happens; then it catches up.
    browser.click("#pause-live");
    site.server.create(&job("unseen", NEVER, "exit 1", json!({})));
    let fragments =
        "return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('fragment')).length";
    let before = browser.script(fragments, vec![]);
    site.server.ended(&site.server.run_now("unseen"));
    browser.script("dispatchEvent(new Event('focus')); dispatchEvent(new Event('online'))", vec![]);
    assert_eq!(browser.script(fragments, vec![]), before);
    browser.wait_for_text("p.sentence", "1 job needs you.");
    browser.click("#pause-live");
    browser.wait_for_text("p.sentence", "2 jobs need you.");
    assert_marked(browser);
    no_complaint(browser);
}

fn output_is_followed_as_it_comes(browser: &Browser) {
    let site = Site::start();
    let gate = Gate::new(site.directory(), "gate");
    let command = format!("echo first line; {0}; printf '\\033[32msecond line\\033[0m\\n'; {0}", gate.wait());
    site.server.create(&job("talks", NEVER, &command, json!({})));
    site.sign_in(browser, Reader::Viewer);
    let run = site.server.run_now("talks");
    site.server.started(&run);
    // It runs, and its next due time is far away.
    site.server.create(&job("soon", "@every 10m", "true", json!({})));
    let mut coming = String::new();
    browser.wait("the job that is due soon", || {
        browser.open(&site.at("/"));
        coming = browser.text(".coming");
        coming.contains("soon")
    });
    assert!(!coming.contains("talks"), "{coming}");
    browser.open(&site.at(&format!("/runs/{run}")));
    mark(browser);
    browser.wait_for_text("#output", "first line");
    assert!(!browser.text("#output").contains("second line"));
    gate.open();
    browser.wait_for_text("#output .a2", "second line");
    gate.open();
    browser.wait_for_text("main .o-succeeded", "succeeded");
    let shown = browser.text("#output");
    assert_eq!((shown.matches("first line").count(), shown.matches("second line").count()), (1, 1), "{shown}");
    assert_marked(browser);
    no_complaint(browser);
}

fn a_run_is_cancelled_and_its_page_tells_so_by_itself(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("long", NEVER, "echo begun; exec sleep 600", json!({})));
    site.sign_in(browser, Reader::Operator);
    let run = site.server.run_now("long");
    site.server.started(&run);
    browser.open(&site.at(&format!("/runs/{run}")));
    browser.wait_for_text("main .o-running", "running");
    browser.click_words("Cancel");
    browser.wait_for_text("#said", "The run was asked to end.");
    browser.wait_for_text("main .o-cancelled", "cancelled");
    assert!(!browser.has("main button.danger"), "an ended run is not cancelled again");
    assert_eq!(site.server.ended(&run)["status"], "cancelled");
    no_complaint(browser);
}

/// A browser has six connections to a server. It keeps pages for Back, for a minute with all that they have open.
fn pages_that_were_left_hold_no_connection(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("breaks", NEVER, "exit 1", json!({})));
    site.sign_in(browser, Reader::Viewer);
    let begun = Instant::now();
    for _ in 0..4 {
        for path in ["/", "/jobs", "/audit"] {
            browser.open(&site.at(path));
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(40), "twelve pages took {:?}", begun.elapsed());
    browser.back();
    browser.wait_for("table.jobs");
    site.server.ended(&site.server.run_now("breaks"));
    browser.wait_for_text("table.jobs .state", "failed");
    no_complaint(browser);
}

fn mark(browser: &Browser) {
    browser.script("window.mark = 'there'", vec![]);
}

#[track_caller]
fn assert_marked(browser: &Browser) {
    assert_eq!(browser.script("return window.mark", vec![]), "there", "the page was loaded again");
}
