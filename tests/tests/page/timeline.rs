//! A part of the timeline is chosen by dragging.

use carillon_tests::browser::Look;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint};

#[test]
fn dragging_over_the_lanes_shows_that_part() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(&browser, Reader::Viewer);
    browser.open(&site.at("/timeline?from=2027-01-01T00:00:00Z&hours=6"));
    browser.wait_for("[data-brush]");
    let box_of = "const box = document.querySelector('[data-brush]').getBoundingClientRect();
                  return [box.left, box.width, box.top + box.height / 2]";
    let place = browser.script(box_of, vec![]);
    let number = |n: usize| place[n].as_f64().unwrap();
    let pointer = |kind: &str, share: f64| {
        let (x, y) = (number(0) + number(1) * share, number(2));
        let event: Value = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
        browser.devtools("Input.dispatchMouseEvent", event);
    };
    pointer("mousePressed", 0.5);
    pointer("mouseMoved", 0.6);
    pointer("mouseMoved", 0.75);
    assert!(browser.has(".brush"), "the part is seen while it is chosen");
    pointer("mouseReleased", 0.75);
    browser.wait("the part is shown", || browser.url().contains("until="));
    browser.wait_for("[data-brush]");
    let shown = "const lanes = document.querySelector('[data-brush]');
                 return [lanes.dataset.from, lanes.dataset.until].map((at) => Date.parse(at) / 60000 - Date.UTC(2027, 0, 1) / 60000)";
    let range = browser.script(shown, vec![]);
    let minutes = |n: usize| range[n].as_f64().unwrap();
    assert!((minutes(0) - 180.0).abs() < 2.0 && (minutes(1) - 270.0).abs() < 2.0, "{range}");
    assert!(!browser.has(".brush"));
    no_complaint(&browser);
}
