//! Incidents, storms, and calls of monitors that wait.

use std::collections::BTreeMap;

use carillon_domain::alert::{
    Class, HeldBack, HeldCall, Incident, IncidentKey, Part, State, Storm, SubjectKey, Telling, When,
};
use carillon_domain::firing::FiringKey;
use serde_json::{Value, json};

use super::message::{ping_from, ping_value};
use super::{Fields, Read, maybe_ms, parse};
use crate::StoreResult;
use crate::codec::trigger_from;

/// The document of an incident.
pub(crate) fn incident_text(incident: &Incident) -> String {
    let (job, part) = match &incident.key.subject {
        SubjectKey::Job(job) => (Some(job.0), None),
        SubjectKey::Cluster(part) => (None, Some(part_value(part))),
    };
    json!({
        "route": incident.key.route,
        "job_id": job,
        "subject": part,
        "class": incident.key.class.as_str(),
        "namespace": incident.namespace,
        "job": incident.job,
        "part": incident.part,
        "zone": incident.zone,
        "since": incident.since.as_ms(),
        "count": incident.count,
        "told_at": maybe_ms(incident.told_at),
        "tellings": incident.tellings,
        "last": incident.last.as_ref().map(telling_value),
        "held_back": incident.held_back.iter().map(held_value).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Reads an incident.
pub(crate) fn incident_from(text: &str) -> StoreResult<Incident> {
    parse("an incident", text, |fields| {
        let subject = match fields.maybe_object("subject") {
            Some(part) => SubjectKey::Cluster(part_from(&part)),
            None => SubjectKey::Job(fields.job("job_id")?),
        };
        Ok(Incident {
            key: IncidentKey {
                route: fields.owned("route")?,
                subject,
                class: fields.named("class", Class::from_name)?,
            },
            namespace: fields.maybe_text("namespace"),
            job: fields.maybe_text("job"),
            part: fields.maybe_text("part"),
            zone: fields.owned("zone")?,
            since: fields.at("since")?,
            count: fields.number("count")?,
            told_at: fields.maybe_at("told_at"),
            tellings: fields.small("tellings")?,
            last: fields.maybe_object("last").map(|telling| telling_from(&telling)).transpose()?,
            held_back: fields.list("held_back").iter().map(|held| held_from(&Fields(held))).collect::<Read<_>>()?,
        })
    })
}

pub(super) fn part_value(part: &Part) -> Value {
    json!({ "node": part.node, "thing": part.thing })
}

pub(super) fn part_from(fields: &Fields<'_>) -> Part {
    Part { node: fields.maybe_text("node"), thing: fields.maybe_text("thing") }
}

fn telling_value(telling: &Telling) -> Value {
    json!({
        "when": telling.when.as_str(),
        "run": telling.run.map(|run| run.to_string()),
        "due_at": maybe_ms(telling.due_at),
        "sentence": telling.sentence,
        "then": telling.then,
        "has_output": telling.has_output,
    })
}

fn telling_from(fields: &Fields<'_>) -> Read<Telling> {
    Ok(Telling {
        when: fields.named("when", When::from_name)?,
        run: fields.maybe_run("run")?,
        due_at: fields.maybe_at("due_at"),
        sentence: fields.owned("sentence")?,
        then: fields.owned("then")?,
        has_output: fields.flag("has_output"),
    })
}

/// The document of calls that wait.
pub(crate) fn held_calls_text(held: &[HeldCall]) -> String {
    let call = |held: &HeldCall| {
        let mut value = firing_value(held.firing);
        value["attempt"] = held.attempt.into();
        value["look_at"] = held.look_at.as_ms().into();
        value["call"] = ping_value(&held.call);
        value
    };
    json!({ "held_calls": held.iter().map(call).collect::<Vec<_>>() }).to_string()
}

/// Reads calls that wait.
pub(crate) fn held_calls_from(text: &str) -> StoreResult<Vec<HeldCall>> {
    let call = |held: &Value| {
        let held = Fields(held);
        let (firing, attempt) = (firing_from(&held)?, held.small("attempt")?);
        Ok(HeldCall { firing, attempt, look_at: held.at("look_at")?, call: ping_from(&held.object("call")?)? })
    };
    parse("a call that waits", text, |fields| fields.list("held_calls").iter().map(call).collect())
}

fn firing_value(FiringKey { job, due_at, trigger }: FiringKey) -> Value {
    json!({ "job_id": job.0, "due_at": due_at.as_ms(), "trigger": trigger.as_str() })
}

fn firing_from(fields: &Fields<'_>) -> Read<FiringKey> {
    Ok(FiringKey {
        job: fields.job("job_id")?,
        due_at: fields.at("due_at")?,
        trigger: fields.named("trigger", |name| trigger_from(name).ok())?,
    })
}

fn held_value(held: &HeldBack) -> Value {
    let mut value = firing_value(held.firing);
    value["attempt"] = held.attempt.into();
    value["at"] = held.at.as_ms().into();
    value["look_at"] = held.look_at.as_ms().into();
    value["telling"] = telling_value(&held.telling);
    value
}

fn held_from(fields: &Fields<'_>) -> Read<HeldBack> {
    Ok(HeldBack {
        firing: firing_from(fields)?,
        attempt: fields.small("attempt")?,
        at: fields.at("at")?,
        look_at: fields.at("look_at")?,
        telling: telling_from(&fields.object("telling")?)?,
    })
}

/// A storm as a part of the cursor.
pub(crate) fn storm_value(storm: &Storm) -> Value {
    let folded = storm.folded.iter().map(|((when, state), count)| json!([when.as_str(), state.as_str(), count]));
    json!({
        "since": storm.since.as_ms(),
        "told": storm.told,
        "folded": folded.collect::<Vec<_>>(),
        "names": storm.names,
    })
}

/// Reads a storm.
pub(crate) fn storm_from(fields: &Fields<'_>) -> Read<Storm> {
    let folded = |entry: &Value| {
        let name = |place: usize| entry.get(place).and_then(Value::as_str);
        let state = |name| State::ALL.into_iter().find(|state| state.as_str() == name);
        let key = name(0).and_then(When::from_name).zip(name(1).and_then(state));
        key.zip(entry.get(2).and_then(Value::as_u64)).ok_or_else(|| "a part of a storm is not known".to_owned())
    };
    Ok(Storm {
        since: fields.at("since")?,
        told: fields.small("told")?,
        folded: fields.list("folded").iter().map(folded).collect::<Read<BTreeMap<_, _>>>()?,
        names: fields.texts("names"),
    })
}

#[cfg(test)]
mod tests {
    use carillon_domain::alert::{NoticeId, PingCall, PingKind};
    use carillon_domain::id::{JobId, RunId};
    use carillon_domain::run::Trigger;
    use carillon_domain::time::Timestamp;

    use super::*;

    #[test]
    fn an_incident_survives_its_document() {
        let telling = Telling {
            when: When::TimedOut,
            run: Some(RunId::from_parts(7, 9)),
            due_at: Some(Timestamp::from_ms(5)),
            sentence: "It \"failed\".".into(),
            then: "Look.".into(),
            has_output: true,
        };
        let firing = FiringKey { job: JobId(3), due_at: Timestamp::from_ms(5), trigger: Trigger::Misfire };
        let (at, look_at) = (Timestamp::from_ms(6), Timestamp::from_ms(66));
        let held = HeldBack { firing, attempt: 2, at, look_at, telling: telling.clone() };
        let of_job = Incident {
            key: IncidentKey { route: "ops".into(), subject: SubjectKey::Job(JobId(3)), class: Class::Outcome },
            namespace: Some("a".into()),
            job: Some("b".into()),
            part: None,
            zone: "Europe/Berlin".into(),
            since: Timestamp::from_ms(1),
            count: 4,
            told_at: Some(Timestamp::from_ms(2)),
            tellings: 2,
            last: Some(telling),
            held_back: vec![held],
        };
        let part = Part { node: Some("n".into()), thing: Some("/var".into()) };
        let key = IncidentKey { subject: SubjectKey::Cluster(part), class: Class::DiskFull, ..of_job.key.clone() };
        let of_cluster = Incident { key, told_at: None, last: None, held_back: Vec::new(), ..of_job.clone() };
        for incident in [of_job, of_cluster] {
            assert_eq!(incident_from(&incident_text(&incident)), Ok(incident));
        }
    }

    #[test]
    fn calls_that_wait_survive_their_document() {
        let firing = FiringKey { job: JobId(3), due_at: Timestamp::from_ms(5), trigger: Trigger::Manual };
        let call = PingCall {
            id: NoticeId::derived(&["x"]),
            job: JobId(3),
            run: RunId::from_parts(7, 9),
            kind: PingKind::Failure,
            url: "https://hc-ping.com/x/fail".into(),
            at: Timestamp::from_ms(6),
        };
        let held = vec![HeldCall { firing, attempt: 2, look_at: Timestamp::from_ms(66), call }; 2];
        assert_eq!(held_calls_from(&held_calls_text(&held)), Ok(held));
        assert!(held_calls_from("{\"held_calls\": [{}]}").is_err());
    }

    #[test]
    fn a_storm_survives_its_document() {
        let storm = Storm {
            since: Timestamp::from_ms(9),
            told: 20,
            folded: [((When::Failed, State::Open), 4), ((When::Lost, State::Recovered), 1)].into(),
            names: vec!["a/b".into()],
        };
        assert_eq!(storm_from(&Fields(&storm_value(&storm))), Ok(storm));
    }
}
