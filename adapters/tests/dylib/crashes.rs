//! Plugins that take their process down, or do not stop: runs end with the reason, and the next one finds a new process.

use std::time::Duration;

use carillon_adapters::dylib::{DylibExecutor, Host};
use carillon_adapters::executor::{Ended, Executor, Exit, HostState, Isolation, RunFacts, Stop};
use carillon_adapters::keeper::KeeperHandle;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    whatever_ends_the_process_is_told,
    others_in_the_process_are_told_whose_fault_it_is,
    memory_beyond_the_limit_ends_the_process,
    closed_handles_end_the_process,
    a_run_that_does_not_stop_is_killed_and_others_have_time,
    a_run_that_does_not_stop_stays_in_the_server,
    threads_left_behind_end_with_their_process,
    a_dead_process_is_started_again_after_a_pause,
    what_cannot_be_started_says_why,
    a_run_that_nobody_waits_for_is_ended,
    what_comes_after_a_run_reaches_no_other,
];

/// Writes its process id; then does what params ask for, or waits until it is to stop.
fn broken(body: &str) -> String {
    format!(
        r#"
        char line[64];
        run->write(run->host, line, (size_t)snprintf(line, sizeof line, "%d\n", getpid()));
        if (strstr(run->params_json, "break")) {{ {body} }}
        while (strstr(run->params_json, "wait") && !run->cancelled(run->host)) usleep(1000);
        result->status = CARILLON_SUCCEEDED;
        "#
    )
}

fn asking(what: &str) -> RunFacts {
    facts(json!({ what: true }))
}

/// The process that a run was in.
fn pid(exit: &Exit) -> u32 {
    text(exit).lines().next().unwrap().parse().unwrap()
}

/// A run that waits, and its first words, which it says when it is there.
async fn waiting(
    executor: &DylibExecutor,
    facts: RunFacts,
    stop: watch::Receiver<Stop>,
    there: &watch::Sender<bool>,
) -> Exit {
    let (live, mut output) = mpsc::channel(8);
    let heard = async {
        output.recv().await.unwrap();
        there.send_replace(true);
    };
    tokio::join!(executor.run(facts, live, stop), heard).0
}

async fn wait_for(there: &watch::Sender<bool>) {
    there.subscribe().wait_for(|there| *there).await.unwrap();
}

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
            // Beside it, a run of another plugin that lives until the end has been seen.
            let (stop, stopped) = watch::channel(Stop::No);
            let other = noop.run(facts(json!({"sleep_ms": 3_600_000})), mpsc::channel(1).0, stopped);
            let crash = async {
                let exit = run_to_end(&broken, asking("break")).await;
                stop.send(Stop::Politely).unwrap();
                exit
            };
            let (other, exit) = tokio::join!(other, crash);
            let reason = format!("plugin fixture {why}");
            assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Failed, Some(reason.as_str())));
            assert_eq!((exit.exit_code, exit.signal), (exit_code, signal), "{body}");
            assert_eq!(other.how, Ended::Cancelled);
            let next = run_to_end(&broken, asking("nothing")).await;
            assert_eq!(next.how, Ended::Succeeded, "{:?}", next.reason);
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
            let other = waiting(&executor, asking("wait"), watch::channel(Stop::No).1, &there);
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
            assert_eq!((culprit.how, culprit.reason.clone()), (Ended::Failed, Some(to_culprit)));
            assert_eq!((other.how, other.reason.clone()), (Ended::Failed, Some(to_other)));
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
        let exit = run_to_end(&executor, asking("break")).await;
        let reason = "plugin fixture went beyond its memory limit of 96 MiB";
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Failed, Some(reason)));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Ended::Succeeded);
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
            assert_eq!(exit.how, Ended::Failed, "{reason}");
            assert_eq!(reason, "plugin fixture closed or used handles that are not its own", "{body}");
            assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Ended::Succeeded);
        });
    }
}

