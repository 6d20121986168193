//! New and Edit: the form, its faults, the difference, and conflicts.

use std::sync::Barrier;

use serde_json::json;

use super::super::Api;
use super::{Browser, Page};

/// The value of a hidden field.
fn hidden<'a>(page: &'a Page, name: &str) -> &'a str {
    let (_, rest) = page.text.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn a_job_is_added_after_a_look_at_it() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "admin").await;
    let page = browser.get("/jobs/new").await;
    for part in [
        "name=\"schedule\"",
        "<option value=\"shell\" selected>",
        "name=\"params\"",
        "If it is missed",
        "Begin paused",
        "/v1/jobs",
    ] {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    let form = "name=nightly&namespace=default&schedule=0+3+*+*+*&timezone=Europe%2FBerlin&executor=shell\
                &params=%7B%22command%22%3A%22echo+%3Cb%3E%22%7D&labels=team%3Ddata&retry.max_attempts=3&timeout=90s&paused=yes\
                &expect.start_within=5m&expect.finish_by=06%3A00&ping=https%3A%2F%2Fhc-ping.com%2F1";
    let page = browser.submit("/jobs/new", &format!("{form}&do=check")).await;
    assert!(
        page.text.contains("At 03:00 every day, Europe/Berlin") && page.text.contains("value=\"nightly\""),
        "{}",
        page.text
    );
    let page = browser.submit("/jobs/new", &format!("{form}&do=review")).await;
    for part in ["Add nightly", "echo &lt;b&gt;", "retry.max_attempts", "Add the job", "At 03:00 every day"] {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    assert_eq!(api.call("GET", "/v1/jobs/nightly", None).await.status, 404, "a look stores nothing");
    let page = browser.submit("/jobs/new", &format!("{form}&do=save")).await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/jobs/default/nightly?said=saved"));
    let job = api.call("GET", "/v1/jobs/nightly", None).await.json;
    assert_eq!(
        (&job["params"]["command"], &job["labels"]["team"], &job["retry"]["max_attempts"]),
        (&json!("echo <b>"), &json!("data"), &json!(3))
    );
    assert_eq!((&job["timeout"], &job["paused"]), (&json!("1m30s"), &json!(true)));
    let expect = json!({"start_within": "5m", "finish_by": "06:00"});
    assert_eq!((&job["expect"], &job["ping"]), (&expect, &json!("https://hc-ping.com/1")));
    let edit = browser.get("/jobs/default/nightly/edit").await;
    assert!(
        edit.text.contains("value=\"06:00\"") && edit.text.contains("value=\"https://hc-ping.com/1\""),
        "an edit keeps them"
    );
    let page = browser.submit("/jobs/new", &format!("{form}&do=save")).await;
    assert!(page.text.contains("name-fault"), "the name is taken: {}", page.text);
}

#[tokio::test]
async fn a_fault_stands_at_its_field_with_the_sentence_of_the_api() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "admin").await;
    let form = "name=a+b&schedule=61+*+*+*+*&executor=shell&params=%7B%7D&labels=x&misfire.grace=soon&retry.max_attempts=many&jitter=9d&do=save";
    let page = browser.submit("/jobs/new", form).await;
    assert!(page.status == 200 && page.text.contains("labels-fault"), "{}", page.text);
    let page = browser.submit("/jobs/new", &form.replace("labels=x&", "")).await;
    for field in ["name", "schedule", "misfire.grace", "retry.max_attempts", "jitter", "params"] {
        assert!(page.text.contains(&format!("id=\"{field}-fault\"")), "{field}: {}", page.text);
    }
    assert!(
        page.text.contains("<details open>")
            && page.text.contains("value=\"a b\"")
            && page.text.contains("It must be a string.")
    );
    let page = browser.submit("/jobs/new", "name=a&schedule=%40daily&params=%5B1%5D&do=save").await;
    assert!(page.text.contains("It must be a JSON object"), "{}", page.text);
}

