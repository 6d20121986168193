//! `/metrics` of a real node against the rules and the dashboard that come with Carillon, and against promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use carillon_tests::fixture::directory;
use carillon_tests::server::Server;
use carillon_tests::skipped;
use carillon_tests::tls_site::TlsSite;
use serde_json::{Value, json};

/// The parts that Prometheus itself has.
const ITS_OWN: [&str; 1] = ["up"];

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(packaging(file)).expect("the file is there")
}

/// The metrics of a node that serves TLS, has run a job that succeeded and one that failed, and has told of that.
fn metrics_of_a_node() -> String {
    let site = TlsSite::new();
    let server = site.start();
    let route = json!({"when": ["failed"], "to": [{"type": "command", "command": "true"}]});
    assert_eq!(server.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201);
    server.run_once("good", json!({"command": "true"}), json!({}));
    server.run_once("bad", json!({"command": "false"}), json!({}));
    server.wait_until("the failure is told", || metrics(&server).contains("carillon_alert_attempts_total{"));
    metrics(&server)
}

fn metrics(server: &Server) -> String {
    server.call_raw("GET", "/metrics", &[], None).2
}

/// Each series without its value: the name and its labels.
fn series(metrics: &str) -> BTreeSet<String> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').expect("a sample has a value").0.to_owned()).collect()
}

/// The values of each label of each family.
fn labels(metrics: &str) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut found: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for one in series(metrics) {
        let Some((name, labels)) = one.strip_suffix('}').and_then(|one| one.split_once('{')) else { continue };
        for pair in labels.split("\",") {
            let (label, value) = pair.split_once("=\"").expect("a label has a value");
            let values = found.entry((name.to_owned(), label.to_owned())).or_default();
            values.insert(value.trim_end_matches('"').to_owned());
        }
    }
    found
}

/// The expressions of the dashboard's panels, with a range in place of Grafana's variable.
fn dashboard() -> Vec<String> {
    let board: Value = serde_json::from_str(&read("grafana/carillon.json")).expect("the dashboard is JSON");
    let panels = board["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let expression = |target: &Value| target["expr"].as_str().expect("a target has an expression").to_owned();
    targets.map(expression).map(|it| it.replace("$__rate_interval", "5m").replace("$instance", ".*")).collect()
}

/// The expressions of the rules. Only `expr:` lines, and those folded below them, stand deeper than the next key.
fn rules() -> Vec<String> {
    let text = read("prometheus/carillon.rules.yml");
    let rule = |rule: &str| {
        let from = rule.split_once("expr: ").expect("a rule has an expression").1;
        let until = ["\n        for:", "\n        labels:"].iter().filter_map(|key| from.find(key)).min();
        from[..until.expect("a rule has labels")].replace(">-", "")
    };
    text.split("- alert: ").skip(1).map(rule).collect()
}

/// The names of metrics in an expression, each with its `label=~"a|b"` matchers.
fn named(expression: &str) -> Vec<(String, Vec<(String, String)>)> {
    let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let (mut found, mut rest) = (Vec::new(), expression);
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|sign| !is_word(sign)).unwrap_or(rest.len() - start);
        let (word, after) = rest[start..].split_at(length);
        rest = after;
        let is_metric = word.starts_with("carillon_") || word.starts_with("process_") || ITS_OWN.contains(&word);
        let matchers = after.strip_prefix('{').and_then(|matchers| matchers.split_once('}'));
        let (inside, after) = matchers.unwrap_or(("", after));
        if is_metric {
            rest = after;
            let pairs = inside.split(", ").filter_map(|pair| pair.split_once('='));
            let plain = |text: &str| text.trim_matches(['~', '"', '!']).to_owned();
            found.push((word.to_owned(), pairs.map(|(label, value)| (label.to_owned(), plain(value))).collect()));
        }
    }
    found
}

