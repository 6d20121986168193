//! A screen of the page takes few statements of the database, whatever there is to see.

use carillon_domain::time::Timestamp;
use carillon_tests::chaos::now_us;
use carillon_tests::cluster::{Cluster, STEADY};
use carillon_tests::databases::{self, StatementCount};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use carillon_tests::waiting::{wait_for, wait_until};
use serde_json::json;

/// The most statements of a screen.
const MOST: u64 = 3;
/// A node that is not busy asks once a second and more. So a few tries find a moment in which it does not.
const TRIES: usize = 12;

/// The id of the first run of a job with this status.
fn run_with(node: &Server, job: &str, wanted: &str) -> String {
    let path = format!("/v1/jobs/{job}/runs");
    wait_for(&format!("{job} has a run that is {wanted}"), || {
        let runs = node.get(&path);
        let found = runs["items"].as_array()?.iter().find(|run| status(run) == wanted)?;
        Some(text(found, "id").to_owned())
    })
}

#[test]
fn no_screen_asks_more_than_three_statements() {
    // Questions are counted for the whole server.
    let server = databases::Server::start(crate::BRAND, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    let cluster = Cluster::new(&database.url(), STEADY);
    let gone = cluster.node("gone");
    gone.create(&job("loses", "@every 1s", "sleep 600", json!({})));
    let lost = run_with(&gone, "loses", "running");
    let node = cluster.node("a");
    gone.kill();
    assert_eq!(status(&node.ended(&lost)), "lost");
    node.post("/v1/jobs/loses/pause", &json!({"reason": "it is enough"}));
    node.create(&job("ends", NEVER, "echo done; exit 3", json!({"labels": {"team": "data"}})));
    let mut ended = String::new();
    for _ in 0..51 {
        ended = node.run_now("ends");
        assert_eq!(status(&node.ended(&ended)), "failed");
    }
    node.create(&job("pinged", NEVER, "true", json!({"ping": "http://127.0.0.1:1/"})));
    node.create(&job("overlaps", "@every 1s", "sleep 600", json!({})));
    let running = run_with(&node, "overlaps", "running");
    node.post("/v1/jobs/overlaps/pause", &json!({"reason": "it is enough"}));
    // The due times of a pause are recorded when it ends.
    node.create(&job("skips", "@every 1s", "true", json!({})));
    let skipped_yet = || node.get("/v1/jobs/skips/runs?status=skipped")["items"] != json!([]);
    wait_until("due times pass in a pause", || {
        node.post("/v1/jobs/skips/pause", &json!({}));
        node.post("/v1/jobs/skips/resume", &json!({}));
        skipped_yet()
    });
    node.post("/v1/jobs/skips/pause", &json!({}));
    let skipped = run_with(&node, "skips", "skipped");
    let (_, _, newest) = node.call_raw("GET", "/jobs/default/ends", &[("Accept", "text/html")], None);
    let cursor = newest.split("cursor=").nth(1).and_then(|rest| rest.split(['#', '"', '&']).next());
    let older = format!("/jobs/default/ends?cursor={}", cursor.expect("the job has older runs"));
    // A second attempt that is claimed, and waits for its time in a row of its own.
    let soon = Timestamp::from_ms(now_us() as i64 / 1_000 + 2_000);
    let retry = json!({"overlap": "allow", "retry": {"max_attempts": 2, "backoff": "28s"}});
    node.create(&job("again", &format!("@at {soon}"), "exit 1", retry));
    let waiting = run_with(&node, "again", "waiting");
    let mut count = StatementCount::on(&server);
    let screens = [
        format!("/runs/{waiting}"),
        "/".to_owned(),
        "/?zone=Europe/Vienna".to_owned(),
        "/jobs".to_owned(),
        "/jobs?group=team".to_owned(),
        "/jobs?q=end".to_owned(),
        "/jobs?q=no-such-job".to_owned(),
        "/jobs?label=team%3Ddata".to_owned(),
        "/jobs?outcome=failed".to_owned(),
        "/jobs?state=executing".to_owned(),
        "/jobs?state=paused".to_owned(),
        "/jobs?sort=next".to_owned(),
        "/jobs?sort=next&q=end".to_owned(),
        "/jobs?fragment=row:default/ends".to_owned(),
        "/jobs/default/ends".to_owned(),
        older,
        "/jobs/default/overlaps".to_owned(),
        "/jobs/default/overlaps/run".to_owned(),
        "/jobs/default/ends/pause".to_owned(),
        "/jobs/default/ends/delete".to_owned(),
        "/jobs/default/ends/edit".to_owned(),
        "/jobs/default/pinged".to_owned(),
        "/jobs/new".to_owned(),
        format!("/runs/{lost}"),
        format!("/runs/{ended}"),
        format!("/runs/{running}"),
        format!("/runs/{skipped}"),
        "/timeline".to_owned(),
        "/timeline?q=end&as=table".to_owned(),
        "/schedules?schedule=%2A%2F5+%2A+%2A+%2A+%2A".to_owned(),
        "/cluster".to_owned(),
        "/audit".to_owned(),
        "/audit?who=nobody".to_owned(),
    ];
    let mut greedy = Vec::new();
    for path in screens {
        let asked = count.fewest(TRIES, || {
            let (code, _, page) = node.call_raw("GET", &path, &[("Accept", "text/html")], None);
            assert!(code == 200 && page.contains("<main"), "{path}: {code} {page:.300}");
        });
        println!("{asked} statements for {path}");
        if asked > MOST {
            greedy.push(format!("{asked} for {path}"));
        }
    }
    let (_, _, page) = node.call_raw("GET", &format!("/runs/{lost}"), &[("Accept", "text/html")], None);
    assert!(page.contains("is lost: the session of its node ended before it told the outcome"), "{page}");
    assert!(page.contains("Its node ended before it could keep what the run printed."), "{page}");
    assert!(greedy.is_empty(), "more than {MOST} statements: {}", greedy.join(", "));
}
