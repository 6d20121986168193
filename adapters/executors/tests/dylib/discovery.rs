//! Files that become plugins, and files that are refused, with the reason.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use carillon_executors::dylib::{Host, inspect};
use serde_json::json;

use crate::fixtures::*;
use crate::tests;

tests![
    a_missing_directory_holds_no_plugins,
    a_plugin_says_what_it_is,
    what_others_can_write_is_refused,
    what_is_not_a_file_of_its_own_is_refused,
    what_is_no_plugin_is_refused,
    what_does_not_survive_its_loading_is_refused,
    what_is_printed_while_loading_is_not_believed,
    the_second_of_one_name_is_refused,
    one_file_is_inspected_wherever_it_is,
];

fn a_missing_directory_holds_no_plugins() {
    assert!(discover(Path::new("/no/such/directory"), &host()).is_empty());
    assert!(Directory::new().discover().is_empty());
}

fn a_plugin_says_what_it_is() {
    let directory = Directory::new();
    let file = directory.add_noop("noop.so");
    std::fs::write(directory.path().join("README.txt"), "not a plugin").unwrap();
    let found = directory.discover();
    let [Ok(plugin)] = found.as_slice() else { panic!("{found:?}") };
    let description = plugin.description();
    assert_eq!((description.name.as_str(), description.abi_version, plugin.file()), ("noop", 1, file.as_path()));
    assert_eq!(description.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(description.params_schema["properties"]["sleep_ms"]["type"], "integer");

    let directory = Directory::new();
    directory.compile_run("c.so", "");
    let found = directory.discover();
    let [Ok(plugin)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(plugin.description().params_schema, json!({"type": "object"}));
}

/// Why the only file of a directory is refused.
fn reason(directory: &Directory) -> String {
    let found = directory.discover();
    let [Err(refused)] = found.as_slice() else { panic!("not refused: {found:?}") };
    refused.reason.clone()
}

#[track_caller]
fn assert_refused(directory: &Directory, part: &str) {
    let reason = reason(directory);
    assert!(reason.contains(part), "{reason:?} does not say {part:?}");
}

fn what_others_can_write_is_refused() {
    let directory = Directory::new();
    let file = directory.add_noop("noop.so");
    set_permissions(&file, Permissions::from_mode(0o775)).unwrap();
    assert_refused(&directory, "noop.so can be written by its group (mode 775)");
    set_permissions(&file, Permissions::from_mode(0o757)).unwrap();
    assert_refused(&directory, "noop.so can be written by everybody");
    set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    for (mode, who) in [(0o775, "its group"), (0o777, "everybody"), (0o1777, "everybody")] {
        set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        assert_refused(&directory, &format!("can be written by {who} (mode {mode:o})"));
    }
    set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(directory.discover()[0].is_ok());

    let below = directory.path().join("below");
    std::fs::create_dir(&below).unwrap();
    set_permissions(directory.path(), Permissions::from_mode(0o775)).unwrap();
    let found = discover(&below, &host());
    assert!(found[0].as_ref().unwrap_err().reason.contains("can be written by its group"), "a parent counts too");
    if crate::support::is_root() {
        set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        assert_refused(&directory, "noop.so belongs to user 12345");
    }
}

fn what_is_not_a_file_of_its_own_is_refused() {
    let elsewhere = Directory::new();
    let noop = elsewhere.add_noop("noop.so");
    let directory = Directory::new();
    let file = directory.path().join("link.so");
    symlink(&noop, &file).unwrap();
    assert_refused(&directory, "link.so is a symbolic link");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_refused(&directory, "is not a regular file");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_refused(&directory, "is not a regular file");
    std::fs::remove_dir(&file).unwrap();
    symlink(elsewhere.path(), directory.path().join("plugins")).unwrap();
    let found = discover(&directory.path().join("plugins"), &host());
    assert!(found[0].as_ref().unwrap_err().reason.contains("is a symbolic link"), "{found:?}");
}

fn what_is_no_plugin_is_refused() {
    let directory = Directory::new();
    std::fs::write(directory.path().join("fixture.so"), "#!/bin/sh\n").unwrap();
    assert_refused(&directory, "it cannot be loaded: ");
    let whole = WHOLE.replace("BODY", "");
    for (source, part) in [
        ("int other;".to_owned(), "does not export carillon_plugin_init"),
        (whole.replace("CARILLON_ABI_VERSION", "7"), "was built for ABI version 7, and this server speaks version 1"),
        (whole.replace("return &plugin", "return NULL"), "it says that it cannot work with ABI version 1"),
        (whole.replace("return &plugin", "return (void *)((char *)&plugin + 1)"), "is not aligned"),
        (whole.replace("sizeof plugin", "16"), "its descriptor has 16 bytes"),
        (whole.replace("NULL, run", "NULL, NULL"), "its descriptor has no run function"),
        (whole.replace("\"fixture\"", "NULL"), "its descriptor has no name"),
        (whole.replace("\"1.0\"", r#""\xff""#), "the version in its descriptor is not UTF-8"),
        (whole.replace("\"fixture\"", "\"a/b\""), "its name \"a/b\" cannot be an executor's"),
        (whole.replace("\"fixture\"", &format!("\"{}\"", "x".repeat(5000))), "its name \"xxx"),
        (whole.replace("\"fixture\"", "\"shell\""), "its name \"shell\" is that of a built-in executor"),
        (whole.replace("NULL, run", "\"{\", run"), "its params schema is not JSON"),
        (whole.replace("NULL, run", r#""{\"type\": 1}", run"#), "its params schema is not a valid JSON Schema"),
    ] {
        directory.compile("fixture.so", &source);
        assert_refused(&directory, part);
    }
}

const CONSTRUCTOR: &str = "__attribute__((constructor)) static void at_load(void) { BODY }";

fn what_does_not_survive_its_loading_is_refused() {
    let directory = Directory::new();
    let headers = "#include <stdlib.h>\n#include <unistd.h>\n";
    for (body, part) in [
        ("*(volatile int *)0 = 1;", "the plugin crashed: SIGSEGV"),
        ("abort();", "the plugin crashed: SIGABRT"),
        ("exit(5);", "it ended the process with exit code 5 while being loaded"),
    ] {
        directory.compile("fixture.so", &format!("{headers}{}", CONSTRUCTOR.replace("BODY", body)));
        assert_refused(&directory, part);
    }
    directory.compile("fixture.so", &format!("{headers}{}", CONSTRUCTOR.replace("BODY", "for (;;) pause();")));
    let impatient = Host { inspect_timeout: Duration::from_millis(300), ..host() };
    let found = discover(directory.path(), &impatient);
    assert!(found[0].as_ref().unwrap_err().reason.contains("loading it took longer than 300ms"), "{found:?}");
}

fn what_is_printed_while_loading_is_not_believed() {
    let directory = Directory::new();
    let lie = r#"puts("{\"refused\": \"nonsense\"}"); fflush(stdout);"#;
    let source = WHOLE.replace("BODY", "") + &CONSTRUCTOR.replace("BODY", lie);
    directory.compile("fixture.so", &source);
    let found = directory.discover();
    assert_eq!(found[0].as_ref().unwrap().description().name, "fixture");
}

fn the_second_of_one_name_is_refused() {
    let directory = Directory::new();
    directory.add_noop("a.so");
    directory.add_noop("b.so");
    directory.compile_run("c.so", "");
    let found = directory.discover();
    assert!(found[0].is_ok() && found[2].is_ok());
    let first = directory.path().join("a.so");
    let refused = found[1].as_ref().unwrap_err();
    assert_eq!(refused.reason, format!("its name \"noop\" is already taken by {}", first.display()));
    assert!(refused.to_string().contains("b.so is refused: its name"));
}

fn one_file_is_inspected_wherever_it_is() {
    let directory = Directory::new();
    let file = directory.add_noop("any-name");
    assert_eq!(inspect(&file, &host()).unwrap().description().name, "noop");
    let missing = inspect(&directory.path().join("missing.so"), &host()).unwrap_err();
    assert!(missing.reason.contains("cannot be opened: No such file"), "{missing}");
}
