//! The reports of the web page: each as it is, and only what the reader may see.

use carillon_domain::id::JobId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{
    Bounded, JobKey, JobList, JobListQuery, ListedJob, NamespaceScope, OutcomeCounts, Overview, OverviewQuery,
    SessionView,
};

use super::fixture::{BEGIN, StoreFixture, at, job, key};

/// A reader of one namespace.
fn only(namespace: &str) -> NamespaceScope {
    NamespaceScope::Only([namespace.to_owned()].into())
}

async fn list(bench: &StoreFixture, scope: &NamespaceScope, list: JobList, limit: usize) -> Bounded<ListedJob> {
    bench.store.job_lists(scope, &[JobListQuery { list, limit }]).await.unwrap().remove(0)
}

async fn names(bench: &StoreFixture, scope: &NamespaceScope, of: JobList) -> Vec<String> {
    let listed = list(bench, scope, of, 100).await;
    assert!(!listed.more);
    listed.items.into_iter().map(|job| job.view.job.name.clone()).collect()
}

async fn id_of(bench: &StoreFixture, name: &str) -> JobId {
    bench.view(name).await.state.id
}

/// Runs whatever is due next, and ends it so.
async fn run(bench: &StoreFixture, status: Status) {
    let running = bench.run_next().await;
    bench.finish(running, status).await;
}

/// The newest few of each, newest first.
pub async fn recent_runs_are_the_newest_of_each_job(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for status in [Status::Failed, Status::Succeeded, Status::TimedOut] {
        run(bench, status).await;
    }
    bench.create(Job { schedule: "@every 900s".into(), ..job("never") }).await;
    let (a, never) = (id_of(bench, "a").await, id_of(bench, "never").await);
    let recent = bench.store.recent_runs(&[a, never, JobId(999)], 2).await.unwrap();
    let statuses: Vec<_> = recent[&a].iter().map(|record| (record.due_at, record.status)).collect();
    assert_eq!(statuses, [(at(30), Status::TimedOut), (at(20), Status::Succeeded)]);
    assert_eq!(recent.len(), 1, "a job without history is not in the answer");
    assert!(bench.store.recent_runs(&[], 2).await.unwrap().is_empty());
}

/// From the beginning of the range, and before its end.
pub async fn runs_between_keep_to_their_range(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for _ in 0..6 {
        run(bench, Status::Succeeded).await;
    }
    let a = id_of(bench, "a").await;
    for (per_job, expected) in [(10, vec![at(40), at(30), at(20)]), (2, vec![at(40), at(30)])] {
        let between = bench.store.runs_between(&[a], at(20)..at(50), per_job).await.unwrap();
        assert_eq!(between[&a].iter().map(|record| record.due_at).collect::<Vec<_>>(), expected);
    }
}

/// From the first run that ends badly until one succeeds, whatever ends in between.
pub async fn a_job_is_in_trouble_until_a_run_succeeds(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.create(Job { schedule: "@every 900s".into(), ..job("idle") }).await;
    let scope = NamespaceScope::All;
    for (status, troubled_since) in [
        (Status::Succeeded, None),
        (Status::Failed, Some(at(20))),
        (Status::Lost, Some(at(20))),
        (Status::Cancelled, Some(at(20))),
        (Status::Succeeded, None),
        (Status::Cancelled, None),
        (Status::TimedOut, Some(at(70))),
    ] {
        run(bench, status).await;
        let listed = list(bench, &scope, JobList::Troubled, 10).await.items;
        assert_eq!(listed.first().and_then(|job| job.at), troubled_since, "{status:?}");
        let end = bench.view("a").await.state.last_end.unwrap();
        assert_eq!((end.status, end.troubled_since), (status, troubled_since));
        if let [troubled] = &listed[..] {
            assert_eq!(troubled.view.last_run.as_ref().map(|record| record.status), Some(status));
        }
    }
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    assert_eq!(names(bench, &scope, JobList::Troubled).await, [""; 0], "nobody repairs a job that is gone");
}

/// The newest trouble first, and only as many as asked for, of namespaces that the reader may see.
pub async fn the_newest_trouble_comes_first(bench: &StoreFixture) {
    for (name, namespace) in [("a", "default"), ("b", "other"), ("c", "default")] {
        bench.create(Job { namespace: namespace.into(), ..job(name) }).await;
        run(bench, Status::Failed).await;
        let key = JobKey { namespace: namespace.into(), name: name.into() };
        bench.store.pause(&key, None, None, &author()).await.unwrap();
    }
    let all = NamespaceScope::All;
    assert_eq!(names(bench, &all, JobList::Troubled).await, ["c", "b", "a"]);
    assert_eq!(names(bench, &only("default"), JobList::Troubled).await, ["c", "a"]);
    assert_eq!(names(bench, &only("none"), JobList::Troubled).await, [""; 0]);
    let two = list(bench, &all, JobList::Troubled, 2).await;
    assert_eq!((two.items.len(), two.more), (2, true));
}

