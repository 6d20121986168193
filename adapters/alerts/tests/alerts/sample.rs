//! Notices as the domain makes them.

use carillon_alerts::{AlertsConfig, Extra, Payload, Post, render};
use carillon_domain::alert::{CronMail, Notice, NoticeId, State, Target, When};
use carillon_domain::time::Timestamp;

/// 2026-11-24T02:00:07Z.
pub const AT: Timestamp = Timestamp::from_secs(1_795_485_607);

pub const SLACK: &str = "https://hooks.slack.com/services/T000/B000/sEcReT";

pub fn failed() -> Notice {
    Notice {
        id: NoticeId::derived(&["ops", "billing/invoice", "failed", "1"]),
        route: "ops".into(),
        when: When::Failed,
        state: State::Open,
        namespace: Some("billing".into()),
        job: Some("invoice".into()),
        part: None,
        run: Some("8123456789abcdef-2a".parse().unwrap()),
        due_at: Some(Timestamp::from_secs(1_795_485_600)),
        at: AT,
        sentence:
            "Job billing/invoice failed at 02:00:07 UTC on 24 November: exit code 3 after 7 s. It is the 3rd failure \
                   in a row."
                .into(),
        then: "See its output, then run it again: carillon job run invoice --namespace billing.".into(),
        repeats: 0,
        folded: 0,
        thread: NoticeId::derived(&["ops", "billing/invoice"]),
        with_output: true,
        cron_mail: None,
    }
}

pub fn recovered() -> Notice {
    Notice {
        id: NoticeId::derived(&["ops", "billing/invoice", "recovered", "2"]),
        state: State::Recovered,
        sentence: "Job billing/invoice succeeded at 03:00:02 UTC on 24 November, after 3 failures in a row.".into(),
        then: "Nothing is to be done.".into(),
        ..failed()
    }
}

pub fn of_cron() -> Notice {
    let cron = CronMail { user: "backup".into(), command: "/usr/local/bin/backup --all".into() };
    Notice { when: When::Output, cron_mail: Some(cron), ..failed() }
}

pub fn extra() -> Extra {
    Extra {
        output_tail: Some("connecting to db.internal\nerror: table <invoices> & views are locked\n".into()),
        link: Some("https://carillon.example.org/runs/8123456789abcdef-2a".into()),
        host: Some("node-1".into()),
    }
}

pub fn webhook(url: &str, secret: Option<&str>) -> Post {
    let target = Target::Webhook { url: url.into(), secret: secret.map(Into::into) };
    match render(&failed(), &extra(), &target) {
        Some(Payload::Post(post)) => post,
        other => panic!("{other:?}"),
    }
}

/// Receivers on this machine, and timeouts that a test can wait for.
pub fn config() -> AlertsConfig {
    let quick = std::time::Duration::from_millis(400);
    AlertsConfig { timeout: quick, connect_timeout: quick, ..AlertsConfig::default() }
}
