//! A plugins directory that changes while it is in use.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use carillon_executors::dylib::{Change, Folder};
use carillon_executors::executor::{Isolation, Live, Outcome};
use carillon_executors::registry::Executors;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    a_new_file_is_taken_when_it_stays_the_same,
    a_file_that_is_being_written_is_left_alone,
    a_replaced_file_is_taken_and_a_bad_one_is_not,
    a_name_belongs_to_the_first_until_that_is_gone,
    a_directory_that_is_not_trusted_any_more_brings_nothing_new,
    replacing_a_plugin_loses_no_run,
];

/// The findings of a look, in few words.
fn look(folder: &mut Folder) -> Vec<String> {
    let words = |change| match change {
        Change::Found(plugin) => format!("{} {}", plugin.description().name, plugin.description().version),
        Change::Gone(name) => format!("{name} is gone"),
        Change::Refused(refused) => refused.to_string(),
    };
    folder.look().into_iter().map(words).collect()
}

fn nothing() -> Vec<String> {
    Vec::new()
}

/// A library in C with this version, elsewhere.
fn version(elsewhere: &Directory, version: &str, body: &str) -> PathBuf {
    let source = WHOLE.replace("BODY", body).replace("\"1.0\"", &format!("\"{version}\""));
    elsewhere.compile(&format!("{version}.so"), &source)
}

