//! `import` of definitions as `export` writes them, in each format, against a stand-in for the API.

use super::fake::Fake;
use serde_json::{Value, json};

/// A directory with a file of this name and text, and the file's path.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

/// A server with a job that has the defaults, and one that says more.
fn with_jobs() -> Fake {
    let fake = Fake::start();
    fake.out(&["job", "add", "plain", "-s", "@daily", "-c", "echo 'no'"], 0);
    let more = ["--timeout", "1m30s", "--label", "team=data", "--env", "A=*b", "--timezone", "Asia/Tokyo"];
    fake.out(&[&["job", "add", "more", "-s", "*/5 * * * * *", "-c", "x\ny: #z"][..], &more].concat(), 0);
    fake.out(&["job", "pause", "more"], 0);
    fake
}

#[test]
fn an_export_in_each_format_is_imported_without_a_change() {
    for format in ["json", "yaml", "toml"] {
        let fake = with_jobs();
        let before = fake.state.lock().unwrap().jobs.clone();
        let (_dir, path) = file(&format!("jobs.{format}"), &fake.out(&["export", "--format", format], 0));
        for more in [&["--dry-run"][..], &["--prune", "--dry-run"], &[], &["--prune"]] {
            let told = fake.out(&[&["import", &path][..], more].concat(), 0);
            let dry = if more.contains(&"--dry-run") { " (dry run: nothing was changed)" } else { "" };
            assert!(told.ends_with(&format!("\n2 jobs (2 unchanged), 0 errors{dry}\n")), "{format} {more:?}: {told}");
        }
        assert_eq!(fake.state.lock().unwrap().jobs, before, "{format}");
        let empty = Fake::start();
        assert!(empty.out(&["import", &path], 0).contains("2 jobs (2 created), 0 errors"));
        let exported = |fake: &Fake| fake.out(&["export", "--format", "json"], 0);
        assert_eq!(exported(&empty), exported(&fake), "{format}");
    }
}

#[test]
fn a_file_may_be_a_list_or_one_job_and_leaves_out_defaults() {
    for (name, text) in [
        ("a.yml", "- {name: plain, schedule: '@daily', params: {command: \"echo 'no'\"}, retry: {backoff: 10000ms}}\n"),
        ("a.yaml", "name: plain\nschedule: '@daily'\nparams: {command: \"echo 'no'\"}\n"),
        ("a.toml", "name = 'plain'\nschedule = '@daily'\nparams.command = \"echo 'no'\"\n"),
        ("a.JSON", "[{\"name\": \"plain\", \"schedule\": \"@daily\", \"params\": {\"command\": \"echo 'no'\"}}]"),
    ] {
        let fake = with_jobs();
        let (_dir, path) = file(name, text);
        assert!(fake.out(&["import", &path, "--dry-run"], 0).contains("1 job (1 unchanged)"), "{name}");
        let moved = fake.out(&["import", &path, "--dry-run", "-n", "prod"], 0);
        assert!(moved.contains("1 job (1 created)"), "{name}: {moved}");
        std::fs::write(&path, text.replace("@daily", "@hourly")).unwrap();
        assert!(fake.out(&["import", &path, "--dry-run"], 0).contains("\njob     updated  plain  @hourly"), "{name}");
        assert!(fake.out(&["import", &path], 0).contains("1 job (1 updated)"), "{name}");
        assert_eq!(fake.job("plain")["schedule"], "@hourly");
    }
}

