//! The README's commands and configuration, executed word for word.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use carillon_tests::databases::{self, Brand, free_port};
use carillon_tests::markdown::{Block, blocks};
use carillon_tests::server::{Server, binary};
use mysql_async::prelude::Queryable;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// The blocks of one chapter.
fn chapter(title: &str) -> Vec<Block> {
    let text = readme();
    let begin = text.find(&format!("## {title}\n")).unwrap_or_else(|| panic!("README has no chapter {title:?}"));
    let rest = &text[begin + 3..];
    blocks(&rest[..rest.find("\n## ").unwrap_or(rest.len())])
}

#[test]
fn the_first_two_commands_exist_and_can_be_run() {
    let first: Vec<_> = blocks(&readme()).into_iter().take(2).map(|block| block.text).collect();
    assert_eq!(first, ["./demo\n", "./check\n"]);
    for script in ["demo", "check", ".ci/run"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(root().join(script)).expect(script).permissions().mode();
        assert_ne!(mode & 0o111, 0, "{script} must be executable");
    }
}

/// Processes of which none outlives the test.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // Mostly they have ended.
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}

/// As it stands there but for the build, which is done, and the port, which may be taken.
#[test]
fn the_demo_shows_runs_happening_until_it_is_stopped() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut script = std::fs::read_to_string(root().join("demo")).expect("demo");
    let address = format!("127.0.0.1:{}", free_port());
    let http = format!("export CARILLON__HTTP__BIND={address} CARILLON_SERVER=http://{address}\n");
    let path = format!("export PATH='{}':$PATH\n", binary().parent().expect("a directory").display());
    for (words, instead) in [
        ("cargo build --package carillon \"${lean[@]}\"\n", ""),
        ("export PATH=\"$PWD/target/debug:$PATH\"\n", &path),
        ("mkdir -p demo-data\n", &format!("{http}mkdir -p demo-data\n")),
    ] {
        assert_eq!(script.matches(words).count(), 1, "{words}");
        script = script.replace(words, instead);
    }
    let crontab = dir.path().join("examples/crontab");
    std::fs::create_dir(dir.path().join("examples")).expect("a directory");
    std::fs::copy(root().join("examples/crontab"), crontab).expect("copied");
    std::fs::write(dir.path().join("demo"), script).expect("written");
    let (lines, writer) = std::io::pipe().expect("a pipe");
    let mut demo = Command::new("bash");
    demo.arg("demo").current_dir(dir.path()).stdin(Stdio::null()).process_group(0);
    demo.stdout(writer.try_clone().expect("a pipe")).stderr(writer);
    let mut running = demo.spawn().expect("bash");
    let group = Group(Pid::from_raw(i32::try_from(running.id()).expect("a process id")));
    // The last of the pipe's writers here.
    drop(demo);
    let mut lines = BufReader::new(lines).lines().map(|line| line.expect("the demo is read"));
    let mut said = String::new();
    // One of its jobs fails each minute: so this test ends, whatever is shown.
    let enough = |said: &str| said.contains("status=\"succeeded\"") || said.matches("status=\"failed\"").count() > 1;
    while !enough(&said) {
        let line = lines.next().unwrap_or_else(|| panic!("it ended by itself:\n{said}"));
        said.push_str(&format!("{line}\n"));
    }
    assert!(said.contains("status=\"succeeded\""), "runs that go well are not shown:\n{said}");
    assert!(said.contains("15 lines: 5 jobs (5 created)"), "{said}");
    assert!(said.contains(&format!("http://{address}/sign-in/link/")), "the demo leads to the page:\n{said}");
    // Ctrl-C goes to all that the terminal has in front.
    killpg(group.0, Signal::SIGINT).expect("it is there");
    let rest: Vec<String> = lines.collect();
    assert!(running.wait().expect("it ends").success(), "{said}{rest:?}");
    assert!(rest.last().is_some_and(|line| line.ends_with("stopped")), "{rest:?}");
}

#[test]
fn the_tour_works_word_for_word() {
    let tour = chapter("Five minutes with it");
    let (build, rest) = tour.split_first().expect("the tour has commands");
    // The build is done, and the repository is not to be littered: other lines with the same effect stand for these.
    assert_eq!(
        build.text,
        "cargo build --package carillon\nexport PATH=\"$PWD/target/debug:$PATH\"\nmkdir -p target/tour && cd target/tour\n"
    );
    walk(rest, |words| words.to_owned());
}

