//! A node tells its service manager how it is.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use carillon_tests::fixture::directory;
use carillon_tests::server::{PATIENCE, Server};
use nix::sys::signal::Signal;

#[test]
fn the_service_manager_hears_of_the_start_the_loop_and_the_end() {
    let dir = directory();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    let hear = || {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).expect("the node says something in time");
        String::from_utf8(buffer[..length].to_vec()).expect("it is text")
    };
    let grant = Duration::from_secs(3).as_micros().to_string();
    let server = Server::start_as(dir.path(), |command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", grant).env_remove("WATCHDOG_PID")
    });
    let mut heard = Vec::new();
    while heard.iter().filter(|message| *message == "WATCHDOG=1").count() < 3 {
        heard.push(hear());
    }
    assert!(heard.iter().any(|message| message == "READY=1"), "{heard:?}");
    assert!(heard.iter().any(|message| message == "STATUS=schedules"), "{heard:?}");
    server.signal(Signal::SIGTERM);
    while heard.last().is_none_or(|message| message != "STOPPING=1\nSTATUS=draining") {
        heard.push(hear());
    }
    assert!(server.wait().success());
}

#[test]
fn a_node_whose_manager_cannot_be_reached_by_its_address_does_not_start() {
    let dir = directory();
    let refused = Server::try_listen(dir.path(), |command| command.env("NOTIFY_SOCKET", "x".repeat(200)));
    let (status, log) = refused.err().expect("the server is refused");
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("unset NOTIFY_SOCKET"), "{log}");
}