/// A concurrent run has a row of its own; the job's row learns how it ended all the same.
pub async fn a_run_beside_gets_its_job_into_trouble_and_out(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    let scope = NamespaceScope::All;
    for (status, in_trouble) in [(Status::Failed, true), (Status::Succeeded, false), (Status::Failed, true)] {
        run(bench, status).await;
        assert_eq!(names(bench, &scope, JobList::Troubled).await.len(), usize::from(in_trouble), "{status:?}");
        assert_eq!(bench.view("a").await.state.last_end.map(|end| end.status), Some(status));
    }
    run(bench, Status::Succeeded).await;
    let lost = bench.run_next().await;
    assert!(bench.store.expire(None, bench.me, 0).await.unwrap());
    assert_eq!(bench.store.sweep(bench.me, 100).await.unwrap(), 1, "{lost:?}");
    assert_eq!(names(bench, &scope, JobList::Troubled).await, ["a"], "a swept run is lost");
}

/// Jobs that nobody claims although it is time, and jobs that come up.
pub async fn overdue_and_coming_jobs_are_listed(bench: &StoreFixture) {
    bench.create(job("soon")).await;
    bench.create(Job { schedule: "@every 60s".into(), namespace: "other".into(), ..job("later") }).await;
    bench.create(Job { schedule: "@every 900s".into(), ..job("much-later") }).await;
    bench.create(Job { schedule: "@every 20s".into(), ..job("paused") }).await;
    bench.store.pause(&key("paused"), None, None, &author()).await.unwrap();
    let all = NamespaceScope::All;
    let coming = JobList::Coming { until: at(100) };
    assert_eq!(names(bench, &all, coming).await, ["soon", "later"]);
    assert_eq!(names(bench, &only("default"), coming).await, ["soon"]);
    bench.go_to(70);
    assert_eq!(names(bench, &all, JobList::Overdue { since: at(20) }).await, ["soon"]);
    let overdue = list(bench, &all, JobList::Overdue { since: at(60) }, 10).await.items;
    assert_eq!(overdue.iter().map(|job| job.at).collect::<Vec<_>>(), [Some(at(10)), Some(at(60))]);
    assert_eq!(overdue[0].view.state.claim_at(), Some(at(10)));
    bench.claim().await;
    assert_eq!(names(bench, &all, JobList::Overdue { since: at(70) }).await, [""; 0], "what is held is not overdue");
    let held = list(bench, &all, coming, 10).await.items;
    assert!(held.len() == 2 && held.iter().all(|job| job.at.is_none() && job.view.node.is_some()));
    let queries = [coming, JobList::Troubled].map(|list| JobListQuery { list, limit: 1 });
    let lists = bench.store.job_lists(&all, &queries).await.unwrap();
    assert_eq!((lists[0].items.len(), lists[0].more, lists[1].items.len(), lists[1].more), (1, true, 0, false));
    assert!(bench.store.job_lists(&all, &[]).await.unwrap().is_empty());
}

async fn overview(bench: &StoreFixture, scope: NamespaceScope, running: usize, since: Timestamp) -> Overview {
    bench.store.overview(&OverviewQuery { scope, running, since }).await.unwrap()
}

