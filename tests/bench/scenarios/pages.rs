//! The page beside a busy scheduler: how long each screen takes, how much it sends and asks, and what its readers cost.

use std::time::{Duration, Instant};

use carillon_tests::browser::{self, Browser, Look};
use carillon_tests::databases::StatementCount;
use carillon_tests::events::hold_readers;
use carillon_tests::processes::resident_kib;
use carillon_tests::skipped;
use serde_json::{Value, json};

use crate::found::{Found, Row};
use crate::http::Caller;
use crate::lab::Lab;
use crate::lags::Lags;
use crate::machine::now_ms;
use crate::many::{self, FIRST_JOB};
use crate::numbers;
use crate::site::{Setting, Site, Work, pause_until};

/// How far back the records go that are made, one each millisecond.
const DAYS: u64 = 5;
/// The events that the readers follow.
const FOLLOWED: &str = "?types=job.changed,session.changed";
/// How often the statements of a screen are counted: a node asks of its own accord meanwhile.
const TRIES: usize = 20;
/// The screens whose answers are renewed beside while they are looked at, and a pause after which no answer is good.
const RENEWED: [&str; 2] = ["overview", "timeline"];
const PAUSE: Duration = Duration::from_secs(3);
/// The screens that a browser paints.
const PAINTED: [&str; 4] = ["overview", "jobs", "job", "timeline"];

pub fn run(lab: &Lab, found: &mut Found) {
    let mut site = Site::empty(lab, &Setting::default());
    site.start_node();
    fill(lab, &site);
    let screens = screens(&site);
    let mut caller = Caller::signed_in(site.node());
    sizes(lab, &mut caller, &screens, found);
    readers(lab, &site, found);
    let pace = lab.size.paces[1];
    site.spread(Work::Noop, pace);
    pause_until(Instant::now() + lab.size.warm);
    for (name, path) in &screens {
        let times = times(&mut caller, path, lab.size.page_asks);
        let what = format!("page {name}, {} jobs, p99", lab.size.page_jobs);
        let note = format!("p50 {:.1} ms, beside {pace} firings/s", times.ms(50.0));
        found.row(Row::new(what, times.ms(99.0), "ms").at_most(25.0, 10.0).note(note));
    }
    let looks = (lab.size.page_asks / 40).max(1);
    for (name, path) in screens.iter().filter(|(name, _)| RENEWED.contains(name)) {
        let times = first_looks(&mut caller, path, looks);
        let what = format!("page {name}, first look after a pause, longest of {looks}");
        let note = format!("p50 {:.1} ms", times.ms(50.0));
        found.row(Row::new(what, times.ms(100.0), "ms").at_most(100.0, 30.0).note(note));
    }
    paints(&site, &screens, lab.size.paints, found);
}

/// Many jobs like one that is due each hour, though not while this runs, and their history.
fn fill(lab: &Lab, site: &Site<'_>) {
    let (jobs, records) = (lab.size.page_jobs, lab.size.history);
    let later = (now_ms() / 60_000 + 40) % 60;
    let mut template = Work::Noop.job("template", &format!("{later} * * * *"));
    template["labels"] = json!({"team": "data"});
    site.create(1, |_| template.clone());
    site.node().ended(&site.node().run_now("template"));
    site.wait_for_finished(1);
    numbers::prepare(&site.scratch);
    many::jobs(site, "template", true, (0, jobs));
    let since = now_ms() - i64::try_from(records).unwrap_or(0);
    many::records(site, jobs, since, records);
    let today = now_ms() / 86_400_000;
    let counts = "succeeded, failed, timed_out, cancelled, lost, skipped";
    site.scratch.fill(&[
        // All that is made here is counted already: a server would take long for it.
        "REPLACE INTO history_count SELECT n + 1, (SELECT MAX(seq) FROM run), (SELECT MAX(seq) FROM run), 0 \
         FROM bench_numbers WHERE n < 2"
            .to_owned(),
        format!(
            "REPLACE INTO activity (namespace, begins_at, {counts}, started, lag_total_ms, lag_max_ms) \
             SELECT '', ({} DIV 300000 - n) * 300000, 290000 + n, n, 1, 1, 0, 7, 290000, 2900000, 900 + n \
             FROM bench_numbers WHERE n < 288",
            now_ms()
        ),
        format!(
            "REPLACE INTO job_day (day, job_id, {counts}) SELECT {today} - d.n, {FIRST_JOB} + a.n * 1000 + b.n, 20, 1, 0, 0, 0, 3 \
             FROM bench_numbers d JOIN bench_numbers a JOIN bench_numbers b WHERE d.n < {DAYS} AND a.n * 1000 + b.n < {jobs}"
        ),
        format!("REPLACE INTO job_day (day, job_id, {counts}) SELECT {today} - n, {FIRST_JOB}, 1430, 3, 1, 1, 0, 5 FROM bench_numbers WHERE n < 372"),
        "ANALYZE TABLE run".to_owned(),
    ]);
}