fn a_new_file_is_taken_when_it_stays_the_same() {
    let directory = Directory::new();
    let mut folder = Folder::new(directory.path().join("plugins"), host());
    assert_eq!(look(&mut folder), nothing());
    std::fs::create_dir(directory.path().join("plugins")).unwrap();
    set_permissions(directory.path().join("plugins"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(look(&mut folder), nothing());
    std::fs::rename(directory.add_noop("noop.so"), directory.path().join("plugins/noop.so")).unwrap();
    assert_eq!(look(&mut folder), nothing());
    assert_eq!(look(&mut folder), ["noop 0.1.0"]);
    assert_eq!(look(&mut folder), nothing());
    std::fs::remove_file(directory.path().join("plugins/noop.so")).unwrap();
    assert_eq!(look(&mut folder), ["noop is gone"]);
    std::fs::remove_dir(directory.path().join("plugins")).unwrap();
    assert_eq!(look(&mut folder), nothing());
}

fn a_file_that_is_being_written_is_left_alone() {
    let (directory, elsewhere) = (Directory::new(), Directory::new());
    let mut folder = Folder::new(directory.path(), host());
    assert_eq!(look(&mut folder), nothing());
    let whole = std::fs::read(elsewhere.add_noop("noop.so")).unwrap();
    let file = directory.path().join("noop.so");
    for end in [whole.len() / 3, whole.len() / 2, whole.len()] {
        std::fs::write(&file, &whole[..end]).unwrap();
        assert_eq!(look(&mut folder), nothing(), "it has changed since the last look");
    }
    assert_eq!(look(&mut folder), ["noop 0.1.0"]);
}

fn a_replaced_file_is_taken_and_a_bad_one_is_not() {
    let (directory, elsewhere) = (Directory::new(), Directory::new());
    let mut folder = Folder::new(directory.path(), host());
    let file = directory.path().join("fixture.so");
    std::fs::rename(version(&elsewhere, "1", ""), &file).unwrap();
    assert_eq!(look(&mut folder), ["fixture 1"]);
    std::fs::rename(version(&elsewhere, "2", ""), &file).unwrap();
    assert_eq!((look(&mut folder), look(&mut folder)), (nothing(), vec!["fixture 2".to_owned()]));
    std::fs::write(&file, "nonsense").unwrap();
    assert_eq!(look(&mut folder), nothing());
    let [refused] = look(&mut folder).try_into().unwrap();
    assert!(refused.contains("it cannot be loaded"), "{refused}");
    assert!(refused.ends_with("; what was loaded from it before stays in use"), "{refused}");
    assert_eq!(look(&mut folder), nothing());
    // A change of the mode alone is one as well.
    std::fs::rename(version(&elsewhere, "3", ""), &file).unwrap();
    set_permissions(&file, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(look(&mut folder), nothing());
    assert!(look(&mut folder)[0].contains("can be written by everybody"));
    set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    assert_eq!((look(&mut folder), look(&mut folder)), (nothing(), vec!["fixture 3".to_owned()]));
    // Another plugin under the same file name.
    std::fs::rename(elsewhere.add_noop("noop.so"), &file).unwrap();
    assert_eq!(look(&mut folder), nothing());
    assert_eq!(look(&mut folder), ["fixture is gone", "noop 0.1.0"]);
}

fn a_name_belongs_to_the_first_until_that_is_gone() {
    let directory = Directory::new();
    let mut folder = Folder::new(directory.path(), host());
    let first = directory.add_noop("b.so");
    assert_eq!(look(&mut folder), ["noop 0.1.0"]);
    let second = directory.add_noop("a.so");
    assert_eq!(look(&mut folder), nothing());
    let reason = format!("its name \"noop\" is already taken by {}", first.display());
    assert_eq!(look(&mut folder), [format!("{} is refused: {reason}", second.display())]);
    std::fs::remove_file(first).unwrap();
    assert_eq!(look(&mut folder), ["noop is gone", "noop 0.1.0"]);
}

fn a_directory_that_is_not_trusted_any_more_brings_nothing_new() {
    let directory = Directory::new();
    let mut folder = Folder::new(directory.path(), host());
    directory.add_noop("noop.so");
    assert_eq!(look(&mut folder), ["noop 0.1.0"]);
    directory.compile_run("fixture.so", "");
    set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let [refused] = look(&mut folder).try_into().unwrap();
    assert!(refused.contains("can be written by everybody"), "{refused}");
    assert_eq!(look(&mut folder), nothing());
    set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!((look(&mut folder), look(&mut folder)), (nothing(), vec!["fixture 1.0".to_owned()]));
}

/// Says its version and its process, and waits if it is told to.
const SAYS: &str = r#"
    char line[64];
    run->write(run->host, line, (size_t)snprintf(line, sizeof line, "%s %d", plugin_version(), getpid()));
    while (strstr(run->params_json, "wait") && !run->cancelled(run->host)) usleep(1000);
    result->status = CARILLON_SUCCEEDED;
"#;

fn replacing_a_plugin_loses_no_run() {
    for isolation in BOTH_WAYS {
        let (directory, elsewhere) = (Directory::new(), Directory::new());
        let says = |version: &str| SAYS.replace("plugin_version()", &format!("\"{version}\""));
        let files: Vec<PathBuf> = (1..=5).map(|n| n.to_string()).map(|n| version(&elsewhere, &n, &says(&n))).collect();
        run(async {
            let (keeper, executors) = (keeper(true), Executors::new(PATIENCE));
            let mut folder = Folder::new(directory.path(), host());
            let mut follow = || {
                for change in folder.look() {
                    let Change::Found(plugin) = change else { panic!("{change:?}") };
                    executors.offer(executor(plugin, &keeper, isolation));
                }
            };
            std::fs::copy(&files[0], directory.path().join("fixture.so")).unwrap();
            follow();
            // One of the first version goes on all the time.
            let stop = CancellationToken::new();
            let stopped = stop.clone();
            let (live, mut output) = heard();
            let first = executors.find("fixture").unwrap();
            let long = tokio::spawn(async move { first.run(facts(json!({"wait": true})), live, stopped).await });
            let said = String::from_utf8(output.recv().await.unwrap()).unwrap();
            let (over, is_over) = watch::channel(false);
            let (seen, mut versions) = mpsc::unbounded_channel();
            let workers: Vec<_> = (0..16)
                .map(|_| {
                    let (executors, is_over, seen) = (executors.clone(), is_over.clone(), seen.clone());
                    tokio::spawn(async move {
                        while !*is_over.borrow() {
                            let executor = executors.find("fixture").unwrap();
                            let (live, stop) = (Live::unheard(), CancellationToken::new());
                            let exit = executor.run(facts(json!({})), live, stop).await;
                            assert_eq!(exit.how, Outcome::Succeeded, "{:?}", exit.reason);
                            seen.send(text(&exit).split(' ').next().unwrap().to_owned()).unwrap();
                        }
                    })
                })
                .collect();
            for (file, number) in files.iter().zip(1..).skip(1) {
                std::fs::rename(file, directory.path().join("fixture.so")).unwrap();
                follow();
                follow();
                while versions.recv().await.unwrap() != number.to_string() {}
            }
            over.send_replace(true);
            for worker in workers {
                worker.await.unwrap();
            }
            stop.cancel();
            let long = long.await.unwrap();
            assert_eq!((long.how, text(&long)), (Outcome::Cancelled, said.as_str()));
            // The process of the first version has nothing to do any more.
            if isolation == Isolation::Process {
                until_gone(said.split(' ').nth(1).unwrap().parse().unwrap()).await;
            }
        });
    }
}
