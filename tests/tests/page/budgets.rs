//! How much a first view of the page may cost.

use carillon_tests::browser::Look;
use carillon_tests::page_site::{Reader, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint, screens::layout_stays};

/// The parts of the page that the browser fetched: names, and bytes as they were sent and as they are.
const LOADED: &str = "
    const parts = performance.getEntriesByType('resource').filter((entry) => ['link', 'script', 'css', 'img'].includes(entry.initiatorType));
    return [...performance.getEntriesByType('navigation'), ...parts].map((entry) => [new URL(entry.name).pathname, entry.encodedBodySize, entry.decodedBodySize]);";

#[test]
fn a_first_view_is_small() {
    let Some(browser) = browser(Look::default()) else { return };
    let site = Site::with_history();
    let more = (0..180).map(|n| {
        json!({"name": format!("tenant-{n:03}"), "schedule": "*/10 * * * *", "params": {"command": "true"},
               "labels": {"team": "tenants"}})
    });
    site.server.post("/v1/jobs:batch", &json!({"items": more.collect::<Vec<_>>()}));
    site.sign_in(&browser, Reader::Admin);
    for (path, rows) in [("/", 0), ("/jobs", 50)] {
        browser.devtools("Network.clearBrowserCache", json!({}));
        browser.open(&site.at(path));
        let icon = browser.script_async(
            "const done = arguments[arguments.length - 1];
             fetch(document.getElementById('icon').href).then((answer) => answer.arrayBuffer()).then((body) => done(body.byteLength));",
            vec![],
        );
        assert_eq!(browser.count("tbody[data-rows=jobs] > tr"), rows);
        let loaded = browser.script(LOADED, vec![]);
        let loaded: Vec<&Value> = loaded.as_array().expect("entries").iter().filter(|entry| !is_icon(entry)).collect();
        let sent = |of: &dyn Fn(&Value) -> bool| -> u64 {
            loaded.iter().filter(|entry| of(entry)).filter_map(|entry| entry[1].as_u64()).sum()
        };
        let all = sent(&|_| true) + icon.as_u64().expect("the size of the icon");
        let style_and_script = sent(&|entry| ends_with(entry, &[".js", ".css"]));
        assert!((1_000..=24_000).contains(&style_and_script), "{path}: {style_and_script} bytes of style and script");
        assert!(all <= 60_000, "{path}: {all} bytes: {loaded:?}");
        assert!(
            loaded.iter().all(|entry| entry[1].as_u64() < entry[2].as_u64()),
            "all of it is compressed: {loaded:?}"
        );
        // With the icon.
        assert!(loaded.len() < 4, "{path}: {loaded:?}");
        let elements = browser.count("*");
        assert!(elements <= 3_000, "{path}: {elements} elements");
        layout_stays(&browser).unwrap_or_else(|moved| panic!("{path}: {moved}"));
        println!("{path}: {all} bytes, {style_and_script} of them style and script, {elements} elements");
    }
    no_complaint(&browser);
}

fn ends_with(entry: &Value, ends: &[&str]) -> bool {
    entry[0].as_str().is_some_and(|name| ends.iter().any(|end| name.ends_with(end)))
}

fn is_icon(entry: &Value) -> bool {
    ends_with(entry, &[".svg"])
}
