//! Which jobs there are, when they are due, and what a schedule means.

use std::time::Duration;

use serde_json::{Value, json};

use super::Api;

#[tokio::test]
async fn jobs_are_listed_in_pages_and_by_filters() {
    let api = Api::new().await;
    for name in ["a1", "a2", "a3", "b1"] {
        let team = if name == "a2" { "data" } else { "web" };
        api.job(name, json!({"labels": {"team": team}, "paused": name == "b1"})).await;
    }
    api.job("p1", json!({"namespace": "prod"})).await;
    for (query, expected) in [
        ("", "a1 a2 a3 b1"),
        ("?namespace=prod", "p1"),
        ("?namespace=*", "a1 a2 a3 b1 p1"),
        ("?prefix=a", "a1 a2 a3"),
        ("?label=team=data", "a2"),
        ("?label=team", "a1 a2 a3 b1"),
        ("?label=nobody", ""),
        ("?paused=true", "b1"),
        ("?paused=false&prefix=b", ""),
        ("?state=idle", "a1 a2 a3 b1"),
        ("?state=executing", ""),
    ] {
        let reply = api.call("GET", &format!("/v1/jobs{query}"), None).await;
        let items = reply.json["items"].as_array().unwrap();
        let names: Vec<_> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!(names.join(" "), expected, "{query}");
        assert_eq!(reply.json["next_cursor"], Value::Null);
    }
    let mut names = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.call("GET", &format!("/v1/jobs?namespace=*&limit=2{cursor}"), None).await;
        let items = page.json["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        names.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        let Some(next) = page.json["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(names.join(" "), "a1 a2 a3 b1 p1");
    for bad in ["limit=0", "limit=x", "cursor=zz", "state=busy", "paused=1", "label=a%20b", "prefx=a", "namespace=%ff"]
    {
        assert_eq!(api.call("GET", &format!("/v1/jobs?{bad}"), None).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn coming_due_times_are_told() {
    let api = Api::new().await;
    api.job("a", json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin"})).await;
    let next = api.call("GET", "/v1/jobs/a/next?count=2", None).await;
    assert_eq!(next.json, json!({"next": ["2027-01-01T01:30:00.000Z", "2027-01-02T01:30:00.000Z"]}));
    api.clock.advance(Duration::from_secs(86_400));
    let next = api.call("GET", "/v1/jobs/a/next", None).await;
    assert_eq!(next.json["next"].as_array().unwrap().len(), 10);
    assert_eq!(next.json["next"][0], "2027-01-02T01:30:00.000Z");
    for (path, status) in
        [("/v1/jobs/a/next?count=0", 400), ("/v1/jobs/a/next?count=1001", 400), ("/v1/jobs/b/next", 404)]
    {
        assert_eq!(api.call("GET", path, None).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn schedules_are_explained() {
    let api = Api::new().await;
    let explain = |body: Value| api.call("POST", "/v1/schedules/explain", Some(body));
    let good = explain(json!({"schedule": "0 3 * * 1", "timezone": "Europe/Berlin", "count": 1})).await;
    assert_eq!(good.status, 200, "{}", good.json);
    assert_eq!(good.json["next"], json!(["2027-01-04T02:00:00.000Z"]));
    assert!(good.json["description"].as_str().is_some_and(|text| text.contains("Monday")));
    let at = explain(json!({"schedule": "@at 2027-06-01T00:00:00Z"})).await;
    assert_eq!(at.json["next"], json!(["2027-06-01T00:00:00.000Z"]));
    for (body, field) in [
        (json!({"schedule": "99 * * * *"}), "schedule"),
        (json!({"schedule": "* * * * *", "timezone": "Nowhere"}), "timezone"),
        (json!({"schedule": "CRON_TZ=UTC * * * * *", "timezone": "Europe/Paris"}), "timezone"),
        (json!({"schedule": 5}), "schedule"),
        (json!({}), "schedule"),
        (json!({"schedule": "@daily", "count": 5_000}), "count"),
        (json!({"schedule": "@daily", "name": "a/b"}), "name"),
        (json!({"schedule": "@daily", "extra": 1}), "extra"),
    ] {
        let reply = explain(body).await;
        assert_eq!((reply.status.as_u16(), reply.faults()), (400, vec![field]));
    }
}
