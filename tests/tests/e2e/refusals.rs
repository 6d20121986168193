//! Servers that must not start, and the sentence that says why.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use carillon_tests::fixture::directory;
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::{Server, binary};
use carillon_tests::waiting::wait_until;
use serde_json::json;

/// Runs the binary until it ends by itself: its exit code, and what it said on stderr.
fn refused(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(binary());
    command.args(arguments).envs(environment.iter().copied()).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // A file, as a pipe would stay open in the keeper if the server started against all expectation.
    let said = dir.join("said");
    command.stderr(std::fs::File::create(&said).expect("a file can be made"));
    let mut child = command.spawn().expect("the binary can be started");
    let mut ended = None;
    let begun = std::time::Instant::now();
    wait_until("the server refuses", || {
        ended = child.try_wait().expect("a child can be waited for");
        ended.is_some() || begun.elapsed().as_secs() > 20
    });
    if ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = std::fs::read_to_string(said).unwrap_or_default();
    assert!(!said.contains("panicked"), "{said}");
    let ended = ended.unwrap_or_else(|| panic!("{arguments:?} {environment:?} was not refused: {said}"));
    (ended.code().expect("an exit code"), said)
}

fn expect(dir: &Path, arguments: &[&str], environment: &[(&str, &str)], code: i32, parts: &[&str]) {
    let (found, said) = refused(dir, arguments, environment);
    assert_eq!(found, code, "{said}");
    for part in parts {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
    assert!(said.lines().count() <= 4, "a sentence, not a page: {said}");
}

const SERVE: [&str; 3] = ["serve", "--bind", "127.0.0.1:0"];

#[test]
fn a_second_server_on_the_same_database_names_the_first() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let pid = format!("(pid {}, since ", server.pid());
    expect(dir.path(), &SERVE, &[], 1, &["carillon.db is served by another Carillon", &pid, "carillon.db.lock"]);
    let absolute = format!(
        "sqlite://{}/../{}/carillon.db",
        dir.path().display(),
        dir.path().file_name().unwrap().to_str().unwrap()
    );
    expect(dir.path(), &["serve", "--bind", "127.0.0.1:0", "--store", &absolute], &[], 1, &[&pid]);
    assert_eq!(server.get_open("/readyz"), 200, "the first one is not disturbed");
    server.run_once("still", json!({"command": "true"}), json!({}));
}

#[test]
fn a_taken_port_is_told() {
    let (one, two) = (directory(), directory());
    let server = Server::start(one.path(), &[]);
    let address = server.url().trim_start_matches("http://").to_owned();
    let sentence = format!("cannot listen on {address}: another process listens there");
    expect(two.path(), &["serve", "--bind", &address], &[], 1, &[&sentence, "http.bind or --bind"]);
    assert!(!two.path().join("carillon.db").exists(), "nothing is made before the port is known to be free");
}

#[test]
fn a_file_that_is_no_usable_database_is_left_as_it_was() {
    let dir = directory();
    let store = |name: &str| format!("sqlite://{name}");
    let garbage = dir.path().join("notes.txt");
    std::fs::write(&garbage, "These are my notes, not a database. ".repeat(100)).unwrap();
    let serve = |url: &str, parts: &[&str]| {
        expect(dir.path(), &["serve", "--bind", "127.0.0.1:0", "--store", url], &[], 1, parts);
    };
    serve(&store("notes.txt"), &["notes.txt is not an SQLite database", "name another file"]);
    assert!(std::fs::read_to_string(&garbage).unwrap().starts_with("These are my notes"));
    serve(&store("no/such/dir/carillon.db"), &["no/such/dir"]);
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    serve(&store("folder"), &["folder"]);

    assert!(Server::start(dir.path(), &["--store", &store("newer.db")]).drain().success());
    let database = rusqlite::Connection::open(dir.path().join("newer.db")).unwrap();
    let made =
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (9999, 'future', '', '')";
    database.execute(made, []).unwrap();
    drop(database);
    serve(&store("newer.db"), &["made by a newer Carillon", "version 9999", "use the newer"]);
    let init = ["init", "--store", "sqlite://newer.db"];
    expect(dir.path(), &init, &[], 1, &["made by a newer Carillon"]);
}

#[test]
fn a_database_that_cannot_be_written_is_refused() {
    let dir = directory();
    let mut server = Command::new(binary());
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        // Root may write everything; so the server is somebody else, in a place that is not his.
        eprintln!("as root: the server runs as nobody");
    }
    let place = dir.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(dir.path(), 0o755);
    mode(&place, if is_root { 0o755 } else { 0o555 });
    let copy = dir.path().join("carillon");
    std::fs::copy(binary(), &copy).expect("the binary can be copied to where nobody may run it");
    if is_root {
        use std::os::unix::process::CommandExt;
        server = Command::new(&copy);
        server.uid(65_534).gid(65_534);
    }
    let url = format!("sqlite://{}/carillon.db", place.display());
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    mode(&data, 0o777);
    server.args(["serve", "--bind", "127.0.0.1:0", "--store", &url]).env("CARILLON__NODE__DATA_DIR", &data);
    let output = server.current_dir(dir.path()).output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(place.to_str().unwrap()) && said.contains("Permission denied"), "{said}");
    mode(&place, 0o755);
}

