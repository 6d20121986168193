//! Listings, as people see them.

use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;
use carillon_domain::store::Refusal;
use carillon_doubles::author;
use carillon_store::{ControlError, JobQuery, JobSort, RunQuery, RunStage};

use super::fixture::{StoreFixture, at, job, key};

async fn names(bench: &StoreFixture, query: JobQuery) -> Vec<String> {
    let query = JobQuery { limit: 100, ..query };
    bench.store.jobs(&query).await.unwrap().items.into_iter().map(|view| view.job.key()).collect()
}

/// Each job once, in the order of names, whatever the size of the page.
pub async fn jobs_page_by_page(bench: &StoreFixture) {
    for n in 0..10 {
        bench
            .create(Job { namespace: if n % 3 == 0 { "other" } else { "default" }.into(), ..job(&format!("j{n}")) })
            .await;
    }
    for limit in [1, 3, 10, 11] {
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = bench.store.jobs(&JobQuery { after, limit, ..JobQuery::default() }).await.unwrap();
            pages += 1;
            seen.extend(page.items.iter().map(|view| view.job.key()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, 10_usize.div_ceil(limit).max(1));
        assert!(seen.is_sorted() && seen.len() == 10, "{seen:?}");
    }
}

/// Namespace, prefix, label, state, paused.
pub async fn jobs_by_filter(bench: &StoreFixture) {
    let labels = |value: &str| [("team".to_owned(), value.to_owned())].into();
    bench.create(Job { labels: labels("data"), ..job("alpha") }).await;
    bench.create(Job { labels: labels("web"), schedule: "@every 900s".into(), ..job("beta") }).await;
    bench.create(Job { namespace: "other".into(), schedule: "@every 900s".into(), ..job("al_pha") }).await;
    let running = bench.run_next().await;
    bench.store.pause(&key("beta"), None, None, &author()).await.unwrap();
    let all = JobQuery::default;
    let namespace = |name: &str| JobQuery { namespace: Some(name.into()), ..all() };
    assert_eq!(names(bench, namespace("other")).await, ["other/al_pha"]);
    assert_eq!(names(bench, namespace("none")).await, [""; 0]);
    let prefix = |text: &str| JobQuery { prefix: Some(text.into()), ..all() };
    assert_eq!(names(bench, prefix("al")).await, ["default/alpha", "other/al_pha"]);
    assert_eq!(names(bench, prefix("al_")).await, ["other/al_pha"]);
    let label = |value: Option<&str>| JobQuery { label: Some(("team".into(), value.map(Into::into))), ..all() };
    assert_eq!(names(bench, label(None)).await, ["default/alpha", "default/beta"]);
    assert_eq!(names(bench, label(Some("web"))).await, ["default/beta"]);
    let state = |state: &str| JobQuery { state: Some(state.into()), ..all() };
    assert_eq!(names(bench, state("executing")).await, ["default/alpha"]);
    assert_eq!(names(bench, state("prepared")).await, [""; 0]);
    assert_eq!(names(bench, state("idle")).await, ["default/beta", "other/al_pha"]);
    assert_eq!(names(bench, JobQuery { paused: Some(true), ..all() }).await, ["default/beta"]);
    bench.finish(running, Status::Succeeded).await;
}

/// A record of a range stands for each due time in it, and for no other.
pub async fn runs_of_one_due_time(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let first = bench.run_next().await;
    let of = async |secs: u64| -> Vec<(u64, &'static str)> {
        let query = RunQuery { job: Some(key("a")), covering: Some(at(secs)), limit: 10, ..RunQuery::default() };
        let runs = bench.store.runs(&query).await.unwrap().items.into_iter();
        runs.map(|run| match run.stage {
            RunStage::Recorded { record, .. } => (record.count, record.status.as_str()),
            RunStage::Running { .. } => (0, "running"),
            RunStage::Waiting { .. } => (0, "waiting"),
        })
        .collect()
    };
    assert_eq!(of(10).await, [(0, "running")]);
    bench.go_to(45);
    bench.finish(first, Status::Failed).await;
    assert_eq!(bench.story("a").await.len(), 2);
    assert_eq!(of(10).await, [(1, "failed")]);
    for secs in [20, 30, 40] {
        assert_eq!(of(secs).await, [(3, "skipped")], "{secs}");
    }
    for secs in [9, 11, 50] {
        assert_eq!(of(secs).await, [], "{secs}");
    }
}

/// However many ask at the same time, everyone is answered what he asked for.
pub async fn many_look_at_once(bench: &StoreFixture) {
    for n in 0..30 {
        let schedule = if n == 7 { "@every 10s" } else { "@every 900s" }.to_owned();
        bench.create(Job { schedule, ..job(&format!("j{n}")) }).await;
    }
    let running = bench.run_next().await;
    let ask = |n: usize| {
        let store = bench.store.clone();
        tokio::spawn(async move { store.job(&key(&format!("j{n}"))).await })
    };
    let asked: Vec<_> = (0..200).map(|n| (n % 40, ask(n % 40))).collect();
    for (n, asked) in asked {
        match asked.await.unwrap() {
            Ok(view) => {
                assert_eq!((view.job.name.as_str(), n < 30), (format!("j{n}").as_str(), true));
                assert_eq!(
                    (view.state.phase.held().is_some(), view.node.as_deref()),
                    (n == 7, (n == 7).then_some("node-1"))
                );
            }
            Err(error) => assert!(n >= 30 && matches!(error, ControlError::Refused(Refusal::NoJob(_))), "{n}: {error}"),
        }
    }
    bench.finish(running, Status::Succeeded).await;
}

/// Whatever the filter, each job that it lets through is on one page.
pub async fn filtered_pages_see_all(bench: &StoreFixture) {
    for n in 0..12 {
        let labels = if n % 3 == 0 { [("team".to_owned(), "data".to_owned())].into() } else { Default::default() };
        bench.create(Job { labels, ..job(&format!("j{n:02}")) }).await;
    }
    for name in ["j01", "j06"] {
        bench.store.pause(&key(name), None, None, &author()).await.unwrap();
    }
    let held: Vec<_> = bench.claim().await.iter().map(|claimed| claimed.job.key()).collect();
    assert_eq!(held.len(), 10);
    let all = JobQuery::default;
    for (query, expected) in [
        (JobQuery { label: Some(("team".into(), None)), ..all() }, vec!["j00", "j03", "j06", "j09"]),
        (JobQuery { paused: Some(true), ..all() }, vec!["j01", "j06"]),
        (JobQuery { state: Some("idle".into()), ..all() }, vec!["j01", "j06"]),
        (JobQuery { prefix: Some("j1".into()), ..all() }, vec!["j10", "j11"]),
        (JobQuery { prefix: Some("j0".into()), paused: Some(true), ..all() }, vec!["j01", "j06"]),
        (JobQuery { state: Some("prepared".into()), prefix: Some("j1".into()), ..all() }, vec!["j10", "j11"]),
    ] {
        for limit in [1, 2, 100] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = bench.store.jobs(&JobQuery { limit, after, ..query.clone() }).await.unwrap();
                seen.extend(page.items.into_iter().map(|view| view.job.name.clone()));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{query:?}");
        }
    }
}

