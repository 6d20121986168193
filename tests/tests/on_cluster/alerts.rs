//! Alerts of a cluster: a message outlives the node that sends it, and a node tells of its clock and of a database that was away.

use carillon_tests::cluster::{Cluster, PATIENT, STEADY};
use carillon_tests::databases::{self, Surroundings};
use carillon_tests::ear::{Ear, KEY};
use carillon_tests::server::Server;
use carillon_tests::skipped;
use carillon_tests::waiting::wait_until_within;
use mysql_async::prelude::Queryable;
use serde_json::{Value, json};

/// A receiver of one kind of trouble and of its end.
pub(super) fn ear_for(node: &Server, when: &str) -> Ear {
    let ear = Ear::open();
    let route = json!({"when": [when, "recovered"], "to": [{"type": "webhook", "url": ear.url, "secret": KEY}]});
    assert_eq!(node.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);
    ear
}

/// The sentence of the next message, which is of that kind.
pub(super) fn told(ear: &Ear, when: &str, state: &str) -> String {
    let call = ear.next();
    assert!(call.is_signed());
    let told: Value = call.json();
    assert_eq!((&told["when"], &told["state"], &told["job"]), (&json!(when), &json!(state), &Value::Null), "{told}");
    told["sentence"].as_str().expect("a sentence").to_owned()
}

#[test]
fn a_node_that_dies_is_told_and_its_return() {
    let database = super::database();
    let cluster = Cluster::new(&database.url(), STEADY);
    let [first, second] = ["a", "b"].map(|name| cluster.node(name));
    let ear = ear_for(&first, "node_lost");
    second.kill();
    let sentence = told(&ear, "node_lost", "open");
    assert!(sentence.starts_with("Node b went silent"), "{sentence}");
    let _again = cluster.node("b");
    assert!(told(&ear, "node_lost", "recovered").starts_with("Node b is back"));
    assert!(ear.is_silent());
}

#[test]
fn a_clock_that_drifts_is_told_and_that_it_agrees_again() {
    let surroundings = Surroundings { clock: true, ..Surroundings::default() };
    let server = databases::Server::start_in(crate::BRAND, surroundings, &[]);
    let clock = match server.clock() {
        Ok(clock) => clock,
        Err(why) => return skipped::tell(&format!("an alert of a clock that drifts: {why}")),
    };
    let cluster = Cluster::new(&super::database_on(&server).url(), PATIENT);
    let node = cluster.node("a");
    let ear = ear_for(&node, "clock_drift");
    clock.put(5_000);
    let sentence = told(&ear, "clock_drift", "open");
    assert!(sentence.contains("node a") && sentence.contains("behind"), "{sentence}");
    clock.put(0);
    let sentence = told(&ear, "clock_drift", "recovered");
    assert!(sentence.contains("node a"), "{sentence}");
    assert!(ear.is_silent());
}

#[test]
fn a_database_that_was_away_is_told_once_it_is_back() {
    let server = databases::Server::start(crate::BRAND, &[]);
    let cluster = Cluster::new(&super::database_on(&server).url(), PATIENT);
    let node = cluster.node("a");
    let ear = ear_for(&node, "database_away");
    server.freeze();
    node.wait_for_log("the database has not answered for");
    assert_eq!((node.get_open("/readyz"), ear.is_silent()), (503, true), "nothing can be told meanwhile");
    server.thaw();
    let sentence = told(&ear, "database_away", "open");
    assert!(sentence.starts_with("Node a had no database from "), "{sentence}");
    node.wait_until("it is ready", || node.is_ready());
    // The message may come before the node that wrote it has its answer.
    wait_until_within(super::TAKEOVER, "the note is gone", || !note_of(&cluster).exists());
    assert!(ear.is_silent(), "it is told once");
}

fn note_of(cluster: &Cluster) -> std::path::PathBuf {
    cluster.dir().join("a").join("carillon-a.database-away")
}

/// A node that loses its database ends itself. Its next start knows why.
#[test]
fn a_node_that_ended_without_its_database_tells_it_at_its_next_start() {
    let server = databases::Server::start(crate::BRAND, &[]);
    let cluster = Cluster::new(&super::database_on(&server).url(), STEADY);
    let node = cluster.member("a");
    let ear = ear_for(&node.server().expect("it runs"), "database_away");
    server.stop();
    wait_until_within(super::TAKEOVER, "the node ends itself", || !node.ends().is_empty());
    assert!(node.ends()[0].1.contains("70"), "{:?}", node.ends());
    assert!(note_of(&cluster).exists() && ear.is_silent());
    server.start_again();
    let sentence = told(&ear, "database_away", "open");
    assert!(sentence.starts_with("Node a had no database from "), "{sentence}");
    wait_until_within(super::TAKEOVER, "the note is gone", || !note_of(&cluster).exists());
    assert!(ear.is_silent(), "it is told once");
}

#[test]
fn a_message_whose_sender_dies_is_sent_by_another_node() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = super::database();
    let cluster = Cluster::new(&database.url(), &(PATIENT.to_owned() + "[alerts]\ntimeout = \"60s\"\n"));
    let mut nodes = ["a", "b"].map(|name| cluster.node(name)).into_iter().collect::<Vec<_>>();
    let ear = Ear::that_answers_later();
    let route = json!({"when": ["failed"], "to": [{"type": "webhook", "url": ear.url, "secret": KEY}]});
    assert_eq!(nodes[0].call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);
    nodes[1].post("/v1/alerts/ops/test", &json!({}));
    let first = ear.next();
    assert!(first.is_signed());

    let mut conn = runtime.block_on(database.connect());
    let sending = "SELECT session FROM alert_delivery WHERE state = 'sending'";
    let session: i64 = runtime.block_on(conn.query_first(sending)).expect("it answers").expect("it is being sent");
    let of_sender = format!("{:016x}", session.cast_unsigned());
    let sender = super::sessions(&nodes[0]).into_iter().find(|one| one["id"] == of_sender.as_str());
    let name = sender.expect("the sender lives")["node"].as_str().expect("a name").to_owned();
    let place = usize::from(name == "b");
    nodes.remove(place).kill();
    let survivor = &nodes[0];
    let delivery = || survivor.get("/v1/deliveries")["items"][0].clone();
    assert_eq!((&delivery()["state"], ear.is_silent()), (&json!("sending"), true), "its lease holds");
    // As if the lease had run out: nobody waits five minutes for a test.
    let expire = "UPDATE alert_delivery SET claim_at = made_at, version = version + 1 WHERE state = 'sending'";
    runtime.block_on(conn.query_drop(expire)).expect("it is changed");

    let second = ear.next();
    assert!(second.is_signed());
    assert_eq!(second.json()["id"], first.json()["id"], "a repeat is told by its id");
    survivor.wait_until("it is sent", || delivery()["state"] == "sent");
    assert_eq!(delivery()["tries"], 2);
    assert!(ear.is_silent());
}