/// One that neither hears nor ends, beside one that waits until it is to stop, and one that comes later.
fn a_run_that_does_not_stop_is_killed_and_others_have_time() {
    let body = broken("for (;;) {}");
    // The other one is stopped in good time, or it is there when the process is killed.
    for other_stops in [true, false] {
        run(async {
            let executor = hosted(&keeper(true), &body);
            let (there, deaf_there) = (watch::Sender::new(false), watch::Sender::new(false));
            let (stop, stopped) = watch::channel(Stop::No);
            let (stop_other, other_stopped) = watch::channel(Stop::No);
            let patient = if other_stops { PATIENCE } else { Duration::from_millis(100) };
            let other = RunFacts { kill_grace: patient, ..asking("wait") };
            let other = waiting(&executor, other, other_stopped, &there);
            let deaf = async {
                wait_for(&there).await;
                let deaf = RunFacts { kill_grace: Duration::from_millis(100), ..asking("break") };
                waiting(&executor, deaf, stopped, &deaf_there).await
            };
            let later = async {
                wait_for(&deaf_there).await;
                stop.send(Stop::Politely).unwrap();
                // The first process takes runs until patience is over; then they go to a fresh one at once.
                let mut first = None;
                loop {
                    let short = RunFacts { kill_grace: Duration::from_secs(2), ..asking("nothing") };
                    let exit = run_to_end(&executor, short).await;
                    assert_eq!(exit.how, Ended::Succeeded);
                    if *first.get_or_insert(pid(&exit)) != pid(&exit) {
                        break;
                    }
                }
                if other_stops {
                    stop_other.send(Stop::Politely).unwrap();
                }
            };
            let (other, deaf, ()) = tokio::join!(other, deaf, later);
            let reason = "cancelled; it did not return within 100ms, so its process was killed";
            assert_eq!((deaf.how, deaf.reason.as_deref()), (Ended::Cancelled, Some(reason)));
            assert_eq!(deaf.signal, Some(libc::SIGKILL));
            assert!(
                !std::path::Path::new(&format!("/proc/{}", pid(&deaf))).exists(),
                "it is said to be over and lives"
            );
            if other_stops {
                assert_eq!((other.how, other.reason.as_deref()), (Ended::Cancelled, Some("cancelled")));
            } else {
                let reason = "the process of plugin fixture ended in the midst of this run and of others: it was ended, \
                              because another run in it did not stop";
                assert_eq!((other.how, other.reason.as_deref()), (Ended::Failed, Some(reason)));
            }
        });
    }
    run(async {
        let deaf = RunFacts {
            timeout: Some(Duration::from_millis(200)),
            kill_grace: Duration::from_millis(100),
            ..asking("break")
        };
        let exit = run_to_end(&hosted(&keeper(true), &body), deaf).await;
        let reason =
            "still running after its timeout of 200ms; it did not return within 100ms, so its process was killed";
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::TimedOut, Some(reason)));
    });
}

/// A thread of the server cannot be killed: the run is not over before it returns.
fn a_run_that_does_not_stop_stays_in_the_server() {
    let body = r#"
        run->write(run->host, "up", 2);
        while (!run->cancelled(run->host)) {}
        for (int i = 0; i < 300; i++) usleep(1000);
        run->write(run->host, " and over", 9);
    "#;
    run(async {
        let executor = fixture(&keeper(true), Isolation::InProcess, body);
        let facts = RunFacts {
            timeout: Some(Duration::from_millis(50)),
            kill_grace: Duration::from_millis(10),
            ..facts(json!({}))
        };
        let exit = run_to_end(&executor, facts).await;
        let reason = "still running after its timeout of 50ms; it did not return within 10ms";
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::TimedOut, Some(reason)));
        assert_eq!(text(&exit), "up and over");
    });
}

