//! Why a due time ran or did not: the sentence over the API.

use carillon_domain::run::Status;
use serde_json::{Value, json};

use crate::http::tests::Api;

fn told(reply: &crate::http::tests::Reply) -> [Option<&str>; 3] {
    ["state", "sentence", "next_due_at"].map(|field| reply.json[field].as_str())
}

#[tokio::test]
async fn a_due_time_is_explained_from_its_coming_to_its_record() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let one = Some("2027-01-01T01:00:00.000Z");
    let first = api.call("GET", "/v1/jobs/a/why", None).await;
    assert_eq!(told(&first), [Some("upcoming"), Some("The firing of 01:00 comes up in 1 h."), one]);
    assert_eq!((&first.json["run"], first.json["due_at"].as_str()), (&Value::Null, one));

    api.clock.advance(std::time::Duration::from_secs(3_600));
    let waits = "The firing of 01:00 is due, and a node is about to claim it; it has waited for 0 ms.";
    let two = Some("2027-01-01T02:00:00.000Z");
    assert_eq!(told(&api.call("GET", "/v1/jobs/a/why", None).await), [Some("waiting"), Some(waits), two]);

    let claimed = api.claimed().await.remove(0);
    let (at, held) = api.store_start(&claimed).await;
    let runs = api.call("GET", "/v1/jobs/a/why?at=2027-01-01T02:00:00%2B01:00", None).await;
    assert_eq!(
        told(&runs)[..2],
        [Some("running"), Some("The firing of 01:00 has been running since 01:00 at node n1.")]
    );
    assert_eq!(runs.json["run"]["id"], held.run.to_string());

    api.clock.advance(std::time::Duration::from_secs(7_210));
    let behind = api.call("GET", "/v1/jobs/a/why?at=2027-01-01T02:00:00Z", None).await;
    let alive = "The firing of 02:00 does not start yet: the run of 01:00 is still alive, and it is recorded as skipped \
                 when that ends.";
    assert_eq!(told(&behind)[..2], [Some("waiting"), Some(alive)]);

    api.finish(at, Status::Succeeded, carillon_store::Output::default()).await.unwrap();
    let skipped = api.call("GET", "/v1/jobs/a/why?at=2027-01-01T02:00:00Z", None).await;
    let alive = "The firing of 02:00 was skipped: the run of 01:00 was still alive; so were all 2 due times from 02:00 to \
                 03:00.";
    assert_eq!(told(&skipped)[..2], [Some("skipped"), Some(alive)]);
    assert_eq!((&skipped.json["run"]["status"], &skipped.json["run"]["count"]), (&json!("skipped"), &json!(2)));
    let ran = api.call("GET", "/v1/jobs/a/why?at=2027-01-01T01:00:00Z", None).await;
    assert_eq!(told(&ran)[..2], [Some("ran"), Some("The firing of 01:00 started and succeeded after 2 h.")]);
    let no = api.call("GET", "/v1/jobs/a/why?at=2027-01-01T02:10:00Z", None).await;
    assert_eq!(no.json["state"], "not_due");
}

#[tokio::test]
async fn a_job_of_another_name_or_namespace_is_not_explained() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    assert_eq!(api.call("GET", "/v1/jobs/b/why", None).await.status, 404);
    assert_eq!(api.call_as("prod", &[], "GET", "/v1/jobs/a/why", None).await.status, 403);
    let wrong = api.call("GET", "/v1/jobs/a/why?at=yesterday&count=1", None).await;
    assert_eq!((wrong.status.as_u16(), wrong.faults()), (400, vec!["at", "count"]));
}
