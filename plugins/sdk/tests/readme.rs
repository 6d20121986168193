//! The examples of plugins/README.md are built as a reader would build them, but offline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLACEHOLDER: &str = "../carillon/plugins/sdk";

/// The README; `None` in a published package, which does not have it.
fn readme() -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).ok()
}

/// The only block of code in a language.
fn block<'a>(readme: &'a str, language: &str) -> &'a str {
    let fence = format!("```{language}\n");
    let mut blocks = readme.split(&fence).skip(1);
    let (Some(block), None) = (blocks.next(), blocks.next()) else { panic!("not one block of {language}") };
    block.split("```").next().unwrap()
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(directory.join("src")).unwrap();
    directory
}

#[test]
fn the_rust_example_builds() {
    let Some(readme) = readme() else { return };
    let directory = directory("greet");
    let manifest = block(&readme, "toml");
    assert!(manifest.contains(PLACEHOLDER));
    // A workspace of its own, because it lies within the target directory of this one.
    let manifest = manifest.replace(PLACEHOLDER, env!("CARGO_MANIFEST_DIR")) + "\n[workspace]\n";
    fs::write(directory.join("Cargo.toml"), manifest).unwrap();
    fs::write(directory.join("src/lib.rs"), block(&readme, "rust")).unwrap();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, directory.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--quiet"]).current_dir(&directory);
    let built = cargo.env("CARGO_TARGET_DIR", directory.join("target")).status().unwrap();
    assert!(built.success());
    assert!(directory.join("target/debug/libgreet.so").is_file());
}

#[test]
fn the_c_example_builds() {
    let Some(readme) = readme() else { return };
    let directory = directory("greet-c");
    fs::write(directory.join("greet.c"), block(&readme, "c")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
    compiler.args(["-o", "greet-c.so", "greet.c", "-I"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    assert!(compiler.current_dir(&directory).status().unwrap().success());
}
