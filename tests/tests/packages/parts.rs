//! The parts of the packages that can be judged without packing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use carillon_tests::fixture::directory;
use carillon_tests::server::{Server, binary};
use carillon_tests::skipped;
use serde_json::Value;

use crate::repository;

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn every_script_can_be_parsed() {
    let packaging = repository().join("packaging");
    let scripts = ["deb", "image", "static", "postinst", "prerm", "postrm"].map(|name| packaging.join(name));
    let others = ["package", "tests/deb-in-debian", "tests/image-in-podman"].map(|name| repository().join(name));
    for script in scripts.into_iter().chain(others) {
        let text = fs::read_to_string(&script).expect("a script");
        let shell = if text.starts_with("#!/bin/sh") { "sh" } else { "bash" };
        let parsed = Command::new(shell).arg("-n").arg(&script).output().expect("a shell");
        assert!(parsed.status.success(), "{}: {}", script.display(), said(&parsed));
        assert!(text.contains("\nset -e"), "{} goes on after a fault", script.display());
    }
}

#[test]
fn systemd_finds_no_fault_with_the_unit() {
    let verify = |path: &Path| Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(path).output();
    let dir = directory();
    let unit = dir.path().join("carillon.service");
    let text = fs::read_to_string(repository().join("packaging/carillon.service")).expect("the unit");
    fs::write(&unit, text.replace("/usr/bin/carillon", &binary().display().to_string())).expect("a copy");
    let Ok(verified) = verify(&unit) else {
        return skipped::tell("the unit file: there is no systemd-analyze (apt-get install systemd)");
    };
    assert!(verified.status.success() && verified.stderr.is_empty(), "{}", said(&verified));
    fs::write(&unit, text.replace("WatchdogSec=30", "WatchdogSec=often")).expect("a copy");
    assert!(!verify(&unit).expect("systemd-analyze").stderr.is_empty(), "a fault is found");
}

#[test]
fn the_unit_keeps_the_keeper_able_to_make_cgroups() {
    let unit = fs::read_to_string(repository().join("packaging/carillon.service")).expect("the unit");
    let set: BTreeSet<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    for needed in ["Delegate=yes", "Type=notify", "KillMode=mixed", "Restart=always", "NoNewPrivileges=yes"] {
        assert!(set.contains(needed), "the unit lacks {needed}");
    }
    for harmful in ["ProtectControlGroups=", "RestrictNamespaces=", "PrivatePIDs="] {
        assert!(!set.iter().any(|line| line.starts_with(harmful)), "{harmful} takes the keeper's cgroups away");
    }
}

#[test]
fn the_control_file_has_all_that_debian_asks_for() {
    let control = fs::read_to_string(repository().join("packaging/control")).expect("the control file");
    let fields: BTreeSet<&str> = control
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line:?} is no field")).0)
        .collect();
    for needed in ["Package", "Version", "Architecture", "Maintainer", "Installed-Size", "Depends", "Description"] {
        assert!(fields.contains(needed), "{needed} is missing");
    }
    for line in control.lines() {
        assert!(line.len() <= 80 && !line.ends_with(' ') && line != " ", "{line:?}");
    }
}

#[test]
fn the_shipped_configuration_is_one_that_a_server_takes() {
    let dir = directory();
    let shipped = fs::read_to_string(repository().join("packaging/carillon.toml")).expect("the configuration");
    let state = dir.path().display().to_string();
    let moved = shipped.replace("/var/lib/carillon", &state).replace("/usr/lib/carillon", &state);
    let server = Server::start_with(dir.path(), &moved);
    assert!(dir.path().join("carillon.db").exists());
    let url = server.url().to_owned();
    let ready = || {
        let command = &mut Command::new(binary());
        command.arg("ready").env("CARILLON_SERVER", &url).env_remove("CARILLON_TOKEN").output().expect("carillon")
    };
    let told = ready();
    assert!(told.status.success() && told.stdout == b"ready\n", "{}", said(&told));
    server.kill();
    let told = ready();
    assert_eq!(told.status.code(), Some(1), "{}", said(&told));
}

#[test]
fn the_bill_of_materials_knows_each_crate_of_the_binary() {
    let dir = directory();
    let path = dir.path().join("bill.json");
    let made = Command::new("python3").arg("packaging/sbom").arg(&path).current_dir(repository()).output();
    let Ok(made) = made else {
        return skipped::tell("the bill of materials: there is no python3 (apt-get install python3)");
    };
    assert!(made.status.success(), "{}", said(&made));
    let bill: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("it is JSON");
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    let own = &bill["metadata"]["component"];
    assert_eq!((own["name"].as_str(), own["type"].as_str()), (Some("carillon"), Some("application")));
    let components = bill["components"].as_array().expect("components");
    let names: BTreeSet<&str> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(
        ["tokio", "rusqlite", "mysql_async", "carillon-domain", "carillon-http"]
            .iter()
            .all(|name| names.contains(name))
    );
    assert!(!names.contains("proptest") && !names.contains("cc"), "tests and builds ship nothing");
    let known: BTreeSet<&str> = components.iter().chain([own]).filter_map(|one| one["bom-ref"].as_str()).collect();
    assert_eq!(known.len(), components.len() + 1, "a reference is used once");
    for dependency in bill["dependencies"].as_array().expect("dependencies") {
        let ends = dependency["dependsOn"].as_array().expect("a list").iter().chain([&dependency["ref"]]);
        assert!(ends.filter_map(Value::as_str).all(|end| known.contains(end)), "{dependency}");
    }
    for one in components.iter().filter(|one| !one["name"].as_str().is_some_and(|name| name.starts_with("carillon"))) {
        assert!(one["hashes"][0]["content"].as_str().is_some_and(|digest| digest.len() == 64), "{one}");
        assert!(one["licenses"][0].is_object(), "{one}");
    }
}
