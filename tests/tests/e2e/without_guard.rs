//! A server that was built with debug assertions runs without a guard if the environment says so, and says so itself.

use std::process::{Command, Stdio};

use carillon_tests::fixture::directory;
use carillon_tests::processes::keeper_of;
use carillon_tests::server::{Server, binary};

const VARIABLE: &str = "CARILLON_WITHOUT_GUARD";

#[test]
fn a_removed_guard_is_told_loudly_and_the_keeper_hears_of_it() {
    let dir = directory();
    let server = Server::start_as(dir.path(), |command| command.env(VARIABLE, "keeper-deadline,run-id"));
    for name in ["run-id", "keeper-deadline"] {
        server.wait_until("it is told", || server.log().contains(&format!("THE GUARD {name} IS REMOVED")));
    }
    let words =
        std::fs::read_to_string(format!("/proc/{}/cmdline", keeper_of(server.pid()))).expect("its command line");
    assert!(words.contains("without-guard=run-id,keeper-deadline\0keeper\0"), "{words:?}");
}

#[test]
fn all_guards_stand_if_nothing_is_said() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    assert!(!server.log().contains("IS REMOVED"));
}

#[test]
fn a_guard_that_does_not_exist_is_refused() {
    let dir = directory();
    let mut command = Command::new(binary());
    command.args(["serve", "--bind", "127.0.0.1:0"]).current_dir(dir.path()).env(VARIABLE, "no-such-guard");
    let output = command.stdin(Stdio::null()).output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no guard \"no-such-guard\"; there are claim-idle, "), "{said}");
}
