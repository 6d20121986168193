//! Packages that are made, installed and run. These tests take minutes, so they run only where they are asked for.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use carillon_tests::skipped;

use crate::repository;

/// The variable with which they are asked for.
const ASKED_BY: &str = "CARILLON_PACKAGE";
/// The exit code of a script that cannot do its work on this machine.
const IMPOSSIBLE: i32 = 77;

/// The file of `./package` whose name ends so; `None` where nobody asked for it. `CARILLON_PACKAGE=DIRECTORY` names packages that are there.
fn package(end: &str) -> Option<PathBuf> {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let Some(asked) = std::env::var_os(ASKED_BY) else {
        skipped::tell(&format!("packages are made and installed: that takes minutes; {ASKED_BY}=1 asks for it"));
        return None;
    };
    let directory = MADE.get_or_init(|| {
        if PathBuf::from(&asked).is_dir() {
            return asked.into();
        }
        let status = Command::new("./package").arg("--dev").current_dir(repository()).status();
        assert!(status.expect("./package can be started").success(), "./package --dev failed");
        repository().join("target/package")
    });
    let files = directory.read_dir().expect("packages").map(|entry| entry.expect("an entry").path());
    let mut fitting = files.filter(|path| path.to_string_lossy().ends_with(end));
    Some(fitting.next().unwrap_or_else(|| panic!("{} has no *{end}", directory.display())))
}

fn passes(script: &str, package: &PathBuf) {
    let output = Command::new(repository().join(script)).arg(package).output().expect("the script can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(IMPOSSIBLE) {
        return skipped::tell(&format!("{script}: {}", said.trim()));
    }
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_deb_is_installed_upgraded_removed_and_purged() {
    if let Some(deb) = package(".deb") {
        passes("tests/deb-in-debian", &deb);
    }
}

#[test]
fn the_image_runs() {
    if let Some(image) = package(".oci.tar") {
        passes("tests/image-in-podman", &image);
    }
}
