//! Output, params, reasons and addresses that try to become markup, a style or an address: they stay text, and nothing runs.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::fixture::Gate;
use carillon_tests::jobs::{NEVER, job, merged};
use carillon_tests::page_site::{Reader, Site};
use serde_json::json;

use super::{browser, no_complaint};

/// Ends whatever it may stand in, and then tries everything.
const INJECTION: &str = "</pre></textarea></title></style><script>window.hacked=1</script>\
    <img src=x onerror=window.hacked=1><style>body{display:none}</style><a href=\"javascript:window.hacked=1\">go</a>\
    \"' onfocus=window.hacked=1 autofocus x='";

/// As much of it as a label may hold.
const LABEL: &str = "\"><script>window.hacked=1</script>";

#[test]
fn hostile_text_stays_text() {
    let Some(browser) = browser(Look::default()) else { return };
    nothing_that_others_wrote_runs(&browser);
    an_address_that_others_made_runs_nothing(&browser);
}

fn nothing_that_others_wrote_runs(browser: &Browser) {
    let site = Site::start();
    let gate = Gate::new(site.directory(), "gate");
    std::fs::write(site.directory().join("words"), INJECTION).expect("written");
    let words = site.directory().join("words");
    let say = format!(
        "cat {0}; printf '\\033[31;\"><img src=x onerror=window.hacked=1>m\\033]8;;javascript:window.hacked=1\\033\\\\link\\033]8;;\\007\\033]0;title\\007'",
        words.display()
    );
    let command = format!("{say}; {}; {say}; echo {}; exit 1", gate.wait(), "the-end");
    let more = json!({"params": {"command": command, "env": {"WORDS": INJECTION}}, "labels": {"team": LABEL}});
    site.server.create(&merged(job("hostile", NEVER, "true", json!({})), more));
    site.server.create(&job("paused", NEVER, "true", json!({})));
    site.server.post("/v1/jobs/paused/pause", &json!({"reason": INJECTION}));
    site.sign_in(browser, Reader::Admin);

    // Who is told of it hears the same, and answers so.
    let answer = format!("cat {}; exit 3 # {INJECTION}", words.display());
    let route = json!({"when": ["failed"], "match": {"labels": {"team": LABEL}}, "to": [{"type": "command", "command": answer}]});
    assert_eq!(site.server.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);

    let run = site.server.run_now("hostile");
    site.server.started(&run);
    browser.open(&site.at(&format!("/runs/{run}")));
    browser.wait_for_text("#output", "<script>window.hacked=1</script>");
    nothing_ran(browser);
    gate.open();
    browser.wait_for_text("#output", "the-end");
    nothing_ran(browser);
    site.server.ended(&run);
    site.server.wait_until("the receiver has answered", || {
        site.server.get("/v1/deliveries")["items"][0]["answer"]
            .as_str()
            .is_some_and(|answer| answer.contains("<script>"))
    });

    for (path, element) in [
        (format!("/runs/{run}").as_str(), "#output"),
        ("/jobs/default/hostile", "pre.json"),
        ("/jobs/default/hostile/run", "main"),
        ("/jobs/default/paused", "main p.say.warn"),
        ("/jobs/default/hostile", "a.label"),
        ("/jobs?group=team", "table.jobs"),
        ("/jobs/default/hostile/edit", "form.edit"),
        ("/alerts", "table.routes"),
        ("/alerts", "table.messages"),
        ("/alerts/ops/edit", "form.edit"),
        ("/audit", "table.audit"),
        ("/audit?job=paused", ".diff"),
        ("/audit?action=alert.put", ".diff"),
    ] {
        browser.open(&site.at(path));
        let shown = browser.script(
            "const found = document.querySelector(arguments[0]);
             return found.textContent + [...found.querySelectorAll('textarea, input')].map((one) => one.value).join('')",
            vec![json!(element)],
        );
        let shown = shown.as_str().expect("text").replace("\\\"", "\"");
        assert!(shown.contains("<script>window.hacked=1</script>"), "{path}: {shown}");
        nothing_ran(browser);
    }
    for path in ["/", "/timeline", "/timeline?as=table", "/cluster"] {
        browser.open(&site.at(path));
        browser.wait_for("main");
        nothing_ran(browser);
    }
    a_crontab_runs_nothing(browser, &site);
}

/// Each part of a line that somebody pastes: a comment, a variable, a schedule at fault, a command.
fn a_crontab_runs_nothing(browser: &Browser, site: &Site) {
    let crontab = format!("# {INJECTION}\nMAILTO={INJECTION}\n{INJECTION}\n15 2 * * * echo {INJECTION}\n");
    browser.open(&site.at("/schedules"));
    browser.script("document.querySelector('#text').value = arguments[0]", vec![json!(crontab)]);
    browser.click("button[value=check]");
    browser.wait_for_text("table.lines", "<script>window.hacked=1</script>");
    nothing_ran(browser);
    browser.click("button[value=import]");
    browser.wait_for_text("#said", "Imported 1 job");
    nothing_ran(browser);
}

fn an_address_that_others_made_runs_nothing(browser: &Browser) {
    let site = Site::start();
    site.server.create(&job("greet", NEVER, "true", json!({})));
    site.sign_in(browser, Reader::Admin);
    let injection: String = INJECTION.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in [
        "/jobs?q=",
        "/jobs?label=",
        "/jobs?group=",
        "/jobs?namespace=",
        "/jobs?cursor=",
        "/?zone=",
        "/jobs?said=",
        "/jobs?sort=",
        "/audit?who=",
        "/audit?job=",
        "/audit?action=",
        "/audit?cursor=",
        "/alerts?route=",
        "/alerts?state=",
        "/alerts?said=",
        "/timeline?from=",
        "/timeline?until=",
        "/timeline?label=",
        "/timeline?q=",
        "/schedules?schedule=",
        "/schedules?timezone=",
        "/schedules?key=",
    ] {
        browser.open(&site.at(&format!("{path}{injection}")));
        browser.wait_for("main");
        nothing_ran(browser);
    }
    for (name, value) in [("name", INJECTION), ("namespace", INJECTION), ("schedule", INJECTION)] {
        let (status, answer) = site.server.call(
            "POST",
            "/v1/jobs",
            Some(&merged(job("a", NEVER, "true", json!({})), json!({name: value}))),
        );
        assert_eq!(status, 400, "{name}: {answer}");
    }
}

fn nothing_ran(browser: &Browser) {
    let found = browser.script(
        "return [window.hacked ?? null, document.querySelectorAll('script').length, getComputedStyle(document.body).display]",
        vec![],
    );
    assert_eq!(found, json!([null, 1, "block"]), "at {}", browser.url());
    for markup in ["img", "style", "[onerror]", "[onfocus]", "[href^='javascript:' i]", "[src=x]"] {
        assert!(!browser.has(markup), "{markup} at {}", browser.url());
    }
    no_complaint(browser);
}
