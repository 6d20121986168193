//! The streaming mode of `next` and `explain`: one JSON object a line in, the same object with its answer out.
//!
//! Fields that the question does not know are returned untouched, byte for byte and in their order. A line that makes no sense is answered
//! with an error object, and the stream goes on. Errors are answers here, so the exit code stays 0. Blank lines are ignored. Answers are
//! written before more input is read, so a program can hold a dialogue. A file costs no system call for each line.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use carillon_domain::schedule::{Dst, Gap, Overlap};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::{Question, ScheduleAnswer};
use super::{GapArg, MOST_TIMES, OverlapArg};
use crate::args::time;
use crate::failure::CommandFailure;
use crate::out::Out;

/// The longest line that is read, in bytes.
const MOST_LINE: u64 = 1024 * 1024;

/// Answers every line of standard input. `defaults` is the question as the arguments put it.
pub(super) fn answer_lines(defaults: &Question, with_words: bool, out: &mut Out) -> Result<(), CommandFailure> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut number: u64 = 0;
    let mut line = Vec::new();
    while !out.is_closed() {
        let whole = read_line(&mut input, &mut line)
            .map_err(|error| CommandFailure::failed(format!("cannot read standard input: {error}")))?;
        if line.is_empty() {
            break;
        }
        number += 1;
        if !line.trim_ascii().is_empty() {
            out.line(&answer_line(&line, whole, number, defaults, with_words))?;
        }
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    Ok(())
}

/// Reads a line with its end; `false` when it was too long, and what was beyond the bound is dropped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    input.by_ref().take(MOST_LINE).read_until(b'\n', line)?;
    if line.ends_with(b"\n") || (line.len() as u64) < MOST_LINE {
        return Ok(true);
    }
    input.skip_until(b'\n')?;
    Ok(false)
}

fn answer_line(line: &[u8], whole: bool, number: u64, defaults: &Question, with_words: bool) -> String {
    if !whole {
        return json!({"error": format!("line {number} is longer than {MOST_LINE} bytes")}).to_string();
    }
    let mut object: Object = match serde_json::from_slice(line) {
        Ok(object) => object,
        Err(error) => {
            // serde_json counts lines itself and knows of one only.
            let fault = error.to_string().replace(" at line 1 column ", " at column ");
            return json!({"error": format!("line {number} is not a JSON object: {fault}")}).to_string();
        }
    };
    let answer = question(&object, defaults).and_then(|q| q.answer().map_err(|error| error.to_string()));
    match answer {
        Ok(answer) => object.answered(&answer, with_words),
        Err(error) => object.refused(&error),
    }
    object.text()
}

/// The question that an object asks, filled up from the arguments.
fn question(object: &Object, defaults: &Question) -> Result<Question, String> {
    let schedule = object.read("schedule", "a string")?.ok_or("schedule: it is required")?;
    let after: Option<String> = object.read("after", "a string")?;
    let after = after.map(|text| time(&text).map_err(|fault| format!("after: {fault}"))).transpose()?;
    let count: Option<u64> = object.read("count", "a whole number")?;
    let held = || object.read::<Vec<&RawValue>>("next", "").ok().flatten().map(|next| next.len() as u64);
    let count = match count {
        Some(count) if (1..=MOST_TIMES).contains(&count) => count,
        Some(count) => return Err(format!("count: {count} is out of bounds; allowed are 1 to {MOST_TIMES}")),
        None => held().filter(|held| (1..=MOST_TIMES).contains(held)).unwrap_or(defaults.count),
    };
    let dst: DstFields =
        object.read("dst", "{\"gap\": \"after\" | \"skip\", \"overlap\": \"first\" | \"both\"}")?.unwrap_or_default();
    Ok(Question {
        schedule,
        timezone: object.read("timezone", "a string")?.or_else(|| defaults.timezone.clone()),
        after: after.unwrap_or(defaults.after),
        count,
        key: object.read("key", "a string")?.unwrap_or_else(|| defaults.key.clone()),
        dst: Dst {
            gap: dst.gap.map_or(defaults.dst.gap, Gap::from),
            overlap: dst.overlap.map_or(defaults.dst.overlap, Overlap::from),
        },
    })
}

#[derive(Default, Deserialize)]
struct DstFields {
    gap: Option<GapArg>,
    overlap: Option<OverlapArg>,
}

/// A JSON object whose fields keep their order and their text.
struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// A field as a type; `None` when it is absent or null.
    fn read<'a, T: Deserialize<'a>>(&'a self, key: &str, expected: &str) -> Result<Option<T>, String> {
        // The last of equal keys counts, as everywhere in JSON.
        let Some((_, raw)) = self.0.iter().rev().find(|(name, _)| name == key) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|_| format!("{key}: it must be {expected}"))
    }

    fn answered(&mut self, answer: &ScheduleAnswer, with_words: bool) {
        self.0.retain(|(name, _)| name != "error");
        if with_words {
            self.set("description", &answer.description);
        }
        self.set("next", &answer.texts());
    }

    fn refused(&mut self, error: &str) {
        self.0.retain(|(name, _)| name != "next" && name != "description");
        self.set("error", &error);
    }

    /// Sets a field in its place, or at the end when it is new.
    fn set(&mut self, key: &str, value: &impl serde::Serialize) {
        // Strings and lists of strings always have a text.
        let Ok(raw) = to_raw_value(value) else { return };
        match self.0.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, old)) => *old = raw,
            None => self.0.push((key.to_owned(), raw)),
        }
    }

    fn text(&self) -> String {
        let mut text = String::from("{");
        for (at, (name, raw)) in self.0.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "," });
            text.push_str(&json!(name).to_string());
            text.push(':');
            text.push_str(raw.get());
        }
        text.push('}');
        text
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object such as {\"schedule\": \"@daily\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            fields.push(entry);
        }
        Ok(Object(fields))
    }
}
