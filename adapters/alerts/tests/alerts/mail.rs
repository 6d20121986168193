//! Mail to a real server: TLS, logins, refusals, and how mails look when they have arrived.

use carillon_alerts::{AlertsConfig, Login, Mail, MailConfig, Outcome, Payload, Sender, render};
use carillon_domain::alert::{Answer, Notice, Target};

use super::mail_server::{Breaks, MailServer, breaking};
use super::sample::{AT, config, extra, failed, of_cron, recovered};

fn mail(notice: &Notice, to: &[&str]) -> Mail {
    let target = Target::Mail { to: to.iter().map(|&to| to.to_owned()).collect() };
    match render(notice, &extra(), &target) {
        Some(Payload::Mail(mail)) => mail,
        other => panic!("{other:?}"),
    }
}

fn is_delivered(outcome: &Outcome) -> bool {
    matches!(outcome.answer, Answer::Delivered { .. })
}

fn refused(outcome: &Outcome) -> Option<bool> {
    match outcome.answer {
        Answer::Refused { permanent, .. } => Some(permanent),
        Answer::Delivered { .. } | Answer::Partly { .. } | Answer::Unknown { .. } => None,
    }
}

fn header<'a>(mail: &'a str, name: &str) -> &'a str {
    let prefix = format!("{name}: ");
    mail.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no {name} in {mail}"))
}

#[tokio::test]
async fn mails_arrive_over_starttls_as_they_look() {
    let Some(mut server) = MailServer::start("starttls", None) else { return };
    let sender = server.sender("smtp://localhost:PORT", |_| {});
    let outcome = sender.mail(&mail(&failed(), &["ops@example.org", "root"]), AT).await;
    assert!(is_delivered(&outcome), "{}", outcome.words());
    let words = format!("The mail server localhost:{} took it for ops@example.org, root.", server.port);
    assert_eq!(outcome.words(), words);

    let first = server.mail();
    assert_eq!(first["tls"], true);
    assert_eq!(first["from"], "carillon@example.org");
    assert_eq!(first["to"], serde_json::json!(["ops@example.org", "root@example.org"]));
    assert_eq!(first["hello"], "node-1.example.org");
    let first = first["mail"].as_str().unwrap().replace("\r\n", "\n");
    super::looks::held("mail.eml", &first);

    // The next mail of the incident stands beside it, and says in its subject that all is well.
    assert!(is_delivered(&sender.mail(&mail(&recovered(), &["ops@example.org"]), AT).await));
    let second = server.mail()["mail"].as_str().unwrap().replace("\r\n", "\n");
    for name in ["References", "In-Reply-To"] {
        assert_eq!(header(&first, name), header(&second, name));
    }
    assert_ne!(header(&first, "Message-ID"), header(&second, "Message-ID"));

    assert!(is_delivered(&sender.mail(&mail(&of_cron(), &["root"]), AT).await));
    super::looks::held("cron.eml", &server.mail()["mail"].as_str().unwrap().replace("\r\n", "\n"));
}

#[tokio::test]
async fn smtps_and_a_login_by_the_url_or_by_keys() {
    let Some(mut server) = MailServer::start("smtps", Some("ops@example.org:hunter2")) else { return };
    let by_url = server.sender("smtps://ops%40example.org:hunter2@localhost:PORT", |_| {});
    let login = |password: &str| Login { user: "ops@example.org".into(), password: password.into() };
    let by_keys = server.sender("smtps://localhost:PORT", |mail| mail.login = Some(login("hunter2")));
    for sender in [by_url, by_keys] {
        let outcome = sender.mail(&mail(&failed(), &["ops@example.org"]), AT).await;
        assert!(is_delivered(&outcome), "{}", outcome.words());
        let mail = server.mail();
        assert_eq!((&mail["tls"], &mail["user"]), (&true.into(), &"ops@example.org".into()));
    }
    // A wrong password is a fault of the configuration: the mail waits until it is put right.
    let wrong = server.sender("smtps://localhost:PORT", |mail| mail.login = Some(login("sEcReT")));
    let outcome = wrong.mail(&mail(&failed(), &["ops@example.org"]), AT).await;
    assert_eq!(refused(&outcome), Some(false));
    let words = outcome.words();
    assert!(words.contains("does not let the user \"ops@example.org\" in") && !words.contains("sEcReT"), "{words}");
}

#[tokio::test]
async fn an_untrusted_server_gets_nothing() {
    let Some(server) = MailServer::start("starttls", None) else { return };
    let mail_config = MailConfig::new(&format!("smtp://localhost:{}", server.port), "a@example.org", "node").unwrap();
    let outcome = Sender::new(&AlertsConfig::default(), Some(&mail_config))
        .unwrap()
        .mail(&mail(&failed(), &["ops@example.org"]), AT)
        .await;
    assert_eq!(refused(&outcome), Some(false));
    assert!(outcome.words().contains("TLS failed"), "{}", outcome.words());
}

