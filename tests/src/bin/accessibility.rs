//! Every screen of the page in both themes, on a wide window and on a phone, against axe-core in a real browser; and pictures of them.
//!
//! `./accessibility` fetches axe-core and calls this: `[axe=FILE] [pictures=DIRECTORY] [looks=DIRECTORY]`

use std::path::Path;
use std::process::ExitCode;

use carillon_tests::browser::{Browser, Look, missing};
use carillon_tests::page_site::{EMPTY_SCREENS, FULL_SCREENS, Reader, SCREENS, Site};
use carillon_tests::settings::Settings;
use serde_json::Value;

/// The rules of WCAG 2.2 up to AA, and those that axe's authors hold to be good practice.
const RUN: &str = "
    const done = arguments[arguments.length - 1];
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const options = { runOnly: { type: 'tag', values }, resultTypes: ['violations'], preload: false };
    axe.run(document, options).then((found) => done(found.violations), (error) => done(String(error)));";

/// The screens that README and docs/page.md show, and how high their pictures are.
const PICTURES: [(&str, u32); 12] = [
    ("overview", 800),
    ("jobs", 720),
    ("job", 900),
    ("run", 680),
    ("timeline", 800),
    ("schedule", 720),
    ("crontab", 720),
    ("edit", 900),
    ("conflict", 420),
    ("cluster", 640),
    ("alerts", 640),
    ("audit", 720),
];
/// A picture stands in the repository, so it may have so many bytes.
const LARGEST_PICTURE: u64 = 150_000;
/// How many jobs the fullest site has.
const MANY: usize = 10_000;

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
    let looks = settings.text("looks", "");
    if !looks.is_empty() {
        take_looks(&site, &browser, Path::new(looks));
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
    let empty = Site::start();
    let (mut bad, mut looks) = (0, 0);
    for (width, height) in [(1_280, 800), (360, 740)] {
        browser.resize(width, height);
        for dark in [false, true] {
            browser.prefer(dark);
            let mut look = |name: &str| {
                looks += 1;
                bad +=
                    violations(browser, axe, &format!("{name}, {}, {width} px", if dark { "dark" } else { "light" }));
            };
            browser.forget();
            browser.open(&site.at("/sign-in"));
            look("sign-in");
            for (site, screens) in [(site, &SCREENS[..]), (&empty, &EMPTY_SCREENS[..])] {
                site.sign_in(browser, Reader::Admin);
                for screen in screens {
                    site.show(browser, screen);
                    look(screen.name);
                }
                browser.open(&site.at("/no-such-page"));
                look("no such page");
            }
        }
    }
    println!("{looks} looks at screens; {bad} violations are serious or critical");
    bad
}

/// Runs axe on the page that is shown, and tells its findings; how many are serious or critical.
fn violations(browser: &Browser, axe: &str, shown: &str) -> usize {
    browser.script(axe, vec![]);
    let found = browser.script_async(RUN, vec![]);
    let violations = found.as_array().unwrap_or_else(|| panic!("axe failed on {shown}: {found}"));
    for violation in violations {
        println!("{shown}: {} {}: {}", violation["impact"], violation["id"], violation["help"]);
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
    for (name, height) in PICTURES {
        let screen = SCREENS.iter().find(|screen| screen.name == name).expect("a screen has this name");
        browser.resize(1_280, height);
        site.show(browser, screen);
        let file = directory.join(format!("{name}.png"));
        browser.picture(&file);
        let bytes = std::fs::metadata(&file).expect("the picture").len();
        assert!(bytes <= LARGEST_PICTURE, "{name} has {bytes} bytes, {LARGEST_PICTURE} are allowed");
        println!("{}: {bytes} bytes", file.display());
    }
    browser.resize(1_280, 800);
}

/// Pictures of every screen from top to bottom, for those who change its looks: three widths, both themes, no job and many.
fn take_looks(site: &Site, browser: &Browser, directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory for the pictures");
    let (empty, full) = (Site::start(), Site::with_many_jobs(MANY));
    for (of, site, screens) in
        [("", site, &SCREENS[..]), ("", &empty, &EMPTY_SCREENS[..]), ("full ", &full, &FULL_SCREENS[..])]
    {
        site.sign_in(browser, Reader::Admin);
        for (width, dark) in [(1_280, false), (1_280, true), (360, false), (360, true), (2_560, false), (2_560, true)] {
            browser.prefer(dark);
            for screen in screens {
                browser.resize(width, 800);
                site.show(browser, screen);
                let height = browser.script("return document.documentElement.scrollHeight", vec![]);
                browser.resize(
                    width,
                    height.as_u64().and_then(|height| u32::try_from(height).ok()).unwrap_or(800).clamp(800, 6_000),
                );
                let theme = if dark { "dark" } else { "light" };
                browser.picture(&directory.join(format!("{of}{} {width} {theme}.png", screen.name)));
            }
        }
    }
}
