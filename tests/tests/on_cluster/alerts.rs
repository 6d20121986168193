//! Deliveries of a cluster: a message outlives the node that sends it.

use carillon_tests::cluster::{BRISK, Cluster};
use carillon_tests::ear::{Ear, KEY};
use mysql_async::prelude::Queryable;
use serde_json::json;

#[test]
fn a_message_whose_sender_dies_is_sent_by_another_node() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = super::database();
    let cluster = Cluster::new(&database.url(), &(BRISK.to_owned() + "[alerts]\ntimeout = \"60s\"\n"));
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
