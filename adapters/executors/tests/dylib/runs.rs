//! Runs that go as they should: each in a host process and in the server's own, with the same end.

use std::sync::Arc;
use std::time::Duration;

use carillon_executors::dylib::DylibExecutor;
use carillon_executors::execution::NewRun;
use carillon_executors::executor::{Executor, Exit, Isolation, Live, Outcome, RunFacts};
use carillon_keeper::{KeeperHandle, boottime_ms};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    noop_succeeds,
    noop_fails_and_panics_when_asked_to,
    params_are_refused_by_field,
    every_fact_arrives,
    output_is_kept_in_order,
    endless_output_is_cut_and_comes_live,
    a_plugin_hears_that_it_is_to_stop,
    a_run_that_has_nothing_to_wait_for_needs_no_task,
    waiting_is_interrupted_when_a_run_is_to_stop,
    a_plugin_hears_that_its_time_is_over,
    overwriting_the_file_changes_nothing,
    runs_go_on_side_by_side,
    a_run_does_not_begin_when_the_lease_is_over,
    facts_of_any_length_arrive,
];

/// Tests both ways, each with a keeper of its own.
fn both<F: Future<Output = ()>>(test: impl Fn(KeeperHandle, Isolation) -> F) {
    for isolation in BOTH_WAYS {
        run(async { test(keeper(true), isolation).await });
    }
}

fn noop_succeeds() {
    both(async |keeper, isolation| {
        let exit = run_to_end(&noop(&keeper, isolation), facts(json!({"sleep_ms": 1}))).await;
        assert_eq!((exit.how, exit.exit_code, exit.reason.as_deref()), (Outcome::Succeeded, Some(0), None));
        assert_eq!((text(&exit), exit.output_truncated), ("", false));
    });
}

fn noop_fails_and_panics_when_asked_to() {
    both(async |keeper, isolation| {
        let noop = noop(&keeper, isolation);
        let exit = run_to_end(&noop, facts(json!({"fail": "as you wish"}))).await;
        assert_eq!((exit.how, exit.exit_code, exit.reason.as_deref()), (Outcome::Failed, Some(1), Some("as you wish")));
        let exit = run_to_end(&noop, facts(json!({"panic": "oh dear"}))).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Failed, Some("the plugin panicked: oh dear")));
        assert_eq!(text(&exit), "", "what goes to stderr is the log's");
    });
}

fn params_are_refused_by_field() {
    both(async |keeper, isolation| {
        let noop = noop(&keeper, isolation);
        assert_eq!(noop.check(&json!({"sleep_ms": 5})), Ok(()));
        let mut faults = noop.check(&json!({"sleep_ms": -5, "colour": "red", "fail": true})).unwrap_err();
        faults.sort();
        let fields: Vec<&str> = faults.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["params.colour", "params.fail", "params.sleep_ms"], "{faults:?}");
        assert_eq!(noop.check(&json!([])).unwrap_err()[0].0, "params");
        // Params that were saved before the schema changed: the plugin itself refuses them.
        let exit = run_to_end(&noop, facts(json!({"colour": "red"}))).await;
        let reason = exit.reason.unwrap();
        assert!(reason.starts_with("the params are not what the plugin expects: unknown field `colour`"), "{reason}");
    });
}

fn every_fact_arrives() {
    let body = r#"
        char line[4096];
        #define SAY(...) run->write(run->host, line, (size_t)snprintf(line, sizeof line, __VA_ARGS__))
        SAY("%s/%s %s\n", run->job_namespace, run->job, run->run_id);
        SAY("%lld %u %llu\n", (long long)run->due_at_ms, run->attempt, (unsigned long long)run->fencing_token);
        SAY("%d\n%s\n", run->deadline_ms > 1700000000000, run->params_json);
        for (uint32_t i = 0; i < run->env_count; i++) SAY("%s=%s\n", run->env[i].name, run->env[i].value);
        SAY("%d %d\n", getenv("LD_PRELOAD") == NULL, getenv("CARILLON_JOB") == NULL);
        SAY("%d %d %d\n", run->struct_size == sizeof *run, result->struct_size == sizeof *result, run->cancelled(run->host));
        result->status = CARILLON_SUCCEEDED;
    "#;
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, body);
        let secret = json!({"value": "hush", "secret": true});
        let env = json!({"LD_PRELOAD": "/evil.so", "LANG": "de", "CARILLON_JOB": "other", "KEY": secret, "NONE": 1});
        let params = json!({"env": env, "n": 1});
        let facts = RunFacts { timeout: Some(PATIENCE), ..facts(params) };
        let id = facts.run_id;
        let exit = run_to_end(&executor, facts).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Succeeded, None), "{}", text(&exit));
        let expected = format!(
            "default/try {id}\n1800000000123 2 18446744073709551614\n1\n\
             {{\"env\":{{\"CARILLON_JOB\":\"other\",\"KEY\":{{\"secret\":true,\"value\":\"hush\"}},\"LANG\":\"de\",\
             \"LD_PRELOAD\":\"/evil.so\",\"NONE\":1}},\"n\":1}}\n\
             PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
             CARILLON_NAMESPACE=default\nCARILLON_JOB=try\nCARILLON_RUN_ID={id}\n\
             CARILLON_DUE_AT=2027-01-15T08:00:00.123Z\nCARILLON_ATTEMPT=2\n\
             CARILLON_FENCING_TOKEN=18446744073709551614\nKEY=hush\nLANG=de\nLD_PRELOAD=/evil.so\n1 1\n1 1 0\n"
        );
        assert_eq!(text(&exit), expected);
    });
}

