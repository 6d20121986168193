//! Routes, and the watch step: each fact is judged once, and what follows from it is written with it.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::alert::{
    Fact, Incident, Notice, Part, Route, Selection, State, Subject, Target, Trouble, What, When,
};
use carillon_domain::id::SessionId;
use carillon_domain::job::{Job, Retry};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::alerts::{AlertError, DeliveryQuery, IncidentQuery, Message, Stepped};
use carillon_store::feed::JournalAsk;
use carillon_store::{AuditQuery, AuditState, Me, NewSession};

use super::fixture::{StoreFixture, at, job, key};

/// A route to one webhook, whose address and key are secret.
pub fn route(name: &str, when: &[When]) -> Route {
    let (url, secret) = ("https://example.org/hook?token=hush".to_owned(), Some("hush".to_owned()));
    Route {
        name: name.to_owned(),
        when: when.iter().copied().collect(),
        only: Selection::default(),
        after: 1,
        repeat: None,
        to: vec![Target::Webhook { url, secret }],
    }
}

/// Stores a route.
pub async fn put(bench: &StoreFixture, route: &Route) -> u64 {
    bench.store.put_route(route, None, &author()).await.unwrap().version
}

/// One step.
pub async fn step(bench: &StoreFixture) -> Stepped {
    bench.store.alert_step(1_000).await.unwrap()
}

/// Every notice, oldest first.
pub async fn notices(bench: &StoreFixture) -> Vec<Notice> {
    let ask = JournalAsk { after: 0, limit: 1_000, gaps: Vec::new() };
    let found = bench.store.notices_numbered(&ask).await.unwrap();
    assert!(found.rows.iter().all(|(number, _)| *number <= found.newest));
    found.rows.into_iter().map(|(_, notice)| notice).collect()
}

async fn told(bench: &StoreFixture) -> Vec<(When, State)> {
    notices(bench).await.into_iter().map(|notice| (notice.when, notice.state)).collect()
}

async fn open(bench: &StoreFixture) -> Vec<Incident> {
    bench.store.incidents(&IncidentQuery { limit: 100, ..IncidentQuery::default() }).await.unwrap()
}

/// Runs the next firing to its end.
pub async fn run_once(bench: &StoreFixture, status: Status) {
    let running = bench.run_next().await;
    bench.finish(running, status).await;
}

/// Each change raises the version and has an entry in the audit log, in which no secret stands; a change of nothing has none.
pub async fn a_route_is_stored_and_its_changes_are_told_without_secrets(bench: &StoreFixture) {
    let store = &bench.store;
    assert_eq!(store.routes().await.unwrap(), []);
    let ops = route("ops", &[When::Failed]);
    bench.go_to(5);
    let first = store.put_route(&ops, Some(0), &author()).await.unwrap();
    assert_eq!((first.version, first.created_at, first.updated_at), (1, at(5), at(5)));
    bench.go_to(6);
    assert_eq!(store.put_route(&ops, None, &author()).await.unwrap(), first, "nothing changes");
    let later = Route { after: 3, ..ops.clone() };
    let stale = store.put_route(&later, Some(0), &author()).await.unwrap_err();
    assert_eq!(stale, AlertError::Stale { expected: 0, current: 1 });
    let second = store.put_route(&later, Some(1), &author()).await.unwrap();
    assert_eq!((second.version, second.created_at, second.updated_at), (2, at(5), at(6)));
    assert_eq!(store.route("ops").await.unwrap(), second);
    put(bench, &route("all", &[When::Lost])).await;
    let names: Vec<String> = store.routes().await.unwrap().into_iter().map(|stored| stored.route.name).collect();
    assert_eq!(names, ["all", "ops"]);
    assert!(matches!(store.delete_route("ops", Some(1), &author()).await, Err(AlertError::Stale { .. })));
    store.delete_route("ops", Some(2), &author()).await.unwrap();
    let gone = AlertError::NoRoute("ops".into());
    assert_eq!(store.route("ops").await.unwrap_err(), gone);
    assert_eq!(store.delete_route("ops", None, &author()).await.unwrap_err(), gone);

    let log = store.audit(&AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap().items;
    let actions: Vec<&str> = log.iter().rev().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["alert.put", "alert.put", "alert.put", "alert.deleted"]);
    for state in log.iter().flat_map(|entry| [&entry.before, &entry.after]).flatten() {
        assert!(matches!(state, AuditState::Known(_)) && !format!("{state:?}").contains("hush"), "{state:?}");
    }
}

