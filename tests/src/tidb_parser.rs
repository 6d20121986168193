//! TiDB's own parser, a Go module, asked by the program in `tests/tidb-parser`.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tidb-parser");

/// The parser's complaint about each statement; `None` for those that it reads.
///
/// # Errors
/// Why the parser is not to be had on this machine.
///
/// # Panics
/// If the program fails with the parser at hand.
pub fn complaints(statements: &[&str]) -> Result<Vec<Option<String>>, String> {
    let fetched = go(&["mod", "download"]).output().map_err(|error| format!("Go does not start: {error}"))?;
    if !fetched.status.success() {
        return Err(format!("Go cannot fetch the module: {}", said(&fetched)));
    }
    // It reads a few hundred statements, and without optimization it is built in two thirds of the time.
    let mut run = go(&["run", "-gcflags=all=-N -l", "."]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("Go starts");
    let asked = serde_json::to_vec(statements).expect("texts are JSON");
    // It reads everything before it answers. A program that ends early is told by its status.
    let _read = run.stdin.take().expect("a pipe").write_all(&asked);
    let answered = run.wait_with_output().expect("Go ends");
    assert!(answered.status.success(), "go run . in {PROGRAM}: {}", said(&answered));
    let complaints: Vec<Option<String>> = serde_json::from_slice(&answered.stdout).expect("an array");
    assert_eq!(complaints.len(), statements.len());
    Ok(complaints)
}

/// Go as it is installed: it fetches no newer Go, and changes neither `go.mod` nor `go.sum`.
fn go(words: &[&str]) -> Command {
    let mut command = Command::new("go");
    command
        .args(words)
        .current_dir(PROGRAM)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
