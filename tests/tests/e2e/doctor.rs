//! `carillon doctor`: beside a healthy server, and where more than ten things are broken; it changes nothing.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use carillon_doubles::certificates::Authority;
use carillon_tests::databases::{self, Brand, Surroundings};
use carillon_tests::fixture::directory;
use carillon_tests::server::{Server, binary};
use carillon_tests::skipped;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde_json::Value;

/// A finding as `--json` shows it.
#[derive(Debug)]
struct Found {
    check: String,
    level: String,
    finding: String,
    remedy: String,
}

/// Its findings and its exit code.
fn doctor(dir: &Path, arguments: &[&str]) -> (Vec<Found>, i32) {
    let mut command = Command::new(binary());
    command.arg("doctor").arg("--json").args(arguments).current_dir(dir).stdin(Stdio::null());
    let output = command.output().expect("the binary can be started");
    let text = String::from_utf8(output.stdout).expect("text");
    let found = text.lines().map(|line| {
        let finding: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let field = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        Found { check: field("check"), level: field("level"), finding: field("finding"), remedy: field("remedy") }
    });
    (found.collect(), output.status.code().expect("it ends by itself"))
}

/// Each line is a check, a level, a word of the finding, and a word of the remedy.
fn assert_found(found: &[Found], expected: &[(&str, &str, &str, &str)]) {
    for (check, level, word, remedy) in expected {
        let fits = |one: &&Found| one.check == *check && one.level == *level && one.finding.contains(word);
        let one = found.iter().find(fits).unwrap_or_else(|| panic!("{level} of {check} with {word:?}: {found:#?}"));
        assert!(one.remedy.contains(remedy), "{remedy:?} is not in {one:?}");
    }
    let silent = found.iter().find(|one| one.level != "ok" && one.remedy.is_empty());
    assert!(silent.is_none(), "no remedy: {silent:?}");
}

/// Every file below a directory: its content, its mode, and the time of its last change.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64)> {
    let mut all = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        let state = next.symlink_metadata().expect("a file");
        if state.is_dir() {
            open.extend(std::fs::read_dir(&next).expect("a directory").map(|entry| entry.expect("an entry").path()));
        }
        let content = if state.is_file() { std::fs::read(&next).expect("a file") } else { Vec::new() };
        all.insert(next, (content, state.mode(), state.mtime(), state.mtime_nsec()));
    }
    all
}

fn put(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("a file can be written");
    set_mode(path, mode);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode can be set");
}

#[test]
fn a_healthy_server_is_found_healthy_and_left_alone() {
    let dir = directory();
    let (found, code) = doctor(dir.path(), &["--bind", "127.0.0.1:0"]);
    assert_eq!((code, files(dir.path()).len()), (0, 1), "a new place has no error and stays empty: {found:?}");
    assert_found(&found, &[("database", "ok", "not there yet", ""), ("tokens", "ok", "first start", "")]);

    let server = Server::start(dir.path(), &[]);
    let bind = server.url().trim_start_matches("http://").to_owned();
    let (found, code) = doctor(dir.path(), &["--bind", &bind]);
    assert_eq!(code, 0, "{found:?}");
    let pid = format!("pid {}", server.pid());
    assert_found(
        &found,
        &[
            ("database", "ok", &pid, ""),
            ("schema", "ok", "the newest", ""),
            ("port", "ok", "a running Carillon", ""),
            ("database file", "ok", "alone", ""),
            ("tokens", "ok", "can be trusted", ""),
            ("session timing", "ok", "20s", ""),
        ],
    );
    assert_eq!(server.get_open("/readyz"), 200);
    assert!(server.drain().success());
    let before = files(dir.path());
    assert_eq!(doctor(dir.path(), &[]).1, 0);
    let after = files(dir.path());
    assert!(before == after, "it changed something of {:?}", after.keys());
}

