//! The API of a database that went back in time.

use std::time::Duration;

use carillon_domain::store::{Refusal, StillUnknown};
use carillon_domain::time::Timestamp;
use carillon_store::{ControlError, Me, NodeStore};
use serde_json::{Value, json};

use super::Api;
use crate::http::problem::Problem;

const ACCEPT: &str = "/v1/cluster/accept";

/// A heartbeat is acknowledged and lost, and five seconds later that is noticed.
pub async fn lost_commits(api: &Api) {
    let session = api.engine.session();
    let backup = api.store.back_up();
    api.store.heartbeat(Me::new(session), 1, false).await.unwrap();
    api.store.restore(&backup);
    api.clock.advance(Duration::from_secs(5));
    api.store.heartbeat(Me { session, acked: 1 }, 2, false).await.unwrap();
}

#[tokio::test]
async fn a_window_is_shown_until_a_day_after_it_was_accepted() {
    let api = Api::new().await;
    let shown = async || api.call("GET", "/v1/cluster", None).await.json["lost_commits"].clone();
    assert_eq!(shown().await, json!([]));
    lost_commits(&api).await;
    let window = |accepted_at: Value| {
        json!([{
            "from_at": "2027-01-01T00:00:00.000Z", "until_at": "2027-01-01T00:00:05.000Z",
            "noticed_at": "2027-01-01T00:00:05.000Z", "node": "n1", "session": api.engine.session().to_string(),
            "accepted_at": accepted_at,
        }])
    };
    assert_eq!(shown().await, window(Value::Null));
    let accepted = api.call("POST", ACCEPT, Some(json!({}))).await;
    let expected = window(json!("2027-01-01T00:00:05.000Z"));
    assert_eq!((accepted.status.as_u16(), &accepted.json["lost_commits"]), (200, &expected));
    assert_eq!(shown().await, expected);
    let again = api.call("POST", ACCEPT, None).await;
    assert_eq!((again.status.as_u16(), &again.json["lost_commits"]), (200, &json!([])));
    api.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(shown().await, json!([]));
}

#[tokio::test]
async fn only_an_admin_of_all_namespaces_accepts_and_says_nothing_else() {
    let api = Api::new().await;
    lost_commits(&api).await;
    for (token, path, body, status) in [
        ("viewer", ACCEPT, "", 403),
        ("operator", ACCEPT, "", 403),
        ("prod", ACCEPT, "", 403),
        ("admin", ACCEPT, "{\"all\": true}", 400),
        ("admin", "/v1/cluster/accept?all=true", "", 400),
    ] {
        let reply = api.call_as(token, &[], "POST", path, Some(body.into())).await;
        assert_eq!(reply.status, status, "{token} {path} {body}: {}", reply.json);
    }
    assert!(api.call("GET", "/v1/cluster", None).await.json["lost_commits"][0]["accepted_at"].is_null());
}

/// Jobs that were due by then and of which nobody knows a run; each reader sees those of the namespaces of his token.
#[tokio::test]
async fn what_is_still_unknown_is_listed_by_job() {
    let api = Api::new().await;
    let seen =
        async |token: &str| api.call_as(token, &[], "GET", "/v1/cluster", None).await.json["still_unknown"].clone();
    let every = |name: &str| json!({"name": name, "schedule": "@every 2s", "params": {"command": "true"}});
    api.call("POST", "/v1/jobs", Some(every("often"))).await;
    api.call("POST", "/v1/jobs", Some(json!({"name": "rarely", "schedule": "@yearly", "params": {"command": "true"}})))
        .await;
    assert!(seen("admin").await.is_null(), "nothing is lost");
    lost_commits(&api).await;
    let unknown = seen("admin").await;
    let job = json!({"namespace": "default", "name": "often", "due_at": "2027-01-01T00:00:02.000Z", "on_lost": "skip"});
    assert_eq!((&unknown["jobs"], &unknown["more_jobs"]), (&json!([job]), &json!(false)), "{unknown}");
    assert_eq!(seen("prod").await["jobs"], json!([]));
    api.call("POST", ACCEPT, Some(json!({}))).await;
    assert!(seen("admin").await.is_null());
}

#[test]
fn a_loss_that_cannot_be_accepted_yet_is_a_conflict() {
    let until = Timestamp::from_secs(1_800_000_000);
    let still = StillUnknown { nodes: vec!["n2".to_owned()], until };
    let problem = Problem::from(ControlError::Refused(Refusal::StillUnknown(still)));
    let (status, said) = (problem.status, format!("{problem:?}"));
    assert_eq!(status.as_u16(), 409);
    assert!(said.contains("n2") && said.contains(&until.to_string()), "{said}");
}
