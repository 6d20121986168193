//! Messages: notices, and calls of monitors.

use carillon_domain::alert::{CronMail, Notice, NoticeId, PingCall, PingKind, State, When};
use serde_json::{Value, json};

use super::super::types::Message;
use super::{Fields, Read, maybe_ms, parse};
use crate::StoreResult;

/// The document of a message.
pub(crate) fn message_text(message: &Message) -> String {
    match message {
        Message::Notice(notice) => notice_text(notice),
        Message::Ping(ping) => ping_value(ping).to_string(),
    }
}

pub(super) fn ping_value(ping: &PingCall) -> Value {
    json!({
        "id": ping.id.to_string(),
        "job_id": ping.job.0,
        "run": ping.run.to_string(),
        "ping": ping.kind.as_str(),
        "url": ping.url,
        "at": ping.at.as_ms(),
    })
}

/// Reads a message.
pub(crate) fn message_from(text: &str) -> StoreResult<Message> {
    parse("a message", text, |fields| match fields.maybe("ping") {
        None => notice_from(fields).map(Box::new).map(Message::Notice),
        Some(_) => ping_from(fields).map(Message::Ping),
    })
}

fn notice_text(notice: &Notice) -> String {
    json!({
        "id": notice.id.to_string(),
        "route": notice.route,
        "when": notice.when.as_str(),
        "state": notice.state.as_str(),
        "namespace": notice.namespace,
        "job": notice.job,
        "part": notice.part,
        "run": notice.run.map(|run| run.to_string()),
        "due_at": maybe_ms(notice.due_at),
        "at": notice.at.as_ms(),
        "sentence": notice.sentence,
        "then": notice.then,
        "repeats": notice.repeats,
        "folded": notice.folded,
        "thread": notice.thread.to_string(),
        "with_output": notice.with_output,
        "cron": notice.cron_mail.as_ref().map(|cron| json!({ "user": cron.user, "command": cron.command })),
    })
    .to_string()
}

fn id(fields: &Fields<'_>, field: &str) -> Read<NoticeId> {
    fields.text(field)?.parse().map_err(|error| format!("{field}: {error}"))
}

fn notice_from(fields: &Fields<'_>) -> Read<Notice> {
    let cron =
        |cron: Fields<'_>| Ok::<_, String>(CronMail { user: cron.owned("user")?, command: cron.owned("command")? });
    Ok(Notice {
        id: id(fields, "id")?,
        route: fields.owned("route")?,
        when: fields.named("when", When::from_name)?,
        state: fields.named("state", |name| State::ALL.into_iter().find(|state| state.as_str() == name))?,
        namespace: fields.maybe_text("namespace"),
        job: fields.maybe_text("job"),
        part: fields.maybe_text("part"),
        run: fields.maybe_run("run")?,
        due_at: fields.maybe_at("due_at"),
        at: fields.at("at")?,
        sentence: fields.owned("sentence")?,
        then: fields.owned("then")?,
        repeats: fields.small("repeats")?,
        folded: fields.number("folded")?,
        thread: id(fields, "thread")?,
        with_output: fields.flag("with_output"),
        cron_mail: fields.maybe_object("cron").map(cron).transpose()?,
    })
}

pub(super) fn ping_from(fields: &Fields<'_>) -> Read<PingCall> {
    Ok(PingCall {
        id: id(fields, "id")?,
        job: fields.job("job_id")?,
        run: fields.run("run")?,
        kind: fields.named("ping", |name| PingKind::ALL.into_iter().find(|kind| kind.as_str() == name))?,
        url: fields.owned("url")?,
        at: fields.at("at")?,
    })
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::{JobId, RunId};
    use carillon_domain::time::Timestamp;

    use super::*;

    #[test]
    fn a_message_survives_its_document() {
        let id = NoticeId::derived(&["x"]);
        let notice = Notice {
            id,
            route: "ops".into(),
            when: When::Output,
            state: State::Recovered,
            namespace: Some("a".into()),
            job: Some("b".into()),
            part: Some("node n".into()),
            run: Some(RunId::from_parts(1, 2)),
            due_at: Some(Timestamp::from_ms(3)),
            at: Timestamp::from_ms(4),
            sentence: "So it is.".into(),
            then: "Nothing.".into(),
            repeats: 2,
            folded: 3,
            thread: id,
            with_output: true,
            cron_mail: Some(CronMail { user: "u".into(), command: "c".into() }),
        };
        let url = "https://hc-ping.com/x".to_owned();
        let (job, run, at) = (JobId(3), RunId::from_parts(1, 2), Timestamp::from_ms(4));
        let ping = PingCall { id, job, run, kind: PingKind::Failure, url, at };
        for message in [Message::Notice(notice.into()), Message::Ping(ping)] {
            assert_eq!(message_from(&message_text(&message)), Ok(message));
        }
    }
}