#[test]
fn more_than_ten_broken_things_of_a_lone_server_are_found() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    assert!(Server::start(dir.path(), &[]).drain().success());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let bind = taken.local_addr().expect("an address");
    let expired = Authority::new("servers").expired_server();
    std::fs::create_dir(at("data")).expect("a directory");
    std::fs::rename(at("carillon.token"), at("data/carillon.token")).expect("moved");
    std::fs::create_dir(at("plugins")).expect("a directory");
    put(&at("plugins/broken.so"), "not a library", 0o644);
    put(&at("cert.pem"), &expired.cert, 0o644);
    put(&at("key.pem"), &expired.key, 0o644);
    let config = format!(
        "[store]\nstatement_timeout = \"30s\"\n[node]\ndata_dir = \"data\"\n[scheduler]\nhorizn = \"1s\"\n\
         [http]\nbind = \"{bind}\"\ntls = {{cert = \"cert.pem\", key = \"key.pem\"}}\n\
         [shell]\nallow_users = [\"nobody-here\"]\n[plugins]\nin_process = [\"ghost\"]\n\
         [mail]\nsmtp = \"smtp://me:secret@mail.example.org\"\nfrom = \"me@example.org\"\n\
         [alerts]\nca_file = \"missing.pem\"\n"
    );
    put(&at("carillon.toml"), &config, 0o644);
    set_mode(&at("data/carillon.token"), 0o644);
    set_mode(&at("data"), 0o777);
    set_mode(&at("carillon.db"), 0o644);
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (99, 'x', '', '1')";
    let database = rusqlite::Connection::open(at("carillon.db")).expect("the database");
    database.execute(newer, []).expect("a newer schema");
    drop(database);

    let before = files(dir.path());
    let (found, code) = doctor(dir.path(), &[]);
    assert!(before == files(dir.path()), "it changed something");
    assert_eq!(code, 1);
    // A key of root may be read by the group of the server's user.
    let mode_of_key = if nix::unistd::geteuid().is_root() { "chmod 640" } else { "chmod 600" };
    assert_found(
        &found,
        &[
            ("configuration", "error", "scheduler.horizn", "carillon.toml"),
            ("configuration", "warning", "holds a password", "chmod 600"),
            ("session timing", "warning", "30s", "store.statement_timeout"),
            ("users", "warning", "nobody-here", "shell.allow_users"),
            ("directory", "warning", "0777", "chmod o-w"),
            ("database file", "warning", "0644", "chmod 600"),
            ("tokens", "error", "read or written by others", "Correct it"),
            ("schema", "error", "99", "newer Carillon"),
            ("port", "error", "listens at", "http.bind"),
            ("certificate", "error", "expired", "Renew"),
            ("TLS files", "error", "http.tls.key", mode_of_key),
            ("plugins", "warning", "broken.so", "plugin inspect"),
            ("plugins", "warning", "ghost", "plugins.in_process"),
            ("alerts", "error", "missing.pem", ""),
        ],
    );
    let told = format!("{found:?}");
    assert!(!told.contains("secret@") && !told.contains(":secret"), "{told}");

    let text = Command::new(binary()).arg("doctor").current_dir(dir.path()).output().expect("it runs");
    let (said, summary) = (String::from_utf8_lossy(&text.stdout), String::from_utf8_lossy(&text.stderr));
    assert!(said.contains("\n         do: ") && summary.contains(" errors, "), "{said}{summary}");
    put(&at("carillon.toml"), "[store\n", 0o600);
    let (found, code) = doctor(dir.path(), &[]);
    assert_eq!((found.len(), code), (1, 1), "{found:?}");
}

/// The names and the rows of all tables of a database, as checksums.
async fn checksums(root: &mut Conn, database: &str) -> Vec<(String, Option<u64>)> {
    let tables: Vec<String> = root.query(format!("SHOW TABLES FROM {database}")).await.expect("tables");
    let mut sums = Vec::new();
    for table in tables {
        let sum: (String, Option<u64>) =
            root.query_first(format!("CHECKSUM TABLE {database}.{table}")).await.expect("a sum").expect("a row");
        sums.push(sum);
    }
    sums
}

