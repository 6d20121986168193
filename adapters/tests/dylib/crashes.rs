//! Plugins that take their process down: that run fails with the reason, and the others go on.

use std::time::Duration;

use carillon_adapters::executor::{Ended, Executor, RunFacts, Stop};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![a_crash_ends_its_own_run, leaving_the_process_is_no_success, an_endless_loop_is_killed];

fn a_crash_ends_its_own_run() {
    for (body, reason, signal) in [
        ("*(volatile int *)0 = 1;", "the plugin crashed: SIGSEGV", libc::SIGSEGV),
        ("abort();", "the plugin crashed: SIGABRT", libc::SIGABRT),
        ("raise(SIGFPE);", "the plugin crashed: SIGFPE", libc::SIGFPE),
        ("volatile char *deep = __builtin_alloca(1 << 28); *deep = 1;", "the plugin crashed: SIGSEGV", libc::SIGSEGV),
        (
            "kill(getpid(), 9);",
            "the plugin's process was ended by SIGKILL, which the server did not send",
            libc::SIGKILL,
        ),
    ] {
        run(async {
            let keeper = keeper(true);
            let (noop, broken) =
                (noop(&keeper), fixture(&keeper, &format!("puts(\"before\"); fflush(stdout); {body}")));
            // Beside it, one that lives all the time until the crash has been seen.
            let (stop, stopped) = watch::channel(Stop::No);
            let other = noop.run(facts(json!({"sleep_ms": 3_600_000})), mpsc::channel(1).0, stopped);
            let crash = async {
                let exit = run_to_end(&broken, facts(json!({}))).await;
                stop.send(Stop::Politely).unwrap();
                exit
            };
            let (other, exit) = tokio::join!(other, crash);
            assert_eq!((exit.how, exit.reason.as_deref(), exit.signal), (Ended::Failed, Some(reason), Some(signal)));
            assert!(text(&exit).starts_with("before\n"));
            assert_eq!(other.how, Ended::Cancelled);
            assert_eq!(run_to_end(&noop, facts(json!({}))).await.how, Ended::Succeeded);
        });
    }
}

fn leaving_the_process_is_no_success() {
    let lie = r#"printf("{\"succeeded\":true,\"exit_code\":0,\"message\":\"\"}"); fflush(stdout);"#;
    for (body, code) in [("exit(0);", 0), ("_exit(0);", 0), ("exit(3);", 3)] {
        run(async {
            let exit = run_to_end(&fixture(&keeper(true), &format!("{lie} {body}")), facts(json!({}))).await;
            let reason =
                format!("the plugin ended its process with exit code {code} instead of returning from its run");
            assert!(text(&exit).contains("succeeded"));
            assert_eq!((exit.how, exit.reason, exit.exit_code), (Ended::Failed, Some(reason), Some(code)));
        });
    }
}

fn an_endless_loop_is_killed() {
    run(async {
        let executor = fixture(&keeper(true), r#"run->write(run->host, "up", 2); for (;;) {}"#);
        let (stop, stopped) = watch::channel(Stop::No);
        let (live, mut output) = mpsc::channel(8);
        let asked = async {
            assert_eq!(output.recv().await.unwrap(), b"up");
            stop.send(Stop::Politely).unwrap();
        };
        let deaf = RunFacts { kill_grace: Duration::from_millis(100), ..facts(json!({})) };
        let (exit, ()) = tokio::join!(executor.run(deaf.clone(), live, stopped), asked);
        let reason = "cancelled; SIGTERM did not end it within 100ms, so it was killed";
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Cancelled, Some(reason)));

        let timeout = Some(Duration::from_millis(100));
        let exit = run_to_end(&executor, RunFacts { timeout, ..deaf }).await;
        assert_eq!((exit.how, exit.signal), (Ended::TimedOut, Some(libc::SIGKILL)));
    });
}