/// Those that execute, of both tables.
pub async fn running_runs_are_listed(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench
        .create(Job { overlap: Overlap::Allow, schedule: "@every 11s".into(), namespace: "other".into(), ..job("b") })
        .await;
    bench.create(Job { schedule: "@every 29s".into(), ..job("prepared") }).await;
    let claimed = bench.claim().await;
    assert_eq!(claimed.len(), 3);
    bench.go_to(12);
    for one in &claimed[..2] {
        bench.started(one).await;
    }
    let now = overview(bench, NamespaceScope::All, 10, BEGIN).await;
    let held = |session: &SessionView| (session.node.clone(), session.prepared, session.executing);
    assert_eq!(now.sessions.iter().map(held).collect::<Vec<_>>(), [("node-1".to_owned(), 0, 0)], "not counted here");
    let counted = bench.store.sessions().await.unwrap();
    assert_eq!(counted.iter().map(held).collect::<Vec<_>>(), [("node-1".to_owned(), 1, 2)]);
    assert!(now.losses.is_empty() && now.any_job);
    let all = now.running;
    let seen: Vec<_> = all.items.iter().map(|run| (run.key.name.as_str(), run.node.as_deref())).collect();
    assert_eq!((seen, all.more), (vec![("a", Some("node-1")), ("b", Some("node-1"))], false));
    let other = overview(bench, only("other"), 10, BEGIN).await.running;
    assert_eq!(other.items.iter().map(|run| run.key.name.as_str()).collect::<Vec<_>>(), ["b"]);
    let one = overview(bench, NamespaceScope::All, 1, BEGIN).await.running;
    assert_eq!((one.items.len(), one.more), (1, true));
    let unasked = overview(bench, NamespaceScope::All, 0, BEGIN).await.running;
    assert!(unasked.items.is_empty() && !unasked.more, "nobody looks whether there are any");
    let none = overview(bench, only("none"), 10, BEGIN).await;
    assert!(none.running.items.is_empty() && !none.any_job && none.sessions.len() == 1);
}

/// Rolls up until nothing is left, as the clock goes on; answers how many steps that took.
async fn roll_up(bench: &StoreFixture, limit: usize) -> usize {
    let mut steps = 0;
    for _ in 0..3 {
        bench.clock.set(bench.clock_in(2 * 60 * 60));
        while bench.store.roll_up(limit).await.unwrap().more {
            steps += 1;
            assert!(steps < 1_000, "it never ends");
        }
    }
    steps
}

/// In the five minutes in which it ended, by outcome, however often the counting is asked for.
pub async fn each_record_is_counted_once(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.create(Job { schedule: "@every 400s".into(), namespace: "other".into(), ..job("b") }).await;
    for status in [Status::Failed, Status::Succeeded, Status::Succeeded, Status::TimedOut] {
        run(bench, status).await;
    }
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    bench.go_to(390);
    run(bench, Status::Succeeded).await;
    assert!(overview(bench, NamespaceScope::All, 1, BEGIN).await.activity.is_empty());
    assert!(roll_up(bench, 2).await > 0, "a step is bounded");
    roll_up(bench, 100).await;
    let of = async |scope: NamespaceScope| {
        let buckets = overview(bench, scope, 1, BEGIN).await.activity;
        let bucket = |bucket: &carillon_store::ActivityBucket| (bucket.begins_at, bucket.outcomes, bucket.started);
        buckets.iter().map(bucket).collect::<Vec<_>>()
    };
    let first = OutcomeCounts { succeeded: 2, failed: 1, timed_out: 1, ..OutcomeCounts::default() };
    let second = OutcomeCounts { succeeded: 1, ..OutcomeCounts::default() };
    assert_eq!(of(NamespaceScope::All).await, [(at(0), first, 4), (at(300), second, 1)]);
    assert_eq!(of(only("other")).await, [(at(300), second, 1)]);
    assert_eq!(of(only("default")).await, [(at(0), first, 4)]);
    assert_eq!(of(NamespaceScope::Only(Default::default())).await, []);
    let since = overview(bench, NamespaceScope::All, 1, at(301)).await.activity;
    assert_eq!(since.len(), 1, "the five minutes of that instant are told whole");
}

/// Days tell of each run as soon as it is history, and of no run twice.
pub async fn days_tell_what_is_counted_and_what_is_not(bench: &StoreFixture) {
    bench.create(job("a")).await;
    run(bench, Status::Failed).await;
    run(bench, Status::Succeeded).await;
    let a = id_of(bench, "a").await;
    let days = async || {
        let days = bench.store.days_of_job(a, BEGIN).await.unwrap();
        let day = |day: &carillon_store::JobDay| (day.begins_at, day.outcomes.succeeded, day.outcomes.failed);
        days.iter().map(day).collect::<Vec<(Timestamp, u64, u64)>>()
    };
    assert_eq!(days().await, [(BEGIN, 1, 1)]);
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    roll_up(bench, 100).await;
    assert_eq!(days().await, [(BEGIN, 1, 1)]);
    bench.store.resume(&key("a"), &author()).await.unwrap();
    bench.clock.set(BEGIN + std::time::Duration::from_secs(86_400));
    run(bench, Status::Succeeded).await;
    let two = days().await;
    assert_eq!(two.last(), Some(&(at(86_400), 1, 0)), "{two:?}");
    roll_up(bench, 100).await;
    assert_eq!(days().await, two);
    assert!(bench.store.days_of_job(JobId(999), BEGIN).await.unwrap().is_empty());
}