/// As it stands there but for the address of the database, which is a private one, and the ports, which may be taken.
#[test]
fn the_cluster_works_word_for_word() {
    // A server of its own: the statements make the user anew that other tests have.
    let server = databases::Server::start(Brand::MariaDb, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tour = chapter("A cluster");
    let (sql, rest) = tour.split_first().expect("the chapter makes a database first");
    assert_eq!(sql.language, "sql");
    runtime.block_on(async {
        let mut root = server.root().await;
        for statement in sql.text.replace("CREATE USER carillon ", "CREATE OR REPLACE USER carillon ").lines() {
            root.query_drop(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    });
    let (a, b) = (free_port(), free_port());
    let here = |words: &str| {
        let words = words.replace(":3306/", &format!(":{}/", server.port()));
        words.replace(":7650", &format!(":{a}")).replace(":7651", &format!(":{b}"))
    };
    walk(rest, |words| format!("export CARILLON_SERVER=http://127.0.0.1:{a}\n{}", here(words)));
}

/// As it stands there but for the port, which may be taken.
#[test]
fn the_page_of_the_command_line_works_word_for_word() {
    let page = std::fs::read_to_string(root().join("docs/command-line.md")).expect("the page");
    let address = format!("127.0.0.1:{}", free_port());
    let here = format!("export CARILLON__HTTP__BIND={address} CARILLON_SERVER=http://{address}\n");
    walk(&blocks(&page), |words| format!("{here}{}", words.replace("127.0.0.1:7650", &address)));
}

/// As it stands there but for the port, which may be taken.
#[test]
fn the_page_of_agents_works_word_for_word() {
    let page = std::fs::read_to_string(root().join("docs/mcp.md")).expect("the page");
    let chapter =
        page.split("\n## ").find(|part| part.starts_with("An exchange\n")).expect("a chapter with an exchange");
    let address = format!("127.0.0.1:{}", free_port());
    let here = format!("export CARILLON__HTTP__BIND={address} CARILLON_SERVER=http://{address}\n");
    walk(&blocks(chapter), |words| format!("{here}{}", words.replace("127.0.0.1:7650", &address)));
}

/// As it stands there but for the port, which may be taken.
#[test]
fn the_page_of_backups_works_word_for_word() {
    let page = std::fs::read_to_string(root().join("docs/backup.md")).expect("the page");
    let chapter = page.split("\n## ").find(|part| part.starts_with("SQLite\n")).expect("a chapter on SQLite");
    let address = format!("127.0.0.1:{}", free_port());
    let here = format!("export CARILLON__HTTP__BIND={address} CARILLON_SERVER=http://{address}\n");
    walk(&blocks(chapter), |words| format!("{here}{}", words.replace("127.0.0.1:7650", &address)));
}

/// The statement that stands there for a database server opens one window, whether there ever was a session or not.
#[test]
fn the_statement_of_the_page_of_backups_opens_a_window() {
    let page = std::fs::read_to_string(root().join("docs/backup.md")).expect("the page");
    let sql = blocks(&page).into_iter().find(|block| block.language == "sql").expect("a statement").text;
    let server = databases::Server::shared(Brand::MariaDb);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    let made = Command::new(binary()).args(["init", "--store", &database.url()]).output().expect("the binary");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    runtime.block_on(async {
        let mut conn = database.connect().await;
        conn.query_drop(sql.trim_end().trim_end_matches(';')).await.expect("the statement is one");
        let look = "SELECT COUNT(*), MIN(until_at - from_at) FROM loss_window WHERE is_open = 1";
        let open: Option<(i64, i64)> = conn.query_first(look).await.expect("rows");
        assert!(open.is_some_and(|(count, span)| count == 1 && span > 0), "{open:?}");
    });
}

/// One shell runs a whole chapter, as a reader would; what it prints after each block must be what the README shows.
fn walk(chapter: &[Block], adapt: impl Fn(&str) -> String) {
    let dir = tempfile::tempdir().expect("a directory");
    let bin = binary();
    let mut script = format!("set -eu\nexport PATH='{}':$PATH\n", bin.parent().expect("a directory").display());
    script.push_str("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for (number, block) in chapter.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        script.push_str(&format!("{}\necho '=== {number}'\n", adapt(&block.text)));
    }
    let output = Command::new("bash")
        .args(["-m", "-c", &script])
        .current_dir(dir.path())
        .env_remove("CARILLON_SERVER")
        .env_remove("CARILLON_TOKEN")
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let log = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    let logs = ["carillon.log", "a.log", "b.log"].map(log).concat();
    assert!(output.status.success(), "the chapter failed\n{said}\n{complained}\nserver log:\n{logs}");
    for (number, block) in chapter.iter().enumerate().filter(|(_, block)| block.language == "text") {
        let end = said.find(&format!("=== {}\n", number - 1)).expect("the block was run");
        let begin = said[..end].rfind("=== ").map_or(0, |at| at + said[at..].find('\n').map_or(0, |line| line + 1));
        let shown = &said[begin..end];
        assert!(matches(&block.text, shown), "README shows\n{}\nbut it prints\n{shown}", block.text);
    }
}

/// Whether `shown` is `pattern`, in which `…` stands for anything.
fn matches(pattern: &str, shown: &str) -> bool {
    let mut rest = shown.trim();
    let parts: Vec<&str> = pattern.trim().split('…').map(str::trim).collect();
    for (n, part) in parts.iter().enumerate() {
        match rest.find(part) {
            Some(0) if n == 0 => rest = &rest[part.len()..],
            Some(at) if n > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.trim().is_empty() || pattern.trim().ends_with('…')
}

#[test]
fn the_configuration_shown_is_the_configuration_taken() {
    let shown: Vec<Block> = chapter("Configuration").into_iter().filter(|block| block.language == "toml").collect();
    assert_eq!(shown.len(), 2, "the defaults, and a token");
    for block in shown {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("carillon.toml"), block.text).expect("written");
        let server = Server::start(dir.path(), &[]);
        assert!(server.drain().success());
    }
}

#[test]
fn the_job_shown_is_a_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(dir.path(), &[]);
    let shown = chapter("Jobs").into_iter().find(|block| block.language == "json").expect("a JSON block");
    let job = serde_json::from_str(&shown.text).expect("JSON");
    let (status, answer) = server.call("POST", "/v1/jobs", Some(&job));
    assert_eq!(status, 201, "{answer}");
}

#[test]
fn the_patterns_of_this_test_can_fail() {
    assert!(matches("a\n…", "a\nb"));
    assert!(matches("…b", "a\nb\n"));
    assert!(!matches("…b", "a\nb\nc"));
    assert!(!matches("a", "b"));
    assert!(!matches("a…c", "a b"));
}