fn output_is_kept_in_order() {
    let body = r#"
        run->write(run->host, "one\n", 4);
        run->write(run->host, NULL, 0);
        run->write(run->host, "two\n", 4);
        fprintf(stderr, "a line for the log\n");
        snprintf(result->message, result->message_capacity, "failed with %d", 300);
        result->exit_code = 300;
    "#;
    both(async |keeper, isolation| {
        let exit = run_to_end(&fixture(&keeper, isolation, body), facts(json!({}))).await;
        assert_eq!(text(&exit), "one\ntwo\n");
        assert_eq!((exit.how, exit.exit_code), (Outcome::Failed, Some(1)));
        assert_eq!(exit.reason.as_deref(), Some("failed with 300"));
        let exit = run_to_end(&fixture(&keeper, isolation, "result->exit_code = 7;"), facts(json!({}))).await;
        assert_eq!((exit.how, exit.exit_code), (Outcome::Failed, Some(7)));
        assert_eq!(exit.reason.as_deref(), Some("the plugin failed and did not say why"));
    });
}

fn endless_output_is_cut_and_comes_live() {
    let body = r#"
        static char block[100000];
        memset(block, 'a', sizeof block);
        run->write(run->host, block, 10);
        for (int i = 0; i < 20; i++) run->write(run->host, block, sizeof block);
        run->write(run->host, "z", 1);
        result->status = CARILLON_SUCCEEDED;
    "#;
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, body);
        let (live, mut chunks) = heard();
        let exit = follow(&executor, facts(json!({})), live, CancellationToken::new()).await;
        assert_eq!((exit.how, exit.output.len(), exit.output_truncated), (Outcome::Succeeded, 64 << 10, true));
        assert!(text(&exit).ends_with("aaz"));
        assert_eq!(chunks.recv().await.unwrap(), b"aaaaaaaaaa");
    });
}

/// A run that is asked to stop as soon as it has said that it is there.
async fn stopped_once_up(executor: &Arc<DylibExecutor>) -> Exit {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let (live, mut output) = heard();
    let asked = async {
        assert_eq!(output.recv().await.unwrap(), b"up");
        stop.cancel();
    };
    tokio::join!(follow(executor, facts(json!({})), live, stopped), asked).0
}

/// Says that it is there, waits until it is to stop, and says so.
pub const OBEDIENT: &str = r#"
    run->write(run->host, "up", 2);
    while (!run->cancelled(run->host)) usleep(1000);
    strcpy(result->message, "half of it is done");
"#;

fn a_plugin_hears_that_it_is_to_stop() {
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, OBEDIENT);
        let exit = stopped_once_up(&executor).await;
        let reason = "cancelled; the plugin says: half of it is done";
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Cancelled, Some(reason)));

        let stopped = CancellationToken::new();
        stopped.cancel();
        let exit = executor.run(facts(json!({})), Live::unheard(), stopped).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Cancelled, Some("cancelled before it started")));
    });
}

/// It is given back where there is no process yet, or its time is limited.
fn a_run_that_has_nothing_to_wait_for_needs_no_task() {
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, OBEDIENT);
        let begin = |timeout| {
            let (tell, told) = oneshot::channel();
            let facts = RunFacts { timeout, ..facts(json!({})) };
            let (stop, done) = (CancellationToken::new(), Box::new(|exit| drop(tell.send(exit))));
            let run = NewRun { facts, live: Live::unheard(), done, stop: stop.clone() };
            (executor.clone().begin(Box::new(run)).ok(), stop, told)
        };
        if isolation == Isolation::Process {
            assert!(begin(None).0.is_none());
            stopped_once_up(&executor).await;
        }
        assert!(begin(Some(PATIENCE)).0.is_none());
        let (begun, stop, told) = begin(None);
        stop.cancel();
        begun.unwrap().stopped();
        let exit = told.await.unwrap();
        let reason = "cancelled; the plugin says: half of it is done";
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Cancelled, Some(reason)));
    });
}

