//! Roles on the page: a button that would be refused is not there, and a forged request is refused all the same.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::page_site::{Reader, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint, only_refusals};

/// Sends a form of the page's own making, as a reader with the developer tools would.
const FORGE: &str = "
    const form = document.createElement('form');
    form.method = 'post';
    form.action = arguments[0];
    for (const [name, value] of Object.entries(arguments[1])) {
        const field = document.createElement('input');
        field.name = name;
        field.value = value;
        form.append(field);
    }
    document.body.append(form);
    form.submit();";

#[test]
fn forged_requests_are_refused_as_the_buttons_say() {
    let Some(browser) = browser(Look::default()) else { return };
    a_viewer_has_no_buttons_and_a_forged_form_is_refused(&browser);
    a_form_without_the_secret_of_its_session_is_refused(&browser);
    another_site_cannot_act_in_the_name_of_a_reader(&browser);
}

fn a_viewer_has_no_buttons_and_a_forged_form_is_refused(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "exec sleep 600", json!({})));
    let run = site.server.run_now("greet");
    site.server.started(&run);
    site.sign_in(browser, Reader::Viewer);
    for path in ["/", "/jobs", "/jobs/default/greet", &format!("/runs/{run}")] {
        browser.open(&site.at(path));
        for refused in [
            "form[method=post] button",
            "[data-do=run]",
            "[data-do=pause]",
            ".danger",
            "#bulk",
            "input[type=checkbox][name=job]",
        ] {
            assert!(!browser.has(&format!("main {refused}")), "{path}: {refused}");
        }
    }
    no_complaint(browser);
    let csrf = browser.script("return document.querySelector('[name=csrf]').value", vec![]);
    for (path, fields) in [
        ("/jobs/default/greet/pause", json!({})),
        ("/jobs/default/greet/run", json!({})),
        ("/jobs/default/greet/delete", json!({"generation": "1"})),
        ("/jobs/do", json!({"job": "default/greet", "do": "pause"})),
        (format!("/runs/{run}/cancel").as_str(), json!({})),
    ] {
        refused(browser, &site, path, &fields, &csrf);
    }
    let state = site.server.get("/v1/jobs/greet");
    assert_eq!((&state["paused"], &state["state"]), (&json!(false), &json!("executing")));
    assert_eq!(site.server.run(&run)["status"], "running");
}

fn a_form_without_the_secret_of_its_session_is_refused(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Admin);
    for csrf in [json!(""), json!("0"), json!("x".repeat(200))] {
        refused(browser, &site, "/jobs/default/greet/pause", &json!({}), &csrf);
    }
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], false);
}

fn refused(browser: &Browser, site: &Site, path: &str, fields: &Value, csrf: &Value) {
    browser.open(&site.at("/jobs"));
    let mut fields = fields.clone();
    fields["csrf"] = csrf.clone();
    browser.script(FORGE, vec![json!(path), fields]);
    browser.wait_for_text("h1", "Forbidden");
    assert!(!browser.text("p.sentence").is_empty(), "{path}: the refusal is a sentence");
    only_refusals(browser, 403);
}

/// Even one that knows the secret of the session.
fn another_site_cannot_act_in_the_name_of_a_reader(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Admin);
    browser.open(&site.at("/jobs"));
    let csrf = browser.script("return document.querySelector('[name=csrf]').value", vec![]);
    no_complaint(browser);

    browser.open("data:text/html,<title>other</title><p>a page of another site");
    browser.script(FORGE, vec![json!(site.at("/jobs/default/greet/pause")), json!({"csrf": csrf})]);
    browser.wait("an answer", || browser.url().starts_with(site.server.url()));
    assert_eq!(site.server.get("/v1/jobs/greet")["paused"], false);
    browser.forget();
}
