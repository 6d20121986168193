//! A disk that fills up or refuses writes under a running server: nothing is lost, and it goes on by itself.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use carillon_tests::accounting::account;
use carillon_tests::fixture::{directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::json;

/// A small disk of its own; `None`, loudly, where the test may not mount one.
pub struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    /// Mounted at `place`.
    pub fn new(place: &'a Path, options: &str) -> Option<Self> {
        std::fs::create_dir_all(place).expect("a directory can be made");
        match mount(Some("none"), place, Some("tmpfs"), MsFlags::empty(), Some(options)) {
            Ok(()) => Some(Self(place)),
            Err(error) => {
                eprintln!("SKIPPED: a disk of its own cannot be mounted ({error}); run the tests as root for this one");
                None
            }
        }
    }

    /// Takes all space that is left; the file to remove for giving it back.
    pub(super) fn fill(&self) -> std::path::PathBuf {
        let filler = self.0.join("filler");
        let mut file = File::options().create(true).append(true).open(&filler).expect("a file can be made");
        for size in [65_536, 4_096, 512, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        filler
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

/// A server with its database in `disk`, a ticking job, and a job that prints much each second.
fn serve(dir: &Path, disk: &Path) -> (Server, std::path::PathBuf) {
    let url = format!("sqlite://{}/carillon.db", disk.display());
    let server = Server::start(dir, &["--store", &url]);
    let ticks = dir.join("ticks");
    if server.call("GET", "/v1/jobs/tick", None).0 == 404 {
        let command = format!("echo $CARILLON_DUE_AT >> {}", ticks.display());
        server.create(&job("tick", "@every 1s", &command, json!({})));
        server.create(&job("prints", "@every 1s", "head -c 60000 /dev/urandom | base64 -w 0", json!({})));
        wait_for_lines(&ticks, 1);
    }
    (server, ticks)
}

fn check(server: &Server, ticks: &Path) {
    let seen = lines(ticks).len();
    wait_for_lines(ticks, seen + 2);
    for name in ["tick", "prints"] {
        let runs = server.settle(&[name]);
        let account = account(&runs, 1_000);
        assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{runs:#?}");
        assert!(!account.runs.contains_key("lost"), "nothing is lost while the server lives: {account:?}");
    }
    let mut started = lines(ticks);
    let count = started.len();
    started.sort();
    started.dedup();
    assert_eq!(started.len(), count, "no due time started twice");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn a_full_disk_stops_new_starts_only_and_is_got_over() {
    let dir = directory();
    let place = dir.path().join("disk");
    let Some(disk) = Disk::new(&place, "size=4m") else { return };
    let (server, ticks) = serve(dir.path(), &place);
    let long = format!("echo up >> {}; sleep 3; echo done", dir.path().join("up").display());
    server.create(&job("long", NEVER, &long, json!({})));
    let id = server.run_now("long");
    wait_for_lines(&dir.path().join("up"), 1);
    let filler = disk.fill();
    server.wait_until("not ready", || {
        disk.fill();
        server.get_open("/readyz") == 503
    });
    let (_, answer) = server.call("GET", "/readyz", None);
    assert!(text(&answer, "detail").starts_with("the database does not take"), "{answer}");
    let mut refused = serde_json::Value::Null;
    let mut made = 0;
    server.wait_until("a write is refused", || {
        let (code, answer) =
            server.call("POST", "/v1/jobs", Some(&job(&format!("new-{made}"), NEVER, "true", json!({}))));
        made += 1;
        refused = answer;
        assert!(code == 201 || code == 503, "{code} {refused}");
        code == 503
    });
    assert!(text(&refused, "detail").contains("full"), "{refused}");
    assert!(["not_applied", "unknown"].contains(&text(&refused, "outcome")), "{refused}");
    assert_eq!(server.get_open("/healthz"), 200);
    assert_eq!(server.get("/v1/jobs/tick")["name"], "tick", "reading goes on");
    std::fs::remove_file(filler).expect("space can be given back");
    server.wait_until("ready again", || server.is_ready());
    let ended = server.ended(&id);
    assert_eq!((status(&ended), text(&ended, "output")), ("succeeded", "done\n"));
    for n in 0..made - 1 {
        assert_eq!(server.call("GET", &format!("/v1/jobs/new-{n}"), None).0, 200, "what was answered 201 is there");
    }
    if text(&refused, "outcome") == "not_applied" {
        assert_eq!(server.call("GET", &format!("/v1/jobs/new-{}", made - 1), None).0, 404, "{refused}");
    }
    check(&server, &ticks);
    assert!(server.drain().success());
}

#[test]
fn a_crash_on_a_full_disk_loses_nothing_that_was_acknowledged() {
    let dir = directory();
    let place = dir.path().join("disk");
    let Some(disk) = Disk::new(&place, "size=4m") else { return };
    let (server, ticks) = serve(dir.path(), &place);
    let filler = disk.fill();
    server.wait_until("not ready", || {
        disk.fill();
        server.get_open("/readyz") == 503
    });
    server.kill();
    match Server::try_start(dir.path(), &["--store", &format!("sqlite://{}/carillon.db", place.display())]) {
        Ok(server) => server.kill(),
        Err((status, said)) => {
            assert_eq!(status.code(), Some(1), "{said}");
            assert!(said.contains("full") && !said.contains("panicked"), "{said}");
        }
    }
    std::fs::remove_file(filler).expect("space can be given back");
    let (server, _) = serve(dir.path(), &place);
    let seen = lines(&ticks).len();
    wait_for_lines(&ticks, seen + 2);
    let account = account(&server.settle(&["tick"]), 1_000);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{account:?}");
}

#[test]
fn a_database_that_the_system_makes_read_only_is_got_over() {
    let dir = directory();
    let files = ["carillon.db", "carillon.db-wal"].map(|name| dir.path().join(name));
    let immutable = |flag: &str| Command::new("chattr").arg(flag).args(&files).output();
    let (server, ticks) = serve(dir.path(), dir.path());
    let refuses = |path: &Path| File::options().append(true).open(path).is_err();
    if !immutable("+i").is_ok_and(|output| output.status.success()) || !refuses(&files[0]) {
        eprintln!("SKIPPED: files cannot be made immutable here (chattr +i needs root and ext4)");
        return;
    }
    let not_ready = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        server.wait_until("not ready", || server.get_open("/readyz") == 503);
        server.call("POST", "/v1/jobs", Some(&job("new", NEVER, "true", json!({}))))
    }));
    immutable("-i").expect("chattr is there");
    let (code, answer) = not_ready.expect("a server whose writes are refused says so");
    assert_eq!(code, 503, "{answer}");
    server.wait_until("ready again", || server.is_ready());
    check(&server, &ticks);
}

#[test]
fn an_unwritable_data_directory_hurts_no_running_server() {
    let dir = directory();
    let (server, ticks) = serve(dir.path(), dir.path());
    for name in ["carillon.db", "carillon.db-wal", "carillon.db-shm", "carillon.db.lock", "carillon.token"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        std::fs::set_permissions(dir.path().join(name), mode).expect("the file is the test's");
    }
    check(&server, &ticks);
    wait_until("ready", || server.is_ready());
}
