//! `import` and `export` through the built binary, against a stand-in for the API.

use super::fake::Fake;
use serde_json::{Value, json};

const CRONTAB: &str = "\
# nightly work
MAILTO=root
PATH=/usr/bin:/bin
CRON_TZ=Europe/Berlin
0 3 * * * /opt/backup --all
*/5 * * * * /opt/feed%one%two
@reboot /opt/never
61 * * * * /opt/wrong
";

fn file(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my tab");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

fn statuses(text: &str) -> Vec<(String, Value, Value)> {
    let rows =
        text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["status"].as_str().unwrap().to_owned(), row["line"].clone(), row["change"].clone())).collect()
}

#[test]
fn every_line_is_told_and_the_good_ones_are_imported() {
    let fake = Fake::start();
    let (_dir, path) = file(CRONTAB);
    let told = fake.out(&["import", &path, "--json"], 1);
    let (created, none) = (json!("created"), Value::Null);
    let expected = [
        ("comment", 1, &none),
        ("env", 2, &none),
        ("env", 3, &none),
        ("env", 4, &none),
        ("job", 5, &created),
        ("job", 6, &created),
        ("skipped", 7, &none),
        ("error", 8, &none),
    ];
    assert_eq!(
        statuses(&told),
        expected.map(|(status, line, change)| (status.to_owned(), json!(line), change.clone()))
    );
    assert!(told.ends_with("8 lines: 2 jobs (2 created), 3 variables, 1 comment or blank line, 1 skipped, 1 error\n"));
    let row: Value = serde_json::from_str(told.lines().nth(4).unwrap()).unwrap();
    let name = row["name"].as_str().unwrap();
    assert!(name.starts_with("my-tab-backup-"), "{name}");
    let job = fake.job(name);
    let params = json!({"command": "/opt/backup --all", "shell": "/bin/sh", "env": {"PATH": "/usr/bin:/bin"}});
    assert_eq!((&job["params"], &job["labels"]), (&params, &json!({"crontab": "my-tab", "mailto": "root"})));
    assert_eq!(
        (&job["schedule"], &job["timezone"], &job["executor"]),
        (&json!("0 3 * * *"), &json!("Europe/Berlin"), &json!("shell"))
    );

    let table = fake.out(&["import", &path], 1);
    assert!(table.starts_with("LINE  STATUS   CHANGE     NAME"), "{table}");
    assert!(table.contains("5     job      unchanged  my-tab-backup-"), "{table}");
    assert!(table.contains("minute: \"61\" is out of range"), "{table}");
}

#[test]
fn importing_twice_changes_nothing_and_an_edited_schedule_updates_its_job() {
    let fake = Fake::start();
    let (_dir, path) = file("0 3 * * * /opt/backup\n0 4 * * * /opt/feed\n@daily /opt/c\n");
    fake.out(&["import", &path], 0);
    fake.take_requests();
    let again = fake.out(&["import", &path], 0);
    assert!(again.ends_with("3 lines: 3 jobs (3 unchanged), 0 errors\n"), "{again}");
    assert!(fake.take_requests().iter().all(|request| request.starts_with("GET ")));

    let name = fake.state.lock().unwrap().jobs.keys().find(|name| name.contains("backup")).unwrap().clone();
    fake.out(&["job", "update", &name, "--timeout", "1h", "--label", "team=data"], 0);
    fake.out(&["job", "pause", &name], 0);
    std::fs::write(&path, "0 5 * * * /opt/backup\n0 4 * * * /opt/feed\n@daily /opt/c\n").unwrap();
    assert!(fake.out(&["import", &path], 0).contains("3 jobs (1 updated, 2 unchanged)"));
    let job = fake.job(&name);
    assert_eq!((&job["schedule"], &job["timeout"], &job["paused"]), (&json!("0 5 * * *"), &json!("1h"), &json!(true)));
    assert_eq!(job["labels"], json!({"team": "data", "crontab": "my-tab"}));
}

#[test]
fn prune_deletes_only_what_this_file_no_longer_has() {
    let fake = Fake::start();
    let (_dir, path) = file("0 3 * * * /opt/a\n0 4 * * * /opt/b\n0 5 * * * /opt/c\n");
    fake.out(&["import", &path], 0);
    fake.out(&["job", "add", "by-hand", "-s", "@daily", "-c", "x", "-l", "crontab=other"], 0);
    std::fs::write(&path, "0 3 * * * /opt/a\n").unwrap();
    assert!(fake.out(&["import", &path, "--prune", "--dry-run"], 0).contains("2 deleted, 0 errors (dry run"));
    assert_eq!(fake.state.lock().unwrap().jobs.len(), 4);
    std::fs::write(&path, "0 3 * * * /opt/a\n61 4 * * * /opt/b\n").unwrap();
    assert!(fake.out(&["import", &path, "--prune"], 1).contains("2 not pruned"));
    std::fs::write(&path, "0 3 * * * /opt/a\n").unwrap();
    assert!(fake.out(&["import", &path, "--prune"], 0).contains("1 job (1 unchanged), 2 deleted"));
    let names: Vec<_> = fake.state.lock().unwrap().jobs.keys().cloned().collect();
    assert!(names.len() == 2 && names[0] == "by-hand" && names[1].starts_with("my-tab-a-"), "{names:?}");
}

