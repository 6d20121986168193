//! Whatever comes in, nothing is a 500 and nothing crashes.

use proptest::prelude::*;
use serde_json::{Value, json};
use warp::http::Uri;

use super::{Api, job};
use crate::http::openapi::table::OPERATIONS;

async fn post(api: &Api, headers: &[(&str, &str)], body: &[u8]) -> u16 {
    api.call_as("admin", headers, "POST", "/v1/jobs", Some(body.to_vec())).await.status.as_u16()
}

#[tokio::test]
async fn hostile_bodies_are_bad_requests() {
    let api = Api::new().await;
    let deep = format!("{{\"name\":\"a\",\"params\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies: [&[u8]; 17] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"job\"",
        b"{}garbage",
        b"{\"name\":\"a\",\"name\":\"b\"}",
        b"{\"name\":\"\\ud800\"}",
        b"{\"name\":\"a\\u0000\"}",
        b"{\"name\":1e999}",
        b"{\"name\":NaN}",
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        b"{\"name\":\"\xc3\x28\"}",
        b"{\"__proto__\":{},\"constructor\":{}}",
        b"{\"name\":\"$(reboot)\",\"schedule\":\"`reboot`\",\"params\":{}}",
        deep.as_bytes(),
    ];
    for body in bodies {
        assert_eq!(post(&api, &[], body).await, 400, "{}", String::from_utf8_lossy(&body[..body.len().min(60)]));
    }
}

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing() {
    let api = Api::new().await;
    api.job("a", json!({"params": {"command": "true"}})).await;
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "GET" && operation.path != "/v1/events") {
        let path = operation.path.replace("{name}", "a").replace("{id}", "8000000000000007-1");
        let (plain, slash) = (api.call("GET", &path, None).await, api.call("GET", &format!("{path}/"), None).await);
        assert_eq!(plain.status, slash.status, "{path}");
        let wrong = [api.call("PATCH", &path, None).await, api.call("PATCH", &format!("{path}/"), None).await];
        assert!(wrong.iter().all(|reply| reply.status == 405), "{path}: {:?}", wrong.map(|reply| reply.status));
    }
}

#[tokio::test]
async fn types_and_sizes_are_checked() {
    let api = Api::new().await;
    let good = job("a").to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data", ""] {
        let request = warp::test::request().method("POST").path("/v1/jobs").header("host", "localhost");
        let request = request.header("authorization", "Bearer admin").header("content-type", kind).body(&good);
        assert_eq!(request.reply(&api.routes).await.status(), 415, "{kind}");
    }
    for path in ["/v1/jobs", "/v1/jobs/a/pause", "/v1/jobs/a/run", "/v1/jobs:batch", "/v1/schedules/explain"] {
        let request = warp::test::request().method("POST").path(path).header("host", "localhost");
        let request = request.header("authorization", "Bearer admin");
        assert_eq!(request.reply(&api.routes).await.status(), 415, "{path} without a type");
    }
    let encoded = api.call_as("admin", &[("content-encoding", "gzip")], "POST", "/v1/jobs", Some(good.into())).await;
    assert_eq!(encoded.status, 415);
    let padded = |bytes: usize| format!("{}{}", " ".repeat(bytes), job("a")).into_bytes();
    assert_eq!(post(&api, &[], &padded(1024 * 1024)).await, 413);
    assert_eq!(post(&api, &[("content-length", "99999999999")], b"{}").await, 413, "announced");
    let batch = api.call_as("admin", &[], "POST", "/v1/jobs:batch", Some(padded(16 * 1024 * 1024))).await;
    assert_eq!(batch.status, 413);
    assert_eq!(
        post(&api, &[("content-type", "Application/JSON; charset=utf-8")], job("b").to_string().as_bytes()).await,
        201
    );
}

#[tokio::test]
async fn hostile_names_are_bad_requests() {
    let api = Api::new().await;
    let long = "x".repeat(129);
    for name in [
        "..",
        ".",
        "%2e%2e",
        "a%2fb",
        "%00",
        "a%00",
        "%zz",
        "%",
        "%ff",
        "%F0%9F%98%80",
        "a%20b",
        "a+b",
        "*",
        "%2A",
        &long,
    ] {
        for (method, path) in [
            ("GET", format!("/v1/jobs/{name}")),
            ("PUT", format!("/v1/jobs/{name}")),
            ("DELETE", format!("/v1/jobs/{name}")),
            ("POST", format!("/v1/jobs/{name}/pause")),
            ("POST", format!("/v1/jobs/{name}/run")),
            ("GET", format!("/v1/jobs/{name}/runs")),
            ("GET", format!("/v1/jobs/{name}/next")),
        ] {
            let body = (method == "PUT").then(|| job("a"));
            assert_eq!(api.call(method, &path, body).await.status, 400, "{method} {path}");
        }
    }
    assert_eq!(api.call("GET", "/v1/jobs/%61", None).await.status, 404, "an escaped name is a name");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[0-9*/, -]{1,12}".prop_map(Value::from),
        "[0-9]{1,9}(ms|s|m|h|d)".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

const FIELDS: [&str; 22] = [
    "namespace",
    "name",
    "schedule",
    "timezone",
    "executor",
    "params",
    "overlap",
    "misfire",
    "timeout",
    "kill_grace",
    "retry",
    "on_lost",
    "jitter",
    "dst",
    "start_at",
    "end_at",
    "paused",
    "labels",
    "expect",
    "ping",
    "state",
    "items",
];

#[test]
fn random_requests_never_fail_the_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(Api::new());
    let segments = prop::collection::vec(
        prop_oneof![
            Just("v1".to_owned()),
            Just("jobs".to_owned()),
            Just("jobs:batch".to_owned()),
            Just("runs".to_owned()),
            Just("a".to_owned()),
            Just("pause".to_owned()),
            Just("8000000000000007-1".to_owned()),
            "(%[0-9a-f]{2}|[!-~&&[^?#/%]]){0,6}",
        ],
        0..5,
    );
    let query = "([a-z]{1,9}=([!-~&&[^#%]]|%[0-9a-f]{2}){0,8}&?){0,3}";
    let method = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]);
    let changes = prop::collection::hash_map(prop::sample::select(FIELDS.to_vec()), any_json(), 0..5);
    let raw = prop::collection::vec(any::<u8>(), 0..64);
    let strategy = (segments, query, method, changes, raw, any::<bool>());
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((segments, query, method, changes, raw, as_raw) in strategy)| {
        let mut body = job("a");
        for (key, value) in changes {
            body[key] = value;
        }
        let bytes = if as_raw { raw } else { body.to_string().into_bytes() };
        for path in [format!("/{}?{query}", segments.join("/")), "/v1/jobs/a".into(), "/v1/schedules/explain".into()] {
            // Hyper refuses a text that is no URI.
            if path.starts_with("//") || path.parse::<Uri>().is_err() {
                continue;
            }
            let reply = runtime.block_on(api.call_as("admin", &[], method, &path, Some(bytes.clone())));
            prop_assert!(reply.status.as_u16() < 500, "{} {} {}", method, path, reply.json);
        }
        let batch = json!({"items": [body, job("b")]}).to_string().into_bytes();
        let reply = runtime.block_on(api.call_as("admin", &[], "POST", "/v1/jobs:batch", Some(batch)));
        prop_assert!(matches!(reply.status.as_u16(), 200 | 400), "{}", reply.json);
    });
}