/// A failure is told once, and its end is.
pub async fn a_failure_and_its_end_are_told_once(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("ops", &[When::Failed, When::Recovered])).await;
    run_once(bench, Status::Succeeded).await;
    assert_eq!(step(bench).await.notices, 0);
    run_once(bench, Status::Failed).await;
    assert_eq!(step(bench).await.notices, 1);
    let again = step(bench).await;
    assert_eq!((again.facts, again.notices, again.more), (0, 0, false));
    assert_eq!(open(bench).await.len(), 1);
    run_once(bench, Status::Succeeded).await;
    assert_eq!(step(bench).await.notices, 1);
    assert_eq!(told(bench).await, [(When::Failed, State::Open), (When::Failed, State::Recovered)]);
    assert_eq!(open(bench).await, []);
    let all = notices(bench).await;
    assert_eq!((all[0].job.as_deref(), all[0].due_at), (Some("a"), Some(at(20))));
    assert_eq!(all[0].thread, all[1].thread);
}

/// A trouble that is over within one step is told with its end.
pub async fn what_begins_and_ends_between_two_steps_is_told(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("ops", &[When::Failed, When::Recovered])).await;
    run_once(bench, Status::Failed).await;
    run_once(bench, Status::Succeeded).await;
    step(bench).await;
    assert_eq!(told(bench).await, [(When::Failed, State::Open), (When::Failed, State::Recovered)]);
    assert_eq!(open(bench).await, []);
}

/// While there is no route nothing is judged, and a route is told nothing from before it.
pub async fn a_route_is_not_told_the_past(bench: &StoreFixture) {
    bench.create(job("a")).await;
    run_once(bench, Status::Failed).await;
    assert_eq!(step(bench).await, Stepped::default());
    bench.go_to(11);
    put(bench, &route("first", &[When::Failed])).await;
    assert_eq!(step(bench).await.notices, 0);
    run_once(bench, Status::Failed).await;
    bench.go_to(21);
    put(bench, &route("second", &[When::Failed])).await;
    step(bench).await;
    let names: Vec<String> = notices(bench).await.into_iter().map(|notice| notice.route).collect();
    assert_eq!(names, ["first"]);
    for name in ["first", "second"] {
        bench.store.delete_route(name, None, &author()).await.unwrap();
    }
    run_once(bench, Status::Failed).await;
    assert_eq!(step(bench).await, Stepped::default());
    bench.go_to(31);
    put(bench, &route("third", &[When::Failed])).await;
    assert_eq!(step(bench).await.notices, 0);
}

/// Nodes that step at the same time judge each fact once.
pub async fn nodes_that_step_at_once_judge_once(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("ops", &[When::Failed])).await;
    for _ in 0..3 {
        run_once(bench, Status::Failed).await;
        let (one, two, three) = tokio::join!(step(bench), step(bench), step(bench));
        assert_eq!(one.notices + two.notices + three.notices, 1);
    }
    assert_eq!(notices(bench).await.len(), 3);
}

/// A step over a few rows leaves the rest to the next one.
pub async fn a_step_is_bounded(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("ops", &[When::Failed])).await;
    for _ in 0..5 {
        run_once(bench, Status::Failed).await;
    }
    let mut steps = 0;
    loop {
        let stepped = bench.store.alert_step(2).await.unwrap();
        assert!(stepped.facts <= 2, "{stepped:?}");
        steps += 1;
        if !stepped.more {
            break;
        }
    }
    assert_eq!((steps, notices(bench).await.len()), (3, 5));
}

/// A failure is told once its last attempt has failed, or was dropped.
pub async fn a_failure_waits_for_its_next_attempt(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(5), ..Retry::default() };
    let retried = Job { retry, schedule: "@every 1000s".into(), ..job("a") };
    bench.create(retried.clone()).await;
    put(bench, &route("ops", &[When::Failed])).await;
    bench.go_to(990);
    run_once(bench, Status::Failed).await;
    assert_eq!((step(bench).await.notices, open(bench).await.len()), (0, 0));
    run_once(bench, Status::Failed).await;
    step(bench).await;
    assert_eq!(told(bench).await, [(When::Failed, State::Open)]);
    bench.go_to(1_990);
    run_once(bench, Status::Failed).await;
    assert_eq!(step(bench).await.notices, 0);
    bench.put(Job { schedule: "@every 5000s".into(), ..retried }).await;
    step(bench).await;
    bench.clock.advance(Duration::from_secs(200));
    step(bench).await;
    assert_eq!(told(bench).await.len(), 2, "no attempt comes any more");
}

