//! The form of a job. A fault stands at its field.

use carillon_domain::job::{MisfirePolicy, OnLost, Overlap};
use maud::{Markup, html};

use super::schema::{FlatField, Kind};
use crate::page::layout::sentence;
use crate::page::params::Params;
use crate::page::screens::parts::csrf;
use crate::page::screens::schedules::explain::{Asked, explained};
use crate::page::visit::Visit;
use carillon_json::FieldError;

/// A form to show.
pub(super) struct Form<'a> {
    pub visit: &'a Visit,
    /// Whether the job is there already: then its name stays.
    pub exists: bool,
    pub given: &'a Params,
    pub flat: &'a [FlatField],
    pub faults: &'a [FieldError],
}

impl Form<'_> {
    fn get(&self, path: &str) -> &str {
        self.given.get(path).unwrap_or_default()
    }

    /// The faults of a field, or of what stands in it.
    fn faults_of(&self, path: &str) -> impl Iterator<Item = &FieldError> {
        let inner = format!("{path}.");
        self.faults.iter().filter(move |fault| {
            let own = fault.field == path;
            // The params that have fields of their own tell their faults themselves.
            let own_field =
                fault.field.strip_prefix("params.").is_some_and(|name| self.flat.iter().any(|flat| flat.name == name));
            own || matches!(path, "params" | "labels") && fault.field.starts_with(&inner) && !own_field
                || path == "params" && fault.field.starts_with("params[")
        })
    }

    fn label(&self, path: &str, label: &str, note: &str) -> Markup {
        html! {
            label for=(path) { (label) @if !note.is_empty() { span.muted.plain-weight { " " (note) } } }
            @for fault in self.faults_of(path) {
                p.fault id=(format!("{path}-fault")) role="alert" { @if fault.field != path { code { (fault.field) } " " } (sentence(&fault.message)) }
            }
        }
    }

    fn described_by(&self, path: &str) -> Option<String> {
        self.faults_of(path).next().map(|_| format!("{path}-fault"))
    }

    fn text(&self, path: &str, label: &str, note: &str) -> Markup {
        html! {
            div.field {
                (self.label(path, label, note))
                input id=(path) name=(path) type="text" value=(self.get(path)) maxlength="1024" autocomplete="off" spellcheck="false"
                    aria-describedby=[self.described_by(path)] aria-invalid=[self.described_by(path).map(|_| "true")];
            }
        }
    }

    fn choice(&self, path: &str, label: &str, choices: &[(&str, &str)]) -> Markup {
        html! {
            div.field {
                (self.label(path, label, ""))
                select id=(path) name=(path) aria-describedby=[self.described_by(path)] {
                    @for (value, words) in choices { option value=(value) selected[self.get(path) == *value] { (words) } }
                }
            }
        }
    }

    fn area(&self, path: &str, label: &str, note: &str, rows: usize) -> Markup {
        html! {
            div.field.wide {
                (self.label(path, label, note))
                textarea id=(path) name=(path) rows=(rows) spellcheck="false" aria-describedby=[self.described_by(path)] { "\n" (self.get(path)) }
            }
        }
    }

    /// All of it.
    pub fn markup(&self) -> Markup {
        let visit = self.visit;
        html! {
            @for fault in self.faults.iter().filter(|fault| fault.field.is_empty()) { p.say.bad role="alert" { (sentence(&fault.message)) } }
            @if !self.faults.is_empty() { p.say.bad role="alert" { "It is not stored: " (self.faults.len()) " " (if self.faults.len() == 1 { "field is" } else { "fields are" }) " at fault." } }
            form.edit method="post" data-explain=(visit.links.to("/schedules")) {
                (csrf(visit))
                @if self.exists { input type="hidden" name="generation" value=(self.get("generation")); }
                (self.names())
                (self.schedule())
                (self.work())
                (self.policies())
                div.row {
                    button.primary name="do" value="review" { "Review" }
                    button name="do" value="check" { "Check" }
                }
            }
        }
    }

    fn names(&self) -> Markup {
        html! {
            @if self.exists {
                input type="hidden" name="name" value=(self.get("name"));
                input type="hidden" name="namespace" value=(self.get("namespace"));
            } @else {
                div.fields {
                    (self.text("name", "Name", ""))
                    (self.text("namespace", "Namespace", ""))
                }
            }
        }
    }

    fn schedule(&self) -> Markup {
        let (schedule, timezone) = (self.get("schedule"), self.given.get("timezone").map(str::trim));
        let key = format!("{}/{}", self.get("namespace"), self.get("name"));
        let read = (!schedule.is_empty()).then(|| Asked { schedule, timezone, key: &key }.read());
        html! {
            div.fields {
                (self.text("schedule", "Schedule", "such as 0 3 * * *"))
                (self.text("timezone", "Time zone", "empty: UTC"))
            }
            div #explained .group aria-live="polite" { @if let Some(Ok(schedule)) = &read { (explained(self.visit, schedule)) } }
        }
    }

    fn work(&self) -> Markup {
        let executors = self.visit.api.engine.executors();
        let chosen = self.get("executor");
        html! {
            div.fields {
                div.field {
                    (self.label("executor", "Executor", ""))
                    div.row {
                        select #executor name="executor" {
                            @if !chosen.is_empty() && !executors.contains_key(chosen) { option value=(chosen) selected { (chosen) " (not on this node)" } }
                            @for name in executors.keys() { option value=(name) selected[name == chosen] { (name) } }
                        }
                        button name="do" value="check" { "Show its fields" }
                    }
                }
            }
            div.fields { @for field in self.flat { (self.param(field)) } }
            (self.area("params", if self.flat.is_empty() { "Params" } else { "Other params" }, "a JSON object; secrets are not shown, and kept where they are left", 5))
        }
    }

    fn param(&self, field: &FlatField) -> Markup {
        let path = format!("params.{}", field.name);
        let note = if field.required && field.note.is_empty() { "required" } else { &field.note };
        match &field.kind {
            Kind::Text => {
                let rows = self.get(&path).lines().count().clamp(1, 14);
                html! {
                    div.field.wide[rows > 1 || field.name == "command"] {
                        (self.label(&path, &field.name, note))
                        textarea.low id=(path) name=(path) rows=(rows) spellcheck="false" aria-describedby=[self.described_by(&path)] { "\n" (self.get(&path)) }
                    }
                }
            }
            Kind::Number => self.text(&path, &field.name, note),
            Kind::Flag => self.choice(&path, &field.name, &[("", "not set"), ("true", "yes"), ("false", "no")]),
            Kind::Choice(words) => {
                let unset = (!field.required).then_some(("", "not set"));
                let choices: Vec<_> =
                    unset.into_iter().chain(words.iter().map(|word| (word.as_str(), word.as_str()))).collect();
                self.choice(&path, &field.name, &choices)
            }
        }
    }

    fn policies(&self) -> Markup {
        let overlap = Overlap::ALL.map(|policy| {
            (
                policy.as_str(),
                match policy {
                    Overlap::Skip => "skip: the due time does not run",
                    Overlap::Delay => "delay: it waits for the end",
                    Overlap::Replace => "replace: the living run is cancelled",
                    Overlap::Allow => "allow: both run",
                },
            )
        });
        let misfire = MisfirePolicy::ALL.map(|policy| {
            (
                policy.as_str(),
                match policy {
                    MisfirePolicy::Skip => "skip: it does not run any more",
                    MisfirePolicy::FireOnce => "fire once: the latest one runs",
                    MisfirePolicy::CatchUp => "catch up: the newest 100 run",
                },
            )
        });
        let on_lost = OnLost::ALL.map(|policy| {
            (
                policy.as_str(),
                match policy {
                    OnLost::Skip => "skip: at most one start",
                    OnLost::Rerun => "rerun: at least one start",
                },
            )
        });
        html! {
            div.fields {
                (self.choice("overlap", "If the previous run lives", &overlap))
                (self.choice("misfire.policy", "If it is missed", &misfire))
                (self.text("misfire.grace", "Late after", "such as 30s"))
                (self.text("timeout", "Timeout", "empty: none"))
                (self.text("retry.max_attempts", "Attempts", "1 to 100"))
                (self.text("retry.backoff", "Between attempts", "such as 10s"))
                (self.choice("on_lost", "If its node is lost", &on_lost))
            }
            (self.area("labels", "Labels", "KEY=VALUE, one a line", 2))
            details open[self.faults.iter().any(|fault| RARE.contains(&fault.field.as_str()))] {
                summary { "More" }
                div.fields {
                    (self.text("retry.max_backoff", "Longest time between attempts", ""))
                    (self.text("kill_grace", "Kill grace", "from the first signal to the last"))
                    (self.text("jitter", "Jitter", "up to 24h"))
                    (self.text("start_at", "Not before", "RFC 3339"))
                    (self.text("end_at", "Not after", "RFC 3339"))
                    (self.choice("dst.gap", "Times that a clock change skips", &[("after", "run right after"), ("skip", "do not run")]))
                    (self.choice("dst.overlap", "Times that occur twice", &[("first", "run once"), ("both", "run twice")]))
                    (self.text("expect.start_within", "Expected to start within", "from the due time on"))
                    (self.text("expect.finish_within", "Expected to succeed within", "from the due time on"))
                    (self.text("expect.finish_by", "Expected to succeed by", "a time of day, such as 06:00"))
                    (self.text("ping", "Monitor", "one URL, with /start and /fail below it"))
                    (self.text("ping.start", "Monitor: at the start", "or a URL for each"))
                    (self.text("ping.success", "Monitor: at a success", ""))
                    (self.text("ping.failure", "Monitor: at a failure", ""))
                }
            }
            @if !self.exists {
                label.check { input type="checkbox" name="paused" value="yes" checked[self.given.get("paused").is_some()]; " Begin paused" }
            }
        }
    }
}

/// The fields that few jobs need.
const RARE: [&str; 15] = [
    "retry.max_backoff",
    "kill_grace",
    "jitter",
    "start_at",
    "end_at",
    "dst.gap",
    "dst.overlap",
    "expect",
    "expect.start_within",
    "expect.finish_within",
    "expect.finish_by",
    "ping",
    "ping.start",
    "ping.success",
    "ping.failure",
];
