//! The tools: what each is called, what it takes and answers, and what it does to the world.

mod change;
mod look;
mod parts;
mod runs;
mod table;

use std::sync::Arc;

use rmcp::model::{Tool as Shown, ToolAnnotations};
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::surroundings::Surroundings;
use crate::failure::CommandFailure;

pub(super) use self::table::TOOLS;

/// A tool.
pub(super) struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub effect: Effect,
    /// The schema of its arguments.
    pub takes: fn() -> Value,
    /// The schema of its answer.
    pub answers: fn() -> Value,
    pub work: fn(&Surroundings, Arguments) -> Result<Value, CommandFailure>,
}

/// The effect of a tool on the world. Clients decide by it whether a person is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// Something comes into being that was not there.
    Adds,
    /// Something is overwritten or ends; once more changes nothing further.
    Overwrites,
}

/// The tool of this name.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// As the protocol lists it.
    pub fn shown(&self) -> Shown {
        let effect = self.effect;
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(effect == Effect::Reads)
            .destructive(effect == Effect::Overwrites)
            .idempotent(effect != Effect::Adds)
            // A command of a job may reach anywhere; reading about it does not.
            .open_world(effect != Effect::Reads);
        Shown::new(self.name, self.description, fields(self.takes))
            .with_title(self.title)
            .with_raw_output_schema(fields(self.answers))
            .with_annotations(annotations)
    }

    pub fn call(&self, surroundings: &Surroundings, arguments: Value) -> Result<Value, CommandFailure> {
        (self.work)(surroundings, Arguments::of(arguments, surroundings)?)
    }
}

fn fields(schema: fn() -> Value) -> Arc<Map<String, Value>> {
    match schema() {
        Value::Object(fields) => Arc::new(fields),
        _ => Arc::default(),
    }
}
