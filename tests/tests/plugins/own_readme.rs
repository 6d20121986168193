//! The chapter of plugins/README.md by which a first plugin is written, followed word for word; and the pages of the
//! plugins that come with Carillon.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use carillon_tests::markdown::{Block, blocks};
use carillon_tests::plugins::{Place, sources};
use carillon_tests::server::{Server, binary};
use serde_json::Value;

fn page(path: &str) -> String {
    std::fs::read_to_string(sources().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn first_plugin() -> Vec<Block> {
    let page = page("README.md");
    let begin = page.find("## A first plugin in ten minutes\n").expect("the chapter");
    let rest = &page[begin + 3..];
    blocks(&rest[..rest.find("\n## ").expect("another chapter")])
}

/// The acts of a shell where the chapter shows a block.
fn step(block: &Block) -> String {
    let write = |file: &str| format!("cat > {file} <<'END OF {file}'\n{}END OF {file}\n", block.text);
    match block.language.as_str() {
        // The reader's registry is online; here, what this workspace has locked is all there is.
        "toml" => write("Cargo.toml") + "cp ../carillon/Cargo.lock .\n",
        "rust" => write("src/lib.rs"),
        "sh" if block.text.contains("carillon serve &") => {
            // On a port of its own, which its log tells.
            let wait = "until url=$(grep -o 'http://127.0.0.1:[0-9]*' log); do kill -0 %1; sleep 0.1; done\n";
            let wait = wait.to_owned() + "export CARILLON_SERVER=$url\n";
            block.text.replace("serve &", "serve 2> log &") + &wait
        }
        "sh" => block.text.clone(),
        _ => String::new(),
    }
}

#[test]
fn a_first_plugin_is_written_by_following_the_page() {
    let place = tempfile::tempdir().expect("a directory");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    symlink(repository, place.path().join("carillon")).expect("a checkout");
    let chapter = first_plugin();
    let script: String = chapter.iter().map(step).collect();
    let bin = binary();
    let path = format!("{}:{}", bin.parent().expect("a directory").display(), std::env::var("PATH").expect("a PATH"));
    let script = format!("set -eu\numask 022\ntrap 'kill %1 2>/dev/null || true; wait' EXIT\n{script}");
    let mut shell = Command::new("bash");
    shell.args(["-m", "-c", &script]).current_dir(place.path()).stdin(Stdio::null());
    shell.env("PATH", path).env("CARGO_NET_OFFLINE", "true").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    shell.env_remove("CARILLON_TOKEN").env("CARILLON__HTTP__BIND", "127.0.0.1:0").env_remove("CARGO_TARGET_DIR");
    let output = shell.output().expect("bash");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    for block in chapter.iter().filter(|block| block.language == "text") {
        assert!(
            said.contains(&block.text),
            "the page shows {:?}, and this was said:\n{said}\n{complained}",
            block.text
        );
    }
    for sentence in ["params.whom: is required", "there is nobody to greet"] {
        assert!(complained.contains(sentence) || said.contains(sentence), "{said}\n{complained}");
    }
    assert!(said.contains("exit code 1"), "{said}");
}

#[test]
fn the_page_of_http_shows_a_job_and_every_param() {
    let page = page("http/README.md");
    let place = Place::new();
    place.drop_built("http", "http.so", 0o755);
    let server = Server::start(place.path(), &[]);
    let shown = blocks(&page).into_iter().find(|block| block.language == "json").expect("a job");
    let (status, answer) = server.call("POST", "/v1/jobs", Some(&serde_json::from_str(&shown.text).expect("JSON")));
    assert_eq!(status, 201, "{answer}");
    let listed = place.out(&server, &["plugin", "list", "--json"]);
    let http: Value = serde_json::from_str(listed.lines().next().expect("a plugin")).expect("JSON");
    let params = http["params_schema"]["properties"].as_object().expect("params");
    let explained: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for name in params.keys() {
        assert!(explained.contains(&name.as_str()), "{name} is not on the page");
    }
    assert_eq!(explained.len(), params.len(), "{explained:?}");
}
