//! The parts of a definition that decide who is told: `expect` and `ping`.

use carillon_domain::alert::{Expect, Ping, PingKind};
use carillon_domain::duration;
use serde_json::{Map, Value, json};

use crate::Fields;
use crate::fields::TextOrObject;

/// Reads the expectations. They need no field of their own for a schedule: every job has one.
pub(super) fn expect(fields: &mut Fields) -> Option<Expect> {
    let mut inner = fields.object("expect")?;
    let bounds = Expect::LEAST..=Expect::MOST;
    let expect = Expect {
        start_within: inner.duration("start_within", bounds.clone()),
        finish_within: inner.duration("finish_within", bounds),
        finish_by: inner.text("finish_by").and_then(|text| match text.parse() {
            Ok(time_of_day) => Some(time_of_day),
            Err(error) => {
                let error: carillon_domain::alert::BadTimeOfDay = error;
                inner.fault("finish_by", error.to_string());
                None
            }
        }),
    };
    // A field that is there and faulty has its sentence already.
    if !inner.is_faulty()
        && let Err((field, message)) = expect.check()
    {
        inner.fault(field, message);
    }
    inner.refuse_rest();
    Some(expect)
}

/// Reads the monitor: one address for all, or an object with one for each.
pub(super) fn ping(fields: &mut Fields) -> Option<Ping> {
    let (ping, inner) = match fields.text_or_object("ping", "a URL or an object")? {
        TextOrObject::Text(url) => (Ping::of_url(&url), None),
        TextOrObject::Object(mut inner) => {
            let [start, success, failure] = PingKind::ALL.map(|kind| inner.text(kind.as_str()));
            (Ping { start, success, failure }, Some(inner))
        }
    };
    let faulty = inner.as_ref().is_some_and(Fields::is_faulty);
    match (ping.check(), &inner) {
        (Err((field, message)), Some(inner)) if !faulty => inner.fault(field, message),
        (Err((_, message)), None) => fields.fault("ping", message),
        _ => {}
    }
    if let Some(inner) = inner {
        inner.refuse_rest();
    }
    Some(ping)
}

/// The expectations as they are written: only those that are given.
pub fn expect_json(expect: &Expect) -> Value {
    let mut out = Map::new();
    for (field, within) in [("start_within", expect.start_within), ("finish_within", expect.finish_within)] {
        out.extend(within.map(|within| (field.to_owned(), json!(duration::format(within)))));
    }
    out.extend(expect.finish_by.map(|by| ("finish_by".to_owned(), json!(by.to_string()))));
    Value::Object(out)
}

/// The monitor as it is written: one address if all follow from it.
pub fn ping_json(ping: &Ping) -> Value {
    if let Some(url) = ping.as_url() {
        return json!(url);
    }
    let given = PingKind::ALL.into_iter().filter_map(|kind| Some((kind.as_str().to_owned(), json!(ping.url(kind)?))));
    Value::Object(given.collect())
}