fn threads_left_behind_end_with_their_process() {
    let loops = "static void *left(void *nothing) { for (;;) {} return nothing; }\n";
    let source = WHOLE.replace("static void run(", &format!("{loops}static void run("));
    let source = source.replace("BODY", &broken("pthread_t thread; pthread_create(&thread, NULL, left, NULL);"));
    run(async {
        let directory = Directory::new();
        directory.compile("fixture.so", &source);
        let executor = directory.executor(&keeper(true), Isolation::Process);
        let first = run_to_end(&executor, asking("break")).await;
        assert_eq!(first.how, Ended::Succeeded);
        let process = std::path::PathBuf::from(format!("/proc/{}", pid(&first)));
        while process.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let next = run_to_end(&executor, asking("nothing")).await;
        assert_eq!((next.how, state(&executor)), (Ended::Succeeded, Some(HostState::Running)));
    });
}

fn state(executor: &DylibExecutor) -> Option<HostState> {
    executor.description().plugin.unwrap().host
}

fn a_dead_process_is_started_again_after_a_pause() {
    run(async {
        let executor = hosted(&keeper(true), &broken("abort();"));
        assert_eq!(state(&executor), Some(HostState::NotStarted));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Ended::Succeeded);
        assert_eq!(state(&executor), Some(HostState::Running));
        for _ in 0..4 {
            assert_eq!(run_to_end(&executor, asking("break")).await.signal, Some(libc::SIGABRT));
        }
        // 800 ms from now, which is longer than it takes to ask.
        assert_eq!(state(&executor), Some(HostState::BackingOff));
        let trouble = executor.description().plugin.unwrap().trouble;
        assert_eq!(trouble.as_deref(), Some("plugin fixture crashed: SIGABRT"));
        // A run that comes meanwhile waits, and may be called off.
        let (_stop, stopped) = watch::channel(Stop::Politely);
        let exit = executor.run(asking("nothing"), mpsc::channel(1).0, stopped).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Cancelled, Some("cancelled before it started")));
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Ended::Succeeded);
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
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Failed, Some(reason)));
        assert_eq!(state(&executor), Some(HostState::BackingOff));
    });
}

fn a_run_that_nobody_waits_for_is_ended() {
    run(async {
        let keeper: KeeperHandle = keeper(true);
        let executor = hosted(&keeper, &broken(""));
        let first = run_to_end(&executor, asking("nothing")).await;
        let (live, mut output) = mpsc::channel(8);
        tokio::select! {
            _ = executor.run(asking("wait"), live, watch::channel(Stop::No).1) => panic!("it ended"),
            _ = output.recv() => {}
        }
        let process = std::path::PathBuf::from(format!("/proc/{}", pid(&first)));
        while process.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Ended::Succeeded);
    });
}

/// A thread that goes on writing to a run that is over, while the next runs are in the same place.
fn what_comes_after_a_run_reaches_no_other() {
    let late = r#"
        struct late { int32_t (*write)(void *, const char *, size_t); int32_t (*cancelled)(void *); void *host; };
        static volatile int told;
        static void *late(void *facts) {
            struct late *late = facts;
            while (late->write(late->host, "late", 4) == 0) {}
            told = late->cancelled(late->host) ? 1 : 2;
            return NULL;
        }
    "#;
    let body = r#"
        if (strstr(run->params_json, "late")) {
            static struct late facts;
            facts.write = run->write; facts.cancelled = run->cancelled; facts.host = run->host;
            pthread_t thread;
            pthread_create(&thread, NULL, late, &facts);
        } else {
            while (!told) usleep(1000);
            result->status = told == 1 ? CARILLON_SUCCEEDED : CARILLON_FAILED;
        }
    "#;
    let source = WHOLE.replace("static void run(", &format!("{late}static void run(")).replace("BODY", body);
    for isolation in BOTH_WAYS {
        run(async {
            let directory = Directory::new();
            directory.compile("fixture.so", &source);
            let executor = directory.executor(&keeper(true), isolation);
            let (late, next) = (asking("late"), asking("nothing"));
            let late = run_to_end(&executor, late).await;
            assert!(text(&late).is_empty() || text(&late).starts_with("late"));
            let next = run_to_end(&executor, next).await;
            assert_eq!((next.how, text(&next)), (Ended::Succeeded, ""), "{:?}", next.reason);
        });
    }
}
