//! Files that people write: JSON, YAML or TOML, read into the same values. A fault is told with its file, line and column.

mod toml;
mod yaml;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;

use super::failure::CommandFailure;

/// The longest file, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
}

/// Why text is not a document.
struct Fault {
    /// Counted from 1, where it is known.
    at: Option<(u64, u64)>,
    problem: String,
    remedy: &'static str,
}

impl Format {
    /// By the end of the file's name. Without one that says it, text that begins like JSON is JSON, and other text is YAML.
    pub fn of(file: &str, text: &str) -> Self {
        let begins_like_json = text.trim_start().starts_with(['{', '[']);
        Self::by_ending(file).unwrap_or(if begins_like_json { Self::Json } else { Self::Yaml })
    }

    /// By the end of the file's name, where that says it.
    pub fn by_ending(file: &str) -> Option<Self> {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    /// The end of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Toml => "toml",
        }
    }

    /// Reads text of `file`, in which `thing` stands, such as `a job`.
    pub fn read(self, text: &str, file: &str, thing: &str) -> Result<Value, CommandFailure> {
        let read = match self {
            Self::Json => serde_json::from_str(text).map_err(|error| Fault {
                at: (error.line() > 0).then_some((error.line() as u64, error.column() as u64)),
                problem: without_place(&error.to_string()),
                remedy: "",
            }),
            Self::Yaml => yaml::read(text),
            Self::Toml => toml::read(text),
        };
        read.map_err(|Fault { at, problem, remedy }| {
            let shown = if file == "-" { "standard input" } else { file };
            let place = at.map(|(line, column)| format!(", line {line}, column {column}")).unwrap_or_default();
            let name = self.name();
            CommandFailure::usage(format!("{shown}{place}: this is not {thing} as {name}: {problem}{remedy}"))
        })
    }

    /// Writes a value as people read it.
    pub fn write(self, value: &Value) -> Result<String, CommandFailure> {
        match self {
            Self::Json => Ok(format!("{value:#}\n")),
            Self::Yaml => yaml::write(value),
            Self::Toml => toml::write(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        }
    }
}

/// The document in a file, or in standard input for `-`.
pub fn read(file: &str, thing: &str) -> Result<Value, CommandFailure> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut text),
        path => File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| CommandFailure::failed(format!("cannot read {file:?}: {error}; name another file")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(CommandFailure::failed(format!("{file:?} is longer than {MOST_BYTES} bytes; divide it")));
    }
    Format::of(file, &text).read(&text, file, thing)
}

/// The words of a parser, which end with the place. The place is told before.
fn without_place(problem: &str) -> String {
    problem.split(" at line ").next().unwrap_or(problem).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JOB: [(Format, &str); 3] = [
        (
            Format::Json,
            r#"{"name": "a", "schedule": "*/5 * * * *", "retry": {"max_attempts": 3}, "paused": false, "start_at": "2027-01-01T00:00:00Z", "params": {"argv": ["x", "no"]}}"#,
        ),
        (
            Format::Yaml,
            "# each five minutes\nname: a\nschedule: \"*/5 * * * *\"\nretry:\n  max_attempts: 3\npaused: false\n\
             start_at: 2027-01-01T00:00:00Z\nparams:\n  argv: [x, no]\n",
        ),
        (
            Format::Toml,
            "name = \"a\"\nschedule = \"*/5 * * * *\"\npaused = false\nstart_at = 2027-01-01T00:00:00Z\n\
             [retry]\nmax_attempts = 3\n[params]\nargv = [\"x\", \"no\"]\n",
        ),
    ];

    #[test]
    fn each_format_says_the_same_job() {
        let expected = json!({"name": "a", "schedule": "*/5 * * * *", "retry": {"max_attempts": 3}, "paused": false,
            "start_at": "2027-01-01T00:00:00Z", "params": {"argv": ["x", "no"]}});
        for (format, text) in JOB {
            let read = |text: &str| format.read(text, "f", "a job").unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(read(text), expected, "{format:?}");
            let written = format.write(&expected).unwrap();
            assert_eq!(read(&written), expected, "{written}");
        }
    }

    #[test]
    fn a_fault_is_told_with_its_file_line_and_column() {
        for (format, text, place, word) in [
            (Format::Json, "{\n  \"name\": a\n}", "f, line 2, column 11: ", "not a job as JSON: expected value"),
            (Format::Yaml, "name: a\nschedule: */5 * * * *\n", "f, line 2, column 1", "put it into quotes"),
            (Format::Yaml, "name: a\nschedule: @daily\n", "f, line 2, column 1", "put it into quotes"),
            (Format::Yaml, "name: a\nname: b\n", "f, line 2, column 1", "not a job as YAML"),
            (Format::Toml, "name = \"a\"\nschedule = @daily\n", "f, line 2, column 12: ", "not a job as TOML"),
        ] {
            let told = format.read(text, "f", "a job").unwrap_err().sentence;
            assert!(told.contains(place) && told.contains(word), "{text:?}: {told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_name_or_the_first_sign_tells_the_format() {
        for (file, text, expected) in [
            ("a.json", "name: a", Format::Json),
            ("a.YML", "{}", Format::Yaml),
            ("a.toml", "", Format::Toml),
            ("-", " {\"name\": 1}", Format::Json),
            ("-", "name: a", Format::Yaml),
        ] {
            assert_eq!(Format::of(file, text), expected, "{file}");
        }
    }
}
