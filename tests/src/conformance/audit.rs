//! The audit log: an entry is there exactly when its change is.

use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::job::Job;
use carillon_domain::store::{AuditDocument, Author};
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{AuditQuery, AuditState, AuditView, JobKey, Page, PutIf, PutJob};

use super::fixture::{StoreFixture, at, job, key};

fn ann() -> Author {
    Author::new("ann", "10.0.0.9 curl/8")
}

async fn page(bench: &StoreFixture, query: AuditQuery) -> Page<AuditView, u64> {
    bench.store.audit(&query).await.unwrap()
}

/// The whole log, newest first.
async fn log(bench: &StoreFixture) -> Vec<AuditView> {
    page(bench, AuditQuery { limit: 10_000, ..AuditQuery::default() }).await.items
}

/// The actions, oldest first.
async fn actions(bench: &StoreFixture) -> Vec<String> {
    log(bench).await.into_iter().rev().map(|view| view.action).collect()
}

fn params_of(state: Option<&AuditState>) -> Option<&str> {
    match state? {
        AuditState::Known(AuditDocument::Job { definition, .. }) => Some(&definition.params),
        other => panic!("no state of a job: {other:?}"),
    }
}

/// Each change has one entry with its author, its target and both states; a change of nothing and a refusal have none.
pub async fn every_change_has_one_entry(bench: &StoreFixture) {
    let secret = |value: &str| Job {
        params: format!(r#"{{"command":"x","env":{{"P":{{"secret":true,"value":"{value}"}}}}}}"#),
        ..job("a")
    };
    let put = |job: Job, when| PutJob { job, paused: None, when, author: ann() };
    let store = &bench.store;
    let created = store.put_jobs(&[put(secret("hush"), PutIf::Any)]).await.unwrap().remove(0).unwrap();
    bench.go_to(1);
    assert!(store.put_jobs(&[put(secret("hush"), PutIf::Any)]).await.unwrap()[0].is_ok(), "unchanged");
    assert!(store.put_jobs(&[put(secret("no"), PutIf::Absent)]).await.unwrap()[0].is_err(), "refused");
    store.put_jobs(&[put(secret("husher"), PutIf::Any)]).await.unwrap().remove(0).unwrap();
    store.pause(&key("a"), None, Some("holiday".into()), &ann()).await.unwrap();
    store.resume(&key("a"), &ann()).await.unwrap();
    assert!(store.resume(&key("ghost"), &ann()).await.is_err());
    let run = bench.draw();
    let own = r#"{"env":{"P":{"secret":true,"value":"hush"}}}"#;
    store.trigger_with(&key("a"), run, Some(own.into()), &ann()).await.unwrap();
    store.cancel(run, &ann()).await.unwrap();
    assert!(store.cancel(run, &ann()).await.is_err(), "it has ended");
    assert!(store.delete_job(&key("a"), Some(99), &ann()).await.is_err());
    store.delete_job(&key("a"), None, &ann()).await.unwrap();

    let log = log(bench).await;
    let told: Vec<&str> = log.iter().rev().map(|view| view.action.as_str()).collect();
    let expected =
        ["job.created", "job.updated", "job.paused", "job.resumed", "job.run", "run.cancelled", "job.deleted"];
    assert_eq!(told, expected);
    for view in &log {
        assert_eq!((view.who.as_str(), view.origin.as_str()), ("ann", "10.0.0.9 curl/8"));
        assert_eq!(view.at, if view.action == "job.created" { at(0) } else { at(1) });
        assert_eq!((view.namespace.as_deref(), view.job.as_deref()), (Some("default"), Some("a")));
        assert_eq!(view.job_id, Some(created.view.state.id));
        assert_eq!(view.run, ["job.run", "run.cancelled"].contains(&view.action.as_str()).then_some(run));
        assert!(!format!("{view:?}").contains("hush"), "a secret is told: {view:?}");
    }
    let states = |action: &str| {
        let view = log.iter().find(|view| view.action == action).expect("it was told");
        (params_of(view.before.as_ref()), params_of(view.after.as_ref()))
    };
    let shown = Some(r#"{"command":"x","env":{"P":{"secret":true}}}"#);
    assert_eq!(states("job.created"), (None, shown));
    assert_eq!(states("job.updated"), (shown, shown), "only the value of the secret changed");
    assert_eq!(states("job.deleted"), (shown, None));
    let asked = log.iter().find(|view| view.action == "job.run").and_then(|view| view.after.as_ref());
    let own = r#"{"env":{"P":{"secret":true}}}"#;
    assert_eq!(asked, Some(&AuditState::Known(AuditDocument::RunParams(own.into()))));
    let paused = log.iter().find(|view| view.action == "job.paused").and_then(|view| view.after.as_ref());
    let Some(AuditState::Known(AuditDocument::Job { pause: Some(pause), .. })) = paused else { panic!("{paused:?}") };
    assert_eq!((pause.since, pause.reason.as_deref()), (at(1), Some("holiday")));
}

/// An acceptance has an entry of the cluster, once.
pub async fn an_acceptance_has_one_entry(bench: &StoreFixture) {
    bench.store.heartbeat(carillon_store::Me { session: bench.me, acked: 9 }, 1, false).await.unwrap();
    let accepted = bench.store.accept_losses(Duration::ZERO, &ann()).await.unwrap();
    assert_eq!(accepted.len(), 1);
    assert!(bench.store.accept_losses(Duration::ZERO, &ann()).await.unwrap().is_empty());
    let log = log(bench).await;
    let [view] = &log[..] else { panic!("{log:?}") };
    assert_eq!((view.action.as_str(), &view.namespace, &view.job), ("losses.accepted", &None, &None));
    assert_eq!(view.after, Some(AuditState::Known(AuditDocument::LossWindows(accepted))));
}

/// A thousand jobs have a thousand entries, whose ids ascend in the order of the puts and of the changes of each job.
pub async fn a_batch_has_an_entry_for_each_job(bench: &StoreFixture) {
    let puts = |params: &str| {
        let put = |n| PutJob {
            job: Job { params: params.into(), ..job(&format!("j{n:04}")) },
            paused: None,
            when: PutIf::Any,
            author: ann(),
        };
        (0..1_000).map(put).collect::<Vec<_>>()
    };
    for params in ["{}", "{}", r#"{"n":1}"#] {
        assert!(bench.store.put_jobs(&puts(params)).await.unwrap().iter().all(Result::is_ok));
    }
    let mut log = log(bench).await;
    log.reverse();
    let (created, updated) = log.split_at(1_000);
    for (part, action) in [(created, "job.created"), (updated, "job.updated")] {
        let names: Vec<_> = part.iter().map(|view| view.job.clone().unwrap()).collect();
        assert_eq!(names, (0..1_000).map(|n| format!("j{n:04}")).collect::<Vec<_>>());
        assert!(part.iter().all(|view| view.action == action));
    }
    assert!(log.is_sorted_by(|one, next| one.id < next.id));
}

/// Many change one job at once: each change has an entry, and each entry begins where the one before has ended.
pub async fn entries_of_a_job_follow_its_commits(bench: &StoreFixture) {
    bench.create(Job { params: "0".into(), ..job("a") }).await;
    let changes = (1..=20).map(|n| {
        let (store, put) = (bench.store.clone(), Job { params: n.to_string(), ..job("a") });
        tokio::spawn(async move {
            let put = [PutJob { job: put, paused: None, when: PutIf::Any, author: author() }];
            matches!(store.put_jobs(&put).await, Ok(answers) if answers[0].is_ok())
        })
    });
    let mut done = 0;
    for change in changes.collect::<Vec<_>>() {
        done += usize::from(change.await.unwrap());
    }
    let mut log = log(bench).await;
    log.reverse();
    assert_eq!(log.len(), 1 + done, "one entry for each change that was made");
    for pair in log.windows(2) {
        assert_eq!(pair[0].after, pair[1].before);
    }
    assert_eq!(params_of(log.last().unwrap().after.as_ref()), Some(bench.view("a").await.job.params.as_str()));
}

/// A change whose rows have moved on writes no entry.
pub async fn a_change_that_is_rolled_back_leaves_none(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let stale =
        PutJob { job: Job { params: "1".into(), ..job("a") }, paused: None, when: PutIf::Generation(9), author: ann() };
    let good = PutJob { job: job("b"), paused: None, when: PutIf::Absent, author: ann() };
    let answers = bench.store.put_jobs(&[stale, good]).await.unwrap();
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
    assert_eq!(actions(bench).await, ["job.created", "job.created"]);
    // The database takes back the one commit, with its entry.
    let Some(_) = &bench.backups else { return };
    bench.back_up().await;
    bench.create(job("c")).await;
    bench.restore().await;
    assert_eq!(actions(bench).await, ["job.created", "job.created"]);
}

/// Every filter finds its own, and the pages together are all, newest first.
pub async fn entries_by_filter_and_page_by_page(bench: &StoreFixture) {
    let named = |namespace: &str, name: &str| Job { namespace: namespace.into(), ..job(name) };
    let authors = [ann(), Author::new("bob", "::1")];
    for n in 0..12_u64 {
        bench.go_to(n);
        let job = named(["default", "prod", "test"][n as usize % 3], ["a", "b"][n as usize / 3 % 2]);
        let job = Job { params: n.to_string(), ..job };
        let put = PutJob { job, paused: None, when: PutIf::Any, author: authors[n as usize / 2 % 2].clone() };
        bench.store.put_jobs(&[put]).await.unwrap().remove(0).unwrap();
    }
    let all = log(bench).await;
    assert_eq!(all.len(), 12);
    let any = AuditQuery { limit: 100, ..AuditQuery::default() };
    let namespaces = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    type Wanted = fn(&AuditView) -> bool;
    let cases: [(AuditQuery, Wanted); 9] = [
        (AuditQuery { namespaces: namespaces(&["prod"]), ..any.clone() }, |it| it.namespace.as_deref() == Some("prod")),
        (AuditQuery { namespaces: namespaces(&["prod", "test"]), ..any.clone() }, |it| {
            it.namespace.as_deref() != Some("default")
        }),
        (AuditQuery { namespaces: namespaces(&[]), ..any.clone() }, |_| false),
        (AuditQuery { namespaces: namespaces(&["prod"]), job: Some("b".into()), ..any.clone() }, |it| {
            it.namespace.as_deref() == Some("prod") && it.job.as_deref() == Some("b")
        }),
        (AuditQuery { job: Some("b".into()), ..any.clone() }, |it| it.job.as_deref() == Some("b")),
        (AuditQuery { who: Some("bob".into()), ..any.clone() }, |it| it.who == "bob"),
        (AuditQuery { action: Some("job.updated".into()), ..any.clone() }, |it| it.action == "job.updated"),
        (AuditQuery { since: Some(at(4)), until: Some(at(9)), ..any.clone() }, |it| (at(4)..at(9)).contains(&it.at)),
        (AuditQuery { namespaces: namespaces(&["test"]), since: Some(at(9)), ..any }, |it| {
            it.namespace.as_deref() == Some("test") && it.at >= at(9)
        }),
    ];
    for (query, wanted) in cases {
        let expected: Vec<AuditView> = all.iter().filter(|view| wanted(view)).cloned().collect();
        for limit in [100, 1, 3] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = page(bench, AuditQuery { limit, after, ..query.clone() }).await;
                assert!(page.items.len() <= limit);
                found.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "{query:?} by {limit}");
        }
    }
}