/// Every screen: its name and its path.
fn screens(site: &Site<'_>) -> Vec<(&'static str, String)> {
    let job = "stored-00000000";
    let runs = site.node().get(&format!("/v1/jobs/{job}/runs?limit=1"));
    let run = runs["items"][0]["id"].as_str().expect("a job of the list has run").to_owned();
    let path = |text: &str| text.to_owned();
    vec![
        ("overview", path("/")),
        ("jobs", path("/jobs")),
        ("jobs, searched", path("/jobs?q=d-000010")),
        ("jobs, searched in vain", path("/jobs?q=no-such-job")),
        ("jobs, by label", path("/jobs?label=team%3Ddata")),
        ("jobs, what is next", path("/jobs?sort=next")),
        ("jobs, what runs", path("/jobs?state=executing")),
        ("a row of jobs", format!("/jobs?fragment=row:default/{job}")),
        ("job", format!("/jobs/default/{job}")),
        ("job, run now", format!("/jobs/default/{job}/run")),
        ("job, edit", format!("/jobs/default/{job}/edit")),
        ("job, new", path("/jobs/new")),
        ("run", format!("/runs/{run}")),
        ("timeline", path("/timeline")),
        ("schedules", path("/schedules?schedule=%2A%2F5+%2A+%2A+%2A+%2A")),
        ("cluster", path("/cluster")),
        ("audit", path("/audit")),
    ]
}

/// How much each screen sends, and asks of the database, while nothing else is done.
fn sizes(lab: &Lab, caller: &mut Caller, screens: &[(&'static str, String)], found: &mut Found) {
    let mut count = StatementCount::on(&lab.server);
    let kb = |bytes: usize| bytes as f64 / 1_000.0;
    for (name, path) in screens {
        let page = caller.page(path);
        // A row that is put into a page brings nothing along.
        let parts = if path.contains("fragment=") { Vec::new() } else { parts_of(&page) };
        let loaded: usize = parts.iter().map(|part| caller.bytes(part)).sum();
        let (own, all) = (caller.bytes(path), caller.bytes(path) + loaded);
        let note = format!("{:.1} KB the page itself", kb(own));
        found.row(
            Row::new(format!("page {name}, with all it loads, compressed"), kb(all), "KB")
                .at_most(60.0, 30.0)
                .note(note),
        );
        let asked = count.fewest(TRIES.min(lab.size.page_asks), || _ = caller.bytes(path));
        found.row(Row::new(format!("page {name}, statements"), asked as f64, "").at_most(3.0, 1.0));
    }
}

/// The parts that a browser loads with a page: style, script and the icon that is shown.
fn parts_of(page: &str) -> Vec<String> {
    let links = page.split(['"', '\'']).filter(|text| text.starts_with('/'));
    let is_part = |path: &&str| [".css", ".js"].iter().any(|end| path.ends_with(end));
    let icon = page.split("id=\"icon\"").next().and_then(|before| before.rsplit("href=\"").next());
    let icon = icon.and_then(|rest| rest.split('"').next()).filter(|path| path.ends_with(".svg"));
    let mut parts: Vec<String> = links.filter(is_part).chain(icon).map(str::to_owned).collect();
    parts.sort();
    parts.dedup();
    assert!(parts.len() >= 2, "a page has style and script: {parts:?}");
    parts
}

/// How long a screen takes, over and over.
fn times(caller: &mut Caller, path: &str, asks: usize) -> Lags {
    let mut times = Lags::new();
    for _ in 0..asks {
        let began = Instant::now();
        caller.bytes(path);
        times.add(i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX));
    }
    times
}

/// How long a screen takes whose shared answers are all too old.
fn first_looks(caller: &mut Caller, path: &str, looks: usize) -> Lags {
    let mut times = Lags::new();
    for _ in 0..looks {
        pause_until(Instant::now() + PAUSE);
        let began = Instant::now();
        caller.bytes(path);
        times.add(i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX));
    }
    times
}

