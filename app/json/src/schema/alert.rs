//! Routes, deliveries and incidents.

use carillon_domain::alert::{Class, DeliveryState, PingKind, Route, State, Target, When};
use serde_json::{Value, json};

use super::{array, count, described, duration, name, object, or_null, page, reference, text, time};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let added = ["version", "created_at", "updated_at"];
    let mut given: Vec<(&str, Value)> = vec![
        ("name", or_null(name())),
        ("match", or_null(selection(true))),
        ("after", or_null(after())),
        ("repeat", or_null(duration())),
    ];
    given.extend(added.map(|name| (name, described(json!({}), "Added by reading; ignored."))));
    let put = object(&[("when", whens()), ("to", array(&target(true)))], &given);
    let route = object(
        &[
            ("name", name()),
            ("when", whens()),
            ("match", selection(false)),
            ("after", after()),
            ("repeat", or_null(duration())),
            ("to", array(&target(false))),
            ("version", count()),
            ("created_at", time()),
            ("updated_at", time()),
        ],
        &[],
    );
    let route = described(route, "A route. It may be put back as it was read: secrets that are not shown stay.");
    vec![
        ("AlertDefinition", described(put, "A route. Its name stands in the path.")),
        ("Alert", route),
        ("Alerts", object(&[("items", array(&reference("Alert")))], &[])),
        ("Delivery", delivery()),
        ("DeliveryPage", page("Delivery")),
        ("Deliveries", object(&[("items", array(&reference("Delivery")))], &[])),
        ("Incident", incident()),
        ("Incidents", object(&[("items", array(&reference("Incident")))], &[])),
    ]
}

fn whens() -> Value {
    json!({"type": "array", "items": {"enum": When::ALL.map(When::as_str)}, "minItems": 1})
}

fn after() -> Value {
    let after = json!({"type": "integer", "minimum": 1, "maximum": Route::MOST_AFTER, "default": 1});
    described(after, "How many runs must end badly in a row.")
}

fn selection(nulls: bool) -> Value {
    let names = |description| described(array(&text()), description);
    let labels = json!({"type": "object", "additionalProperties": text()});
    let mut parts = vec![
        ("namespaces", names("Jobs of any of these.")),
        ("labels", described(labels, "Jobs that have all of these.")),
        ("jobs", names("Jobs of any of these names; `*` stands for any characters.")),
    ];
    if nulls {
        parts = parts.into_iter().map(|(name, part)| (name, or_null(part))).collect();
        return object(&[], &parts);
    }
    object(&parts, &[])
}

/// A target as clients write it, or as they read it.
fn target(written: bool) -> Value {
    let of = |kind: &str, required: &[(&str, Value)], optional: &[(&str, Value)]| {
        let mut required = required.to_vec();
        required.insert(0, ("type", json!({"const": kind})));
        if !written {
            required.extend_from_slice(optional);
        }
        let optional: Vec<_> =
            optional.iter().filter(|_| written).map(|(name, schema)| (*name, or_null(schema.clone()))).collect();
        object(&required, &optional)
    };
    let url = json!({"type": "string", "maxLength": Target::MOST_BYTES});
    let url = described(url, "Read without what follows the host; put back so, the stored one stays.");
    let secret = described(json!({"type": "string"}), "Read as `secret`; put back so, the stored one stays.");
    let secret = if written { secret } else { or_null(secret) };
    let to = json!({"type": "array", "items": text(), "minItems": 1, "maxItems": Target::MOST_RECEIVERS});
    json!({"anyOf": [
        of("webhook", &[("url", url.clone())], &[("secret", secret)]),
        of("slack", &[("url", url.clone())], &[]),
        of("mattermost", &[("url", url.clone())], &[]),
        of("teams", &[("url", url)], &[]),
        of("mail", &[("to", to)], &[]),
        of("command", &[("command", text())], &[("timeout", duration())]),
    ]})
}

fn delivery() -> Value {
    let notice = object(
        &[
            ("id", text()),
            ("when", json!({"enum": When::ALL.map(When::as_str)})),
            ("state", json!({"enum": State::ALL.map(State::as_str)})),
            ("namespace", or_null(text())),
            ("job", or_null(text())),
            ("run", or_null(text())),
            ("due_at", or_null(time())),
            ("at", time()),
            ("sentence", text()),
            ("then", text()),
        ],
        &[],
    );
    let ping =
        object(&[("id", text()), ("kind", json!({"enum": PingKind::ALL.map(PingKind::as_str)})), ("run", text())], &[]);
    object(
        &[
            ("id", count()),
            ("route", or_null(text())),
            ("type", text()),
            ("host", text()),
            ("made_at", time()),
            ("state", json!({"enum": DeliveryState::NAMES})),
            ("tries", count()),
            ("next_at", or_null(time())),
            ("settled_at", or_null(time())),
            ("answer", or_null(text())),
            ("notice", or_null(notice)),
            ("ping", or_null(ping)),
        ],
        &[],
    )
}

fn incident() -> Value {
    object(
        &[
            ("route", text()),
            ("class", json!({"enum": Class::ALL.map(Class::as_str)})),
            ("namespace", or_null(text())),
            ("job", or_null(text())),
            ("part", or_null(text())),
            ("since", time()),
            ("count", count()),
            ("told_at", or_null(time())),
            ("tellings", count()),
            ("run", or_null(text())),
            ("due_at", or_null(time())),
            ("sentence", or_null(text())),
            ("then", or_null(text())),
        ],
        &[],
    )
}
