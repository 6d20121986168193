//! `POST /v1/jobs/{name}/plan`: a put that stores nothing.

use serde_json::{Value, json};

use crate::http::tests::{Api, Reply, job};

async fn plan(api: &Api, name: &str, headers: &[(&str, &str)], more: Value) -> Reply {
    let mut body = job(name);
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    api.call_with(headers, "POST", &format!("/v1/jobs/{name}/plan"), Some(body)).await
}

#[tokio::test]
async fn a_plan_tells_what_a_put_would_store_and_stores_nothing() {
    let api = Api::new().await;
    let new = plan(&api, "a", &[], json!({"schedule": "30 4 * * *", "timezone": "Europe/Berlin"})).await;
    assert_eq!(new.status, 200, "{}", new.json);
    assert_eq!((&new.json["change"], &new.json["generation"]), (&json!("created"), &Value::Null));
    assert_eq!((&new.json["before"], &new.json["next_before"]), (&Value::Null, &Value::Null));
    assert_eq!(new.json["next"].as_array().unwrap().len(), 10);
    assert_eq!(new.json["next"][0], "2027-01-01T03:30:00.000Z");
    assert_eq!(api.call("GET", "/v1/jobs/a", None).await.status, 404);

    let stored = api.job("a", json!({"schedule": "30 4 * * *", "timezone": "Europe/Berlin"})).await.json;
    for (field, value) in new.json["after"].as_object().unwrap() {
        assert_eq!(&stored[field], value, "{field}");
    }
    let same = plan(&api, "a", &[], json!({"schedule": "30 4 * * *", "timezone": "Europe/Berlin"})).await;
    assert_eq!((&same.json["change"], &same.json["changes"]), (&json!("unchanged"), &json!([])));
    let other = plan(&api, "a", &[("if-match", "\"1\"")], json!({"schedule": "@daily", "paused": true})).await;
    assert_eq!((&other.json["change"], &other.json["generation"]), (&json!("updated"), &json!(1)));
    let expected = json!([
        {"field": "paused", "before": false, "after": true},
        {"field": "schedule", "before": "30 4 * * *", "after": "@daily"},
        {"field": "timezone", "before": "Europe/Berlin", "after": null},
    ]);
    assert_eq!(other.json["changes"], expected);
    assert_eq!(other.json["next_before"][0], "2027-01-01T03:30:00.000Z");
    assert_eq!(other.json["next"][0], "2027-01-02T00:00:00.000Z");
    assert_eq!(api.call("GET", "/v1/jobs/a", None).await.json, stored);
    assert_eq!(api.call("GET", "/v1/audit", None).await.json["items"].as_array().unwrap().len(), 1);
}

/// A new run of an interval begins at the change, as it does when it is stored.
#[tokio::test]
async fn due_times_that_do_not_change_are_those_of_the_stored_job() {
    let api = Api::new().await;
    api.job("a", json!({"schedule": "@every 1h"})).await;
    api.clock.advance(std::time::Duration::from_secs(600));
    let same = plan(&api, "a", &[], json!({"schedule": "@every 1h", "timeout": "5m"})).await.json;
    assert_eq!((&same["next"], &same["next"][0]), (&same["next_before"], &json!("2027-01-01T01:00:00.000Z")));
    let other = plan(&api, "a", &[], json!({"schedule": "@every 2h"})).await.json;
    assert_eq!(other["next"][0], "2027-01-01T02:10:00.000Z");
}

#[tokio::test]
async fn a_plan_is_refused_as_the_put_would_be() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for (name, headers, more, status, told) in [
        ("a", &[][..], json!({"schedule": "61 * * * *"}), 400, "minute: \"61\" is out of range"),
        ("a", &[], json!({"params": {}}), 400, "params.command: it must be a string"),
        ("a", &[], json!({"overlop": "skip"}), 400, "overlop: there is no such field"),
        ("a", &[], json!({"name": "b"}), 400, "name: it is \"b\" here and a in the path"),
        ("a", &[("if-none-match", "*")], json!({}), 412, "there is a job a in namespace default already"),
        ("a", &[("if-match", "\"7\"")], json!({}), 412, "at generation 1, not at 7"),
        ("b", &[("if-match", "\"7\"")], json!({}), 412, "there is no job b in namespace default"),
        ("b", &[("if-match", "*")], json!({}), 412, "there is no job b in namespace default"),
    ] {
        let planned = plan(&api, name, headers, more.clone()).await;
        let detail = planned.json["detail"].as_str().unwrap_or_default();
        assert!(
            planned.status == status && detail.contains(told),
            "{name} {more}: {} {}",
            planned.status,
            planned.json
        );
        let mut body = job(name);
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let put = api.call_with(headers, "PUT", &format!("/v1/jobs/{name}"), Some(body)).await;
        assert_eq!((put.status, &put.json["detail"]), (planned.status, &planned.json["detail"]), "{name}");
    }
    let body = job("a").to_string().into_bytes();
    let elsewhere = api.call_as("prod", &[], "POST", "/v1/jobs/a/plan", Some(body)).await;
    assert!([401, 403].contains(&elsewhere.status.as_u16()), "{}", elsewhere.json);
}

#[tokio::test]
async fn a_plan_shows_no_secret_and_knows_that_one_changes() {
    let api = Api::new().await;
    let params = |secret: Value| json!({"params": {"command": "x", "env": {"PASSWORD": secret}}});
    api.job("a", params(json!({"value": "hush", "secret": true}))).await;
    let kept = plan(&api, "a", &[], params(json!({"secret": true}))).await;
    assert_eq!(kept.json["change"], "unchanged", "{}", kept.json);
    let other = plan(&api, "a", &[], params(json!({"value": "loud", "secret": true}))).await;
    assert_eq!((&other.json["change"], &other.json["changes"]), (&json!("updated"), &json!([])));
    assert!(!other.json.to_string().contains("hush") && !other.json.to_string().contains("loud"), "{}", other.json);
}
