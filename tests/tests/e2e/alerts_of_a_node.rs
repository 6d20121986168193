//! Troubles of a node, told to a real receiver: a disk that fills up, a plugin that is refused, a certificate that will end.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use carillon_tests::ear::{Ear, KEY};
use carillon_tests::fixture::directory;
use carillon_tests::plugins::{Place, set_mode};
use carillon_tests::server::Server;
use carillon_tests::tls_site::TlsSite;
use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};

use super::disk::Disk;

/// A receiver of one kind of trouble and of its end.
fn ear_for(server: &Server, when: &str) -> Ear {
    let ear = Ear::open();
    let to = json!([{"type": "webhook", "url": ear.url, "secret": KEY}]);
    let (status, answer) = server.call("PUT", "/v1/alerts/ops", Some(&json!({"when": [when, "recovered"], "to": to})));
    assert_eq!(status, 201, "{answer}");
    ear
}

/// The next message, which is about this and says so in words.
fn told(ear: &Ear, when: &str, state: &str, words: &[&str]) {
    let call = ear.next();
    assert!(call.is_signed());
    let told: Value = call.json();
    assert_eq!((&told["when"], &told["state"], &told["job"]), (&json!(when), &json!(state), &Value::Null), "{told}");
    let sentence = told["sentence"].as_str().expect("a sentence");
    assert!(words.iter().all(|word| sentence.contains(word)), "{words:?}: {sentence}");
}

/// Fills a disk but for so many bytes.
fn fill(place: &Path, rest: u64) -> std::path::PathBuf {
    let free = || statvfs(place).map(|state| state.blocks_available() * state.fragment_size()).expect("a disk");
    let name = place.join("filler");
    let mut file = File::create(&name).expect("a file can be made");
    while free() > rest {
        file.write_all(&[b'x'; 65_536]).expect("there is room");
    }
    name
}

#[test]
fn a_disk_that_fills_up() {
    let dir = directory();
    let place = dir.path().join("disk");
    let Some(disk) = Disk::new(&place, "size=40m") else { return };
    let server = Server::start(dir.path(), &["--store", &format!("sqlite://{}/carillon.db", place.display())]);
    let ear = ear_for(&server, "disk_full");
    let place_name = place.display().to_string();
    let filler = fill(&place, 1 << 20);
    told(&ear, "disk_full", "open", &["The disk of", &place_name, "nearly full"]);
    assert_eq!(server.get("/v1/incidents")["items"][0]["class"], "disk_full");

    // Once nothing can be written, nothing can be told until there is room.
    let rest = disk.fill();
    server.wait_until("not ready", || server.get_open("/readyz") == 503);
    assert_eq!(rest, filler, "it is one file");
    std::fs::remove_file(filler).expect("space can be given back");
    told(&ear, "disk_full", "recovered", &[&place_name]);
    assert!(ear.is_silent());
}

#[test]
fn a_plugin_that_is_refused() {
    let place = Place::new();
    let server = Server::start_with(place.path(), "[plugins]\ndir = \"plugins\"\n");
    let ear = ear_for(&server, "plugin_refused");
    let file = place.plugins().join("echo.so");
    std::fs::write(&file, "#!/bin/sh").expect("a file can be made");
    set_mode(&file, 0o755);
    told(&ear, "plugin_refused", "open", &["echo.so", "does not load"]);
    std::fs::remove_file(file).expect("it can be removed");
    told(&ear, "plugin_refused", "recovered", &["echo.so"]);
    assert!(ear.is_silent());
}

#[test]
fn a_certificate_that_will_end() {
    let site = TlsSite::new();
    let server = site.start();
    let ear = ear_for(&server, "certificate_expires");
    site.put("server", &site.authority.server_for(Duration::from_secs(13 * 86_400)));
    told(&ear, "certificate_expires", "open", &["server.pem", "ends"]);
    site.put("server", &site.authority.server());
    told(&ear, "certificate_expires", "recovered", &["was renewed"]);
    assert!(ear.is_silent());
}