#[test]
fn a_pause_stays_where_the_file_does_not_speak_of_it() {
    let fake = with_jobs();
    let exported = fake.out(&["export", "--format", "json"], 0);
    let mut silent: Value = serde_json::from_str(&exported).unwrap();
    silent["items"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(|job| drop(job.as_object_mut().unwrap().remove("paused")));
    let (_dir, path) = file("jobs.json", &silent.to_string());
    assert!(fake.out(&["import", &path, "--dry-run"], 0).contains("2 jobs (2 unchanged)"));
    assert!(fake.out(&["import", &path], 0).contains("2 jobs (2 unchanged)"));
    assert_eq!(fake.job("more")["paused"], true);
    silent["items"][0]["paused"] = json!(false);
    std::fs::write(&path, silent.to_string()).unwrap();
    assert!(fake.out(&["import", &path, "--dry-run"], 0).contains("2 jobs (1 updated, 1 unchanged)"));
}

#[test]
fn standard_input_is_a_crontab_json_or_what_format_says() {
    let fake = Fake::start();
    let told = |arguments: &[&str], input: &str| {
        let output = fake.run(&[&["import", "-"][..], arguments].concat(), input);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told(&[], "0 3 * * * /opt/a\n").ends_with("1 line: 1 job (1 created), 0 errors\n"));
    let json = json!({"items": [{"name": "a", "schedule": "@daily", "params": {"command": "x"}}]});
    assert!(told(&[], &format!("\n{json}")).ends_with("\n1 job (1 created), 0 errors\n"));
    let yaml = "items:\n- {name: b, schedule: '@daily', params: {command: x}}\n";
    assert!(told(&["--format", "yaml"], yaml).contains("1 job (1 created)"));
    let (_dir, path) = file("tab.json", "0 3 * * * /opt/c\n");
    assert!(fake.out(&["import", &path, "--format", "crontab"], 0).starts_with("LINE  STATUS"));
}

#[test]
fn prune_deletes_the_other_jobs_of_the_namespaces_in_the_file() {
    let fake = with_jobs();
    let (_dir, path) = file("jobs.yaml", "- {name: plain, schedule: '@daily', params: {command: \"echo 'no'\"}}\n");
    let dry = fake.out(&["import", &path, "--prune", "--dry-run"], 0);
    assert!(dry.contains("deleted  -          more") && dry.contains("1 deleted, 0 errors (dry run"), "{dry}");
    assert_eq!(fake.state.lock().unwrap().jobs.len(), 2);
    fake.take_requests();
    let elsewhere = fake.out(&["import", &path, "--prune", "--dry-run", "-n", "prod"], 0);
    assert!(elsewhere.contains("\njob     created  prod/plain") && !elsewhere.contains("deleted"), "{elsewhere}");
    assert!(fake.take_requests().iter().all(|request| request.contains("namespace=prod")));
    for faulty in ["- {schedule: '@daily'}\n", "- 7\n", "- {name: plain, schedule: x, params: {}}\n"] {
        let text = format!("- {{name: plain, schedule: '@daily', params: {{command: \"echo 'no'\"}}}}\n{faulty}");
        std::fs::write(&path, text).unwrap();
        assert!(fake.out(&["import", &path, "--prune"], 1).contains("1 not pruned, 1 error"), "{faulty}");
    }
    assert_eq!(fake.state.lock().unwrap().jobs.len(), 2);
    std::fs::write(&path, "- {name: plain, schedule: '@daily', params: {command: \"echo 'no'\"}}\n").unwrap();
    assert!(fake.out(&["import", &path, "--prune"], 0).contains("1 job (1 unchanged), 1 deleted, 0 errors"));
    assert_eq!(fake.state.lock().unwrap().jobs.keys().collect::<Vec<_>>(), ["plain"]);
}

#[test]
fn each_faulty_job_is_told_and_the_others_are_imported() {
    let fake = Fake::start();
    let text = "items:\n- {name: good, schedule: '@daily', params: {command: x}}\n- {schedule: '@daily'}\n- text\n\
                - {name: good, schedule: '@hourly', params: {command: y}}\n";
    let (_dir, path) = file("jobs.yaml", text);
    let told = fake.out(&["import", &path], 1);
    for expected in [
        "item 2: the job has no name",
        "item 3: this is not a job",
        "stands in the file before",
        "1 job (1 created), 3 errors",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert_eq!(fake.job("good")["schedule"], "@daily");
    let rows = fake.out(&["import", &path, "--json"], 1);
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&row["namespace"], &row["name"], &row["change"]),
        (&json!("default"), &json!("good"), &json!("unchanged"))
    );
    std::fs::write(&path, "- {name: a, schedule: '61 * * * *', params: {command: x}, colour: red}\n").unwrap();
    let dry = fake.out(&["import", &path, "--dry-run"], 1);
    assert!(dry.contains("minute: \"61\" is out of range") && dry.contains("colour: "), "{dry}");
}

#[test]
fn a_dry_run_takes_a_secret_without_its_value_for_the_stored_one() {
    let fake = Fake::start();
    let job = |name: &str| json!({"name": name, "schedule": "@daily", "params": {"command": "x", "env": {"P": {"secret": true}}}});
    let (_dir, path) = file("jobs.json", &json!([job("a")]).to_string());
    fake.out(&["import", &path], 0);
    assert!(fake.out(&["import", &path, "--dry-run"], 0).contains("1 job (1 unchanged)"));
    std::fs::write(&path, json!([job("b")]).to_string()).unwrap();
    assert!(
        fake.out(&["import", &path, "--dry-run"], 1).contains("params.env.P: the value of this secret is not given")
    );
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_its_place() {
    let fake = Fake::start();
    for (name, text, more, expected) in [
        ("jobs.yaml", "- name: a\n  schedule: @daily\n", &[][..], "jobs.yaml, line 2, column "),
        ("jobs.toml", "name = 'a'\nschedule = @daily\n", &[], "jobs.toml, line 2, column 12: "),
        ("jobs.json", "{\"items\": 7}", &[], "items must be a list of jobs"),
        ("jobs.yaml", "text\n", &[], "write items, a list of jobs"),
        ("jobs.yaml", "[]\n", &["--system"], "--system and --timezone are for crontabs"),
    ] {
        let (_dir, path) = file(name, text);
        let told = fake.out(&[&["import", &path][..], more].concat(), 2);
        assert!(told.contains(expected), "{name}: {told}");
    }
}
