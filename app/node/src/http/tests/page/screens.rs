//! Screens: what they show, to whom, and that nothing that others wrote becomes markup.

use carillon_domain::run::Status;
use carillon_store::Output;
use serde_json::json;

use super::super::Api;
use super::Browser;
use crate::engine::Readiness;

#[tokio::test]
async fn every_screen_is_there_without_a_script() {
    let api = Api::new().await;
    api.parts.readiness.send_replace(Readiness::Ready);
    let browser = Browser::signed_in(&api, "admin").await;
    assert!(browser.get("/").await.text.contains("No jobs yet."), "an empty state says what to do first");
    assert!(browser.get("/jobs").await.text.contains("carillon import"));
    api.job("nightly-report", json!({"labels": {"team": "data"}})).await;
    let (at, held) = api.started("nightly-report").await;
    let run = format!("/runs/{}", held.run);
    let overview = browser.get("/").await;
    assert!(overview.text.contains("All jobs are on time.") && overview.text.contains("nightly-report"), "it runs");
    for (path, parts) in [
        ("/jobs", vec!["nightly-report", "0 * * * *", "running", "role=\"img\""]),
        (
            "/jobs/default/nightly-report",
            vec!["Run now", "Pause", "Delete", "A year of days", "team=data", "role=\"img\""],
        ),
        ("/jobs/default/nightly-report/run", vec!["still lives", "name=\"params\""]),
        ("/jobs/default/nightly-report/pause", vec!["name=\"reason\"", "name=\"until\""]),
        ("/jobs/default/nightly-report/delete", vec!["One run lives"]),
        (run.as_str(), vec!["It runs because somebody asked for it.", "Cancel", "Run again"]),
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for part in parts {
            assert!(page.text.contains(part), "{path} lacks {part:?}");
        }
        for inline in [" style=", "<style", " onclick", "<script>", "javascript:"] {
            assert!(!page.text.contains(inline), "{path} has {inline:?}, which the policy forbids");
        }
    }
    api.finish(at, Status::Failed, Output { bytes: b"oops".to_vec(), truncated: false }).await.unwrap();
    let page = browser.get("/").await;
    assert!(page.text.contains("1 job needs you.") && page.text.contains("<title>(1) Overview"), "{}", page.text);
    let ended = browser.get(&run).await.text;
    for part in ["and failed after", "claimed 3 s ahead", "CPU time</dt><dd>1.2 s", "Peak memory</dt><dd>20.0 MiB"] {
        assert!(ended.contains(part), "{part}: {ended}");
    }
}

