//! A route as a form. It has a row for each target, and two more.

use carillon_domain::alert::{Route, Target, When};
use carillon_store::alerts::AlertError;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use warp::http::StatusCode;

use crate::config::Role;
use crate::http::problem::Problem;
use crate::http::routes::alerts::{allowed, visible};
use crate::page::answer::see_other;
use crate::page::layout::{Shown, View, sentence};
use crate::page::params::Params;
use crate::page::screens::parts::csrf;
use crate::page::visit::{Fault, Request, Visit};
use carillon_json::{FieldError, route_json, route_of};

/// How many empty rows there are for further targets.
const SPARE: usize = 2;

/// The form of a new route.
pub(crate) async fn new(visit: &Visit) -> Result<View, Fault> {
    let start = json!({"when": ["failed", "timed_out", "lost", "late_start", "late_finish", "recovered"], "after": 1});
    Ok(shown(visit, None, &filled(&start), &[]))
}

/// The form of a route that there is.
pub(crate) async fn edit(visit: &Visit, name: &str) -> Result<View, Fault> {
    let stored = visit.api.store.route(name).await?;
    visible(&visit.caller, &stored.route)?;
    let given = filled(&route_json(&stored.route)).with("version", Some(&stored.version.to_string()));
    Ok(shown(visit, Some(name), &given, &[]))
}

/// Takes the form: stores the route, or shows the faults at their fields.
pub(crate) async fn take(request: &mut Request, name: Option<&str>) -> Result<Shown, Fault> {
    let (visit, form) = request.form(Role::Admin).await?;
    let wanted = name.or(form.get("name")).unwrap_or_default().to_owned();
    let stored = match name {
        None => None,
        Some(name) => {
            let stored = visit.api.store.route(name).await?;
            visible(&visit.caller, &stored.route)?;
            Some(stored.route)
        }
    };
    let again = |visit: Visit, faults: &[FieldError]| {
        let view = shown(&visit, name, &form.with("csrf", None), faults);
        Ok(Shown::View(Box::new(visit), Box::new(view)))
    };
    let route = match route_of(body(&form), &wanted, stored.as_ref()) {
        Ok(route) => route,
        Err(faults) => return again(visit, &faults),
    };
    allowed(&visit.caller, &route)?;
    // A new route takes no name that there is, and a changed one is still as it was shown.
    let version = form.get("version").and_then(|text| text.parse().ok()).unwrap_or(0);
    match visit.api.store.put_route(&route, Some(version), &visit.author).await {
        Ok(_) => {
            visit.api.alerts.wake();
            Ok(Shown::Response(see_other(&visit.links.to("/alerts?said=saved"))))
        }
        Err(AlertError::Stale { expected: 0, .. }) => {
            again(visit, &[FieldError::new("name", "there is a route of this name already")])
        }
        Err(AlertError::Stale { .. }) => {
            let detail = "somebody else changed the route meanwhile: open it again and repeat the change";
            Err(Problem::new(StatusCode::CONFLICT, detail).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A route as the fields of its form.
fn filled(route: &Value) -> Params {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| pairs.push((key.to_owned(), value));
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    texts(&route["when"]).into_iter().for_each(|when| add("when", when));
    add("namespaces", texts(&route["match"]["namespaces"]).join(", "));
    add("jobs", texts(&route["match"]["jobs"]).join(", "));
    let labels = route["match"]["labels"].as_object().into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    add("labels", labels.join(", "));
    add("after", route["after"].to_string());
    add("repeat", route["repeat"].as_str().unwrap_or_default().to_owned());
    for (place, target) in route["to"].as_array().into_iter().flatten().enumerate() {
        let text = |key: &str| target[key].as_str().unwrap_or_default().to_owned();
        add(&format!("to.{place}.type"), text("type"));
        let at = match target["to"].is_array() {
            true => texts(&target["to"]).join(", "),
            false => text("url") + &text("command"),
        };
        add(&format!("to.{place}.at"), at);
        add(&format!("to.{place}.secret"), text("secret"));
        add(&format!("to.{place}.timeout"), text("timeout"));
    }
    Params::of(pairs)
}

/// The form as the API takes it. Rows without an address are left out.
fn body(form: &Params) -> Value {
    let list = |text: &str| -> Vec<String> {
        text.split([',', '\n']).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    };
    let of = |key: &str| list(form.get(key).unwrap_or_default());
    let labels: Map<String, Value> = of("labels")
        .iter()
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.trim().to_owned(), json!(value.trim())))
        .collect();
    let after = form.get("after").map_or(json!(1), |text| text.trim().parse::<u32>().map_or(json!(text), |n| json!(n)));
    json!({
        "when": form.all("when").collect::<Vec<_>>(),
        "match": {"namespaces": of("namespaces"), "jobs": of("jobs"), "labels": labels},
        "after": after,
        "repeat": form.get("repeat").map(str::trim),
        "to": rows(form).iter().map(|row| target(form, *row, &list)).collect::<Vec<_>>(),
    })
}

/// The rows that name a target, in order.
fn rows(form: &Params) -> Vec<usize> {
    (0..Route::MOST_TARGETS).filter(|row| form.get(&format!("to.{row}.at")).is_some()).collect()
}

fn target(form: &Params, row: usize, list: &dyn Fn(&str) -> Vec<String>) -> Value {
    let get = |key: &str| form.get(&format!("to.{row}.{key}")).map(str::trim).filter(|text| !text.is_empty());
    let (kind, at) = (get("type").unwrap_or_default(), get("at").unwrap_or_default());
    let mut target = json!({"type": kind});
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            target[key] = value;
        }
    };
    match kind {
        "mail" => put("to", Some(json!(list(at)))),
        "command" => {
            put("command", Some(json!(at)));
            put("timeout", get("timeout").map(|text| json!(text)));
        }
        _ => put("url", Some(json!(at))),
    }
    // A key for a target that takes none is told to be wrong.
    put("secret", get("secret").map(|text| json!(text)));
    target
}

