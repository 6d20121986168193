//! Routes, deliveries and incidents over HTTP.

use std::time::Duration;

use carillon_domain::run::Status;
use carillon_store::{AlertStore, Output};
use serde_json::{Value, json};

use super::{Api, Reply};

fn route() -> Value {
    json!({
        "when": ["failed", "recovered"],
        "to": [
            {"type": "webhook", "url": "https://example.org/hook?k=hush", "secret": "hush"},
            {"type": "mail", "to": ["ops@example.org"]},
        ],
    })
}

impl Api {
    async fn route(&self, name: &str, body: Value) -> Reply {
        let reply = self.call("PUT", &format!("/v1/alerts/{name}"), Some(body)).await;
        assert!(reply.status.is_success(), "{}", reply.json);
        reply
    }

    /// A run that fails, as the watch step finds it.
    async fn failed(&self, name: &str) {
        let (at, _) = self.started(name).await;
        self.clock.advance(Duration::from_secs(1));
        self.finish(at, Status::Failed, Output::default()).await.unwrap();
        self.clock.advance(Duration::from_secs(1));
        self.store.alert_step(1_000).await.unwrap();
    }
}

#[tokio::test]
async fn a_route_is_stored_shown_without_secrets_and_put_back() {
    let api = Api::new().await;
    let made = api.route("ops", route()).await;
    assert_eq!((made.status.as_u16(), made.header("etag"), made.header("location")), (201, "\"1\"", "/v1/alerts/ops"));
    let shown = api.call("GET", "/v1/alerts/ops", None).await.json;
    assert_eq!(shown["to"][0], json!({"type": "webhook", "url": "https://example.org/(secret)", "secret": "secret"}));
    assert_eq!((&shown["after"], &shown["repeat"], &shown["match"]["jobs"]), (&json!(1), &json!(null), &json!([])));
    let same = api.route("ops", shown.clone()).await;
    assert_eq!((same.status.as_u16(), same.header("etag")), (200, "\"1\""), "nothing has changed");
    let mut changed = shown;
    changed["after"] = json!(2);
    assert_eq!(api.route("ops", changed).await.header("etag"), "\"2\"");
    let stored = api.store.route("ops").await.unwrap().route;
    assert_eq!(stored.to[0].url(), Some("https://example.org/hook?k=hush"));
    assert_eq!(api.call("GET", "/v1/alerts", None).await.json["items"].as_array().unwrap().len(), 1);
    let audit = api.call("GET", "/v1/audit", None).await.json;
    let actions: Vec<_> = audit["items"].as_array().unwrap().iter().map(|item| item["action"].clone()).collect();
    assert_eq!(actions, ["alert.put", "alert.put"]);
    assert!(!audit.to_string().contains("hush"), "{audit}");
    assert_eq!(api.call("DELETE", "/v1/alerts/ops", None).await.status, 204);
    assert_eq!(api.call("GET", "/v1/alerts/ops", None).await.status, 404);
}

#[tokio::test]
async fn a_lost_update_is_refused() {
    let api = Api::new().await;
    let put = async |condition: (&str, &str)| {
        api.call_with(&[condition], "PUT", "/v1/alerts/ops", Some(route())).await.status.as_u16()
    };
    assert_eq!(put(("if-match", "*")).await, 412);
    assert_eq!(put(("if-none-match", "*")).await, 201);
    assert_eq!(put(("if-none-match", "*")).await, 412);
    assert_eq!(put(("if-match", "\"7\"")).await, 412);
    assert_eq!(put(("if-match", "\"1\"")).await, 200);
    assert_eq!(api.call_with(&[("if-match", "\"7\"")], "DELETE", "/v1/alerts/ops", None).await.status, 412);
    assert_eq!(api.call_with(&[("if-match", "\"1\"")], "DELETE", "/v1/alerts/ops", None).await.status, 204);
    assert_eq!(api.call("DELETE", "/v1/alerts/ops", None).await.status, 404);
}

#[tokio::test]
async fn faults_stand_at_their_fields() {
    let api = Api::new().await;
    let bad = json!({"when": ["burned"], "after": 0, "to": [{"type": "slack", "url": "ftp://x"}, {"type": "pigeon"}]});
    let reply = api.call("PUT", "/v1/alerts/ops", Some(bad)).await;
    assert_eq!((reply.status.as_u16(), reply.faults()), (400, vec!["when", "after", "to[1].type"]));
    let reply = api
        .call("PUT", "/v1/alerts/ops", Some(json!({"when": ["failed"], "to": [{"type": "slack", "url": "ftp://x"}]})))
        .await;
    assert_eq!(reply.faults(), ["to[0].url"]);
    assert_eq!(api.call("PUT", "/v1/alerts/a%20b", Some(route())).await.faults(), ["name"]);
    assert_eq!(api.call("GET", "/v1/deliveries?state=lost", None).await.faults(), ["state"]);
    assert_eq!(api.call("GET", "/v1/deliveries?cursor=6a3a", None).await.faults(), ["cursor"]);
    assert_eq!(api.call("POST", "/v1/deliveries/x/resend", None).await.faults(), ["delivery"]);
}

