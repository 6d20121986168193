//! Runs that do not stop, or leave something behind.

use std::path::Path;
use std::time::Duration;

use carillon_executors::executor::{Executor, HostState, Isolation, Outcome, RunFacts};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    a_run_that_does_not_stop_is_killed_and_others_have_time,
    a_run_that_does_not_stop_stays_in_the_server,
    a_run_that_leaves_a_thread_behind_fails_and_its_process_is_replaced,
    threads_that_are_joined_are_no_fault,
    threads_that_may_be_of_another_run_end_with_their_process,
    a_run_that_nobody_waits_for_is_ended,
    what_comes_after_a_run_reaches_no_other,
];

/// A run that ignores a stop, a run that waits for one, and a later run.
fn a_run_that_does_not_stop_is_killed_and_others_have_time() {
    let body = broken("for (;;) {}");
    // The other one is stopped in good time, or it is there when the process is killed.
    for other_stops in [true, false] {
        run(async {
            let executor = hosted(&keeper(true), &body);
            let (there, deaf_there) = (watch::Sender::new(false), watch::Sender::new(false));
            let stop = CancellationToken::new();
            let stopped = stop.clone();
            let stop_other = CancellationToken::new();
            let other_stopped = stop_other.clone();
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
                stop.cancel();
                // The first process takes runs until patience is over; then they go to a fresh one at once.
                let mut first = None;
                loop {
                    let short = RunFacts { kill_grace: Duration::from_secs(2), ..asking("nothing") };
                    let exit = run_to_end(&executor, short).await;
                    assert_eq!(exit.how, Outcome::Succeeded);
                    if *first.get_or_insert(pid(&exit)) != pid(&exit) {
                        break;
                    }
                }
                if other_stops {
                    stop_other.cancel();
                }
            };
            let (other, deaf, ()) = tokio::join!(other, deaf, later);
            let reason = "cancelled; it did not return within 100ms, so its process was killed";
            assert_eq!((deaf.how, deaf.reason.as_deref()), (Outcome::Cancelled, Some(reason)));
            assert_eq!(deaf.signal, Some(libc::SIGKILL));
            assert!(!Path::new(&format!("/proc/{}", pid(&deaf))).exists(), "it is said to be over and lives");
            if other_stops {
                assert_eq!((other.how, other.reason.as_deref()), (Outcome::Cancelled, Some("cancelled")));
            } else {
                let reason = "the process of plugin fixture ended in the midst of this run and of others: it was ended, \
                              because another run in it did not stop";
                assert_eq!((other.how, other.reason.as_deref()), (Outcome::Failed, Some(reason)));
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
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::TimedOut, Some(reason)));
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
            ..asking("nothing")
        };
        let exit = run_to_end(&executor, facts).await;
        let reason = "still running after its timeout of 50ms; it did not return within 10ms";
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::TimedOut, Some(reason)));
        assert_eq!(text(&exit), "up and over");
    });
}

/// Starts a thread that loops (`break`) or one that it joins (`join`), or does as [`broken`] has it.
fn with_threads() -> String {
    let loops = "static void *left(void *nothing) { for (;;) usleep(1000); return nothing; }
                 static void *joined(void *nothing) { usleep(1000); return nothing; }\n";
    let body = broken("pthread_t thread; pthread_create(&thread, NULL, left, NULL);");
    let join = "if (strstr(run->params_json, \"join\")) {
                    pthread_t thread; pthread_create(&thread, NULL, joined, NULL); pthread_join(thread, NULL);
                }\n";
    WHOLE.replace("static void run(", &format!("{loops}static void run(")).replace("BODY", &(join.to_owned() + &body))
}

fn a_run_that_leaves_a_thread_behind_fails_and_its_process_is_replaced() {
    run(async {
        let directory = Directory::new();
        directory.compile("fixture.so", &with_threads());
        let executor = directory.executor(&keeper(true), Isolation::Process);
        let mut last = None;
        for _ in 0..2 {
            let exit = run_to_end(&executor, asking("break")).await;
            let reason = "plugin fixture left a thread behind";
            assert_eq!((exit.how, exit.exit_code, exit.reason.as_deref()), (Outcome::Failed, Some(1), Some(reason)));
            assert!(!Path::new(&format!("/proc/{}", pid(&exit))).exists(), "it is said to be over and lives");
            assert_ne!(last.replace(pid(&exit)), Some(pid(&exit)));
            let next = run_to_end(&executor, asking("nothing")).await;
            assert_eq!((next.how, state(&executor)), (Outcome::Succeeded, Some(HostState::Running)));
        }
    });
}

fn threads_that_are_joined_are_no_fault() {
    run(async {
        let directory = Directory::new();
        directory.compile("fixture.so", &with_threads());
        let executor = directory.executor(&keeper(true), Isolation::Process);
        let mut process = None;
        for _ in 0..100 {
            let exit = run_to_end(&executor, asking("join")).await;
            assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Succeeded, None));
            assert_eq!(*process.get_or_insert(pid(&exit)), pid(&exit));
        }
    });
}

/// Another run was active when it began, and may have started the thread.
fn threads_that_may_be_of_another_run_end_with_their_process() {
    run(async {
        let directory = Directory::new();
        directory.compile("fixture.so", &with_threads());
        let executor = directory.executor(&keeper(true), Isolation::Process);
        let there = watch::Sender::new(false);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let other = waiting(&executor, asking("wait"), stopped, &there);
        let leaving = async {
            wait_for(&there).await;
            let exit = run_to_end(&executor, asking("break")).await;
            stop.cancel();
            exit
        };
        let (other, leaving) = tokio::join!(other, leaving);
        assert_eq!((leaving.how, leaving.reason.as_deref()), (Outcome::Succeeded, None));
        assert_eq!(
            (other.how, other.reason.as_deref(), pid(&other)),
            (Outcome::Cancelled, Some("cancelled"), pid(&leaving))
        );
        until_gone(pid(&leaving)).await;
        let next = run_to_end(&executor, asking("nothing")).await;
        assert_eq!((next.how, state(&executor)), (Outcome::Succeeded, Some(HostState::Running)));
    });
}

fn a_run_that_nobody_waits_for_is_ended() {
    run(async {
        let keeper = keeper(true);
        let executor = hosted(&keeper, &broken(""));
        let first = run_to_end(&executor, asking("nothing")).await;
        let (live, mut output) = heard();
        tokio::select! {
            _ = executor.run(asking("wait"), live, CancellationToken::new()) => panic!("it ended"),
            _ = output.recv() => {}
        }
        until_gone(pid(&first)).await;
        assert_eq!(run_to_end(&executor, asking("nothing")).await.how, Outcome::Succeeded);
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
            assert_eq!((next.how, text(&next)), (Outcome::Succeeded, ""), "{:?}", next.reason);
        });
    }
}
