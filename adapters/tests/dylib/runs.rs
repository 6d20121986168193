//! Runs that go as they should.

use std::time::Duration;

use carillon_adapters::executor::{Ended, Executor, RunFacts, Stop};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![
    noop_succeeds,
    noop_fails_and_panics_when_asked_to,
    params_are_refused_by_field,
    every_fact_arrives,
    output_is_kept_in_order,
    a_plugin_hears_that_it_is_to_stop,
    a_plugin_hears_that_its_time_is_over,
    overwriting_the_file_changes_nothing,
];

fn noop_succeeds() {
    run(async {
        let exit = run_to_end(&noop(&keeper(true)), facts(json!({"sleep_ms": 1}))).await;
        assert_eq!((exit.how, exit.exit_code, exit.reason.as_deref()), (Ended::Succeeded, Some(0), None));
        assert_eq!((text(&exit), exit.output_truncated), ("", false));
    });
}

fn noop_fails_and_panics_when_asked_to() {
    run(async {
        let keeper = keeper(true);
        let noop = noop(&keeper);
        let exit = run_to_end(&noop, facts(json!({"fail": "as you wish"}))).await;
        assert_eq!((exit.how, exit.exit_code, exit.reason.as_deref()), (Ended::Failed, Some(1), Some("as you wish")));
        let exit = run_to_end(&noop, facts(json!({"panic": "oh dear"}))).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Failed, Some("the plugin panicked: oh dear")));
        assert!(text(&exit).contains("panicked at"), "what the plugin writes to stderr is output too: {}", text(&exit));
    });
}

fn params_are_refused_by_field() {
    run(async {
        let noop = noop(&keeper(true));
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
        SAY("%d %s\n", getenv("LD_PRELOAD") == NULL, getenv("CARILLON_JOB"));
        SAY("%d %d %d\n", run->struct_size == sizeof *run, result->struct_size == sizeof *result, run->cancelled(run->host));
        result->status = CARILLON_SUCCEEDED;
    "#;
    run(async {
        let executor = fixture(&keeper(true), body);
        let params = json!({"env": {"LD_PRELOAD": "/evil.so", "LANG": "de", "CARILLON_JOB": "other"}, "n": 1});
        let facts = RunFacts { timeout: Some(PATIENCE), ..facts(params) };
        let id = facts.run_id;
        let exit = run_to_end(&executor, facts).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Succeeded, None), "{}", text(&exit));
        let expected = format!(
            "default/try {id}\n1800000000123 2 18446744073709551614\n1\n\
             {{\"env\":{{\"CARILLON_JOB\":\"other\",\"LANG\":\"de\",\"LD_PRELOAD\":\"/evil.so\"}},\"n\":1}}\n\
             PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
             CARILLON_NAMESPACE=default\nCARILLON_JOB=try\nCARILLON_RUN_ID={id}\n\
             CARILLON_DUE_AT=2027-01-15T08:00:00.123Z\nCARILLON_ATTEMPT=2\n\
             CARILLON_FENCING_TOKEN=18446744073709551614\nLANG=de\nLD_PRELOAD=/evil.so\n1 try\n1 1 0\n"
        );
        assert_eq!(text(&exit), expected);
    });
}

fn output_is_kept_in_order() {
    let body = r#"
        run->write(run->host, "one\n", 4);
        fprintf(stderr, "two\n");
        run->write(run->host, NULL, 0);
        printf("three, left in the buffer of stdio\n");
        snprintf(result->message, result->message_capacity, "failed with %d", 300);
        result->exit_code = 300;
    "#;
    run(async {
        let exit = run_to_end(&fixture(&keeper(true), body), facts(json!({}))).await;
        assert_eq!(text(&exit), "one\ntwo\nthree, left in the buffer of stdio\n");
        assert_eq!((exit.how, exit.exit_code), (Ended::Failed, Some(1)));
        assert_eq!(exit.reason.as_deref(), Some("failed with 300"));
        let exit = run_to_end(&fixture(&keeper(true), "result->exit_code = 7;"), facts(json!({}))).await;
        assert_eq!((exit.how, exit.exit_code), (Ended::Failed, Some(7)));
        assert_eq!(exit.reason.as_deref(), Some("the plugin failed and did not say why"));
    });
}

/// Says that it is there, waits until it is to stop, and says so.
const OBEDIENT: &str = r#"
    run->write(run->host, "up", 2);
    while (!run->cancelled(run->host)) usleep(1000);
    strcpy(result->message, "half of it is done");
"#;

fn a_plugin_hears_that_it_is_to_stop() {
    run(async {
        let executor = fixture(&keeper(true), OBEDIENT);
        let (stop, stopped) = watch::channel(Stop::No);
        let (live, mut output) = mpsc::channel(8);
        let asked = async {
            assert_eq!(output.recv().await.unwrap(), b"up");
            stop.send(Stop::Politely).unwrap();
        };
        let (exit, ()) = tokio::join!(executor.run(facts(json!({})), live, stopped), asked);
        let reason = "cancelled; the plugin says: half of it is done";
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Cancelled, Some(reason)));

        let (_stop, stopped) = watch::channel(Stop::Politely);
        let exit = executor.run(facts(json!({})), mpsc::channel(1).0, stopped).await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Ended::Cancelled, Some("cancelled before it started")));
    });
}

fn a_plugin_hears_that_its_time_is_over() {
    run(async {
        let facts = RunFacts { timeout: Some(Duration::from_millis(300)), ..facts(json!({"sleep_ms": 3_600_000})) };
        let exit = run_to_end(&noop(&keeper(true)), facts).await;
        let reason = exit.reason.unwrap();
        assert_eq!(exit.how, Ended::TimedOut);
        assert!(reason.starts_with("still running after its timeout of 300ms"), "{reason}");
    });
}

fn overwriting_the_file_changes_nothing() {
    run(async {
        let directory = Directory::new();
        let file = directory.add_noop("noop.so");
        let noop = directory.executor(&keeper(true));
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(run_to_end(&noop, facts(json!({}))).await.how, Ended::Succeeded);
        drop(directory);
        assert_eq!(run_to_end(&noop, facts(json!({}))).await.how, Ended::Succeeded);
    });
}