/// The next attempt is looked for though its job is gone by the time that anybody looks.
pub async fn a_failure_that_was_tried_again_is_not_told_when_its_job_is_gone(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(5), ..Retry::default() };
    bench.create(Job { retry, schedule: "@every 1000s".into(), ..job("a") }).await;
    put(bench, &route("ops", &[When::Failed])).await;
    bench.go_to(990);
    run_once(bench, Status::Failed).await;
    run_once(bench, Status::Succeeded).await;
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    assert_eq!(step(bench).await.notices, 0);
}

/// The incidents of a deleted job are forgotten without a word.
pub async fn a_deleted_job_has_no_incidents(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("ops", &[When::Failed, When::Recovered])).await;
    run_once(bench, Status::Failed).await;
    step(bench).await;
    assert_eq!(open(bench).await.len(), 1);
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    assert_eq!(step(bench).await.notices, 0);
    assert_eq!(open(bench).await, []);
}

/// A job that leaves a route takes its incidents there along without a word; what a route is not asked for any more is not open.
pub async fn a_job_that_leaves_a_route_has_no_incidents_there(bench: &StoreFixture) {
    let labels = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
    let labelled = |team: &str| Job { labels: labels(team), ..job("a") };
    bench.create(labelled("data")).await;
    let only = Selection { labels: labels("data"), ..Selection::default() };
    let every = Some(Duration::from_secs(60));
    let when = [When::Failed, When::Recovered];
    put(bench, &Route { only, repeat: every, ..route("data", &when) }).await;
    put(bench, &route("ops", &when)).await;
    run_once(bench, Status::Failed).await;
    assert_eq!((step(bench).await.notices, open(bench).await.len()), (2, 2));
    bench.put(Job { timeout: Some(Duration::from_secs(5)), ..labelled("data") }).await;
    assert_eq!((step(bench).await.notices, open(bench).await.len()), (0, 2), "it stays on both");
    bench.put(labelled("web")).await;
    assert_eq!((step(bench).await.notices, open(bench).await.len()), (0, 1));
    bench.go_to(200);
    assert_eq!(step(bench).await.notices, 0, "nobody is told again");
    run_once(bench, Status::Succeeded).await;
    assert_eq!(step(bench).await.notices, 1);
    assert_eq!(notices(bench).await.last().map(|notice| notice.route.as_str()), Some("ops"));
    assert_eq!(open(bench).await, []);
}

/// A route that means something else forgets; another `repeat` is kept at once.
pub async fn a_changed_route_keeps_what_still_means_the_same(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let ops = route("ops", &[When::Failed]);
    put(bench, &ops).await;
    run_once(bench, Status::Failed).await;
    step(bench).await;
    put(bench, &Route { repeat: Some(Duration::from_secs(60)), ..ops.clone() }).await;
    assert_eq!(step(bench).await.next_look, Some(at(70)));
    bench.go_to(70);
    assert_eq!(step(bench).await.notices, 1, "it is still open");
    assert_eq!(notices(bench).await[1].repeats, 1);
    put(bench, &Route { after: 2, ..ops }).await;
    assert_eq!(open(bench).await, []);
    bench.go_to(1_000);
    assert_eq!(step(bench).await.notices, 0);
}

/// Output is told to a route that asks for it, also that of a run that went well.
pub async fn output_is_told_where_it_is_asked_for(bench: &StoreFixture) {
    bench.create(job("a")).await;
    put(bench, &route("mail", &[When::Output])).await;
    run_once(bench, Status::Succeeded).await;
    let running = bench.run_next().await;
    let output = carillon_store::Output { bytes: b"hello".to_vec(), truncated: false };
    let ending = super::fixture::ending(Status::Succeeded, bench.clock_in(0));
    let finished = carillon_store::Finished { at: running, ending, next: None, output: output.into() };
    bench.store.finish(Me::new(bench.me), &[finished], &[]).await.unwrap();
    assert_eq!(step(bench).await.notices, 1);
    let notice = notices(bench).await.remove(0);
    assert_eq!((notice.when, notice.run, notice.with_output), (When::Output, Some(running.run), true));
}