#[test]
fn rules_and_dashboard_name_only_metrics_that_a_node_has() {
    let metrics = metrics_of_a_node();
    let names: BTreeSet<String> =
        series(&metrics).iter().map(|one| one.split('{').next().unwrap_or_default().to_owned()).collect();
    let (labels, mut looked_at) = (labels(&metrics), BTreeSet::new());
    for expression in rules().into_iter().chain(dashboard()) {
        let found = named(&expression);
        assert!(!found.is_empty(), "no metric in {expression}");
        for (name, matchers) in found {
            assert!(
                names.contains(&name) || ITS_OWN.contains(&name.as_str()),
                "no node has {name}: {expression}\n{metrics}"
            );
            for (label, values) in matchers.iter().filter(|(label, _)| !["job", "instance"].contains(&label.as_str())) {
                let known = &labels[&(name.clone(), label.clone())];
                for value in values.split('|') {
                    assert!(known.contains(value), "{name} has no {label}=\"{value}\": {expression}\n{known:?}");
                }
            }
            looked_at.insert(name);
        }
    }
    for subject in
        ["up", "carillon_start_lag_seconds_bucket", "carillon_run_duration_seconds_bucket", "carillon_jobs_troubled"]
    {
        assert!(looked_at.contains(subject), "{subject} is in neither: {looked_at:?}");
    }
}

#[test]
fn no_job_and_no_run_becomes_a_label() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    server.run_once("first", json!({"command": "true"}), json!({}));
    let before = metrics(&server);
    for name in ["one", "two", "three"] {
        let more = json!({"labels": {"team": "ops"}});
        server.run_once(name, json!({"command": "echo hello"}), more);
    }
    let bad = json!({"name": "bad", "namespace": "elsewhere", "schedule": "@yearly", "params": {"command": "false"}});
    server.post("/v1/jobs?namespace=elsewhere", &bad);
    server.post("/v1/jobs/bad/run?namespace=elsewhere", &json!({}));
    let failed = "carillon_runs_finished_total{status=\"failed\"} 1\n";
    server.wait_until("the failure is counted", || metrics(&server).contains(failed));
    server.wait_until("the job is in trouble", || metrics(&server).contains("carillon_jobs_troubled 1\n"));
    let after = metrics(&server);
    assert_eq!(series(&after), series(&before), "a node has the same series, whatever it runs");
    assert!(after.contains("carillon_run_duration_seconds_count 5\n"), "{after}");
    for ((name, label), values) in labels(&after) {
        assert!(values.len() <= 20, "{name} has many values of {label}: {values:?}");
    }
}

#[test]
fn promtool_accepts_metrics_rules_and_dashboard() {
    if Command::new("promtool").arg("--version").output().is_err() {
        return skipped::tell(
            "metrics, rules and dashboard by promtool (Debian package prometheus), which is not here",
        );
    }
    let metrics = metrics_of_a_node();
    accepted("the metrics", &metrics, &promtool(&["check", "metrics"], &metrics));
    let rules = packaging("prometheus/carillon.rules.yml");
    accepted("the rules", "", &promtool(&["check", "rules", &rules.display().to_string()], ""));
    let cases = packaging("prometheus/carillon.test.yml");
    accepted("the cases of the rules", "", &promtool(&["test", "rules", &cases.display().to_string()], ""));

    let dir = directory();
    let recorded =
        |(place, expression): (usize, String)| json!({"record": format!("panel:{place}"), "expr": expression});
    let queries: Vec<Value> = dashboard().into_iter().enumerate().map(recorded).collect();
    assert!(queries.len() > 20, "{queries:?}");
    // JSON is YAML.
    let file = dir.path().join("dashboard.yml");
    let groups = json!({"groups": [{"name": "dashboard", "rules": queries}]});
    std::fs::write(&file, groups.to_string()).expect("the queries can be written");
    accepted("the dashboard", &groups.to_string(), &promtool(&["check", "rules", &file.display().to_string()], ""));
}

fn promtool(words: &[&str], input: &str) -> Output {
    let mut command = Command::new("promtool");
    let mut child =
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// `promtool check metrics` says on stderr what it would have otherwise.
fn accepted(of: &str, text: &str, output: &Output) {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool refuses {of}: {said}\n{text}");
    assert!(output.stderr.is_empty(), "promtool complains of {of}: {said}\n{text}");
}