fn waiting_is_interrupted_when_a_run_is_to_stop() {
    let body = r#"
        run->write(run->host, "up", 2);
        int pipes[2];
        char byte;
        pipe(pipes);
        strcpy(result->message, read(pipes[0], &byte, 1) < 0 ? "interrupted" : "not interrupted");
    "#;
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, body);
        let exit = stopped_once_up(&executor).await;
        assert_eq!(exit.reason.as_deref(), Some("cancelled; the plugin says: interrupted"));
    });
}

fn a_plugin_hears_that_its_time_is_over() {
    both(async |keeper, isolation| {
        let facts = RunFacts { timeout: Some(Duration::from_millis(300)), ..facts(json!({"sleep_ms": 3_600_000})) };
        let exit = run_to_end(&noop(&keeper, isolation), facts).await;
        let reason = exit.reason.unwrap();
        assert_eq!(exit.how, Outcome::TimedOut);
        assert!(reason.starts_with("still running after its timeout of 300ms"), "{reason}");
    });
}

fn overwriting_the_file_changes_nothing() {
    both(async |keeper, isolation| {
        let directory = Directory::new();
        let file = directory.add_noop("noop.so");
        let noop = directory.executor(&keeper, isolation);
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(run_to_end(&noop, facts(json!({}))).await.how, Outcome::Succeeded);
        drop(directory);
        assert_eq!(run_to_end(&noop, facts(json!({}))).await.how, Outcome::Succeeded);
    });
}

/// More runs than one host takes, each of which returns only when all of them are there.
fn runs_go_on_side_by_side() {
    let body = r#"
        FILE *file = fopen(strstr(run->params_json, "/"), "a");
        fputs("x", file);
        fclose(file);
        run->write(run->host, run->job, strlen(run->job));
        while (!run->cancelled(run->host)) usleep(1000);
        result->status = CARILLON_SUCCEEDED;
    "#;
    // The path ends where the JSON does; a string ends there only if it is cut.
    let body = format!("char *end = strrchr(run->params_json, '\"'); if (end) *end = 0;{body}");
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, &body);
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("there");
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut there = tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(&file).unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runs: Vec<_> = (0..300)
            .map(|number| {
                let facts = RunFacts { job: number.to_string(), ..facts(json!({"file": file})) };
                let (executor, stopped) = (executor.clone(), stopped.clone());
                tokio::spawn(async move { follow(&executor, facts, Live::unheard(), stopped).await })
            })
            .collect();
        there.read_exact(&mut [0; 300]).await.unwrap();
        stop.cancel();
        let mut exits = Vec::new();
        for run in runs {
            exits.push(run.await.unwrap());
        }
        let mut said: Vec<u32> = exits.iter().map(|exit| text(exit).parse().unwrap()).collect();
        said.sort_unstable();
        assert_eq!(said, (0..300).collect::<Vec<_>>());
        assert!(exits.iter().all(|exit| exit.how == Outcome::Cancelled));
    });
}

fn a_run_does_not_begin_when_the_lease_is_over() {
    for isolation in BOTH_WAYS {
        run(async {
            let keeper = KeeperHandle::start(options(true)).unwrap();
            // Without any lease no process can be started; with one that is over none may be used.
            for lease_ms in [0, boottime_ms() + 200] {
                keeper.extend_deadline(lease_ms);
                let executor = fixture(&keeper, isolation, "run->write(run->host, \"called\", 6);");
                let left = Duration::from_millis(lease_ms.saturating_sub(boottime_ms()) + 1);
                tokio::time::sleep(left).await;
                let exit = run_to_end(&executor, facts(json!({}))).await;
                let reason = exit.reason.as_deref().unwrap_or_default();
                assert_eq!((exit.how, text(&exit)), (Outcome::Lost, ""), "{reason}");
                assert!(reason.contains("the node did not renew its lease in time"), "{reason}");
            }
        });
    }
}

fn facts_of_any_length_arrive() {
    let body = r#"
        char line[64];
        run->write(run->host, line, (size_t)snprintf(line, sizeof line, "%zu", strlen(run->params_json)));
        result->status = CARILLON_SUCCEEDED;
    "#;
    both(async |keeper, isolation| {
        let executor = fixture(&keeper, isolation, body);
        for length in [0, 5_000, 70_000, 1_000_000] {
            let params = json!({"text": "\n".repeat(length)});
            let expected = params.to_string().len().to_string();
            assert_eq!(text(&run_to_end(&executor, facts(params)).await), expected);
        }
    });
}
