//! The arguments of a call: taken one by one, with every fault told at once, as the API does it.

use carillon_domain::id::RunId;
use carillon_domain::name::{check_job_name, check_namespace};
use carillon_domain::time::Timestamp;
use serde_json::{Map, Value};

use super::surroundings::Surroundings;
use crate::failure::{CommandFailure, FailureKind};
use carillon_json::{FieldError, Fields};

/// Arguments of which some are not taken yet.
pub(super) struct Arguments {
    fields: Fields,
    namespace: String,
}

/// A job by namespace and name, both fit for a path.
#[derive(Debug, Clone, Default)]
pub(super) struct JobPlace {
    pub namespace: String,
    pub name: String,
}

impl Arguments {
    pub fn of(arguments: Value, surroundings: &Surroundings) -> Result<Self, CommandFailure> {
        let fields = Fields::of(arguments, "a set of arguments").map_err(refused)?;
        Ok(Self { fields, namespace: surroundings.namespace.to_string() })
    }

    /// Ends the taking: refuses what nobody has taken, and what was wrong with the rest.
    pub fn finish(self) -> Result<(), CommandFailure> {
        self.fields.finish().map_err(refused)
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        self.fields.text(key)
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.fields.flag(key)
    }

    pub fn required_text(&mut self, key: &str) -> String {
        self.fields.required_text(key).unwrap_or_default()
    }

    pub fn number(&mut self, key: &str, least: u32, most: u32) -> Option<u32> {
        self.fields.integer(key, least..=most)
    }

    /// A time, as the API takes it.
    pub fn time(&mut self, key: &str) -> Option<Timestamp> {
        self.fields.time(key)
    }

    /// One of some names.
    pub fn choice(&mut self, key: &str, all: &[&'static str]) -> Option<&'static str> {
        self.fields.choice(key, all, |name| name)
    }

    /// A generation, as a dry run answers it.
    pub fn version(&mut self) -> Option<u64> {
        let value = self.fields.any("version")?;
        let version = value.as_u64();
        if version.is_none() {
            self.fields.fault("version", "it must be the whole number that the dry run answered");
        }
        version
    }

    /// A JSON object; an empty one where it is faulty.
    pub fn object(&mut self, key: &str, required: bool) -> Option<Map<String, Value>> {
        match self.fields.any(key) {
            Some(Value::Object(object)) => Some(object),
            Some(_) => {
                self.fields.fault(key, "it must be a JSON object");
                None
            }
            None if required => {
                self.fields.fault(key, "it is required");
                None
            }
            None => None,
        }
    }

    /// A fault that only the tool can see.
    pub fn fault(&self, key: &str, message: &str) {
        self.fields.fault(key, message);
    }

    /// The job that a call is about.
    pub fn job(&mut self) -> JobPlace {
        let name = self.required_text("name");
        if !name.is_empty()
            && let Err(error) = check_job_name(&name)
        {
            self.fields.fault("name", error.to_string());
        }
        JobPlace { namespace: self.namespace(), name }
    }

    /// The namespace of one job.
    pub fn namespace(&mut self) -> String {
        self.namespace_or(&[])
    }

    /// The namespace of a listing; `*` for all.
    pub fn namespaces(&mut self) -> String {
        self.namespace_or(&["*"])
    }

    /// A namespace, or one of some words in its place.
    fn namespace_or(&mut self, words: &[&str]) -> String {
        let Some(namespace) = self.text("namespace") else { return self.namespace.clone() };
        if !words.contains(&namespace.as_str())
            && let Err(error) = check_namespace(&namespace)
        {
            self.fields.fault("namespace", error.to_string());
        }
        namespace
    }

    /// The run that a call is about, in the one spelling of its id.
    pub fn run(&mut self) -> String {
        let id = self.required_text("id");
        match id.parse::<RunId>() {
            Ok(run) => run.to_string(),
            Err(error) => {
                if !id.is_empty() {
                    self.fields.fault("id", error.to_string());
                }
                String::new()
            }
        }
    }
}

impl JobPlace {
    /// The path of the job, or of something below it. Names need no escaping.
    pub fn path(&self, below: &str) -> String {
        format!("/v1/jobs/{}{below}", self.name)
    }
}

fn refused(faults: Vec<FieldError>) -> CommandFailure {
    let sentence = |fault: FieldError| match fault.field.as_str() {
        "" => fault.message,
        field => format!("{field}: {}", fault.message),
    };
    let sentences: Vec<String> = faults.into_iter().map(sentence).collect();
    CommandFailure { kind: FailureKind::Usage, sentence: sentences.join("\n") }
}
