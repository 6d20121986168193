//! Plugins that take their process down: runs end with the reason, and the next one finds a new process.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_executors::dylib::Host;
use carillon_executors::executor::{Executor, HostState, Isolation, Live, Outcome, RunFacts};
use carillon_keeper::{KeeperHandle, boottime_ms};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    whatever_ends_the_process_is_told,
    others_in_the_process_are_told_whose_fault_it_is,
    memory_beyond_the_limit_ends_the_process,
    closed_handles_end_the_process,
    a_dead_process_is_started_again_after_a_pause,
    what_cannot_be_started_says_why,
    no_run_is_called_twice_or_forgotten_when_its_process_dies,
    the_lease_ends_every_run,
];

const ENDS: [(&str, &str, Option<i32>, Option<i32>); 9] = [
    ("*(volatile int *)0 = 1;", "crashed: SIGSEGV", None, Some(libc::SIGSEGV)),
    ("abort();", "crashed: SIGABRT", None, Some(libc::SIGABRT)),
    ("raise(SIGFPE);", "crashed: SIGFPE", None, Some(libc::SIGFPE)),
    ("volatile char *deep = __builtin_alloca(1 << 28); *deep = 1;", "crashed: SIGSEGV", None, Some(libc::SIGSEGV)),
    (
        "kill(getpid(), 9);",
        "had its process ended by SIGKILL, which the server did not send; the machine may be short of memory",
        None,
        Some(libc::SIGKILL),
    ),
    ("exit(0);", "ended its process with exit code 0 instead of returning from its run", Some(0), None),
    ("_exit(0);", "ended its process with exit code 0 instead of returning from its run", Some(0), None),
    ("exit(3);", "ended its process with exit code 3 instead of returning from its run", Some(3), None),
    ("exit(127);", "ended its process with exit code 127 instead of returning from its run", Some(127), None),
];

fn whatever_ends_the_process_is_told() {
    for (body, why, exit_code, signal) in ENDS {
        run(async {
            let keeper = keeper(true);
            let (noop, broken) = (noop(&keeper, Isolation::Process), hosted(&keeper, &broken(body)));
            // A run of another plugin outlives the crash.
            let stop = CancellationToken::new();
            let stopped = stop.clone();
            let other = follow(&noop, facts(json!({"sleep_ms": 3_600_000})), Live::unheard(), stopped);
            let crash = async {
                let exit = run_to_end(&broken, asking("break")).await;
                stop.cancel();
                exit
            };
            let (other, exit) = tokio::join!(other, crash);
            let reason = format!("plugin fixture {why}");
            assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Failed, Some(reason.as_str())));
            assert_eq!((exit.exit_code, exit.signal), (exit_code, signal), "{body}");
            assert_eq!(other.how, Outcome::Cancelled);
            let next = run_to_end(&broken, asking("nothing")).await;
            assert_eq!(next.how, Outcome::Succeeded, "{:?}", next.reason);
            assert_ne!(pid(&next), pid(&exit));
        });
    }
}

fn others_in_the_process_are_told_whose_fault_it_is() {
    for (body, why, known) in [
        ("*(volatile int *)0 = 1;", "crashed: SIGSEGV", true),
        ("exit(0);", "ended its process with exit code 0 instead of returning from its run", true),
        ("_exit(0);", "ended its process with exit code 0 instead of returning from its run", false),
    ] {
        run(async {
            let executor = hosted(&keeper(true), &broken(body));
            let there = watch::Sender::new(false);
            let other = waiting(&executor, asking("wait"), CancellationToken::new(), &there);
            let culprit = async {
                wait_for(&there).await;
                run_to_end(&executor, asking("break")).await
            };
            let (other, culprit) = tokio::join!(other, culprit);
            let of =
                |blame: &str| format!("the process of plugin fixture ended in the midst of this run{blame}: it {why}");
            let (to_culprit, to_other) = match known {
                true => (format!("plugin fixture {why}"), of(", by another run")),
                false => (of(" and of others"), of(" and of others")),
            };
            assert_eq!((culprit.how, culprit.reason.clone()), (Outcome::Failed, Some(to_culprit)));
            assert_eq!((other.how, other.reason.clone()), (Outcome::Failed, Some(to_other)));
            assert_eq!(pid(&other), pid(&culprit));
        });
    }
}

fn memory_beyond_the_limit_ends_the_process() {
    let hog = broken("for (;;) { char *more = malloc(1 << 20); if (more) memset(more, 1, 1 << 20); usleep(100); }");
    run(async {
        let directory = Directory::new();
        directory.compile_run("fixture.so", &hog);
        let host = Host { memory_bytes: 96 << 20, ..host() };
        let plugin = discover(directory.path(), &host).remove(0).unwrap();
        let executor = executor(plugin, &keeper(true), Isolation::Process);
        // The watch of an idle host sleeps, and a run must wake it.
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let exit = run_to_end(&executor, asking("break")).await;
        let reason = "plugin fixture went beyond its memory limit of 96 MiB";
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Failed, Some(reason)));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
    });
}

fn closed_handles_end_the_process() {
    for body in [
        // Closes all that is open, and goes on.
        "for (int fd = 0; fd < 1024; fd++) close(fd); for (;;) pause();",
        // Closes all, opens another file in their place, and returns.
        "for (int fd = 0; fd < 1024; fd++) close(fd); for (int n = 0; n < 20; n++) open(\"/dev/null\", O_RDWR); return;",
        // Closes all and says that all is well.
        "for (int fd = 0; fd < 1024; fd++) close(fd); result->status = CARILLON_SUCCEEDED; return;",
        // Writes nonsense to whatever is there.
        "for (int fd = 3; fd < 64; fd++) write(fd, \"\\377\\377\\377\\377\\377\\377\\377\\377\", 8); for (;;) pause();",
    ] {
        run(async {
            let executor = hosted(&keeper(true), &broken(body));
            let exit = run_to_end(&executor, asking("break")).await;
            let reason = exit.reason.clone().unwrap();
            assert_eq!(exit.how, Outcome::Failed, "{reason}");
            assert_eq!(reason, "plugin fixture closed or used handles that are not its own", "{body}");
            assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
        });
    }
}