/// Entries outlive their job, and go when they are too old: so many at once, the oldest first.
pub async fn old_entries_are_purged_in_steps(bench: &StoreFixture) {
    for n in 0..5 {
        bench.go_to(n);
        bench.create(job(&format!("j{n}"))).await;
    }
    bench.go_to(10);
    bench.store.delete_job(&key("j0"), None, &ann()).await.unwrap();
    bench.store.purge(at(1_000), 10, 100).await.unwrap();
    assert_eq!(log(bench).await.len(), 6, "history is kept by another rule");
    let purge = async |before: Timestamp| bench.store.purge_audit(before, 2).await.unwrap();
    assert_eq!(purge(at(0)).await, 0);
    assert_eq!((purge(at(3)).await, purge(at(3)).await, purge(at(3)).await), (2, 1, 0));
    let left: Vec<_> = log(bench).await.into_iter().map(|view| view.job.unwrap()).collect();
    assert_eq!(left, ["j0", "j4", "j3"]);
    let newest = log(bench).await[0].id;
    assert_eq!(purge(at(1_000)).await + purge(at(1_000)).await, 3);
    bench.create(job("again")).await;
    assert!(log(bench).await[0].id > newest, "an id is never used twice");
}

/// The calls of nodes write nothing into it.
pub async fn nodes_leave_no_entries(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.finish(running, carillon_domain::run::Status::Failed).await;
    let other: SessionId = bench.session(2).await;
    bench.store.expire(None, other, 0).await.unwrap();
    bench.store.sweep(other, 10).await.unwrap();
    bench.clock.set(bench.clock_in(0) + Duration::from_secs(1));
    assert_eq!(actions(bench).await, ["job.created"]);
}

/// A name that is used again is another job.
pub async fn a_name_that_comes_again_is_told_apart(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.store.delete_job(&key("a"), None, &ann()).await.unwrap();
    bench.create(job("a")).await;
    let of_a = AuditQuery {
        namespaces: Some(vec!["default".into()]),
        job: Some(JobKey::of(&job("a")).name),
        limit: 10,
        ..AuditQuery::default()
    };
    let ids: Vec<_> = page(bench, of_a).await.items.into_iter().map(|view| view.job_id.unwrap()).collect();
    assert!(ids.len() == 3 && ids[0] != ids[1] && ids[1] == ids[2], "{ids:?}");
}