/// Running ones and history are one list; each run appears once.
pub async fn runs_page_by_page(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    bench.create(job("b")).await;
    for _ in 0..6 {
        for claimed in bench.claim().await {
            bench.clock.set(claimed.held.firing.start_at);
            let running = bench.started(&claimed).await;
            if claimed.held.firing.due_at != at(30) {
                bench.finish(running, Status::Succeeded).await;
            }
        }
    }
    for limit in [1, 2, 5, 100] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = bench.store.runs(&RunQuery { after, limit, ..RunQuery::default() }).await.unwrap();
            seen.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut ids: Vec<_> = seen.iter().map(|view| view.id).collect();
        assert_eq!(seen.iter().filter(|view| matches!(view.stage, RunStage::Running { .. })).count(), 2);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), seen.len()), (9, 9), "limit {limit}");
    }
}

/// Job, status, due times.
pub async fn runs_by_filter(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for status in [Status::Succeeded, Status::Failed, Status::Succeeded] {
        let running = bench.run_next().await;
        bench.finish(running, status).await;
    }
    let running = bench.run_next().await;
    let count = async |query: RunQuery| {
        let query = RunQuery { limit: 100, ..query };
        bench.store.runs(&query).await.unwrap().items.len()
    };
    let status = |status| RunQuery { status: Some(status), ..RunQuery::default() };
    assert_eq!(count(status(Status::Succeeded)).await, 2);
    assert_eq!(count(status(Status::Running)).await, 1);
    assert_eq!(count(RunQuery { since: Some(at(20)), until: Some(at(40)), ..RunQuery::default() }).await, 2);
    assert_eq!(count(RunQuery { namespace: Some("other".into()), ..RunQuery::default() }).await, 0);
    assert_eq!(count(RunQuery { job: Some(key("a")), ..RunQuery::default() }).await, 4);
    assert_eq!(bench.runs("a").await[0].id, running.run);
    let ghost = RunQuery { job: Some(key("ghost")), limit: 1, ..RunQuery::default() };
    assert!(bench.store.runs(&ghost).await.is_err());
}