#[tokio::test]
async fn a_server_elsewhere_without_starttls_gets_nothing_unless_the_operator_says_so() {
    let Some(mut server) = MailServer::start("plain", None) else { return };
    // This spelling of 127.0.0.1 is not recognised as one, so it stands for another machine.
    let url = "smtp://127.1:PORT";
    let refusing = server.sender(url, |_| {});
    let outcome = refusing.mail(&mail(&failed(), &["ops@example.org"]), AT).await;
    assert_eq!(refused(&outcome), Some(false));
    assert!(outcome.words().contains("offers no STARTTLS"), "{}", outcome.words());
    let allowed = server.sender(url, |mail| mail.plaintext = true);
    assert!(is_delivered(&allowed.mail(&mail(&failed(), &["ops@example.org"]), AT).await));
    assert_eq!(server.mail()["tls"], false);
    let own_machine = server.sender("smtp://127.0.0.1:PORT", |_| {});
    assert!(is_delivered(&own_machine.mail(&mail(&failed(), &["ops@example.org"]), AT).await));
}

#[tokio::test]
async fn a_receiver_that_is_refused_does_not_hinder_the_others() {
    let Some(mut server) = MailServer::start("plain", None) else { return };
    let sender = server.sender("smtp://127.0.0.1:PORT", |_| {});
    let outcome = sender.mail(&mail(&failed(), &["unknown", "ops@example.org", "full@x.org"]), AT).await;
    let Answer::Partly { refused: alone, .. } = &outcome.answer else { panic!("{outcome:?}") };
    let alone: Vec<(&str, bool)> = alone.iter().map(|refused| (refused.to.as_str(), refused.permanent)).collect();
    assert_eq!(alone, [("unknown", true), ("full@x.org", false)], "as the target names them");
    assert_eq!(server.mail()["to"], serde_json::json!(["ops@example.org"]));
    let words = outcome.words();
    assert!(words.contains("took it for ops@example.org. It refused unknown (550") && words.contains("full@x.org"));

    for (to, permanent) in [("unknown@x.org", true), ("full@x.org", false)] {
        let outcome = sender.mail(&mail(&failed(), &[to]), AT).await;
        assert_eq!(refused(&outcome), Some(permanent), "{}", outcome.words());
    }
    let spam = Notice { sentence: "please refuse this text".into(), ..failed() };
    let outcome = sender.mail(&mail(&spam, &["ops@example.org"]), AT).await;
    assert_eq!(refused(&outcome), Some(true));
    assert!(outcome.words().contains("refused the mail (554 "), "{}", outcome.words());
}

#[tokio::test]
async fn no_text_adds_a_header_or_ends_the_mail() {
    let Some(mut server) = MailServer::start("plain", None) else { return };
    let sender = server.sender("smtp://127.0.0.1:PORT", |_| {});
    let evil = "x\r\nBcc: eve@example.org\r\n\r\n.\r\nMAIL FROM:<eve@example.org>\r\n";
    let notice =
        Notice { job: Some(evil.into()), route: evil.into(), sentence: evil.into(), then: evil.into(), ..failed() };
    let mut hostile = mail(&notice, &["ops@example.org"]);
    hostile.subject = evil.into();
    hostile.sender = evil.into();
    hostile.headers.push(("X-Evil".into(), evil.into()));
    hostile.headers.push((evil.into(), "a name".into()));
    hostile.body.text = format!("before\n.\n..\n.\r\n{evil}after");
    let outcome = sender.mail(&hostile, AT).await;
    assert!(is_delivered(&outcome), "{}", outcome.words());
    let arrived = server.mail();
    assert_eq!(arrived["to"], serde_json::json!(["ops@example.org"]));
    let text = arrived["mail"].as_str().unwrap();
    let (headers, _) = text.split_once("\r\n\r\n").unwrap();
    assert!(!headers.lines().any(|line| line.to_ascii_lowercase().starts_with("bcc")), "{headers}");
    assert!(text.contains("\r\nafter\r\n") || text.contains("after"), "{text}");

    for to in ["a@example.org\r\nRCPT TO:<eve@example.org>", "a b@example.org", "", "<a@example.org>"] {
        let mut bad = hostile.clone();
        bad.to = vec![to.into()];
        let outcome = sender.mail(&bad, AT).await;
        assert_eq!(refused(&outcome), Some(true), "{to:?}: {}", outcome.words());
    }
}

#[tokio::test]
async fn the_outcome_is_unknown_only_after_the_dot() {
    for (breaks, unknown) in [
        (Breaks::BeforeTheGreeting, false),
        (Breaks::AtTheSender, false),
        (Breaks::AfterTheDot, true),
        (Breaks::HangsAfterTheDot, true),
    ] {
        let port = breaking(breaks).await;
        let server = MailConfig::new(&format!("smtp://127.0.0.1:{port}"), "a@example.org", "node").unwrap();
        let sender = Sender::new(&config(), Some(&server)).unwrap();
        let outcome = sender.mail(&mail(&failed(), &["ops@example.org"]), AT).await;
        let is = matches!(outcome.answer, Answer::Unknown { .. });
        assert_eq!(is, unknown, "{}", outcome.words());
        assert!(is || refused(&outcome) == Some(false), "{}", outcome.words());
    }
}

#[tokio::test]
async fn a_node_without_a_mail_server_says_so() {
    let outcome = Sender::new(&config(), None).unwrap().mail(&mail(&failed(), &["ops@example.org"]), AT).await;
    assert_eq!(refused(&outcome), Some(false));
    assert!(outcome.words().contains("mail.smtp"), "{}", outcome.words());
}
