//! Routes: who is told of which facts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::name::{check_label_key, check_label_value, check_namespace, check_route_name, quoted};

use super::target::Target;
use super::when::When;

/// A stored route. It is told of each fact once, whatever other routes are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// 1-128 characters of `[A-Za-z0-9._-]`, unique in the cluster.
    pub name: String,
    /// The kinds of facts that it is told of; at least one.
    pub when: BTreeSet<When>,
    /// The jobs that it is told of (JSON: `match`).
    pub only: Selection,
    /// How many runs must end badly in a row before it is told; 1 for the first. It concerns `failed`, `timed_out` and `lost`.
    pub after: u32,
    /// Without it, each fact is told. With it, an open trouble is told once in so long, with the facts since then counted, until it is
    /// over. At least a minute.
    pub repeat: Option<Duration>,
    /// Where notices go; 1 to 10.
    pub to: Vec<Target>,
}

/// The jobs of a route. Each part that is not empty narrows it; an empty selection means every job, and the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Jobs of any of these namespaces.
    pub namespaces: Vec<String>,
    /// Jobs that have all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Jobs of any of these names; a `*` stands for any characters.
    pub jobs: Vec<String>,
}

/// The fault of a route, as a sentence that begins with the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct RouteError {
    /// The path of the field, such as `to[0].url`.
    pub field: String,
    /// The fault and the allowed values.
    pub message: String,
}

impl Route {
    /// The most targets.
    pub const MOST_TARGETS: usize = 10;
    /// The most namespaces, labels or job names of a selection.
    pub const MOST_SELECTED: usize = 100;
    /// The most runs in a row that `after` may wait for.
    pub const MOST_AFTER: u32 = 1_000;
    /// The shortest `repeat`.
    pub const LEAST_REPEAT: Duration = Duration::from_secs(60);
    /// The longest `repeat`.
    pub const MOST_REPEAT: Duration = Duration::from_secs(30 * 86_400);

    /// Whether it can be stored.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), RouteError> {
        let fault = |field: &str, message: String| Err(RouteError { field: field.to_owned(), message });
        if let Err(error) = check_route_name(&self.name) {
            return fault("name", error.to_string());
        }
        if self.when.is_empty() {
            return fault("when", "it is empty: name at least one kind of fact, such as failed".into());
        }
        if self.when.len() == 1 && self.when.contains(&When::Recovered) {
            return fault(
                "when",
                "recovered alone is never told: name the facts that it closes, such as failed".into(),
            );
        }
        self.only.check()?;
        if !(1..=Self::MOST_AFTER).contains(&self.after) {
            return fault(
                "after",
                format!("it must be a whole number from 1 to {}, not {}", Self::MOST_AFTER, self.after),
            );
        }
        if self.repeat.is_some_and(|repeat| !(Self::LEAST_REPEAT..=Self::MOST_REPEAT).contains(&repeat)) {
            return fault("repeat", "it is out of bounds: allowed are 1m to 30d".into());
        }
        if self.to.is_empty() || self.to.len() > Self::MOST_TARGETS {
            let (some, most) = (self.to.len(), Self::MOST_TARGETS);
            return fault("to", format!("it has {some} targets: 1 to {most} are allowed"));
        }
        for (n, target) in self.to.iter().enumerate() {
            if let Err((field, message)) = target.check() {
                return fault(&format!("to[{n}].{field}"), message);
            }
        }
        Ok(())
    }

    /// Whether open incidents of this route mean something else once `newer` takes its place. Their store forgets them then.
    pub fn forgets(&self, newer: &Route) -> bool {
        self.when != newer.when || self.only != newer.only || self.after != newer.after
    }
}

impl Selection {
    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.labels.is_empty() && self.jobs.is_empty()
    }

    /// Whether it selects that job.
    pub fn covers(&self, namespace: &str, name: &str, labels: &BTreeMap<String, String>) -> bool {
        (self.namespaces.is_empty() || self.namespaces.iter().any(|wanted| wanted == namespace))
            && self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && (self.jobs.is_empty() || self.jobs.iter().any(|pattern| fits(pattern, name)))
    }

    fn check(&self) -> Result<(), RouteError> {
        let fault = |part: &str, message: String| RouteError { field: format!("match.{part}"), message };
        for (part, some) in
            [("namespaces", self.namespaces.len()), ("labels", self.labels.len()), ("jobs", self.jobs.len())]
        {
            if some > Route::MOST_SELECTED {
                let most = Route::MOST_SELECTED;
                return Err(fault(part, format!("there are {some} of them: at most {most} are allowed")));
            }
        }
        for namespace in &self.namespaces {
            check_namespace(namespace).map_err(|error| fault("namespaces", error.to_string()))?;
        }
        for (key, value) in &self.labels {
            check_label_key(key).map_err(|error| fault("labels", error.to_string()))?;
            check_label_value(value).map_err(|error| fault("labels", error.to_string()))?;
        }
        for pattern in &self.jobs {
            let odd = |c: char| !c.is_ascii_alphanumeric() && !"._-*".contains(c);
            if pattern.is_empty() || pattern.len() > crate::name::MAX_NAME || pattern.contains(odd) {
                let shown = quoted(pattern);
                return Err(fault(
                    "jobs",
                    format!(
                        "{shown} is no name of jobs: 1 to 128 of A-Z a-z 0-9 . _ - are expected, * for any characters"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Whether a name fits a pattern, in which `*` stands for any characters. It looks at each character of the name once for each `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}