/// The newest record.
pub async fn a_job_shows_its_last_run(bench: &StoreFixture) {
    bench.create(job("a")).await;
    assert_eq!(bench.view("a").await.last_run, None);
    for status in [Status::Succeeded, Status::Failed] {
        let running = bench.run_next().await;
        bench.finish(running, status).await;
        let last = bench.view("a").await.last_run.unwrap();
        assert_eq!((last.id, last.status), (running.run, status));
    }
}

/// How many rows each holds.
pub async fn sessions_show_what_they_hold(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.create(Job { schedule: "@every 29s".into(), ..job("b") }).await;
    bench.create(Job { overlap: Overlap::Allow, ..job("c") }).await;
    let claimed = bench.claim().await;
    bench.go_to(10);
    for one in &claimed[..2] {
        bench.started(one).await;
    }
    let sessions = bench.store.sessions().await.unwrap();
    assert_eq!((sessions[0].prepared, sessions[0].executing, sessions[0].node.as_str()), (1, 2, "node-1"));
}

/// Each call sees a part of the history; all parts have their turn, again and again.
pub async fn purge_goes_round(bench: &StoreFixture) {
    let names = ["a", "b", "c"];
    for name in names {
        bench.create(job(name)).await;
    }
    for _ in 0..40 {
        for claimed in bench.claim().await {
            bench.clock.set(claimed.held.firing.start_at);
            let running = bench.started(&claimed).await;
            bench.finish(running, Status::Succeeded).await;
        }
    }
    let records = async || {
        let mut records = Vec::new();
        for name in names {
            records.push(bench.records(name).await.len());
        }
        records
    };
    assert_eq!(records().await, [40, 40, 40]);
    let mut purged = 0;
    for _ in 0..150 {
        purged += bench.store.purge(at(0), 5, 1).await.unwrap();
    }
    assert_eq!((purged, records().await), (105, vec![5, 5, 5]));
    // Deleted jobs among many that keep their history.
    for name in names {
        bench.store.delete_job(&key(name), None, &author()).await.unwrap();
    }
    for n in 0..15 {
        let name = format!("never-run-{n}");
        bench.create(job(&name)).await;
        bench.store.delete_job(&key(&name), None, &author()).await.unwrap();
    }
    for _ in 0..30 {
        bench.store.purge(at(0), 5, 1).await.unwrap();
    }
    for n in 0..15 {
        let of_job = RunQuery { job: Some(key(&format!("never-run-{n}"))), limit: 1, ..RunQuery::default() };
        assert!(matches!(bench.store.runs(&of_job).await, Err(ControlError::Refused(Refusal::NoJob(_)))), "{n}");
    }
    assert_eq!(records().await, [5, 5, 5]);
}

/// A job may have more records than one call looks at: they are counted in several.
pub async fn purge_counts_in_parts(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for _ in 0..130 {
        for claimed in bench.claim().await {
            bench.clock.set(claimed.held.firing.start_at);
            let running = bench.started(&claimed).await;
            bench.finish(running, Status::Succeeded).await;
        }
    }
    let mut purged = 0;
    for _ in 0..200 {
        purged += bench.store.purge(at(0), 125, 1).await.unwrap();
    }
    assert_eq!((purged, bench.records("a").await.len()), (5, 125));
}

