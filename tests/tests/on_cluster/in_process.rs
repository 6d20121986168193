//! Runs in the node itself, which nobody can end without the node.

use std::os::unix::process::ExitStatusExt;

use carillon_tests::cluster::{Cluster, STEADY};
use carillon_tests::plugins::Place;
use carillon_tests::waiting::wait_until_within;
use nix::sys::signal::Signal;
use serde_json::json;

use super::{TAKEOVER, database, sessions};

/// A run that neither ends nor hears that it is to.
const LOOP: &str = r#"
#include <carillon_plugin.h>
#include <poll.h>

static void run(const carillon_run *run, carillon_result *result) {
    (void)run;
    (void)result;
    for (;;) {
        poll(0, 0, 10);
    }
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "loop", "1.0.0", 0, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
"#;

#[test]
fn a_frozen_node_with_a_run_in_it_is_dead_before_the_others_act() {
    let database = database();
    let place = Place::new();
    place.drop_c("loop.so", LOOP);
    let plugins = format!("[plugins]\ndir = {:?}\nin_process = [\"loop\"]\n", place.plugins());
    let cluster = Cluster::new(&database.url(), &(STEADY.to_owned() + &plugins));
    let frozen = cluster.node("a");
    frozen.post("/v1/jobs", &json!({"name": "endless", "schedule": "@yearly", "executor": "loop", "params": {}}));
    let run = frozen.run_now("endless");
    frozen.started(&run);
    let other = cluster.node("b");
    assert!(sessions(&other).iter().any(|session| session["node"] == "a" && session["state"] == "live"));
    frozen.signal(Signal::SIGSTOP);
    wait_until_within(TAKEOVER, "the run of the frozen node is given up", || other.run(&run)["status"] == "lost");
    let status = frozen.has_ended();
    assert_eq!(status.and_then(|status| status.signal()), Some(Signal::SIGKILL as i32), "{status:?}");
}
