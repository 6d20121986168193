//! "3 new, show": rows that come while a list is looked at are announced, each once, and shown when the reader asks.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::ear::Ear;
use carillon_tests::events::EventReader;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint};

const AUDIT: &str = "table.audit tbody tr";

/// Streams of events begin when the test says so, and not when the page is loaded.
const HOLD: &str = "
    const Real = window.EventSource, held = [];
    window.letGo = () => held.splice(0).forEach((begin) => begin());
    window.EventSource = class {
        constructor(url) { this.url = url; this.kinds = []; held.push(() => this.begin()); }
        begin() {
            if (this.closed) return;
            this.real = new Real(this.url);
            this.real.onopen = (event) => this.onopen?.(event);
            this.real.onerror = (event) => this.onerror?.(event);
            for (const [kind, heard] of this.kinds) this.real.addEventListener(kind, heard);
        }
        addEventListener(kind, heard) { this.kinds.push([kind, heard]); }
        close() { this.closed = true; this.real?.close(); }
        get readyState() { return this.real?.readyState ?? 0; }
    };";

#[test]
fn new_rows_are_announced_once_and_shown_when_asked() {
    let Some(browser) = browser(Look::default()) else { return };
    every_entry_of_the_log_is_announced(&browser);
    runs_of_a_job_are_announced(&browser);
    messages_are_announced(&browser);
}

#[test]
fn what_happens_between_the_page_and_its_events_is_announced_once() {
    let Some(browser) = browser(Look::default()) else { return };
    let hold = browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": HOLD}));
    late_events(&browser, false);
    late_events(&browser, true);
    browser.devtools("Page.removeScriptToEvaluateOnNewDocument", json!({"identifier": hold["identifier"]}));
}

fn every_entry_of_the_log_is_announced(browser: &Browser) {
    let site = Site::start();
    let server = &site.server;
    server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Viewer);
    browser.open(&site.at("/audit"));
    assert_eq!(browser.count(AUDIT), 1);
    let route = json!({"when": ["failed"], "to": [{"type": "mail", "to": ["ops@example.org"]}]});
    let changes: [(&str, &str, Option<&Value>); 5] = [
        ("POST", "/v1/jobs/greet/run", None),
        ("PUT", "/v1/alerts/ops", Some(&route)),
        ("POST", "/v1/jobs/greet/pause", None),
        ("DELETE", "/v1/alerts/ops", None),
        ("DELETE", "/v1/jobs/greet", None),
    ];
    for (place, (method, path, body)) in changes.into_iter().enumerate() {
        let (status, answer) = server.call(method, path, body);
        assert!(status < 300, "{method} {path}: {answer}");
        browser.wait_for_text("#news", &format!("{} new, show", place + 1));
    }
    let title = browser.script("return document.querySelector('table.audit').getBoundingClientRect().top", vec![]);
    assert_eq!(browser.count(AUDIT), 1, "rows do not move under the pointer");
    browser.click("#news");
    browser.wait("all entries", || browser.count(AUDIT) == 6);
    assert!(browser.text("#news").is_empty());
    let after = browser.script("return document.querySelector('table.audit').getBoundingClientRect().top", vec![]);
    assert_eq!(title, after, "the announcement moves nothing");
    server.create(&job("other", NEVER, "true", json!({})));
    browser.wait_for_text("#news", "1 new, show");
    no_complaint(browser);
}

fn runs_of_a_job_are_announced(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.server.ended(&site.server.run_now("greet"));
    site.sign_in(browser, Reader::Viewer);
    browser.open(&site.at("/jobs/default/greet"));
    assert_eq!(browser.count("table.runs tbody tr"), 1);
    site.server.ended(&site.server.run_now("greet"));
    browser.wait_for_text("#news", "1 new, show");
    browser.click("#news");
    browser.wait("both runs", || browser.count("table.runs tbody tr") == 2);
    no_complaint(browser);
}

fn messages_are_announced(browser: &Browser) {
    let site = Site::start();
    let ear = Ear::open();
    let route = json!({"when": ["failed"], "to": [{"type": "webhook", "url": ear.url}]});
    assert_eq!(site.server.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);
    site.sign_in(browser, Reader::Operator);
    browser.open(&site.at("/alerts"));
    browser.click_words("Test");
    let _first = ear.next();
    // The answer comes after the page.
    browser.wait_for_text("table.messages", "sent");
    site.server.create(&job("breaks", NEVER, "exit 1", json!({})));
    site.server.run_now("breaks");
    let _second = ear.next();
    browser.wait_for_text("#news", "1 new, show");
    assert_eq!(browser.count("table.messages tbody tr"), 1);
    browser.click("#news");
    browser.wait("both messages", || browser.count("table.messages tbody tr") == 2);
    no_complaint(browser);
}

/// Entries before the stream begins, with it and after it. While somebody else follows the page tells its place; otherwise it looks again.
fn late_events(browser: &Browser, followed: bool) {
    let site = Site::start();
    let server = &site.server;
    let _other = followed.then(|| EventReader::connect(server, "?namespace=*", None));
    server.create(&job("first", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Viewer);
    browser.open(&site.at("/audit"));
    assert_eq!(browser.count(AUDIT), 1);
    let stream = browser.script("return document.querySelector('main').dataset.live", vec![]);
    assert_eq!(stream.as_str().expect("it follows").contains("since="), followed, "{stream}");
    server.create(&job("between", NEVER, "true", json!({})));
    server.post("/v1/jobs/between/run", &json!({}));
    browser.script("letGo()", vec![]);
    browser.wait_for_text("#news", "2 new, show");
    server.create(&job("after", NEVER, "true", json!({})));
    browser.wait_for_text("#news", "3 new, show");
    browser.click("#news");
    browser.wait("all entries", || browser.count(AUDIT) == 4);
    server.create(&job("last", NEVER, "true", json!({})));
    browser.wait_for_text("#news", "1 new, show");
    no_complaint(browser);
}