#[tokio::test]
async fn a_test_makes_a_delivery_for_each_target() {
    let api = Api::new().await;
    api.route("ops", route()).await;
    let made = api.call_as("operator", &[], "POST", "/v1/alerts/ops/test", None).await;
    assert_eq!((made.status.as_u16(), made.json["items"].as_array().unwrap().len()), (202, 2));
    let first = &made.json["items"][0];
    assert_eq!(
        (&first["state"], &first["type"], &first["notice"]["state"]),
        (&json!("waiting"), &json!("webhook"), &json!("test"))
    );
    let id = first["id"].as_u64().unwrap();
    let again = api.call_as("operator", &[], "POST", &format!("/v1/deliveries/{id}/resend"), None).await;
    assert_eq!(again.status, 409, "{}", again.json);
    assert_eq!(api.call("POST", "/v1/deliveries/999/resend", None).await.status, 404);
    assert_eq!(api.call("POST", "/v1/alerts/none/test", None).await.status, 404);
    let page = api.call("GET", "/v1/deliveries?route=ops&limit=1", None).await.json;
    let next = page["next_cursor"].as_str().unwrap();
    let rest = api.call("GET", &format!("/v1/deliveries?route=ops&cursor={next}"), None).await.json;
    assert_eq!((page["items"].as_array().unwrap().len(), rest["items"].as_array().unwrap().len()), (1, 1));
    assert!(page["items"][0]["id"].as_u64() > rest["items"][0]["id"].as_u64(), "newest first");
    for (state, count) in [("waiting", 2), ("dead", 0)] {
        let found = api.call("GET", &format!("/v1/deliveries?state={state}"), None).await.json;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{state}");
    }
    let metrics = api.call("GET", "/metrics", None).await;
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains("carillon_alert_deliveries{state=\"waiting\"} 2"), "{metrics}");
}

#[tokio::test]
async fn a_failed_run_is_an_incident_until_a_success() {
    let api = Api::new().await;
    api.route("ops", route()).await;
    api.job("a", json!({})).await;
    api.failed("a").await;
    let open = api.call("GET", "/v1/incidents", None).await.json;
    let incident = &open["items"][0];
    assert_eq!((&incident["class"], &incident["job"], &incident["count"]), (&json!("outcome"), &json!("a"), &json!(1)));
    assert!(incident["sentence"].as_str().unwrap().contains("failed"), "{incident}");
    for (query, count) in [("?route=ops", 1), ("?route=other", 0), ("?namespace=default", 1), ("?namespace=prod", 0)] {
        let found = api.call("GET", &format!("/v1/incidents{query}"), None).await.json;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{query}");
    }
    let (at, _) = api.started("a").await;
    api.finish(at, Status::Succeeded, Output::default()).await.unwrap();
    api.clock.advance(Duration::from_secs(1));
    api.store.alert_step(1_000).await.unwrap();
    assert_eq!(api.call("GET", "/v1/incidents", None).await.json["items"], json!([]));
    let told = api.call("GET", "/v1/deliveries", None).await.json;
    let states: Vec<_> = told["items"].as_array().unwrap().iter().map(|one| one["notice"]["state"].clone()).collect();
    assert_eq!(states, ["recovered", "recovered", "open", "open"]);
}

#[tokio::test]
async fn a_token_of_a_namespace_reaches_its_own_routes() {
    let api = Api::new().await;
    api.route("ops", route()).await;
    let mut own = route();
    let put = async |body: &Value| {
        api.call_as("prod", &[], "PUT", "/v1/alerts/own", Some(body.to_string().into_bytes())).await
    };
    assert_eq!(put(&own).await.status, 403, "it would be told of every job");
    own["match"] = json!({"namespaces": ["prod", "default"]});
    assert_eq!(put(&own).await.status, 403);
    own["match"] = json!({"namespaces": ["prod"]});
    assert_eq!(put(&own).await.status, 201);
    let seen = api.call_as("prod", &[], "GET", "/v1/alerts", None).await.json;
    assert_eq!((seen["items"].as_array().unwrap().len(), &seen["items"][0]["name"]), (1, &json!("own")));
    for (method, path, status) in [
        ("GET", "/v1/alerts/ops", 404),
        ("DELETE", "/v1/alerts/ops", 404),
        ("POST", "/v1/alerts/ops/test", 404),
        ("POST", "/v1/alerts/own/test", 202),
        ("GET", "/v1/deliveries", 403),
        ("GET", "/v1/deliveries?route=ops", 404),
        ("GET", "/v1/deliveries?route=own", 200),
        ("GET", "/v1/incidents", 200),
        ("GET", "/v1/incidents?namespace=default", 403),
    ] {
        assert_eq!(api.call_as("prod", &[], method, path, None).await.status.as_u16(), status, "{method} {path}");
    }
}
