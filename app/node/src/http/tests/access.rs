//! Who may do what.

use serde_json::json;

use super::{Api, job};

#[tokio::test]
async fn roles_reach_as_far_as_they_say() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for (method, path, viewer, operator) in [
        ("GET", "/v1/jobs", 200, 200),
        ("GET", "/v1/jobs/a", 200, 200),
        ("GET", "/v1/runs", 200, 200),
        ("GET", "/v1/cluster", 200, 200),
        ("GET", "/v1/executors", 200, 200),
        ("GET", "/metrics", 200, 200),
        ("POST", "/v1/schedules/explain", 400, 400),
        ("POST", "/v1/jobs/a/pause", 403, 200),
        ("POST", "/v1/jobs/a/resume", 403, 200),
        ("POST", "/v1/jobs/a/run", 403, 202),
        ("POST", "/v1/runs/8000000000000007-f/cancel", 403, 404),
        ("POST", "/v1/jobs", 403, 403),
        ("PUT", "/v1/jobs/a", 403, 403),
        ("POST", "/v1/jobs:batch", 403, 403),
        ("POST", "/v1/cluster/accept", 403, 403),
        ("DELETE", "/v1/jobs/a", 403, 403),
        ("GET", "/v1/nothing", 404, 404),
        ("PATCH", "/v1/jobs", 405, 405),
    ] {
        for (token, status) in [("", 401), ("unknown", 401), ("viewer", viewer), ("operator", operator)] {
            let reply = api.call_as(token, &[], method, path, Some(b"{}".to_vec())).await;
            assert_eq!(reply.status, status, "{token:?} {method} {path}");
            assert_eq!(reply.header("www-authenticate"), if status == 401 { "Bearer" } else { "" });
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert_ne!(api.call_as("", &[("host", "anything")], "GET", path, None).await.status, 401, "{path} is open");
    }
}

#[tokio::test]
async fn a_token_for_a_namespace_sees_nothing_else() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("p", json!({"namespace": "prod"})).await;
    let (at, held) = api.started("a").await;
    let run = format!("/v1/runs/{}", held.run);
    let mut body = job("p");
    body["namespace"] = json!("default");
    for (method, path, body, status) in [
        ("GET", "/v1/jobs", None, 403),
        ("GET", "/v1/jobs?namespace=*", None, 403),
        ("GET", "/v1/runs?namespace=*", None, 403),
        ("GET", "/v1/jobs?namespace=prod", None, 200),
        ("GET", "/v1/jobs/p?namespace=prod", None, 200),
        ("GET", "/v1/jobs/a", None, 403),
        ("GET", "/v1/jobs/a/runs", None, 403),
        ("GET", "/v1/jobs/a/next", None, 403),
        ("POST", "/v1/jobs/a/pause", None, 403),
        ("POST", "/v1/jobs/a/run", None, 403),
        ("DELETE", "/v1/jobs/a", None, 403),
        ("POST", "/v1/jobs", Some(body), 403),
        ("PUT", "/v1/jobs/a", Some(job("a")), 403),
        ("PUT", "/v1/jobs/p?namespace=prod", Some(job("p")), 200),
        ("GET", run.as_str(), None, 404),
        ("GET", &format!("{run}/output"), None, 404),
        ("POST", &format!("{run}/cancel"), None, 404),
    ] {
        let body = body.map(|body| body.to_string().into_bytes());
        let reply = api.call_as("prod", &[], method, path, body).await;
        assert_eq!(reply.status, status, "{method} {path} {}", reply.json);
    }
    let batch = json!({"items": [job("x"), {"namespace": "prod", "name": "y", "schedule": "@daily", "params": {"command": "x"}}]});
    let reply = api.call_as("prod", &[], "POST", "/v1/jobs:batch", Some(batch.to_string().into_bytes())).await;
    assert_eq!(
        (&reply.json["items"][0]["status"], &reply.json["items"][1]["status"]),
        (&json!("error"), &json!("created"))
    );
    api.finish(at, carillon_domain::run::Status::Succeeded, Default::default()).await.unwrap();
}

#[tokio::test]
async fn other_names_and_other_sites_are_turned_away() {
    let api = Api::new().await;
    for (header, value, status) in [
        ("host", "evil.example", 403),
        ("host", "127.0.0.1", 200),
        ("origin", "http://evil.example", 403),
        ("origin", "http://localhost:7650", 200),
        ("origin", "null", 403),
    ] {
        let mut request = warp::test::request().path("/v1/jobs").header("authorization", "Bearer admin");
        if header != "host" {
            request = request.header("host", "localhost:7650");
        }
        assert_eq!(request.header(header, value).reply(&api.routes).await.status(), status, "{header}: {value}");
    }
    let without =
        warp::test::request().path("/v1/jobs").header("authorization", "Bearer admin").reply(&api.routes).await;
    assert_eq!(without.status(), 400, "no Host");
}