/// The cost of readers of events.
fn readers(lab: &Lab, site: &Site<'_>, found: &mut Found) {
    let (node, many) = (site.node(), lab.size.page_readers);
    let mut count = StatementCount::on(&lab.server);
    let mut rate = || {
        let (began, before) = (Instant::now(), count.now());
        pause_until(began + lab.size.window / 3);
        (count.now() - before) as f64 / began.elapsed().as_secs_f64()
    };
    let first = hold_readers(node, FOLLOWED, 1);
    let one = rate();
    let before_kib = resident_kib(node.pid());
    let others = hold_readers(node, FOLLOWED, many - 1);
    let thousand = rate();
    let each_kib = resident_kib(node.pid()).saturating_sub(before_kib) as f64 / (many - 1) as f64;
    drop((first, others));
    // A short window on a busy machine may see no statement.
    let more = (thousand / one.max(1.0) - 1.0).max(0.0) * 100.0;
    let note = format!("{one:.1} statements/s with one, {thousand:.1} with {many}");
    let what = format!("statements of {many} readers of events above those of one");
    found.row(Row::new(what, more, "%").at_most(5.0, 0.0).note(note));
    let what = format!("memory for each of {many} readers of events");
    found.row(Row::new(what, each_kib, "KiB").at_most(64.0, 16.0));
}

/// How long a browser takes from asking for a screen to its first paint with content.
fn paints(site: &Site<'_>, screens: &[(&'static str, String)], times_each: usize, found: &mut Found) {
    if let Some(why) = browser::missing() {
        return skipped::tell(&why);
    }
    let browser = Browser::start(Look::default());
    let at = |path: &str| format!("{}{path}", site.node().url());
    browser.open(&at("/sign-in"));
    browser.fill("#token", &site.node().token());
    browser.click("button.primary");
    browser.wait_for(".status .menu");
    for (name, path) in screens.iter().filter(|(name, _)| PAINTED.contains(name)) {
        let mut times: Vec<f64> = (0..times_each).map(|_| painted(&browser, &at(path))).collect();
        times.sort_by(f64::total_cmp);
        let what = format!("first paint of page {name} in Chromium");
        let note = format!("median of {times_each}, longest {:.0} ms", times[times_each - 1]);
        found.row(Row::new(what, times[times_each / 2], "ms").at_most(200.0, 100.0).note(note));
    }
}

fn painted(browser: &Browser, address: &str) -> f64 {
    const PAINT: &str = "const paint = performance.getEntriesByName('first-contentful-paint')[0]; return paint ? paint.startTime : null;";
    // Nothing is painted of a page that is already shown.
    browser.open("about:blank");
    browser.open(address);
    let mut paint = Value::Null;
    browser.wait("a first paint", || {
        paint = browser.script(PAINT, vec![]);
        paint.is_number()
    });
    paint.as_f64().unwrap_or(f64::NAN)
}
