//! The shell executor, from params to exit.

use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_executors::executor::{Executor, Exit, Live, Outcome, RunFacts};
use carillon_executors::shell::{ShellConfig, ShellExecutor};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::*;
use crate::tests;

tests![
    the_environment_is_what_is_documented,
    a_command_is_run_by_the_shell_and_argv_is_not,
    the_directory_is_home_unless_said,
    what_is_missing_is_a_failure_with_a_sentence,
    stopping_reaches_the_run,
    a_run_stopped_before_it_starts_never_starts,
    users_are_checked_when_saved_and_at_start,
    output_is_live,
];

fn executor() -> ShellExecutor {
    ShellExecutor::new(keeper(true), ShellConfig { allow_users: vec!["nobody".to_owned()] })
}

pub fn facts(params: Value) -> RunFacts {
    RunFacts {
        run_id: argv(["x"]).run,
        namespace: "default".to_owned(),
        job: "nightly".to_owned(),
        due_at: Timestamp::from_ms(1_800_000_000_000),
        attempt: 2,
        fencing_token: 77,
        timeout: None,
        kill_grace: Duration::from_secs(10),
        trace: None,
        params: params.into(),
    }
}

fn exit_of(params: Value) -> Exit {
    run(async {
        let executor = executor();
        executor.check(&params).unwrap();
        executor.run(facts(params), Live::unheard(), CancellationToken::new()).await
    })
}

fn the_environment_is_what_is_documented() {
    let facts = facts(json!({"argv": ["env"], "env": {"B": {"value": "s3", "secret": true}, "LANG": "C", "A": "a b"}}));
    let id = facts.run_id;
    let exit = run(async { executor().run(facts, Live::unheard(), CancellationToken::new()).await });
    let own = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    let expected = format!(
        "A=a b\nB=s3\nCARILLON_ATTEMPT=2\nCARILLON_DUE_AT=2027-01-15T08:00:00.000Z\nCARILLON_FENCING_TOKEN=77\n\
         CARILLON_JOB=nightly\nCARILLON_NAMESPACE=default\nCARILLON_RUN_ID={id}\nHOME={}\nLANG=C\n\
         PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nUSER={}\n",
        own.dir.display(),
        own.name
    );
    assert_eq!(text(&exit), expected);
}

fn a_command_is_run_by_the_shell_and_argv_is_not() {
    let exit = exit_of(json!({"command": "x=$((1+1)); echo $x >&2; exit $x", "stdin": "unread"}));
    assert_eq!((exit.how, exit.exit_code, text(&exit)), (Outcome::Failed, Some(2), "2\n"));
    assert_ne!(text(&exit_of(json!({"command": "echo $BASH_VERSION"}))), "\n");
    let exit = exit_of(json!({"command": "echo $0; cat", "shell": "/bin/sh", "stdin": "in"}));
    assert_eq!(text(&exit), "/bin/sh\nin");
    assert_eq!(text(&exit_of(json!({"argv": ["echo", "$HOME", ";id"]}))), "$HOME ;id\n");
}

fn the_directory_is_home_unless_said() {
    let own = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    assert_eq!(text(&exit_of(json!({"argv": ["pwd"]}))).trim_end(), own.dir.display().to_string());
    assert_eq!(text(&exit_of(json!({"argv": ["pwd"], "dir": "/usr"}))), "/usr\n");
    assert_eq!(text(&exit_of(json!({"argv": ["pwd"], "env": {"HOME": "/etc"}}))), "/etc\n");
}

fn what_is_missing_is_a_failure_with_a_sentence() {
    for (params, expected) in [
        (json!({"command": "true", "dir": "/no/such"}), "cannot enter the directory \"/no/such\""),
        (json!({"command": "true", "shell": "no-such-shell"}), "no such program: \"no-such-shell\""),
        (json!({"argv": ["/no/such"]}), "no such program: \"/no/such\""),
    ] {
        let exit = exit_of(params);
        let reason = exit.reason.unwrap();
        assert!(exit.how == Outcome::Failed && exit.exit_code.is_none() && reason.contains(expected), "{reason}");
    }
}

fn stopping_reaches_the_run() {
    let mut witness = Witness::new();
    let command = format!(
        "trap 'echo bye; exit 3' TERM; exec 9>{}; echo up >&9; while :; do sleep 0.01; done",
        witness.path().display()
    );
    run(async {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let executor = executor();
        let running =
            tokio::spawn(
                async move { executor.run(facts(json!({"command": command})), Live::unheard(), stopped).await },
            );
        assert_eq!(witness.line(), "up");
        stop.cancel();
        let exit = running.await.unwrap();
        // The group's `sleep` got SIGTERM too, and bash may say so.
        assert!(text(&exit).ends_with("bye\n"), "{exit:?}");
        assert_eq!((exit.how, exit.exit_code), (Outcome::Cancelled, Some(3)));
    });
}

fn a_run_stopped_before_it_starts_never_starts() {
    let exit = run(async {
        let stop = CancellationToken::new();
        stop.cancel();
        executor().run(facts(json!({"command": "true"})), Live::unheard(), stop).await
    });
    assert_eq!((exit.how, exit.exit_code), (Outcome::Cancelled, None));
}

fn users_are_checked_when_saved_and_at_start() {
    let check = |user: &str| run(async { executor().check(&json!({"command": "x", "user": user})) });
    let (field, sentence) = check("daemon").unwrap_err().remove(0);
    assert!(field == "params.user" && sentence.contains("allow_users"), "{sentence}");
    let forbidden = facts(json!({"command": "id", "user": "daemon"}));
    let exit = run(async { executor().run(forbidden, Live::unheard(), CancellationToken::new()).await });
    assert!(exit.how == Outcome::Failed && exit.reason.unwrap().starts_with("params.user must be"));
    if !is_root() {
        assert!(check("nobody").unwrap_err()[0].1.contains("root"));
        return skip("switching users needs root");
    }
    let exit = exit_of(
        json!({"command": "id -un; echo $USER $HOME; pwd; grep NoNewPrivs /proc/self/status", "user": "nobody"}),
    );
    assert_eq!(text(&exit), "nobody\nnobody /nonexistent\n/\nNoNewPrivs:\t1\n");
}

fn output_is_live() {
    run(async {
        let ((sender, mut live), stop) = (heard(), CancellationToken::new());
        let executor = executor();
        let running = executor.run(facts(json!({"command": "echo live; exec sleep 1000"})), sender, stop);
        tokio::select! {
            exit = running => panic!("ended with {exit:?}"),
            chunk = live.recv() => assert_eq!(chunk.unwrap(), b"live\n"),
        }
        // The dropped future has killed the run, and the end of the run closes the channel.
        assert_eq!(live.recv().await, None);
    });
}
