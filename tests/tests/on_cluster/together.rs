//! Nodes that start at once on an empty database, and the server that each tells.

use carillon_tests::cluster::{Cluster, PATIENT};
use carillon_tests::server::Server;
use serde_json::Value;

use super::{carillon, database, sessions};

#[test]
fn five_nodes_that_start_at_once_on_an_empty_database_come_up() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let nodes: Vec<Server> = std::thread::scope(|scope| {
        let starting = ["a", "b", "c", "d", "e"].map(|name| scope.spawn(|| cluster.node(name)));
        starting.into_iter().map(|node| node.join().expect("it comes up at its first try")).collect()
    });
    let told = sessions(&nodes[0]);
    assert_eq!(told.len(), 5, "{told:?}");
    let server = told[0]["server"].as_str().expect("a server");
    assert!(server.contains(&format!(":{}", database.port())), "{server}");
    assert!(told.iter().all(|session| session["server"] == server), "{told:?}");

    let shown = nodes[1].get("/v1/cluster");
    let database = &shown["database"];
    assert_eq!((&database["identity"], &database["trouble"]), (&server.into(), &Value::Null), "{shown}");
    // Anybody may ask whether a node is ready, so that names no server.
    let (status, _, ready) = nodes[1].call_raw("GET", "/readyz", &[], None);
    assert!(status == 200 && ready.starts_with("{\"status\":\"ready\"") && !ready.contains(server), "{status} {ready}");
    let (_, _, metrics) = nodes[2].call_raw("GET", "/metrics", &[], None);
    let info = format!("identity=\"{server}\",topology=\"one server\"}} 1");
    assert!(metrics.contains(&info) && metrics.contains("carillon_database_server_changes_total 0"), "{metrics}");
    let said = carillon(&nodes[3], &["cluster"]);
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains(&format!("writes through {server} (one server): it takes writes")), "{said}");
    let logged = nodes[4].log();
    assert!(logged.contains(server) && !logged.contains("secret"), "{logged}");
    for node in nodes {
        assert!(node.drain().success());
    }
}