/// By age, by number, no more than asked for at once.
pub async fn purge_forgets(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for _ in 0..10 {
        let running = bench.run_next().await;
        bench.finish(running, Status::Succeeded).await;
    }
    assert_eq!(bench.store.purge(at(35), 1000, 2).await.unwrap(), 2);
    assert_eq!(bench.store.purge(at(35), 1000, 100).await.unwrap(), 1);
    assert_eq!(bench.store.purge(at(35), 1000, 100).await.unwrap(), 0);
    assert_eq!(bench.store.purge(at(0), 4, 2).await.unwrap(), 2);
    assert_eq!(bench.store.purge(at(0), 4, 100).await.unwrap(), 1);
    let dues: Vec<_> = bench.records("a").await.into_iter().map(|record| record.due_at).collect();
    assert_eq!(dues, [at(100), at(90), at(80), at(70)]);
}

/// A text anywhere in the name, whatever the case of its letters.
pub async fn jobs_whose_name_contains_a_text(bench: &StoreFixture) {
    for name in ["nightly-backup", "Backup-of_db", "report", "re%port"] {
        bench.create(job(name)).await;
    }
    let contains = |text: &str| JobQuery { contains: Some(text.into()), ..JobQuery::default() };
    assert_eq!(names(bench, contains("BACK")).await, ["default/Backup-of_db", "default/nightly-backup"]);
    assert_eq!(names(bench, contains("_")).await, ["default/Backup-of_db"]);
    assert_eq!(names(bench, contains("none")).await, [""; 0]);
    let idle = JobQuery { state: Some("idle".into()), paused: Some(false), ..contains("port") };
    assert_eq!(names(bench, idle).await.len(), 2);
    let page = bench.store.jobs(&JobQuery { limit: 1, ..contains("back") }).await.unwrap();
    let next = bench.store.jobs(&JobQuery { limit: 1, after: page.next, ..contains("back") }).await.unwrap();
    assert_eq!((next.items[0].job.name.as_str(), next.next), ("nightly-backup", None));
}

/// Those whose last run ended so.
pub async fn jobs_by_their_last_end(bench: &StoreFixture) {
    bench.create(Job { schedule: "@every 900s".into(), ..job("never") }).await;
    for (name, status) in [("a", Status::Failed), ("b", Status::Succeeded), ("c", Status::Cancelled)] {
        bench.create(job(name)).await;
        let running = bench.run_next().await;
        bench.finish(running, status).await;
        bench.store.pause(&key(name), None, None, &author()).await.unwrap();
    }
    let ended = |status| JobQuery { last_status: Some(status), ..JobQuery::default() };
    for (status, name) in [(Status::Failed, "a"), (Status::Succeeded, "b"), (Status::Cancelled, "c")] {
        assert_eq!(names(bench, ended(status)).await, [format!("default/{name}")], "{status:?}");
    }
    assert_eq!(names(bench, ended(Status::Lost)).await, [""; 0]);
    assert_eq!(names(bench, ended(Status::Skipped)).await, [""; 0], "no run ends so");
}

/// By the time at which something may start: held ones first, those to which nothing is to come last.
pub async fn jobs_in_the_order_in_which_they_come_up(bench: &StoreFixture) {
    for (name, every) in [("c", 900), ("b", 100), ("a", 10), ("d", 200), ("z", 15)] {
        bench.create(Job { schedule: format!("@every {every}s"), ..job(name) }).await;
    }
    bench.store.pause(&key("d"), None, None, &author()).await.unwrap();
    let held: Vec<_> = bench.claim().await.iter().map(|claimed| claimed.job.name.clone()).collect();
    assert_eq!(held, ["a", "z"]);
    let query = JobQuery { sort: JobSort::Next, ..JobQuery::default() };
    let in_default = JobQuery { namespace: Some("default".into()), ..query.clone() };
    for query in [query, in_default] {
        for limit in [1, 2, 3, 100] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = bench.store.jobs(&JobQuery { limit, after, ..query.clone() }).await.unwrap();
                seen.extend(page.items.into_iter().map(|view| view.job.name.clone()));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, ["a", "z", "b", "c", "d"], "limit {limit}");
        }
    }
}