#[test]
fn a_configuration_that_cannot_be_meant_is_bad_usage() {
    let dir = directory();
    for (file, environment, parts) in [
        (
            "[store]\nulr = \"sqlite://x.db\"\n",
            vec![],
            vec!["store.ulr", "carillon.toml", "is not known; [store] has: url"],
        ),
        ("[storage]\nurl = \"x\"\n", vec![], vec!["storage", "is not a section"]),
        (
            "",
            vec![("CARILLON__SCHEDULER__HORIZN", "5s")],
            vec!["scheduler.horizn", "CARILLON__SCHEDULER__HORIZN", "is not known"],
        ),
        (
            "",
            vec![("CARILLON__SCHEDULER__HORIZON", "soon")],
            vec!["scheduler.horizon = \"soon\"", "CARILLON__SCHEDULER__HORIZON"],
        ),
        (
            "[session]\nexpire_after = \"15s\"\n",
            vec![],
            vec!["12000 ms", "3000 ms", "4000 ms", "19190 ms", "15000 ms", "14850 ms"],
        ),
        ("[session]\nheartbeat = \"5s\"\n", vec![], vec!["heartbeat 5000 ms", "2000 ms", "6000 ms"]),
        ("[http]\nbind = \"0.0.0.0:0\"\n", vec![], vec!["not a loopback address", "http.tokens is empty"]),
        ("[store]\nurl = \"mysql://app:hunter2@db:3306\"\n", vec![], vec!["store.url", "names no database"]),
        ("[store]\nurl = \"mysql://app:hunter2@db/c?pool_min=3\"\n", vec![], vec!["store.url", "pool_min"]),
        ("[store\n", vec![], vec!["carillon.toml is not TOML"]),
        ("[http.tls]\ncert = \"x\"\n", vec![], vec!["http.tls"]),
    ] {
        std::fs::write(dir.path().join("carillon.toml"), file).unwrap();
        // Without --bind, which would win over the file's.
        let (code, said) = refused(dir.path(), &["serve"], &environment);
        assert_eq!(code, 2, "{file} {said}");
        for part in parts {
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
        assert!(!said.contains("hunter2"), "a password is never shown: {said}");
    }
    std::fs::remove_file(dir.path().join("carillon.toml")).unwrap();
    expect(dir.path(), &["serve", "--config", "missing.toml"], &[], 2, &["missing.toml", "No such file"]);
    expect(dir.path(), &["serve", "--bind", "0.0.0.0:7650"], &[], 2, &["not a loopback address"]);
    expect(dir.path(), &["serve", "--store", "mysql://u:hunter2@h"], &[], 2, &["names no database"]);
    let nobody = ["serve", "--bind", "127.0.0.1:0", "--store", "mysql://u:hunter2@127.0.0.1:1/c"];
    expect(dir.path(), &nobody, &[], 1, &["the database at 127.0.0.1:1/c cannot be reached"]);
    assert!(!dir.path().join("carillon.db").exists(), "a refused server has made nothing");
}

#[test]
fn a_token_file_that_others_can_read_is_not_trusted() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let token = dir.path().join("carillon.token");
    let mode = std::fs::metadata(&token).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.create(&job("kept", NEVER, "true", json!({})));
    assert!(server.drain().success());
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o640)).unwrap();
    expect(dir.path(), &SERVE, &[], 1, &["carillon.token", "can be read or written by others", "0600"]);
    std::fs::remove_file(&token).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &token).unwrap();
    expect(dir.path(), &SERVE, &[], 1, &["carillon.token", "symbolic link"]);
    std::fs::remove_file(&token).unwrap();
    std::fs::write(&token, "short").unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    expect(dir.path(), &SERVE, &[], 1, &["carillon.token", "holds no token"]);
    std::fs::remove_file(&token).unwrap();
    let server = Server::start(dir.path(), &[]);
    assert_eq!(server.get("/v1/jobs/kept")["name"], "kept");
}

#[test]
fn the_keeper_is_not_for_hands_and_bad_usage_is_2() {
    let dir = directory();
    expect(dir.path(), &["keeper"], &[], 2, &["is started by `carillon serve`, not by hand"]);
    assert_eq!(refused(dir.path(), &["dance"], &[]).0, 2);
    assert_eq!(refused(dir.path(), &["serve", "--no-such-flag"], &[]).0, 2);
}
