//! Every screen of the page in both themes against axe-core, in a real browser; and the pictures that README shows.
//!
//! `./accessibility` fetches axe-core and calls this: `axe=FILE [pictures=DIRECTORY]`

use std::path::Path;
use std::process::ExitCode;

use carillon_tests::browser::{Browser, Look, missing};
use carillon_tests::page_site::{Reader, SCREENS, Site};
use carillon_tests::settings::Settings;
use serde_json::{Value, json};

/// The rules of WCAG 2.2 up to AA, and those that axe's authors hold to be good practice.
const RUN: &str = "
    const done = arguments[arguments.length - 1];
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const options = { runOnly: { type: 'tag', values }, resultTypes: ['violations'], preload: false };
    axe.run(document, options).then((found) => done(found.violations), (error) => done(String(error)));";

/// A picture stands in the repository, so it may have so many bytes.
const LARGEST_PICTURE: u64 = 150_000;

fn main() -> ExitCode {
    let settings = Settings::of(std::env::args().skip(1));
    if let Some(why) = missing() {
        eprintln!("accessibility: {why}");
        return ExitCode::FAILURE;
    }
    let site = Site::with_history();
    let browser = Browser::start(Look::default());
    let pictures = settings.text("pictures", "");
    if !pictures.is_empty() {
        take_pictures(&site, &browser, Path::new(pictures));
    }
    let axe = settings.text("axe", "");
    if axe.is_empty() {
        return ExitCode::SUCCESS;
    }
    let axe = std::fs::read_to_string(axe).unwrap_or_else(|error| panic!("{axe} cannot be read: {error}"));
    match look_at_all(&site, &browser, &axe) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// How many violations are serious or critical.
fn look_at_all(site: &Site, browser: &Browser, axe: &str) -> usize {
    let (mut bad, mut looked) = (0, 0);
    browser.devtools("Network.clearBrowserCookies", json!({}));
    for dark in [false, true] {
        browser.prefer(dark);
        browser.open(&site.at("/sign-in"));
        bad += look(browser, axe, "sign-in", dark);
    }
    site.sign_in(browser, Reader::Admin);
    for dark in [false, true] {
        browser.prefer(dark);
        for screen in SCREENS {
            browser.open(&site.at(screen.path));
            browser.wait_for_text(screen.element, screen.words);
            bad += look(browser, axe, screen.name, dark);
            looked += 1;
        }
    }
    println!("{} looks at screens; {bad} violations are serious or critical", looked + 2);
    bad
}

/// Runs axe on the page that is shown, and tells its findings.
fn look(browser: &Browser, axe: &str, screen: &str, dark: bool) -> usize {
    browser.script(axe, vec![]);
    let found = browser.script_async(RUN, vec![]);
    let violations = found.as_array().unwrap_or_else(|| panic!("axe failed on {screen}: {found}"));
    let theme = if dark { "dark" } else { "light" };
    for violation in violations {
        println!("{screen}, {theme}: {} {}: {}", violation["impact"], violation["id"], violation["help"]);
        for node in violation["nodes"].as_array().into_iter().flatten() {
            let summary = node["failureSummary"].as_str().unwrap_or_default().replace('\n', " ");
            println!("    {}: {summary}", node["target"]);
        }
    }
    let is_bad = |violation: &&Value| matches!(violation["impact"].as_str(), Some("serious" | "critical"));
    violations.iter().filter(is_bad).count()
}

fn take_pictures(site: &Site, browser: &Browser, directory: &Path) {
    site.sign_in(browser, Reader::Admin);
    browser.wait("the server to count the history", || {
        browser.reload();
        browser.text("main").contains(" succeeded, ") && !browser.text("main").contains("Nothing ended within a day")
    });
    for (name, path, height) in [("overview.png", "/", 800), ("jobs.png", "/jobs", 720)] {
        browser.resize(1_280, height);
        browser.open(&site.at(path));
        browser.wait_for("main .o");
        let file = directory.join(name);
        browser.picture(&file);
        let bytes = std::fs::metadata(&file).expect("the picture").len();
        assert!(bytes <= LARGEST_PICTURE, "{name} has {bytes} bytes, {LARGEST_PICTURE} are allowed");
        println!("{}: {bytes} bytes", file.display());
    }
    browser.resize(1_280, 800);
}
