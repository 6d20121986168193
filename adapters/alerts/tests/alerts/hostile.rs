//! Names, reasons and output that were written to do harm.

use carillon_alerts::{Extra, Payload, render};
use carillon_domain::alert::{Notice, Target};
use proptest::prelude::*;
use serde_json::Value;

use super::sample::{SLACK, failed};

const HOSTILE: &str = "<!channel> <@U123> @channel @here @all <https://evil|click> &amp; ```\n@channel\n````\n# h\n</pre>\
                       <script>alert(1)</script>\u{1b}[31m\u{202e}\u{0}";

fn hostile() -> (Notice, Extra) {
    let notice = Notice {
        job: Some("<!here>".into()),
        sentence: format!("It failed: {HOSTILE}"),
        then: HOSTILE.into(),
        ..failed()
    };
    (notice, Extra { output_tail: Some(HOSTILE.into()), link: Some("javascript:alert(1)".into()), host: None })
}

fn post(target: &Target) -> Value {
    let (notice, extra) = hostile();
    let Some(Payload::Post(post)) = render(&notice, &extra, target) else { panic!("no post") };
    serde_json::from_str(&post.body).unwrap()
}

/// Each text of a JSON value, with the `type` of the object that holds it.
fn texts(value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or("top").to_owned();
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "text" => out.push((kind.clone(), text.clone())),
                    other => texts(other, out),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn slack_reads_no_mark_in_it() {
    let mut found = Vec::new();
    texts(&post(&Target::Slack { url: SLACK.into() }), &mut found);
    assert!(found.len() >= 5, "{found:?}");
    for (kind, text) in found {
        // Slack shows `plain_text` and the text of a rich text to the letter. All else it reads.
        if kind != "plain_text" && kind != "text" {
            assert!(!text.contains('<') && text.contains("&lt;!channel&gt;"), "{kind}: {text}");
        }
    }
}

#[test]
fn mattermost_calls_nobody() {
    let body = post(&Target::Mattermost { url: SLACK.into() });
    let text = body["text"].as_str().unwrap();
    let fence = "`````";
    let parts: Vec<&str> = text.split(fence).collect();
    assert_eq!(parts.len(), 3, "one block of code, which its content cannot close: {text}");
    for running in [parts[0], parts[2]] {
        let calls = running.match_indices('@').any(|(at, _)| !running[at + 1..].starts_with('\u{200b}'));
        assert!(!calls, "{running}");
    }
    assert!(parts[1].contains("@channel\n````\n"), "{text}");
}

#[test]
fn mail_holds_no_script_and_a_link_leads_to_the_web() {
    let (notice, extra) = hostile();
    let target = Target::Mail { to: vec!["ops@example.org".into()] };
    let Some(Payload::Mail(mail)) = render(&notice, &extra, &target) else { panic!("no mail") };
    let html = mail.body.html.unwrap();
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
    assert_eq!(html.matches("</pre>").count(), 1, "{html}");
    assert!(!html.contains("javascript:") && !mail.body.text.contains("javascript:"), "{html}");
}

proptest! {
    #[test]
    fn no_notice_breaks_a_message(text in any::<String>(), output in any::<String>()) {
        let notice = Notice { job: Some(text.clone()), sentence: text.clone(), then: text.clone(), route: text, ..failed() };
        let extra = Extra { output_tail: Some(output), ..Extra::default() };
        let url = SLACK.to_owned();
        let timeout = std::time::Duration::from_secs(1);
        for target in [
            Target::Webhook { url: url.clone(), secret: None },
            Target::Slack { url: url.clone() },
            Target::Mattermost { url: url.clone() },
            Target::Teams { url },
            Target::Mail { to: vec!["ops@example.org".into()] },
            Target::Command { command: "true".into(), timeout },
        ] {
            match render(&notice, &extra, &target) {
                Some(Payload::Post(post)) => {
                    prop_assert!(serde_json::from_str::<Value>(&post.body).is_ok());
                    prop_assert!(post.body.len() < 200_000);
                }
                Some(Payload::Mail(mail)) => prop_assert!(!mail.subject.contains(char::is_control)),
                Some(Payload::Command(command)) => {
                    let harmless = |(_, value): (&String, &String)| !value.contains(char::is_control);
                    prop_assert!(command.environment.iter().all(harmless));
                }
                None => prop_assert!(false, "only cron's mail may be nothing"),
            }
        }
    }
}

#[test]
fn the_largest_message_stays_below_the_limits_of_its_receiver() {
    let long = "\u{1f514}<&\"@*".repeat(20_000);
    let notice = Notice { sentence: long.clone(), then: long.clone(), job: Some(long.clone()), ..failed() };
    let extra = Extra { output_tail: Some(format!("{long}\n{long}")), ..Extra::default() };
    let size = |target: &Target| match render(&notice, &extra, target) {
        Some(Payload::Post(post)) => (post.body.len(), serde_json::from_str::<Value>(&post.body).unwrap()),
        other => panic!("{other:?}"),
    };
    let url = SLACK.to_owned();
    let (_, slack) = size(&Target::Slack { url: url.clone() });
    let mut found = Vec::new();
    texts(&slack, &mut found);
    // The text at the top may have 40,000 characters, those of blocks 3,000.
    let fits = |(kind, text): &(String, String)| text.chars().count() <= if kind == "top" { 40_000 } else { 3_000 };
    assert!(found.iter().all(fits), "{slack}");
    let (_, mattermost) = size(&Target::Mattermost { url: url.clone() });
    assert!(mattermost["text"].as_str().unwrap().chars().count() < 16_383);
    assert!(size(&Target::Teams { url }).0 < 28_000);
}
