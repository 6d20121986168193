//! Params for one run: asked for, checked, used and shown.

use serde_json::{Value, json};

use crate::http::tests::Api;

fn secret(value: &str) -> Value {
    json!({"value": value, "secret": true})
}

#[tokio::test]
async fn they_are_laid_over_those_of_the_job_for_one_run() {
    let api = Api::new().await;
    api.job("a", json!({"params": {"command": "true", "env": {"A": "1", "P": secret("old")}}})).await;
    let body = json!({"params": {"env": {"B": "2", "P": {"secret": true}, "Q": secret("new")}}});
    let asked = api.call("POST", "/v1/jobs/a/run", Some(body)).await;
    assert_eq!(asked.status, 202, "{}", asked.json);
    let path = asked.header("location").to_owned();
    let given = json!({"env": {"B": "2", "P": {"secret": true}, "Q": {"secret": true}}});
    assert_eq!(api.call("GET", &path, None).await.json["params"], given);

    let claimed = api.claimed().await.remove(0);
    let used: Value = serde_json::from_str(&claimed.job.params).unwrap();
    let env = json!({"A": "1", "B": "2", "P": secret("old"), "Q": secret("new")});
    assert_eq!(used, json!({"command": "true", "env": env}));
    let kept = api.call("GET", "/v1/jobs/a", None).await;
    assert_eq!(kept.json["params"], json!({"command": "true", "env": {"A": "1", "P": {"secret": true}}}));
    let listed = api.call("GET", "/v1/jobs/a/runs", None).await;
    assert!(listed.json["items"][0].get("params").is_none(), "lists have none");
}

#[tokio::test]
async fn a_run_without_them_says_so() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for body in [None, Some(json!({})), Some(json!({"params": null})), Some(json!({"params": {}}))] {
        let asked = api.call("POST", "/v1/jobs/a/run", body).await;
        assert_eq!(api.call("GET", asked.header("location"), None).await.json["params"], Value::Null);
        api.call("POST", &format!("{}/cancel", asked.header("location")), None).await;
        api.clock.advance(std::time::Duration::from_secs(1));
    }
}

#[tokio::test]
async fn they_are_checked_as_those_of_a_job() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for (body, field) in [
        (json!({"params": {"command": 7}}), "params.command"),
        (json!({"params": {"command": null}}), "params.command"),
        (json!({"params": {"env": {"P": {"secret": true}}}}), "params.env.P"),
        (json!({"params": {"dir": "x".repeat(256 * 1024)}}), "params"),
        (json!({"params": ["true"]}), "params"),
        (json!({"param": {}}), "param"),
    ] {
        let refused = api.call("POST", "/v1/jobs/a/run", Some(body.clone())).await;
        assert_eq!((refused.status.as_u16(), refused.faults()), (400, vec![field]), "{body}");
    }
    assert!(api.claimed().await.is_empty(), "nothing was asked for");
}

/// A command for one run is as mighty as a new definition.
#[tokio::test]
async fn only_those_who_may_change_the_job_may_give_them() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let run = async |token: &str, body: Value| {
        api.call_as(token, &[], "POST", "/v1/jobs/a/run", Some(body.to_string().into_bytes())).await.status
    };
    assert_eq!(run("operator", json!({"params": {"command": "id"}})).await, 403);
    assert_eq!(run("viewer", json!({})).await, 403);
    assert_eq!(run("operator", json!({})).await, 202);
    let missing = api.call("POST", "/v1/jobs/nobody/run", Some(json!({"params": {"command": "id"}}))).await;
    assert_eq!(missing.status, 404);
}
