//! Messages as they look, beside this file. `UPDATE=1` writes them anew, for a person to read.

use std::collections::BTreeMap;
use std::path::Path;

use carillon_alerts::{Extra, Payload, render, render_ping};
use carillon_domain::alert::{Notice, PingCall, PingKind, State, Target, When};
use carillon_domain::id::JobId;
use serde_json::Value;

use super::sample::{AT, SLACK, extra, failed, of_cron, recovered};

pub fn held(name: &str, looks: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/alerts/looks").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, looks).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(looks, expected, "{name} looks otherwise than its file; UPDATE=1 writes it anew");
}

fn json(notice: &Notice, extra: &Extra, target: &Target) -> String {
    let Some(Payload::Post(post)) = render(notice, extra, target) else { panic!("no post") };
    assert_eq!(post.content_type, "application/json");
    let value: Value = serde_json::from_str(&post.body).unwrap();
    serde_json::to_string_pretty(&sorted(value)).unwrap() + "\n"
}

/// The order of keys depends on which crates are built along; sorted keys come out the same either way.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn url() -> String {
    SLACK.to_owned()
}

#[test]
fn a_webhook_has_every_key_always() {
    let target = Target::Webhook { url: url(), secret: None };
    held("webhook.json", &json(&failed(), &extra(), &target));
    let cluster = Notice {
        when: When::NodeLost,
        namespace: None,
        job: None,
        part: Some("node-2".into()),
        run: None,
        due_at: None,
        sentence: "Node node-2 is lost: nothing was heard of it since 02:00:07 UTC on 24 November.".into(),
        ..failed()
    };
    held("webhook_of_the_cluster.json", &json(&cluster, &Extra::default(), &target));
    let body = json(&recovered(), &extra(), &target);
    assert!(body.contains("\"state\": \"recovered\""), "{body}");
    // The contract knows two states, and a test comes as an alert comes.
    let body = json(&Notice { state: State::Test, ..failed() }, &extra(), &target);
    assert!(body.contains("\"state\": \"open\""), "{body}");
}

#[test]
fn slack() {
    held("slack.json", &json(&failed(), &extra(), &Target::Slack { url: url() }));
}

#[test]
fn mattermost() {
    held("mattermost.json", &json(&failed(), &extra(), &Target::Mattermost { url: url() }));
}

#[test]
fn teams() {
    held("teams.json", &json(&recovered(), &extra(), &Target::Teams { url: url() }));
}

#[test]
fn a_command() {
    let timeout = std::time::Duration::from_secs(30);
    let target = Target::Command { command: "notify-send \"$CARILLON_ALERT_SENTENCE\"".into(), timeout };
    let Some(Payload::Command(command)) = render(&failed(), &extra(), &target) else { panic!("no command") };
    assert_eq!((command.command.as_str(), command.timeout), ("notify-send \"$CARILLON_ALERT_SENTENCE\"", timeout));
    let mut looks = String::new();
    for (name, value) in &command.environment {
        looks.push_str(&format!("{name}={value}\n"));
    }
    held("command.txt", &looks);
    let Some(Payload::Post(post)) = render(&failed(), &extra(), &Target::Webhook { url: url(), secret: None }) else {
        panic!("no post")
    };
    assert_eq!(command.stdin, post.body);
}

#[test]
fn titles_tell_who_and_what() {
    let title = |notice: &Notice| {
        let target = Target::Mail { to: vec!["ops@example.org".into()] };
        let Some(Payload::Mail(mail)) = render(notice, &extra(), &target) else { panic!("no mail") };
        mail.subject
    };
    assert_eq!(title(&failed()), "[Carillon] ✖ billing/invoice failed");
    assert_eq!(title(&recovered()), "[Carillon] ✔ billing/invoice has recovered");
    assert_eq!(title(&Notice { repeats: 2, ..failed() }), "[Carillon] ✖ still: billing/invoice failed");
    let over = title(&Notice { repeats: 2, ..recovered() });
    assert!(over.starts_with("[Carillon] ✔ billing/invoice"), "what is over is not still so: {over}");
    assert_eq!(title(&Notice { folded: 79, ..failed() }), "[Carillon] ✖ 79 more alerts of the route ops");
    assert_eq!(title(&Notice { state: State::Test, ..failed() }), "[Carillon] ℹ Test of the route ops");
    assert_eq!(title(&Notice { namespace: Some("default".into()), ..failed() }), "[Carillon] ✖ invoice failed");
    let part = Some("node-2".to_owned());
    let lost = Notice { when: When::NodeLost, namespace: None, job: None, part, ..failed() };
    assert_eq!(title(&lost), "[Carillon] ✖ a node is lost: node-2");
    for when in When::ALL {
        for state in State::ALL {
            let subject = title(&Notice { when, state, ..lost.clone() });
            assert!(subject.len() > "[Carillon] ✖ ".len(), "{when:?} {state:?}: {subject}");
        }
    }
}

#[test]
fn a_monitor_gets_the_output_as_the_body() {
    let call = PingCall {
        id: failed().id,
        job: JobId(7),
        run: failed().run.unwrap(),
        kind: PingKind::Failure,
        url: "https://hc-ping.com/uuid/fail".into(),
        at: AT,
    };
    let long = format!("{}é{}", "a".repeat(20_000), "b".repeat(9_999));
    let post = render_ping(&call, Some(&long));
    assert_eq!((post.url.as_str(), post.body.len()), ("https://hc-ping.com/uuid/fail", 9_999));
    assert_eq!(render_ping(&call, None).body, "");
}

#[test]
fn cron_says_nothing_about_a_command_without_output() {
    let target = Target::Mail { to: vec!["root".into()] };
    for output in [None, Some(String::new())] {
        assert_eq!(render(&of_cron(), &Extra { output_tail: output, ..extra() }, &target), None);
    }
    let Some(Payload::Mail(mail)) = render(&of_cron(), &extra(), &target) else { panic!("no mail") };
    assert_eq!(mail.subject, "Cron <backup@node-1> /usr/local/bin/backup --all");
    assert_eq!(mail.body.text, extra().output_tail.unwrap());
    assert_eq!((mail.body.html, mail.thread), (None, None));
}