#[test]
fn users_of_a_system_crontab_run_it_or_become_a_label() {
    let fake = Fake::start();
    let (_dir, path) = file("0 3 * * * www-data /opt/a\n");
    fake.out(&["import", &path, "--system"], 0);
    let job = || fake.state.lock().unwrap().jobs.values().next().unwrap().clone();
    assert_eq!((&job()["params"]["user"], &job()["labels"]["user"]), (&json!("www-data"), &Value::Null));
    assert!(fake.out(&["import", &path, "--system", "--ignore-user"], 0).contains("1 updated"));
    assert_eq!((&job()["params"]["user"], &job()["labels"]["user"]), (&Value::Null, &json!("www-data")));
    let crontab = fake.run(&["import", "-", "--namespace", "prod", "--timezone", "Asia/Tokyo"], "@daily x\n");
    assert!(crontab.status.success());
    let sent = fake.state.lock().unwrap().bodies.last().unwrap()["items"][0].clone();
    assert_eq!((&sent["namespace"], &sent["timezone"]), (&json!("prod"), &json!("Asia/Tokyo")));
    assert_eq!(sent["labels"], json!({"crontab": "crontab"}));
}

#[test]
fn what_the_server_refuses_is_an_error_of_its_line() {
    let fake = Fake::start();
    fake.state.lock().unwrap().refused_schedule = "0 4 * * *";
    let (_dir, path) = file("0 3 * * * /opt/a\n0 4 * * * /opt/b\n");
    let table = fake.out(&["import", &path], 1);
    assert!(table.contains("params.user: not allowed") && table.contains("1 job (1 created), 1 error"), "{table}");
}

#[test]
fn large_files_go_in_batches_and_a_server_that_goes_away_is_told() {
    let fake = Fake::start();
    fake.state.lock().unwrap().batches_until_away = Some(2);
    let lines: String = (0..2_500).map(|n| format!("{} 3 * * * /opt/job {n}\n", n % 60)).collect();
    let (_dir, path) = file(&lines);
    let told = fake.out(&["import", &path], 1);
    assert!(told.contains("2500 lines: 2000 jobs (2000 created), 500 errors"), "{}", told.lines().last().unwrap());
    assert!(told.contains("not imported: the request was not applied: the database is away"));
    fake.state.lock().unwrap().batches_until_away = None;
    assert!(fake.out(&["import", &path], 0).contains("2500 jobs (500 created, 2000 unchanged)"));
}

#[test]
fn a_dry_run_needs_no_server() {
    let (_dir, path) = file(CRONTAB);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_carillon"))
        .args(["import", &path, "--dry-run", "--server", "http://127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("what would change is not known: cannot reach"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 jobs, 3 variables"));
}

#[test]
fn an_export_is_imported_back_and_json_is_a_batch() {
    let fake = Fake::start();
    let (_dir, path) = file("CRON_TZ=Europe/Berlin\nA=b\n0 3 * * * /opt/backup --all\n*/5 * * * * /opt/feed%one%two\n");
    fake.out(&["import", &path], 0);
    fake.out(&["job", "add", "tick", "-s", "*/5 * * * * *", "-c", "x", "--timeout", "1m"], 0);
    let crontab = fake.out(&["export"], 0);
    for line in
        ["CRON_TZ=Europe/Berlin\n", "A=b\n", "\n0 3 * * * /opt/backup --all\n", "\n*/5 * * * * /opt/feed%one%two%\n"]
    {
        assert!(crontab.contains(line), "{line}: {crontab}");
    }
    assert!(
        crontab.contains("# tick (not in the crontab: timeout 1m)\n#   not exported: its schedule has seconds"),
        "{crontab}"
    );
    std::fs::write(&path, &crontab).unwrap();
    assert!(fake.out(&["import", &path], 0).contains("2 jobs (2 unchanged)"), "{crontab}");

    let json: Value = serde_json::from_str(&fake.out(&["export", "--format", "json"], 0)).unwrap();
    let items = json["items"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert!(
        items.iter().all(|item| item.get("state").is_none() && item["paused"] == false && item["params"].is_object())
    );
}

#[test]
fn mail_of_cron_becomes_a_route() {
    let fake = Fake::start();
    let (_dir, path) =
        file("0 1 * * * a\nMAILTO=ops@example.org,root\n0 3 * * * b\n0 4 * * * c\nMAILTO=\"\"\n0 5 * * * d\n");
    let dry = fake.out(&["import", &path, "--dry-run"], 0);
    assert!(dry.contains("would mail to ops@example.org,root"), "{dry}");
    assert!(fake.state.lock().unwrap().alerts.is_empty());
    let told = fake.out(&["import", &path], 0);
    let name = "mailto-default-ops_example.org_root";
    assert!(told.contains(&format!("the route {name} mails to ops@example.org,root")), "{told}");
    assert!(told.contains("no mail about the jobs below"), "{told}");
    let routes = fake.state.lock().unwrap().alerts.clone();
    let route = &routes[name];
    assert_eq!((routes.len(), &route["when"]), (1, &json!(["output"])));
    assert_eq!(route["match"], json!({"namespaces": ["default"], "labels": {"mailto": "ops@example.org,root"}}));
    assert_eq!(route["to"], json!([{"type": "mail", "to": ["ops@example.org", "root"]}]));
    let labelled = fake.state.lock().unwrap().jobs.values().filter(|job| job["labels"]["mailto"].is_string()).count();
    assert_eq!(labelled, 2);
    assert!(fake.out(&["import", &path], 0).contains("mails already"));
    let exported = fake.out(&["export"], 0);
    assert!(exported.contains("\nMAILTO=ops@example.org,root\n") && !exported.contains("label mailto"), "{exported}");
    fake.state.lock().unwrap().alerts.get_mut(name).unwrap()["to"] = json!([]);
    let exported = fake.out(&["export"], 0);
    assert!(
        !exported.contains("MAILTO=") && exported.contains("label mailto=ops@example.org,root, to which no route"),
        "{exported}"
    );
    assert!(fake.out(&["import", &path], 0).contains("stays as it is"));
}