#[test]
fn more_than_ten_broken_things_of_a_cluster_are_found() {
    let surroundings = Surroundings { clock: true, ..Surroundings::default() };
    let server = databases::Server::start_in(Brand::MariaDb, surroundings, &["--log-bin", "--server-id=1"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dir = directory();
    let database = runtime.block_on(server.database());
    let name = &database.name;
    let doctor = |url: &str, more: &str| {
        let config = format!("[store]\nurl = \"{url}\"\n{more}");
        put(&dir.path().join("carillon.toml"), &config, 0o600);
        doctor(dir.path(), &[])
    };
    let (found, code) = doctor(&database.url(), "[http]\nbind = \"127.0.0.1:0\"\n");
    assert_eq!(code, 0, "{found:?}");
    assert_found(
        &found,
        &[
            ("database", "ok", "can be reached", ""),
            ("schema", "ok", "none yet", ""),
            ("grants", "ok", "all rights", ""),
            ("isolation", "ok", "READ COMMITTED", ""),
            ("version", "ok", "MariaDB", ""),
            ("clock", "ok", "differs from the database's by at most", ""),
            ("round trip", "ok", "answered within", ""),
        ],
    );
    let mut root = runtime.block_on(server.root());
    assert_eq!(runtime.block_on(checksums(&mut root, name)), [], "it makes no table");

    // The rights that it asks for are enough to make the schema.
    let rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER";
    for statement in ["CREATE USER able@'%' IDENTIFIED BY 'secret'", &format!("GRANT {rights} ON {name}.* TO able@'%'")]
    {
        runtime.block_on(root.query_drop(statement)).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let (found, code) =
        doctor(&format!("mysql://able:secret@127.0.0.1:{}/{name}", server.port()), "[http]\nbind = \"127.0.0.1:0\"\n");
    assert_eq!(code, 0, "{found:?}");
    assert_found(&found, &[("grants", "ok", "all rights", "")]);
    let made = Command::new(binary()).arg("init").current_dir(dir.path()).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for statement in [
        "SET GLOBAL binlog_format = STATEMENT",
        "SET GLOBAL sync_binlog = 0",
        "SET GLOBAL innodb_flush_log_at_trx_commit = 2",
        "CREATE USER poor@'%' IDENTIFIED BY 'secret'",
        &format!("GRANT SELECT, INSERT ON {name}.* TO poor@'%'"),
        &format!("ALTER TABLE {name}.job_day ENGINE = MyISAM"),
        &format!("DELETE FROM {name}.lock_row WHERE id = 3"),
        &format!("INSERT INTO {name}.refinery_schema_history VALUES (99, 'x', '', '1')"),
        &format!("UPDATE {name}.meta SET value = '99' WHERE name = 'oldest_friend'"),
    ] {
        runtime.block_on(root.query_drop(statement)).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let has_clock = match server.clock() {
        Ok(clock) => {
            clock.put(5_000);
            true
        }
        Err(why) => {
            skipped::tell(&format!("doctor beside a database whose clock is wrong: {why}"));
            false
        }
    };
    let before = runtime.block_on(checksums(&mut root, name));
    let poor = format!("mysql://poor:secret@127.0.0.1:{}/{name}", server.port());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let more = format!(
        "[http]\nbind = \"{}\"\n[session]\nexpire_after = \"10s\"\n[node]\ndata_dir = \"absent\"\n[mail]\nsmtp = \"no\"\n",
        taken.local_addr().expect("an address")
    );
    let (found, code) = doctor(&poor, &more);
    assert_eq!(code, 1);
    assert_found(
        &found,
        &[
            ("session timing", "error", "expire_after", "carillon.toml"),
            ("configuration", "error", "mail.", "carillon.toml"),
            ("directory", "error", "absent", "mkdir -p"),
            ("settings", "error", "binlog_format is STATEMENT", "Set it to ROW"),
            ("durability", "warning", "innodb_flush_log_at_trx_commit", "SET GLOBAL"),
            ("durability", "warning", "sync_binlog", "SET GLOBAL sync_binlog = 1"),
            ("grants", "error", "UPDATE, DELETE, CREATE, ALTER", "GRANT ALL"),
            ("schema", "error", "99", "newer Carillon"),
            ("schema", "error", "job_day is MyISAM", "ENGINE = InnoDB"),
            ("schema", "error", "[3]", "backup"),
            ("port", "error", "listens at", "http.bind"),
        ],
    );
    if has_clock {
        assert_found(&found, &[("clock", "warning", "behind the database's", "time server")]);
    }
    assert_eq!(runtime.block_on(checksums(&mut root, name)), before, "it changed something");

    for (url, word, remedy) in [
        (poor.replace("secret", "wrong"), "Access denied", "password"),
        (database.url().replace(name, "carillon_none"), "carillon_none", "CREATE DATABASE"),
        (database.url().replace(name, "mysql"), "Access denied", "GRANT ALL"),
        (database.url().replace(&server.port().to_string(), "1"), "cannot be reached", "Start the database"),
    ] {
        let (found, code) = doctor(&url, "");
        assert_eq!(code, 1);
        assert_found(&found, &[("database", "error", word, remedy)]);
        assert!(found.iter().all(|one| !one.finding.contains("secret") && !one.finding.contains("wrong")), "{found:?}");
    }
}