#[tokio::test]
async fn an_edit_shows_the_difference_and_keeps_secrets_and_pauses() {
    let api = Api::new().await;
    let secret = json!({"command": "x", "env": {"P": {"value": "hush", "secret": true}}});
    api.job("a", json!({"params": secret, "paused": true})).await;
    let browser = Browser::signed_in(&api, "admin").await;
    let page = browser.get("/jobs/default/a/edit").await;
    assert!(page.text.contains("&quot;secret&quot;: true") && !page.text.contains("hush"), "{}", page.text);
    let params = "params=%7B%22command%22%3A%22y%22%2C%22env%22%3A%7B%22P%22%3A%7B%22secret%22%3Atrue%7D%7D%7D";
    let form = format!("generation={}&schedule=0+*+*+*+*&{params}", hidden(&page, "generation"));
    let page = browser.submit("/jobs/default/a/edit", &format!("{form}&do=review")).await;
    assert!(page.text.contains("params.command") && page.text.contains("<code>y</code>"), "{}", page.text);
    assert!(!page.text.contains("<code>schedule</code>") && !page.text.contains("hush"), "only what differs");
    let page = browser.submit("/jobs/default/a/edit", &format!("{form}&do=save")).await;
    assert_eq!(page.status, 303, "{}", page.text);
    use carillon_store::ControlStore;
    let key = carillon_store::JobKey { namespace: "default".into(), name: "a".into() };
    let stored = api.store.job(&key).await.unwrap();
    assert!(stored.job.params.contains("hush") && stored.job.params.contains("\"y\""), "{}", stored.job.params);
    assert!(stored.pause().is_some(), "an edit does not resume");
    let same = form.replace("generation=1", "generation=2");
    assert!(
        browser.submit("/jobs/default/a/edit", &format!("{same}&do=review")).await.text.contains("Nothing differs")
    );
}

#[tokio::test]
async fn a_conflict_shows_both_versions() {
    let api = Api::new().await;
    api.job("a", json!({"labels": {"team": "theirs"}})).await;
    api.job("a", json!({"labels": {"team": "newer"}})).await;
    let browser = Browser::signed_in(&api, "admin").await;
    let form = "generation=1&schedule=0+*+*+*+*&params=%7B%22command%22%3A%22true%22%7D&labels=team%3Dmine";
    for action in ["review", "save"] {
        let page = browser.submit("/jobs/default/a/edit", &format!("{form}&do={action}")).await;
        for part in [
            "Somebody else changed a",
            "<code>newer</code>",
            "<code>mine</code>",
            "Go on with mine",
            "/jobs/default/a/edit",
        ] {
            assert!(page.text.contains(part), "{action} lacks {part:?}: {}", page.text);
        }
        assert_eq!(hidden(&page, "generation"), "2", "to go on is to know the newer one");
    }
    assert_eq!(api.call("GET", "/v1/jobs/a", None).await.json["labels"]["team"], "newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_edits_at_the_same_moment_one_is_stored_and_the_others_see_it() {
    const EDITORS: usize = 8;
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let browser = Browser::signed_in(&api, "admin").await;
    let runtime = tokio::runtime::Handle::current();
    for generation in 1..=20 {
        let ready = Barrier::new(EDITORS);
        let save = &|editor| {
            let form = format!(
                "generation={generation}&schedule=0+*+*+*+*&params=%7B%22command%22%3A%22true%22%7D&labels=team%3D{editor}x{generation}&do=save"
            );
            ready.wait();
            runtime.block_on(browser.submit("/jobs/default/a/edit", &form))
        };
        let pages: Vec<Page> = tokio::task::block_in_place(|| {
            std::thread::scope(|scope| {
                let editors: Vec<_> = (0..EDITORS).map(|editor| scope.spawn(move || save(editor))).collect();
                editors.into_iter().map(|editor| editor.join().unwrap()).collect()
            })
        });
        let (stored, overtaken): (Vec<&Page>, Vec<&Page>) = pages.iter().partition(|page| page.status == 303);
        assert_eq!(stored.len(), 1);
        for page in overtaken {
            assert!(page.text.contains("Somebody else changed a"), "{}: {}", page.status, page.text);
            assert_eq!(hidden(page, "generation"), (generation + 1).to_string());
        }
    }
}

#[tokio::test]
async fn only_an_admin_of_the_namespace_sees_the_form() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    for (token, new, edit) in [("viewer", 403, 403), ("operator", 403, 403), ("prod", 200, 404), ("admin", 200, 200)] {
        let browser = Browser::signed_in(&api, token).await;
        assert_eq!(browser.get("/jobs/new").await.status, new, "{token}");
        assert_eq!(browser.get("/jobs/default/a/edit").await.status, edit, "{token}");
        let jobs = browser.get("/jobs").await;
        assert_eq!(jobs.text.contains("href=\"/jobs/new\""), new == 200, "{token}");
        if token != "prod" {
            assert_eq!(browser.get("/jobs/default/a").await.text.contains("/a/edit\""), edit == 200, "{token}");
        }
    }
    let form = "name=b&schedule=%40daily&params=%7B%22command%22%3A%22x%22%7D&do=save";
    let prod = Browser::signed_in(&api, "prod").await;
    assert!(prod.get("/jobs/new").await.text.contains("value=\"prod\""), "its own namespace stands there");
    assert_eq!(prod.submit("/jobs/new", &format!("{form}&namespace=default")).await.status, 403);
    assert_eq!(prod.submit("/jobs/new", &format!("{form}&namespace=prod")).await.status, 303);
    let admin = Browser::signed_in(&api, "admin").await;
    assert_eq!(admin.post("/jobs/new", &[], form).await.status, 403, "without the CSRF token");
}