fn shown(visit: &Visit, name: Option<&str>, given: &Params, faults: &[FieldError]) -> View {
    let title = name.map_or_else(|| "New route".to_owned(), |name| format!("Route {name}"));
    let form = Form { visit, given, faults, rows: rows(given) };
    let body = html! {
        p { a href=(visit.links.to("/alerts")) { "← Alerts" } }
        h1 { (title) }
        (form.markup(name))
    };
    let (path, cli) = match name {
        Some(name) => (format!("/v1/alerts/{name}"), format!("carillon alert show {name}")),
        None => ("/v1/alerts".to_owned(), "carillon alert put FILE".to_owned()),
    };
    View::new(title, body).otherwise(path, cli)
}

struct Form<'a> {
    visit: &'a Visit,
    given: &'a Params,
    faults: &'a [FieldError],
    /// The rows that name a target: the API counts these only.
    rows: Vec<usize>,
}

impl Form<'_> {
    fn markup(&self, name: Option<&str>) -> Markup {
        html! {
            @if !self.faults.is_empty() { p.say.bad role="alert" { "It is not stored: look at the fields." } }
            form.edit method="post" {
                (csrf(self.visit))
                @if let Some(version) = self.given.get("version") { input type="hidden" name="version" value=(version); }
                @if name.is_none() { div.fields { (self.text("name", "Name", "such as ops", "name")) } }
                (self.whens())
                fieldset.group {
                    legend { "Of which jobs" }
                    p.note { "Empty fields mean every job, and the cluster. Several stand with commas between; * is for any characters." }
                    div.fields {
                        (self.text("namespaces", "Namespaces", "such as billing", "match.namespaces"))
                        (self.text("jobs", "Jobs", "such as backup-*", "match.jobs"))
                        (self.text("labels", "Labels", "such as team=data", "match.labels"))
                    }
                }
                div.fields {
                    (self.text("after", "After so many failures in a row", "", "after"))
                    (self.text("repeat", "Again while it is open", "such as 4h", "repeat"))
                }
                fieldset.group {
                    legend { "To" }
                    (self.told("to"))
                    @for row in 0..self.count() { (self.target(row)) }
                }
                div.row { button.primary { "Save" } }
            }
        }
    }

    fn count(&self) -> usize {
        (self.rows.last().map_or(0, |last| last + 1) + SPARE).min(Route::MOST_TARGETS)
    }

    fn whens(&self) -> Markup {
        let chosen: Vec<&str> = self.given.all("when").collect();
        html! {
            fieldset.group {
                legend { "When" }
                (self.told("when"))
                div.row {
                    @for when in When::ALL {
                        label.check { input type="checkbox" name="when" value=(when.as_str()) checked[chosen.contains(&when.as_str())]; " " (when.as_str()) }
                    }
                }
            }
        }
    }

    fn target(&self, row: usize) -> Markup {
        let key = |part: &str| format!("to.{row}.{part}");
        let kind = self.given.get(&key("type")).unwrap_or("webhook");
        let place = self.rows.iter().position(|named| *named == row);
        let number = row + 1;
        html! {
            @if let Some(place) = place { (self.told_inside(&format!("to[{place}]"))) }
            div.fields.target {
                div.field {
                    label for=(key("type")) { "Target " (number) }
                    select id=(key("type")) name=(key("type")) {
                        @for known in Target::KINDS { option value=(known) selected[known == kind] { (known) } }
                    }
                }
                (self.input(&key("at"), "Where", "URL, addresses, or command"))
                (self.input(&key("secret"), "Key", "of a webhook"))
                (self.input(&key("timeout"), "Timeout", "of a command"))
            }
        }
    }

    fn text(&self, key: &str, label: &str, note: &str, field: &str) -> Markup {
        html! { div.group { (self.told_inside(field)) (self.input(key, label, note)) } }
    }

    fn input(&self, key: &str, label: &str, note: &str) -> Markup {
        html! {
            div.field {
                label for=(key) { (label) @if !note.is_empty() { span.muted.plain-weight { " " (note) } } }
                input id=(key) name=(key) type="text" value=(self.given.get(key).unwrap_or_default()) maxlength="4096" autocomplete="off" spellcheck="false";
            }
        }
    }

    /// The faults of a field.
    fn told(&self, field: &str) -> Markup {
        self.list(|fault| fault.field == field)
    }

    /// The same, with those of its parts.
    fn told_inside(&self, field: &str) -> Markup {
        let inner = format!("{field}.");
        self.list(|fault| fault.field == field || fault.field.starts_with(&inner))
    }

    fn list(&self, fits: impl Fn(&FieldError) -> bool) -> Markup {
        html! { @for fault in self.faults.iter().filter(|fault| fits(fault)) { p.fault role="alert" { code { (fault.field) } " " (sentence(&fault.message)) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_survives_its_form() {
        let route = json!({
            "when": ["failed", "recovered"], "match": {"namespaces": ["a", "b"], "labels": {"team": "data"}, "jobs": ["x*"]},
            "after": 2, "repeat": "4h",
            "to": [
                {"type": "webhook", "url": "https://example.org/x", "secret": "hush"},
                {"type": "mail", "to": ["a@b.org", "c@d.org"]},
                {"type": "command", "command": "logger", "timeout": "5s"},
            ],
        });
        let wanted = route_of(route.clone(), "ops", None).unwrap();
        assert_eq!(route_of(body(&filled(&route)), "ops", None), Ok(wanted));
    }

    #[test]
    fn rows_without_an_address_are_no_targets() {
        let form = Params::parse("when=failed&to.0.type=webhook&to.1.type=mail&to.1.at=root");
        assert_eq!(body(&form)["to"], json!([{"type": "mail", "to": ["root"]}]));
    }
}
