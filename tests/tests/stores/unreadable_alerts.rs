//! One stored row of alerts that cannot be read is left out and told. It holds up nobody else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use carillon_domain::alert::{DeliveryState, Fact, Part, Route, Subject, Trouble, What, When};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::alerts::{AlertError, Claimed, DeliveryClaim, DeliveryQuery};
use carillon_tests::conformance::alerts::{notices, put, route, run_once, step};
use carillon_tests::conformance::fixture::{at, job};
use carillon_tests::conformance::{Backups, StoreFixture};
use rusqlite::Connection;

use super::sqlite::bench;

fn damage(bench: &StoreFixture, statement: &str) {
    let Some(Backups::Sqlite(path)) = &bench.backups else { unreachable!("it is a store in a file") };
    let path: &PathBuf = path;
    assert_eq!(Connection::open(path).unwrap().execute(statement, []).unwrap(), 1);
}

async fn unreadable(bench: &StoreFixture) -> Vec<(&'static str, String)> {
    let found = bench.store.unreadable_alerts().await.unwrap();
    assert!(found.iter().all(|row| row.problem.contains("cannot be read")), "{found:?}");
    found.into_iter().map(|row| (row.noun, row.id)).collect()
}

async fn claim(bench: &StoreFixture) -> Vec<Claimed> {
    let request = DeliveryClaim { session: bench.me, limit: 9, in_flight: BTreeMap::new(), per_host: 9 };
    bench.store.claim_deliveries(&request).await.unwrap()
}

fn full(node: &str) -> Fact {
    let what = What::Trouble(Trouble::DiskFull { path: "/var".into(), free: 7 });
    Fact { at: at(1), subject: Subject::Cluster(Part::node(node)), what }
}

#[tokio::test]
async fn a_route() {
    let bench = bench().await;
    bench.create(job("a")).await;
    for name in ["bad", "good"] {
        put(&bench, &route(name, &[When::Failed])).await;
    }
    bench.store.test_route("bad", &author()).await.unwrap();
    damage(&bench, "UPDATE alert_route SET document = '{\"when\": [\"tomorrow\"]}' WHERE name = 'bad'");

    run_once(&bench, Status::Failed).await;
    assert_eq!(step(&bench).await.notices, 1);
    let names: Vec<String> = bench.store.routes().await.unwrap().into_iter().map(|stored| stored.route.name).collect();
    assert_eq!((names, unreadable(&bench).await), (vec!["good".to_owned()], vec![("route", "bad".to_owned())]));
    assert!(matches!(bench.store.route("bad").await, Err(AlertError::Unreadable { version: 1, .. })));
    let told: Vec<u64> = claim(&bench).await.into_iter().map(|claimed| claimed.id).collect();
    assert_eq!(told, [2], "that of the route waits");

    let stored = bench.store.put_route(&route("bad", &[When::Failed]), Some(1), &author()).await.unwrap();
    assert_eq!((stored.version, unreadable(&bench).await), (2, vec![]));
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(claim(&bench).await[0].id, 1);
    damage(&bench, "UPDATE alert_route SET document = '' WHERE name = 'bad'");
    bench.store.delete_route("bad", Some(2), &author()).await.unwrap();
    assert_eq!(unreadable(&bench).await, []);
}

#[tokio::test]
async fn the_only_route_keeps_the_journals_waiting() {
    let bench = bench().await;
    put(&bench, &route("ops", &[When::DiskFull])).await;
    damage(&bench, "UPDATE alert_route SET document = ''");
    assert!(bench.store.tell_fact(&full("x")).await.unwrap());
    assert_eq!(step(&bench).await.notices, 0);
    assert_eq!(unreadable(&bench).await, [("route", "ops".to_owned())]);
}

#[tokio::test]
async fn an_incident() {
    let bench = bench().await;
    put(&bench, &Route { repeat: Some(Duration::from_secs(60)), ..route("ops", &[When::DiskFull]) }).await;
    bench.go_to(1);
    for node in ["x", "y"] {
        assert!(bench.store.tell_fact(&full(node)).await.unwrap());
    }
    assert_eq!(step(&bench).await.notices, 2);
    damage(&bench, "UPDATE alert_incident SET document = '{}' WHERE id = (SELECT min(id) FROM alert_incident)");
    bench.go_to(61);
    let stepped = step(&bench).await;
    assert_eq!((stepped.notices, stepped.more, stepped.next_look), (1, false, Some(at(121))));
    assert_eq!(unreadable(&bench).await.len(), 1);

    // A fact opens it anew.
    for node in ["x", "y"] {
        let over = Fact { what: What::Over(When::DiskFull), ..full(node) };
        assert!(bench.store.tell_fact(&over).await.unwrap());
        assert!(bench.store.tell_fact(&full(node)).await.unwrap());
    }
    assert_eq!(step(&bench).await.notices, 2);
    assert_eq!(unreadable(&bench).await, []);
}

#[tokio::test]
async fn a_delivery() {
    let bench = bench().await;
    put(&bench, &route("ops", &[When::Failed])).await;
    for _ in 0..3 {
        bench.store.test_route("ops", &author()).await.unwrap();
        bench.clock.advance(Duration::from_secs(1));
    }
    damage(&bench, "UPDATE alert_delivery SET document = '{}' WHERE id = 1");
    damage(&bench, "UPDATE alert_delivery SET state = 'lost' WHERE id = 2");
    assert_eq!(notices(&bench).await.len(), 2);
    let told: Vec<u64> = claim(&bench).await.into_iter().map(|claimed| claimed.id).collect();
    assert_eq!(told, [3]);
    assert_eq!(unreadable(&bench).await, [("delivery", "1".to_owned())], "the state of the other was set right");
    let all = bench.store.deliveries(&DeliveryQuery { limit: 9, ..DeliveryQuery::default() }).await.unwrap().items;
    let ids: Vec<u64> = all.iter().map(|view| view.id).collect();
    assert_eq!(ids, [3, 2]);
    assert!(matches!(all[1].delivery.state, DeliveryState::Dead { .. }));
    assert_eq!(bench.store.delivery_counts().await.unwrap().dead, 2);
}

#[tokio::test]
async fn a_fact() {
    let bench = bench().await;
    put(&bench, &route("ops", &[When::DiskFull])).await;
    for node in ["x", "y"] {
        assert!(bench.store.tell_fact(&full(node)).await.unwrap());
    }
    damage(&bench, "UPDATE alert_fact SET document = '{}' WHERE seq = (SELECT max(seq) FROM alert_fact)");
    assert_eq!(step(&bench).await.notices, 1);
    assert_eq!(unreadable(&bench).await.len(), 1);
}