fn full(node: &str) -> Fact {
    let what = What::Trouble(Trouble::DiskFull { path: "/var".into(), free: 7 });
    Fact { at: at(1), subject: Subject::Cluster(Part::node(node)), what }
}

/// A trouble of the cluster is one fact until it is over.
pub async fn a_trouble_of_the_cluster_is_told_until_it_is_over(bench: &StoreFixture) {
    put(bench, &route("ops", &[When::DiskFull, When::Recovered])).await;
    let store = &bench.store;
    bench.go_to(1);
    let over = |node: &str| Fact { what: What::Over(When::DiskFull), ..full(node) };
    assert!(!store.tell_fact(&over("x")).await.unwrap(), "nothing is over that did not begin");
    assert!(store.tell_fact(&full("x")).await.unwrap());
    assert!(!store.tell_fact(&full("x")).await.unwrap());
    assert!(store.tell_fact(&full("y")).await.unwrap());
    assert_eq!(step(bench).await.notices, 2);
    assert!(store.tell_fact(&over("x")).await.unwrap());
    assert_eq!(step(bench).await.notices, 1);
    assert_eq!(open(bench).await.len(), 1);
    assert!(store.tell_fact(&full("x")).await.unwrap(), "it is full again");
    assert_eq!(step(bench).await.notices, 1);
}

/// A node that went silent is told by the call that ends its session, and its return by the one that registers it.
pub async fn a_lost_node_is_told_and_its_return(bench: &StoreFixture) {
    put(bench, &route("ops", &[When::NodeLost, When::Recovered])).await;
    let other = bench.session(2).await;
    step(bench).await;
    bench.go_to(9);
    for _ in 0..2 {
        assert!(bench.store.expire(Some(Me::new(bench.me)), other, 0).await.unwrap());
    }
    step(bench).await;
    assert_eq!(told(bench).await, [(When::NodeLost, State::Open)]);
    assert_eq!(notices(bench).await[0].part.as_deref(), Some("node node-2"));
    while bench.store.sweep(other, 10).await.unwrap() > 0 {}
    bench.session(2).await;
    step(bench).await;
    assert_eq!(told(bench).await, [(When::NodeLost, State::Open), (When::NodeLost, State::Recovered)]);
}

/// A node that is back before anybody missed it is told as lost, since its runs are, and as back.
pub async fn a_node_that_is_back_before_it_is_missed_is_told(bench: &StoreFixture) {
    put(bench, &route("ops", &[When::NodeLost, When::Recovered])).await;
    let old = bench.session(2).await;
    bench.go_to(3);
    let (id, node) = (SessionId::from_random(22), "node-2".to_owned());
    let new = NewSession { id, node, address: String::new(), version: String::new() };
    bench.store.open_session(&new).await.unwrap();
    bench.go_to(9);
    assert!(bench.store.expire(Some(Me::new(bench.me)), old, 0).await.unwrap());
    step(bench).await;
    assert_eq!(told(bench).await, [(When::NodeLost, State::Open), (When::NodeLost, State::Recovered)]);
    assert_eq!(open(bench).await, []);
    bench.go_to(19);
    assert!(bench.store.expire(Some(Me::new(bench.me)), id, 0).await.unwrap());
    step(bench).await;
    assert_eq!(open(bench).await.len(), 1, "nobody has taken its place");
}

/// A notice has one delivery for each target; a deleted route takes those along that wait.
pub async fn each_target_gets_a_delivery(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let mut ops = route("ops", &[When::Failed]);
    ops.to.push(Target::Mail { to: vec!["ops@example.org".into()] });
    put(bench, &ops).await;
    run_once(bench, Status::Failed).await;
    step(bench).await;
    let all = DeliveryQuery { limit: 100, ..DeliveryQuery::default() };
    let found = bench.store.deliveries(&all).await.unwrap().items;
    let kinds: Vec<(&str, u32)> = found.iter().map(|delivery| (delivery.kind.as_str(), delivery.place)).collect();
    assert_eq!(kinds, [("mail", 1), ("webhook", 0)]);
    let id = |message: &Message| match message {
        Message::Notice(notice) => notice.id,
        Message::Ping(ping) => ping.id,
    };
    assert_eq!(id(&found[0].message), id(&found[1].message));
    assert_eq!(notices(bench).await.len(), 1);
    bench.store.delete_route("ops", None, &author()).await.unwrap();
    assert_eq!(bench.store.deliveries(&all).await.unwrap().items, []);
}
