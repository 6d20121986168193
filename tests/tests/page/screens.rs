//! Every screen, in both themes, on a wide window and on a phone.

use carillon_tests::browser::{Browser, Look};
use carillon_tests::page_site::{EMPTY_SCREENS, Reader, SCREENS, Screen, Site};
use serde_json::{Value, json};

use super::{browser, no_complaint};

/// The elements that stick out to the right of the window, unless something around them scrolls.
const WIDER_THAN_THE_WINDOW: &str = "
    const scrolls = (element) => element.closest('.scroll, pre, dialog, .hidden, .skip') !== null;
    const outside = [...document.body.querySelectorAll('*')]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element));
    const width = document.documentElement.scrollWidth;
    return width <= innerWidth ? [] : [width, ...outside.map((element) => element.outerHTML.slice(0, 120))];";

/// How far things have moved since the page began, without a reader's doing, and which: each with its place before and after.
const LAYOUT_SHIFT: &str = "
    const done = arguments[arguments.length - 1], moved = [];
    let sum = 0;
    const place = ({ x, y, width, height }) => `${width}x${height} at ${x},${y}`;
    const told = ({ node, previousRect, currentRect }) => [node?.outerHTML?.slice(0, 200), place(previousRect), place(currentRect)];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries().filter((entry) => !entry.hadRecentInput)) {
            sum += entry.value;
            moved.push(...entry.sources.map(told));
        }
    }).observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => done([sum, moved]), 0);";

/// The rows whose height or place depends on how far off a time is: with long words in all countdowns, and with short ones.
const MOVED_BY_COUNTDOWNS: &str = "
    const rows = [...document.querySelectorAll('main tr, main li')];
    const places = () => rows.map((row) => row.getBoundingClientRect()).map(({ y, height }) => `${y} ${height}`);
    const times = [...document.querySelectorAll('time[data-rel], time[data-since]')], words = times.map((time) => time.textContent);
    const placesWith = (text) => { times.forEach((time) => time.textContent = text); return places(); };
    const wide = placesWith('in 23 h 59 min'), narrow = placesWith('in 1 s');
    times.forEach((time, n) => time.textContent = words[n]);
    return rows.filter((_, n) => wide[n] !== narrow[n]).map((row) => row.outerHTML.slice(0, 300));";

/// The rows of jobs that a run moves as it begins and ends: with the most that it may say of itself in every row, and with the least. Cells that
/// are as wide as before leave the words beside them where they are.
const MOVED_BY_RUNS: &str = "
    const rows = [...document.querySelectorAll('.jobs tbody tr')].filter((row) => row.cells.length > 1), before = rows.map((row) => row.innerHTML);
    const badge = (word) => {
        const made = document.querySelector('.jobs .o').cloneNode(true);
        made.lastChild.textContent = word;
        return made;
    };
    const places = () => rows.map((row) => [...row.cells].map((cell) => cell.getBoundingClientRect()).map(({ x, y, width, height }) => `${x} ${y} ${width} ${height}`).join());
    const placesWith = ([state, next, usually, node]) => {
        for (const { cells } of rows) {
            cells[1].replaceChildren(...state.flatMap((word) => [' ', badge(word)]));
            for (const [at, words] of [[5, next], [6, usually], [7, node]]) cells[at].textContent = words;
        }
        return places();
    };
    const most = placesWith([['completed', 'cancelled'], 'in 23 h 59 min 27 Mar 2026 23:30', '59 min 59 s', 'a-node-of-the-second-site']);
    const least = placesWith([['idle'], 'never', '–', '']);
    rows.forEach((row, n) => row.innerHTML = before[n]);
    return rows.flatMap((row, n) => most[n] === least[n] ? [] : [[row.outerHTML.slice(0, 200), most[n], least[n]]]);";

/// The sections that move when what follows them comes, as it does over a slow wire.
const MOVED_BY_WHAT_FOLLOWS: &str = "
    const followers = (part) => {
        const found = [];
        for (let at = part; at.id !== 'main'; at = at.parentElement) {
            for (let next = at.nextElementSibling; next; next = next.nextElementSibling) if (!next.hidden) found.push(next);
        }
        return found;
    };
    const place = (part) => (({ x, y, width }) => `${x} ${y} ${width}`)(part.getBoundingClientRect());
    return [...document.querySelectorAll('main section')].filter((part) => {
        const [later, whole] = [followers(part), place(part)];
        later.forEach((one) => one.hidden = true);
        const alone = place(part);
        later.forEach((one) => one.hidden = false);
        return alone !== whole;
    }).map((part) => part.outerHTML.slice(0, 200));";

/// The most that things may move.
const MOST_SHIFT: f64 = 0.02;

/// Whether everything stays where it is; the elements that moved if not.
pub fn layout_stays(browser: &Browser) -> Result<(), String> {
    let shift = browser.script_async(LAYOUT_SHIFT, vec![]);
    let is_little = shift[0].as_f64().is_some_and(|moved| moved <= MOST_SHIFT);
    if is_little { Ok(()) } else { Err(format!("the layout shifts by {}: {}", shift[0], shift[1])) }
}

#[test]
fn every_screen_loads_without_a_complaint_in_both_themes() {
    let Some(browser) = browser(Look::default()) else { return };
    looked_at(&browser, &Site::with_history(), &SCREENS);
    looked_at(&browser, &Site::start(), &EMPTY_SCREENS);
}

fn looked_at(browser: &Browser, site: &Site, screens: &[Screen]) {
    browser.resize(1_280, 800);
    site.sign_in(browser, Reader::Admin);
    no_complaint(browser);
    let grounds = [false, true].map(|dark| {
        browser.prefer(dark);
        for screen in screens {
            site.show(browser, screen);
            holds_what_every_screen_holds(browser, screen.name);
            no_complaint(browser);
        }
        browser.script("return getComputedStyle(document.body).backgroundColor", vec![])
    });
    assert_ne!(grounds[0], grounds[1], "the themes differ");
    browser.resize(360, 740);
    for screen in screens {
        site.show(browser, screen);
        let wider = browser.script(WIDER_THAN_THE_WINDOW, vec![]);
        assert_eq!(wider, json!([]), "{} scrolls sideways at 360 px", screen.name);
        no_complaint(browser);
    }
}

fn holds_what_every_screen_holds(browser: &Browser, name: &str) {
    assert!(browser.title().ends_with("· Carillon"), "{name}: {}", browser.title());
    for (css, expected) in [("main", 1), ("h1", 1), ("script", 1), ("style, [style], [onclick], img, iframe", 0)] {
        assert_eq!(browser.count(css), expected, "{name}: {css}");
    }
    layout_stays(browser).unwrap_or_else(|moved| panic!("{name}: {moved}"));
    assert_eq!(browser.script(MOVED_BY_COUNTDOWNS, vec![]), json!([]), "{name}: a countdown moves rows");
    assert_eq!(browser.script(MOVED_BY_RUNS, vec![]), json!([]), "{name}: a run moves rows");
    assert_eq!(
        browser.script(MOVED_BY_WHAT_FOLLOWS, vec![]),
        json!([]),
        "{name}: what comes later moves what is there"
    );
    let twice = browser.script(
        "const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
         return ids.filter((id, at) => ids.indexOf(id) !== at);",
        vec![],
    );
    assert_eq!(twice, Value::Array(Vec::new()), "{name}: ids that stand twice");
}