fn a_dead_process_is_started_again_after_a_pause() {
    run(async {
        let executor = hosted(&keeper(true), &broken("abort();"));
        assert_eq!(state(&executor), Some(HostState::NotStarted));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
        assert_eq!(state(&executor), Some(HostState::Running));
        for _ in 0..4 {
            assert_eq!(run_to_end(&executor, asking("break")).await.signal, Some(libc::SIGABRT));
        }
        // 800 ms from now, which is longer than it takes to ask.
        assert_eq!(state(&executor), Some(HostState::BackingOff));
        let trouble = executor.description().plugin.unwrap().trouble;
        assert_eq!(trouble.as_deref(), Some("plugin fixture crashed: SIGABRT"));
        // A run that arrives during the pause waits, and may be cancelled.
        let stopped = CancellationToken::new();
        stopped.cancel();
        let exit = executor.run(asking("nothing"), Live::unheard(), stopped).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Cancelled, Some("cancelled before it started")));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
        assert_eq!(state(&executor), Some(HostState::Running));
    });
}

/// It can be inspected, and then not be loaded any more.
fn what_cannot_be_started_says_why() {
    run(async {
        let place = tempfile::tempdir().unwrap();
        let mark = place.path().join("mark");
        let constructor = format!(
            r#"__attribute__((constructor)) static void at_load(void) {{
                if (access("{0}", F_OK) == 0) abort(); fclose(fopen("{0}", "w"));
            }}"#,
            mark.display()
        );
        let directory = Directory::new();
        directory.compile("fixture.so", &(WHOLE.replace("BODY", "") + &constructor));
        let executor = directory.executor(&keeper(true), Isolation::Process);
        let exit = run_to_end(&executor, facts(Value::Null)).await;
        let reason = "no process of plugin fixture could be started: it crashed: SIGABRT";
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Failed, Some(reason)));
        assert_eq!(state(&executor), Some(HostState::BackingOff));
    });
}

/// Many short runs, and some among them that crash. Each call of the plugin is witnessed by a line in a file.
fn no_run_is_called_twice_or_forgotten_when_its_process_dies() {
    let body = r#"
        char line[256], *end = strrchr(run->params_json, '"');
        *end = 0;
        int file = open(strstr(run->params_json, "/"), O_WRONLY | O_APPEND);
        write(file, line, (size_t)snprintf(line, sizeof line, "%s\n", run->run_id));
        close(file);
        if (!strcmp(run->job, "crash")) abort();
        result->status = CARILLON_SUCCEEDED;
    "#;
    run(async {
        let place = tempfile::tempdir().unwrap();
        let witness = place.path().join("called");
        std::fs::write(&witness, "").unwrap();
        let executor = hosted(&keeper(true), body);
        let runs: Vec<_> = (0..600)
            .map(|number| {
                let job = if number % 150 == 149 { "crash" } else { "short" };
                let facts = RunFacts { job: job.to_owned(), ..facts(json!({"file": witness})) };
                let (executor, id) = (executor.clone(), facts.run_id.to_string());
                tokio::spawn(async move { (id, job, run_to_end(&executor, facts).await) })
            })
            .collect();
        let mut succeeded = BTreeSet::new();
        for run in runs {
            let (id, job, exit) = run.await.unwrap();
            let reason = exit.reason.unwrap_or_default();
            match exit.how {
                Outcome::Succeeded => {
                    assert_eq!(job, "short");
                    succeeded.insert(id);
                }
                // One that was about to crash may be in the process of another that does.
                Outcome::Failed if job == "crash" && reason.starts_with("plugin fixture crashed") => {}
                Outcome::Failed => {
                    assert!(reason.contains("ended in the midst of this run, by another run"), "{reason}")
                }
                how => panic!("{how:?}: {reason}"),
            }
        }
        let text = std::fs::read_to_string(&witness).unwrap();
        let called: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(called.len(), text.lines().count(), "a run was called twice");
        assert!(called.is_superset(&succeeded), "a run succeeded and was not called");
    });
}

fn the_lease_ends_every_run() {
    run(async {
        let keeper = KeeperHandle::start(options(true)).unwrap();
        let executor = hosted(&keeper, &broken(""));
        let there = watch::Sender::new(false);
        keeper.extend_deadline(boottime_ms() + 1_000);
        let renew = async {
            let (mut run, mut beats) = (there.subscribe(), tokio::time::interval(Duration::from_millis(20)));
            let is_there = run.wait_for(|there| *there);
            tokio::pin!(is_there);
            loop {
                tokio::select! {
                    _ = &mut is_there => break,
                    _ = beats.tick() => keeper.extend_deadline(boottime_ms() + 1_000),
                }
            }
        };
        let (exit, ()) = tokio::join!(waiting(&executor, asking("wait"), CancellationToken::new(), &there), renew);
        let reason = "the node did not renew its lease in time";
        assert_eq!((exit.how, exit.reason.as_deref(), text(&exit).is_empty()), (Outcome::Lost, Some(reason), false));
        let process = format!("/proc/{}", pid(&exit));
        assert!(!std::path::Path::new(&process).exists());
    });
}
