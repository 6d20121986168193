//! `POST /v1/jobs:batch`.

use carillon_doubles::Fault;
use serde_json::{Value, json};

use super::{Api, job};

fn statuses(reply: &Value) -> Vec<&str> {
    reply["items"].as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_item_has_an_answer_of_its_own() {
    let api = Api::new().await;
    api.job("same", json!({})).await;
    api.job("other", json!({})).await;
    let mut changed = job("other");
    changed["schedule"] = json!("@daily");
    let mut elsewhere = job("new");
    elsewhere["namespace"] = json!("prod");
    let faulty = json!({"name": "bad", "schedule": "x", "params": {}, "y": 1});
    let items = json!([job("new"), job("same"), changed, faulty, job("new"), elsewhere, 7, {"name": 5}]);
    let reply = api.call("POST", "/v1/jobs:batch", Some(json!({"items": items}))).await;
    assert_eq!(reply.status, 200, "{}", reply.json);
    let expected = ["created", "unchanged", "updated", "error", "error", "created", "error", "error"];
    assert_eq!(statuses(&reply.json), expected, "{}", reply.json);
    let items = reply.json["items"].as_array().unwrap();
    assert_eq!(
        (&items[0]["namespace"], &items[0]["name"], &items[0]["errors"]),
        (&json!("default"), &json!("new"), &json!([]))
    );
    assert_eq!(items[3]["errors"].as_array().unwrap().len(), 3, "all faults of the item");
    assert_eq!(items[4]["errors"][0]["message"], "this job stands in the batch before");
    assert_eq!(items[5]["namespace"], "prod");
    assert_eq!(api.call("GET", "/v1/jobs?namespace=*", None).await.json["items"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_namespace_in_the_query_is_for_all_items() {
    let api = Api::new().await;
    let mut elsewhere = job("b");
    elsewhere["namespace"] = json!("other");
    let body = json!({"items": [job("a"), elsewhere]});
    let reply = api.call("POST", "/v1/jobs:batch?namespace=prod", Some(body)).await;
    assert_eq!(statuses(&reply.json), ["created", "error"]);
    assert_eq!(api.call("GET", "/v1/jobs/a?namespace=prod", None).await.status, 200);
}

#[tokio::test]
async fn ten_thousand_jobs_are_the_most() {
    let api = Api::new().await;
    let items = |count: usize| json!({"items": (0..count).map(|n| job(&format!("j{n}"))).collect::<Vec<_>>()});
    assert_eq!(api.call("POST", "/v1/jobs:batch", Some(items(10_001))).await.status, 413);
    let reply = api.call("POST", "/v1/jobs:batch", Some(items(2_500))).await;
    assert!(statuses(&reply.json).iter().all(|status| *status == "created"));
    for (body, status) in [
        (json!({}), 400),
        (json!({"items": {}}), 400),
        (json!({"items": [], "x": 1}), 400),
        (json!({"items": []}), 200),
    ] {
        assert_eq!(api.call("POST", "/v1/jobs:batch", Some(body)).await.status, status);
    }
}

#[tokio::test]
async fn a_part_that_failed_is_told_item_by_item() {
    for (fault, outcome) in [(Fault::Refused, "not_applied"), (Fault::NeverSent, "unknown")] {
        let api = Api::new().await;
        let items: Vec<_> = (0..2_500).map(|n| job(&format!("j{n}"))).collect();
        api.store.faults().at("put_jobs", 2, fault);
        let reply = api.call("POST", "/v1/jobs:batch", Some(json!({"items": items}))).await;
        assert_eq!(reply.status, 200);
        let items = reply.json["items"].as_array().unwrap();
        assert_eq!((&items[999]["status"], &items[1_000]["status"]), (&json!("created"), &json!("error")));
        assert_eq!(items[1_000]["outcome"], outcome);
        assert_eq!(items[2_000]["outcome"], "not_applied", "the rest is not tried");
    }
}

#[tokio::test]
async fn secrets_of_a_batch_are_kept() {
    let api = Api::new().await;
    api.job("a", json!({"params": {"command": "x", "env": {"P": {"value": "hush", "secret": true}}}})).await;
    let mut read = api.call("GET", "/v1/jobs/a", None).await.json;
    read["schedule"] = json!("@daily");
    let mut bare = job("b");
    bare["params"]["env"] = json!({"P": {"secret": true}});
    let reply = api.call("POST", "/v1/jobs:batch", Some(json!({"items": [read, bare]}))).await;
    assert_eq!(statuses(&reply.json), ["updated", "error"], "{}", reply.json);
    assert_eq!(reply.json["items"][1]["errors"][0]["field"], "params.env.P");
}
