//! Alerts: routes by a form, messages, and what needs a person.

use carillon_store::AlertStore;
use serde_json::json;

use super::super::Api;
use super::Browser;

const FORM: &str = "name=ops&when=failed&when=recovered&namespaces=default&jobs=nightly-*&labels=team%3Ddata&after=2&repeat=4h\
                    &to.0.type=webhook&to.0.at=https%3A%2F%2Fexample.org%2Fhook&to.0.secret=hush\
                    &to.1.type=mail&to.1.at=ops%40example.org%2C+root&to.2.type=webhook";

#[tokio::test]
async fn a_route_is_made_changed_tested_and_deleted() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "admin").await;
    let empty = browser.get("/alerts").await;
    assert!(empty.text.contains("Nobody is told of anything yet.") && empty.text.contains("carillon alert put"));
    let page = browser.submit("/alerts/new", FORM).await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/alerts?said=saved"), "{}", page.text);
    let stored = api.store.route("ops").await.unwrap().route;
    assert_eq!((stored.after, stored.to.len(), stored.only.jobs.clone()), (2, 2, vec!["nightly-*".to_owned()]));
    let page = browser.submit("/alerts/new", FORM).await;
    assert!(page.text.contains("There is a route of this name already."), "{}", page.text);

    let edit = browser.get("/alerts/ops/edit").await;
    assert!(edit.text.contains("https://example.org/(secret)") && !edit.text.contains("hush"), "{}", edit.text);
    let changed = FORM.replace("Fhook", "F(secret)").replace("hush", "secret").replace("after=2", "after=3");
    let page = browser.submit("/alerts/ops/edit", &format!("{changed}&version=1")).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let after = api.store.route("ops").await.unwrap().route;
    assert_eq!((after.after, after.to), (3, stored.to), "the secrets stay");
    assert_eq!(browser.submit("/alerts/ops/edit", &format!("{changed}&version=1")).await.status, 409);

    let page = browser.submit("/alerts/ops/test", "").await;
    assert_eq!(page.header("location"), "/alerts?said=tested");
    let page = browser.get("/alerts?said=tested").await;
    for part in ["A message is on its way", "example.org", "waiting", "nightly-*", "after 3 in a row"] {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    assert!(!page.text.contains("hush") && !page.text.contains("Send again"), "{}", page.text);
    let page = browser.get("/alerts/ops/delete").await;
    assert!(page.text.contains("Delete the route ops"));
    assert_eq!(browser.submit("/alerts/ops/delete", "version=1").await.status, 412);
    assert_eq!(
        browser.submit("/alerts/ops/delete", "version=2").await.header("location"),
        "/alerts?said=route-deleted"
    );
    assert!(api.store.routes().await.unwrap().is_empty());
}

#[tokio::test]
async fn faults_stand_at_the_rows_of_the_form() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "admin").await;
    let form = "name=a+b&after=x&to.1.type=slack&to.1.at=ftp%3A%2F%2Fx&to.1.secret=k";
    let page = browser.submit("/alerts/new", form).await;
    assert_eq!(page.status, 200);
    for part in ["It is not stored", "<code>after</code>", "<code>to[0].secret</code>", "value=\"ftp://x\""] {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    let (before, _) = page.text.split_once("to[0].secret").unwrap();
    assert!(before.contains("Target 1</label>") && !before.contains("Target 2</label>"), "it stands at the second row");
}

#[tokio::test]
async fn those_who_may_not_see_no_button() {
    let api = Api::new().await;
    api.call("PUT", "/v1/alerts/ops", Some(json!({"when": ["failed"], "to": [{"type": "mail", "to": ["root"]}]})))
        .await;
    let viewer = Browser::signed_in(&api, "viewer").await;
    let page = viewer.get("/alerts").await;
    assert!(
        page.text.contains("root") && !page.text.contains("/alerts/ops/test") && !page.text.contains("/alerts/new")
    );
    assert_eq!(viewer.submit("/alerts/ops/test", "").await.status, 403);
    assert_eq!(viewer.get("/alerts/new").await.status, 403);
    let operator = Browser::signed_in(&api, "operator").await;
    let page = operator.get("/alerts").await;
    assert!(page.text.contains("/alerts/ops/test") && !page.text.contains("/alerts/ops/edit"));
    assert_eq!(operator.submit("/alerts/ops/test", "").await.status, 303);
    let prod = Browser::signed_in(&api, "prod").await;
    assert!(!prod.get("/alerts").await.text.contains("root"), "it is told of every job");
    assert_eq!(prod.get("/alerts/ops/edit").await.status, 404);
}
