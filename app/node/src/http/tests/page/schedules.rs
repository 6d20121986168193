//! Schedules: expressions explained, and crontabs read and imported.

use super::super::Api;
use super::Browser;

#[tokio::test]
async fn an_expression_is_explained_in_two_zones() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get("/schedules").await;
    assert!(page.status == 200 && page.text.contains("@every 90s"), "examples");
    let page = browser.get("/schedules?schedule=0+3+*+*+*&timezone=Europe/Berlin&zone=America/New_York").await;
    for part in [
        "At 03:00 every day, Europe/Berlin",
        "America/New_York (yours)",
        "Fri 1 Jan 2027 03:00:00 CET",
        "Thu 31 Dec 2026 21:00:00 EST",
        "carillon explain &#39;0 3 * * *&#39; --timezone",
        "/v1/schedules/explain",
    ] {
        assert!(page.text.replace("'", "&#39;").contains(part), "{part:?} is missing");
    }
    assert!(!page.text.contains("goes forward"), "no clock changes in January");
    let page = browser.get("/schedules?schedule=0+3+1+*+*&timezone=Europe/Berlin").await;
    let change = page.text.find("goes forward by 60 minutes: Sun 28 Mar 2027 03:00:00 CEST").unwrap();
    assert!(page.text.find("1 Mar 2027").unwrap() < change && change < page.text.find("1 Apr 2027").unwrap());
}

#[tokio::test]
async fn others_in_the_same_minute_are_counted_and_h_is_proposed() {
    let api = Api::new().await;
    for (name, schedule) in [("a", "0 3 * * *"), ("b", "30 0 3 * * *"), ("c", "1 3 * * *"), ("d", "59 2 * * *")] {
        api.job(name, serde_json::json!({"schedule": schedule})).await;
    }
    let browser = Browser::signed_in(&api, "viewer").await;
    let text = async |query: &str| browser.get(&format!("/schedules?fragment=main&{query}")).await.text;
    let page = text("schedule=0+3+*+*+*").await;
    assert!(
        page.contains("2 others are due next in the minute of ") && page.contains("gives each job a minute"),
        "{page}"
    );
    let own = text("schedule=0+3+*+*+*&key=default/a").await;
    assert!(own.contains("1 other is due next") && own.contains("would put it at :"), "a job is no other: {own}");
    assert!(!text("schedule=2+3+*+*+*").await.contains("due next in the minute"));
    assert!(!text("schedule=*/5+*+*+*+*").await.contains("due next in the minute"));
    let prod = Browser::signed_in(&api, "prod").await.get("/schedules?schedule=0+3+*+*+*").await.text;
    assert!(!prod.contains("due next in the minute"), "jobs of other namespaces are not told of");
}

#[tokio::test]
async fn a_refused_expression_says_the_fault_where_it_stands() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get("/schedules?schedule=61+3+*+*+*&fragment=main").await;
    assert!(page.text.contains("Minute: ") && page.text.contains("role=\"alert\""), "{}", page.text);
    let page = browser.get("/schedules?schedule=%3Cscript%3E&timezone=%22%3E%3Cb%3E").await;
    assert!(page.status == 200 && !page.text.contains("<script>") && !page.text.contains("\"><b>"));
}

#[tokio::test]
async fn a_crontab_is_looked_at_and_then_imported_by_an_admin() {
    let api = Api::new().await;
    let text = "text=MAILTO%3Dops%0D%0A0+3+*+*+*+%2Fbin%2Fbackup+%3Cb%3E%0D%0A61+*+*+*+*+wrong%0D%0A%40reboot+x";
    let viewer = Browser::signed_in(&api, "viewer").await;
    let page = viewer.submit("/schedules", &format!("{text}&do=check")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    for part in
        ["At 03:00 every day", "1 job", "1 line at fault", "/bin/backup &lt;b&gt;", "skipped", "Nothing is stored yet"]
    {
        assert!(page.text.contains(part), "{part:?} is missing in {}", page.text);
    }
    assert!(page.text.contains("The route mailto-default-ops would mail to ops"), "{}", page.text);
    assert!(!page.text.contains("value=\"import\""), "a viewer sees no button that would be refused");
    assert_eq!(viewer.submit("/schedules", &format!("{text}&do=import")).await.status, 403);
    assert_eq!(api.call("GET", "/v1/jobs", None).await.json["items"].as_array().unwrap().len(), 0);
    let admin = Browser::signed_in(&api, "admin").await;
    assert_eq!(admin.post("/schedules", &[], &format!("{text}&do=import")).await.status, 403, "without the CSRF token");
    let page = admin.submit("/schedules", &format!("{text}&do=import")).await;
    assert!(page.text.contains("Imported 1 job, 1 created, 1 line at fault."), "{}", page.text);
    assert!(
        page.text.contains("The route mailto-default-ops mails to ops what the jobs below write."),
        "{}",
        page.text
    );
    let route = api.call("GET", "/v1/alerts/mailto-default-ops", None).await.json;
    assert_eq!((&route["when"], &route["to"][0]["to"]), (&serde_json::json!(["output"]), &serde_json::json!(["ops"])));
    let jobs = api.call("GET", "/v1/jobs", None).await.json["items"].clone();
    assert_eq!(
        (jobs[0]["labels"]["crontab"].as_str(), jobs[0]["params"]["command"].as_str()),
        (Some("crontab"), Some("/bin/backup <b>"))
    );
    let log = api.call("GET", "/v1/audit", None).await.json["items"].clone();
    assert_eq!((log[0]["action"].as_str(), log[0]["who"].as_str()), (Some("job.created"), Some("admin")));
    let again = admin.submit("/schedules", &format!("{text}&do=import")).await;
    assert!(again.text.contains("1 unchanged") && again.text.contains("mails already"), "{}", again.text);
    let changed = text.replace("0+3+", "0+4+");
    assert!(admin.submit("/schedules", &format!("{changed}&do=check")).await.text.contains("differs"));
    assert!(admin.submit("/schedules", &format!("{changed}&do=import")).await.text.contains("1 updated"));
}

#[tokio::test]
async fn an_import_keeps_to_the_namespaces_of_the_token_and_overwrites_no_job_from_elsewhere() {
    let api = Api::new().await;
    let prod = Browser::signed_in(&api, "prod").await;
    let line = "text=0+3+*+*+*+%2Fbin%2Fbackup";
    assert_eq!(prod.submit("/schedules", &format!("{line}&namespace=default&do=import")).await.status, 403);
    assert!(prod.submit("/schedules", &format!("{line}&do=import")).await.text.contains("1 created"));
    let name =
        api.call("GET", "/v1/jobs?namespace=prod", None).await.json["items"][0]["name"].as_str().unwrap().to_owned();
    api.job(&name, serde_json::json!({"namespace": "prod"})).await;
    let page = prod.submit("/schedules", &format!("{line}&do=import")).await;
    assert!(page.text.contains("at fault") && !page.text.contains("1 created"), "{}", page.text);
    let kept = api.call("GET", &format!("/v1/jobs/{name}?namespace=prod"), None).await.json;
    assert_eq!(kept["schedule"], "0 * * * *");
    for (form, fault) in [
        ("text=+", "Lines: there are none"),
        ("text=x&namespace=%3C", "Namespace: "),
        ("text=x&timezone=Mars", "Time zone: "),
    ] {
        let page = prod.submit("/schedules", &format!("{form}&do=check")).await;
        assert!(page.text.contains(fault), "{form}: {}", page.text);
    }
}
