//! The clients in `clients/`: their models and calls are as the OpenAPI document has them, and the one in Python does what it says.
//!
//! `UPDATE=1 cargo test -p carillon-tests --test clients` writes the models and calls anew. The crate has its own tests,
//! `cargo test -p carillon-client`: it must be possible to write it anew while it does not compile.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use carillon_tests::clients::written;
use carillon_tests::jobs::NEVER;
use carillon_tests::server::Server;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

#[test]
fn models_and_calls_are_as_the_document_has_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let files = written(&server.get("/openapi.json"));
    assert!(files.len() > 8, "both clients are written");
    let update = std::env::var_os("UPDATE").is_some();
    for (path, text) in files {
        let file = clients().join(&path);
        if update {
            std::fs::write(&file, &text).expect("the file can be written");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "clients/{path} is old: run this test with UPDATE=1");
    }
}

#[test]
fn the_package_has_the_version_of_the_server() {
    let project = std::fs::read_to_string(clients().join("python/pyproject.toml")).expect("pyproject.toml");
    let version = format!("\nversion = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(project.contains(&version), "pyproject.toml is not of version {}", env!("CARGO_PKG_VERSION"));
}

/// Runs Python with the package, in the directory of a server that has its token.
fn python(server: &Server, arguments: &[&str]) -> Output {
    let package = clients().join("python").canonicalize().expect("the package");
    Command::new("/usr/bin/python3")
        .args(arguments)
        .current_dir(server.dir())
        .env("PYTHONPATH", &package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CARILLON_SERVER", server.url())
        .env_remove("CARILLON_TOKEN")
        .output()
        .expect("/usr/bin/python3 is there")
}

#[test]
fn the_example_in_python_does_what_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let example = clients().join("python/examples/nightly.py").canonicalize().expect("the example");
    let example = example.to_str().expect("a path of UTF-8");
    for change in ["created", "unchanged"] {
        let output = python(&server, &["-W", "error", example, NEVER]);
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && complained.is_empty(), "{said}{complained}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with(&format!("nightly would be {change}; it would be due at 2")), "{said}");
        assert_eq!(lines[1..5], ["default/nightly is idle", "saving", "saved", "the run succeeded with exit code 0"]);
        assert!(lines[5].len() > 20, "{said}");
        assert!(lines[6].starts_with("refused with 412: the job is at generation 1, not at 8"), "{said}");
    }
}

#[test]
fn the_client_in_python_passes_its_own_tests() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let tests = clients().join("python/tests").canonicalize().expect("its tests");
    let tests = tests.to_str().expect("a path of UTF-8");
    let output =
        python(&server, &["-W", "error", "-m", "unittest", "discover", "--start-directory", tests, "--verbose"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|tests| tests >= 6), "{said}");
}
