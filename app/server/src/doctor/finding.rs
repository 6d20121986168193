//! A finding: one thing that was looked at, how it stands, and the remedy.

use serde_json::{Value, json};

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// A server runs, and somebody will wish that it had been otherwise.
    Warning,
    /// A server does not start, or does not do what it is for.
    Error,
}

impl Level {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The thing, such as `durability`.
    pub part: &'static str,
    /// How it stands.
    pub level: Level,
    /// The same in a sentence.
    pub says: String,
    /// The way to mend it: a sentence for each warning and each error.
    pub remedy: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub fn ok(part: &'static str, says: impl Into<String>) -> Self {
        Self { part, level: Level::Ok, says: says.into(), remedy: None }
    }

    /// Somebody should look at it.
    pub fn warning(part: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part, level: Level::Warning, says: says.into(), remedy: Some(remedy.into()) }
    }

    /// It must be mended.
    pub fn error(part: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part, level: Level::Error, says: says.into(), remedy: Some(remedy.into()) }
    }

    /// From a sentence of the server, which ends with the remedy after its last semicolon. One without takes `otherwise`.
    pub fn of_sentence(part: &'static str, level: Level, sentence: &str, otherwise: &str) -> Self {
        let (says, remedy) = sentence.rsplit_once("; ").unwrap_or((sentence, otherwise));
        Self { part, level, says: says.to_owned(), remedy: Some(as_sentence(remedy)) }
    }

    /// As `--json` shows it.
    pub fn json(&self) -> Value {
        json!({"check": self.part, "level": self.level.as_str(), "finding": self.says, "remedy": self.remedy})
    }

    /// As people read it: a line, and one for the remedy.
    pub fn text(&self) -> String {
        let Self { part, level, says, remedy } = self;
        let line = format!("{:<8} {part}: {says}\n", level.as_str());
        match remedy {
            Some(remedy) => format!("{line}{:<8} do: {remedy}\n", ""),
            None => line,
        }
    }
}

/// The end of a sentence as a sentence of its own.
fn as_sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_the_end_of_a_sentence() {
        let of = |sentence| Finding::of_sentence("token", Level::Error, sentence, "look at it");
        assert_eq!(
            of("it is bad; a mode; `chmod 600` it"),
            Finding::error("token", "it is bad; a mode", "`chmod 600` it.")
        );
        assert_eq!(of("it is bad; name another"), Finding::error("token", "it is bad", "Name another."));
        assert_eq!(of("it is bad"), Finding::error("token", "it is bad", "Look at it."));
        assert_eq!(of("it is bad").text(), "error    token: it is bad\n         do: Look at it.\n");
        assert_eq!(Finding::ok("port", "free").text(), "ok       port: free\n");
        assert!(Level::Ok < Level::Warning && Level::Warning < Level::Error);
    }
}
