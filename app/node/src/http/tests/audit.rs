//! The audit log over HTTP: who changed what, who may read it, and what it never tells.

use serde_json::{Value, json};

use super::{Api, job};

impl Api {
    async fn audit(&self, token: &str, query: &str) -> Vec<Value> {
        let reply = self.call_as(token, &[], "GET", &format!("/v1/audit{query}"), None).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.json);
        reply.json["items"].as_array().unwrap().clone()
    }
}

fn actions(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["action"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_entry_tells_who_what_and_both_states() {
    let api = Api::new().await;
    let curl = [("user-agent", "curl/8"), ("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")];
    api.call_with(&curl, "PUT", "/v1/jobs/a", Some(job("a"))).await;
    let changed = json!({"schedule": "@daily", "params": {"command": "true"}, "labels": {"team": "data"}});
    api.call_with(&curl, "PUT", "/v1/jobs/a", Some(changed)).await;
    let items = api.audit("admin", "").await;
    assert_eq!(actions(&items), ["job.updated", "job.created"]);
    let (updated, created) = (&items[0], &items[1]);
    assert_eq!(created["before"], json!(null));
    assert_eq!(created["after"], updated["before"]);
    let fields = ["at", "who", "from", "namespace", "job", "run"].map(|field| updated[field].clone());
    let at = json!("2027-01-01T00:00:00.000Z");
    assert_eq!(fields, [at, json!("admin"), json!("0.0.0.0 curl/8"), json!("default"), json!("a"), json!(null)]);
    assert!(updated["id"].as_u64() > created["id"].as_u64());
    let states = [&updated["before"], &updated["after"]];
    assert_eq!(states.map(|state| state["schedule"].as_str().unwrap()), ["0 * * * *", "@daily"]);
    assert_eq!(states.map(|state| state["labels"].clone()), [json!({}), json!({"team": "data"})]);
    assert_eq!((&updated["after"]["paused"], &updated["after"]["pause"]), (&json!(false), &json!(null)));
    let stored = api.call("GET", "/v1/jobs/a", None).await.json;
    for (field, value) in updated["after"].as_object().unwrap() {
        assert_eq!(value, &stored[field], "{field} is shown as the job shows it");
    }
}

#[tokio::test]
async fn a_secret_is_never_told() {
    let api = Api::new().await;
    let with = |secret: Value| json!({"schedule": "@daily", "params": {"command": "x", "env": {"P": secret}}});
    for secret in [json!({"value": "hush", "secret": true}), json!({"value": "hush-hush", "secret": true})] {
        api.call("PUT", "/v1/jobs/a", Some(with(secret))).await;
    }
    // Put back as it was read: nothing changes.
    api.call("PUT", "/v1/jobs/a", Some(with(json!({"secret": true})))).await;
    let batch = json!({"items": [{"name": "b", "schedule": "@daily",
        "params": {"command": "x", "stdin": {"value": "hush", "secret": true}}}]});
    api.call("POST", "/v1/jobs:batch", Some(batch)).await;
    api.call("DELETE", "/v1/jobs/a", None).await;
    let items = api.audit("admin", "").await;
    assert_eq!(actions(&items), ["job.deleted", "job.created", "job.updated", "job.created"]);
    assert!(!json!(items).to_string().contains("hush"), "{items:?}");
    assert_eq!(items[2]["after"]["params"]["env"], json!({"P": {"secret": true}}));
    assert_eq!(items[2]["before"], items[2]["after"]);
}

#[tokio::test]
async fn the_params_of_one_run_are_told_without_secrets() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let params = json!({"command": "y", "env": {"P": {"value": "hush", "secret": true}}});
    let asked = api.call("POST", "/v1/jobs/a/run", Some(json!({"params": params}))).await;
    assert_eq!(asked.status, 202, "{}", asked.json);
    let entry = api.audit("viewer", "?action=job.run").await.remove(0);
    assert_eq!((&entry["run"], &entry["before"]), (&asked.json["id"], &json!(null)));
    assert_eq!(entry["after"]["params"]["env"], json!({"P": {"secret": true}}));
    assert_eq!(entry["after"]["params"]["command"], "y");
}

#[tokio::test]
async fn refusals_and_repetitions_leave_no_entry() {
    let api = Api::new().await;
    api.call("PUT", "/v1/jobs/a", Some(job("a"))).await;
    api.call("PUT", "/v1/jobs/a", Some(job("a"))).await;
    api.call("POST", "/v1/jobs", Some(job("a"))).await;
    api.call("PUT", "/v1/jobs/b", Some(json!({"schedule": "nonsense", "params": {"command": "x"}}))).await;
    for token in ["viewer", "operator", "prod", ""] {
        api.call_as(token, &[], "DELETE", "/v1/jobs/a", None).await;
    }
    api.call("POST", "/v1/jobs/ghost/pause", None).await;
    api.call("POST", "/v1/runs/8000000000000007-1/cancel", None).await;
    api.call("POST", "/v1/cluster/accept", None).await;
    assert_eq!(actions(&api.audit("admin", "").await), ["job.created"]);
}

#[tokio::test]
async fn a_viewer_reads_what_its_token_sees() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    api.job("b", json!({"namespace": "prod"})).await;
    api.call_as("operator", &[], "POST", "/v1/jobs/a/run", None).await;
    for token in ["admin", "operator", "viewer"] {
        assert_eq!(api.audit(token, "").await.len(), 3, "{token}");
        assert_eq!(api.audit(token, "?namespace=*").await.len(), 3, "{token}");
        assert_eq!(api.audit(token, "?namespace=prod").await.len(), 1, "{token}");
    }
    let of_prod = api.audit("prod", "").await;
    assert_eq!((of_prod.len(), &of_prod[0]["job"]), (1, &json!("b")));
    assert_eq!(api.audit("prod", "?namespace=*").await, of_prod);
    assert_eq!(api.call_as("prod", &[], "GET", "/v1/audit?namespace=default", None).await.status, 403);
    assert_eq!(api.call_as("", &[], "GET", "/v1/audit", None).await.status, 401);
}

#[tokio::test]
async fn filters_and_pages() {
    let api = Api::new().await;
    for name in ["a", "b", "c"] {
        api.job(name, json!({})).await;
    }
    api.call_as("operator", &[], "POST", "/v1/jobs/b/pause", None).await;
    for (query, expected) in [
        ("?job=b", vec!["job.paused", "job.created"]),
        ("?namespace=default&job=a", vec!["job.created"]),
        ("?who=operator", vec!["job.paused"]),
        ("?action=job.created", vec!["job.created"; 3]),
        ("?since=2027-01-01T00:00:01Z", vec![]),
        ("?until=2027-01-01T00:00:00Z", vec![]),
        ("?since=2027-01-01T00:00:00Z&until=2027-01-01T00:00:01Z&limit=1", vec!["job.paused"]),
    ] {
        assert_eq!(actions(&api.audit("viewer", query).await), expected, "{query}");
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = api.call("GET", &format!("/v1/audit?limit=3{cursor}"), None).await;
        found.extend(reply.json["items"].as_array().unwrap().clone());
        let Some(next) = reply.json["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, api.audit("viewer", "").await);
    for (query, field) in [
        ("?action=job.burned", "action"),
        ("?cursor=6a3a", "cursor"),
        ("?job=a/b", "job"),
        ("?colour=red", "colour"),
        ("?since=yesterday", "since"),
    ] {
        let reply = api.call("GET", &format!("/v1/audit{query}"), None).await;
        assert_eq!((reply.status.as_u16(), reply.faults()), (400, vec![field]), "{query}");
    }
}
