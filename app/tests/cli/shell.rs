//! Completions in a real shell against a real server, and man pages.

use std::io::Write;
use std::process::Command;

use super::server::{Server, carillon};

/// The ends that bash offers for the last of some words.
fn complete(server: &Server, words: &[&str]) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_carillon")).parent().unwrap();
    let script = "source <(carillon completions bash)\n\
                  of=$(complete -p carillon | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
                  COMP_WORDS=(carillon \"$@\") COMP_CWORD=$# COMP_TYPE=9\n\
                  \"$of\" carillon \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"\n\
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).args(words).current_dir(server.dir.path());
    bash.env("CARILLON_SERVER", &server.url).env_remove("CARILLON_TOKEN");
    let path = std::env::var("PATH").unwrap();
    let output = bash.env("PATH", format!("{}:{path}", program.display())).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn bash_completes_commands_and_names_of_the_server() {
    let server = Server::start();
    for (name, more) in [("hello", &[][..]), ("heron", &[]), ("other", &[]), ("elsewhere", &["-n", "prod"])] {
        server.out(&[&["job", "add", name, "-s", "0 0 1 1 *", "-c", "true"], more].concat(), 0);
    }
    assert_eq!(complete(&server, &["job", "run", "he"]), ["hello", "heron"]);
    assert_eq!(complete(&server, &["why", "oth"]), ["other"]);
    assert_eq!(complete(&server, &["job", "show", "el"]), Vec::<String>::new(), "it is in another namespace");
    assert_eq!(complete(&server, &["job", "show", "-n", "prod", "el"]), ["elsewhere"]);
    assert_eq!(complete(&server, &["job", "resu"]), ["resume"]);
    assert_eq!(complete(&server, &["completions", "z"]), ["zsh"]);
    server.out(&["job", "run", "hello", "--wait"], 0);
    let runs = complete(&server, &["run", "show", ""]);
    assert!(runs.iter().any(|id| server.output(&["run", "show", id]).status.success()), "{runs:?}");
    let url = server.url.clone();
    drop(server);
    let gone = Server::away(&url);
    assert_eq!(complete(&gone, &["job", "run", "he"]), Vec::<String>::new(), "a server that is away offers no name");
}

#[test]
fn the_scripts_of_all_shells_ask_this_program() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = carillon(dir.path(), &["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("CARILLON_COMPLETE"), "{shell}: {script}");
    }
    assert_eq!(carillon(dir.path(), &["completions", "tcsh"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn each_command_has_a_man_page() {
    let dir = tempfile::tempdir().unwrap();
    let output = carillon(dir.path(), &["man", "pages"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for page in ["carillon", "carillon-serve", "carillon-doctor", "carillon-job-add", "carillon-cluster-accept"] {
        let text = std::fs::read_to_string(dir.path().join(format!("pages/{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".TH "), "{page}: {text}");
    }
    for page in std::fs::read_dir(dir.path().join("pages")).unwrap() {
        let mut man = Command::new("man");
        man.args(["--warnings", "-l"]).arg(page.unwrap().path()).envs([("MANPAGER", "cat"), ("LC_ALL", "C.UTF-8")]);
        let Ok(shown) = man.output() else {
            // Written past the test, which keeps to itself what it prints.
            let words =
                b"\n\nSKIPPED, NOT TESTED HERE: man pages are read by nobody, as there is no man (Debian: man-db)\n\n";
            let _unheard = std::io::stderr().write_all(words);
            break;
        };
        assert!(shown.status.success() && shown.stderr.is_empty(), "{}", String::from_utf8_lossy(&shown.stderr));
        assert!(String::from_utf8_lossy(&shown.stdout).contains("SYNOPSIS"));
    }
    let text = std::fs::read_to_string(dir.path().join("pages/carillon-job-add.1")).unwrap();
    assert!(text.contains("\\-\\-schedule"), "{text}");
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(carillon(dir.path(), &["man", "file"]).output().unwrap().status.code(), Some(1));
}
