//! A database server is killed under nodes that run jobs: no node ends, and nothing starts twice.

use std::time::{Duration, Instant};

use carillon_checker::judge;
use serde_json::{Value, json};

use super::{Cluster, Member, Witness};
use crate::databases;
use crate::jobs::job;
use crate::waiting::wait_until_within;

/// Longer than the others need to agree that a server is dead, and the nodes to find another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three nodes with the timing that nobody has configured run jobs through `writer`, which is killed.
///
/// # Panics
/// If a node ends, does not leave the dead server, or nodes are at different servers after it. If a job started twice or was missed
/// silently.
pub fn nodes_outlive(writer: &databases::Server, url: &str) {
    let cluster = Cluster::new(url, "");
    let witness = Witness::new(cluster.dir());
    let more = |lines: usize| {
        let before = witness.len();
        wait_until_within(PATIENCE, "the jobs go on", || witness.len() >= before + lines);
    };
    let nodes: Vec<Member> = ["a", "b", "c"].map(|name| cluster.member(name)).into();
    let third = nodes[2].server().expect("it runs");
    let servers = || {
        let (status, told) = third.call("GET", "/v1/cluster", None);
        let of = |node: &Value| node["server"].as_str().unwrap_or_default().to_owned();
        (status == 200).then(|| told["items"].as_array().expect("nodes").iter().map(of).collect::<Vec<_>>())
    };
    let names: Vec<String> = (0..20).map(|n| format!("job-{n}")).collect();
    let items: Vec<_> =
        names.iter().map(|name| job(name, "@every 1s", &witness.command(1, 100, "0"), json!({}))).collect();
    third.post("/v1/jobs:batch", &json!({ "items": items }));
    more(200);
    let before = servers().expect("an answer");
    let port = format!(":{}", writer.port());
    assert!(before.len() == 3 && before.iter().all(|server| server.contains(&port)), "{before:?}");

    let told = third.get("/v1/cluster");
    assert_eq!(told["timing_misfits"], json!([]), "the servers' own limits fit the default: {told}");
    assert!(told["timing"]["source"].as_str().is_some_and(|source| source.starts_with("the default for a ")), "{told}");
    eprintln!("timing: {}", told["timing"]);

    writer.kill();
    let killed = Instant::now();
    wait_until_within(PATIENCE, "every node has left the dead server", || {
        servers().is_some_and(|servers| servers.iter().all(|server| !server.contains(&port)))
    });
    eprintln!("every node had left the dead server after {:?}", killed.elapsed());
    more(400);
    let after = servers().expect("an answer");
    assert!(after.len() == 3 && after.iter().all(|server| *server == after[0]), "all at one server: {after:?}");
    assert_eq!(third.get("/v1/cluster")["lost_commits"], json!([]));

    let runs = third.settle(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let verdict = judge(&witness.evidence(&runs));
    assert!(verdict.is_clean(), "{verdict}");
    eprintln!("{verdict}");
    for node in nodes {
        assert!(node.ends().is_empty(), "{}: {:?}", node.name(), node.ends());
        assert!(node.drain().contains("exit status: 0"));
    }
}