#[tokio::test]
async fn output_and_names_never_become_markup() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "admin").await;
    api.job(
        "a",
        json!({"labels": {"team": "\"><b>x"}, "params": {"command": "echo '</pre><script>alert(1)</script>'"}}),
    )
    .await;
    let (at, held) = api.started("a").await;
    let bytes = b"\x1b[31m<img src=x onerror=alert(1)>\x1b[0m </pre><script>alert(2)</script> \x1b]8;;javascript:alert(3)\x07link".to_vec();
    api.finish(at, Status::Succeeded, Output { bytes, truncated: false }).await.unwrap();
    let run = browser.get(&format!("/runs/{}", held.run)).await.text;
    assert!(run.contains("<span class=\"a1\">&lt;img src=x onerror=alert(1)&gt;</span>"), "{run}");
    assert!(!run.contains("<script>") && !run.contains("javascript:"));
    for path in ["/jobs/default/a", "/jobs", "/jobs/default/a/run"] {
        let text = browser.get(path).await.text;
        assert!(!text.contains("<script>alert") && !text.contains("\"><b>"), "{path}");
    }
    for path in [
        "/jobs?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/jobs?label=%3Cb%3E&group=%22%3E%3Cb%3E&namespace=%3Cb%3E&zone=%3Cb%3E&sort=%22%3E%3Cb%3E",
        "/?said=%3Cb%3E",
        "/sign-in?next=/%22%3E%3Cb%3E",
    ] {
        let text = browser.get(path).await.text;
        assert!(!text.contains("<script>alert") && !text.contains("<b>"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_viewer_sees_no_button_that_would_be_refused() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let (_, held) = api.started("a").await;
    let (viewer, operator) = (Browser::signed_in(&api, "viewer").await, Browser::signed_in(&api, "operator").await);
    for path in ["/", "/jobs", "/jobs/default/a", &format!("/runs/{}", held.run)] {
        let text = viewer.get(path).await.text;
        for button in ["Run now", "Run again", ">Pause<", ">Delete<", ">Cancel<", "name=\"job\""] {
            assert!(!text.contains(button), "{path} has {button}");
        }
    }
    let text = operator.get("/jobs/default/a").await.text;
    assert!(text.contains("Run now") && !text.contains(">Delete<"));
    for action in ["run", "pause", "resume", "delete"] {
        let path = format!("/jobs/default/a/{action}");
        assert_eq!(viewer.submit(&path, "generation=1").await.status, 403, "{path}");
        assert_eq!(viewer.get(&path).await.status, 403, "{path}");
    }
    assert_eq!(viewer.submit("/jobs/do", "job=default/a&do=run").await.status, 403);
    assert_eq!(viewer.submit(&format!("/runs/{}/cancel", held.run), "").await.status, 403);
    assert_eq!(operator.submit("/jobs/default/a/delete", "generation=1").await.status, 403);
}

#[tokio::test]
async fn a_token_of_one_namespace_sees_no_other() {
    let api = Api::new().await;
    api.job("secret-job", json!({})).await;
    api.job("p", json!({"namespace": "prod"})).await;
    let (_, held) = api.started("secret-job").await;
    let browser = Browser::signed_in(&api, "prod").await;
    for path in ["/", "/jobs", "/jobs?q=secret", "/jobs?namespace=*"] {
        let page = browser.get(path).await;
        assert!(page.status == 200 && !page.text.contains("secret-job"), "{path}");
    }
    assert!(browser.get("/jobs").await.text.contains("/jobs/prod/p"));
    assert_eq!(browser.get("/jobs?namespace=default").await.status, 403);
    assert_eq!(browser.get("/jobs/default/secret-job").await.status, 404);
    assert_eq!(browser.get("/jobs?fragment=row:default/secret-job").await.status, 403);
    assert_eq!(browser.get(&format!("/runs/{}", held.run)).await.status, 404);
    assert_eq!(browser.submit("/jobs/default/secret-job/pause", "").await.status, 403);
    assert_eq!(browser.submit("/jobs/do", "job=default/secret-job&do=pause").await.status, 409);
}

#[tokio::test]
async fn actions_are_forms_with_a_token() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let browser = Browser::signed_in(&api, "admin").await;
    let state = async || api.call("GET", "/v1/jobs/a", None).await.json;
    for path in ["/jobs/default/a/pause", "/jobs/default/a/run", "/jobs/default/a/delete", "/jobs/do"] {
        let form = "job=default/a&do=pause&generation=1";
        assert_eq!(browser.post(path, &[], form).await.status, 403, "{path} without a CSRF token");
        assert_eq!(browser.post(path, &[], &format!("{form}&csrf=0")).await.status, 403, "{path}");
    }
    assert_eq!(state().await["paused"], json!(false));
    let page = browser.submit("/jobs/default/a/pause", "reason=it+breaks&until=2027-01-02T00:00").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/jobs/default/a?said=paused"));
    let pause = state().await["pause"].clone();
    assert_eq!((&pause["reason"], &pause["until"]), (&json!("it breaks"), &json!("2027-01-02T00:00:00.000Z")));
    assert!(browser.get("/jobs/default/a").await.text.contains("it breaks"));
    let next = |json: &serde_json::Value| json["next_due_at"].clone();
    let before = next(&state().await);
    assert_eq!(browser.submit("/jobs/default/a/resume", "").await.status, 303);
    assert_eq!(state().await["paused"], json!(false));
    for _ in 0..3 {
        browser.submit("/jobs/do", "job=default/a&do=pause").await;
        browser.submit("/jobs/do", "job=default/a&do=resume").await;
    }
    assert_eq!(next(&state().await), before, "pausing and resuming never move the due times");
    let page = browser.submit("/jobs/default/a/pause", "until=2026-01-01T00:00").await;
    assert!(
        page.status == 200 && page.text.contains("Until: it has passed"),
        "a fault stands at its form: {}",
        page.text
    );
    let page = browser.submit("/jobs/default/a/run", "").await;
    let run = page.header("location").strip_suffix("?said=asked").unwrap().to_owned();
    assert!(browser.get(&run).await.text.contains("It waits to start"));
    assert_eq!(browser.submit(&format!("{run}/cancel"), "").await.status, 303);
    assert_eq!(browser.submit("/jobs/default/a/delete", "generation=7").await.status, 412);
    assert_eq!(browser.submit("/jobs/default/a/delete", "generation=1").await.header("location"), "/jobs?said=deleted");
    assert_eq!(browser.get("/jobs/default/a").await.status, 404);
}

#[tokio::test]
async fn the_address_holds_the_state_of_a_list() {
    let api = Api::new().await;
    for n in 0..60 {
        api.job(&format!("job-{n:02}"), json!({"labels": {"team": if n % 2 == 0 { "even" } else { "odd" }}})).await;
    }
    let browser = Browser::signed_in(&api, "viewer").await;
    let rows = |text: &str| text.matches("id=\"row:").count();
    let first = browser.get("/jobs").await.text;
    assert_eq!(rows(&first), 50);
    let (before, _) = first.split_once("\">Next page").unwrap();
    let next = before.rsplit("href=\"").next().unwrap().replace("&amp;", "&");
    assert_eq!(rows(&browser.get(&next).await.text), 10);
    assert_eq!(rows(&browser.get("/jobs?q=OB-1").await.text), 10, "a part of the name, whatever its case");
    assert_eq!(rows(&browser.get("/jobs?label=team%3Dodd").await.text), 30);
    assert_eq!(rows(&browser.get("/jobs?state=executing").await.text), 0);
    let fragment = browser.get("/jobs?fragment=row:default/job-07").await.text;
    assert!(fragment.starts_with("<main") && rows(&fragment) == 1, "{fragment}");
    let grouped = browser.get("/jobs?group=team").await.text;
    assert!(grouped.contains("team = <strong>even"), "{grouped}");
    assert!(first.matches('<').count() < 2 * 3_000, "{} tags", first.matches('<').count());
}
