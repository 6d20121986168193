//! Where values come from: the file, the environment, the flags, merged by the `config` crate, the last one winning.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use config::{Environment, File, FileFormat, Map, Source, Value};

/// The file that is read where `--config` names none.
pub const DEFAULT_FILE: &str = "carillon.toml";

/// The prefix of the environment's variables.
const PREFIX: &str = "CARILLON__";

/// The values that flags set, over everything else.
#[derive(Clone, Default)]
pub struct Overrides {
    /// `--store URL`
    pub store_url: Option<String>,
    /// `--bind ADDR`
    pub bind: Option<String>,
    /// `--node-name NAME`
    pub node_name: Option<String>,
}

impl std::fmt::Debug for Overrides {
    /// Without the store's URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let store_url = self.store_url.as_ref().map(|_| "...");
        f.debug_struct("Overrides")
            .field("store_url", &store_url)
            .field("bind", &self.bind)
            .field("node_name", &self.node_name)
            .finish()
    }
}

/// Why the server cannot start with this configuration; the text is for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file that `--config` names cannot be read, or the default one is there and cannot be read.
    #[error("the configuration file {path} cannot be read: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The file is no TOML, or a variable is no text.
    #[error("{0}")]
    Malformed(String),
    /// Its content cannot be used: a sentence for each fault.
    #[error("the configuration cannot be used:\n  {}", .0.join("\n  "))]
    Faults(Vec<String>),
}

/// A flag's values, as a source of the `config` crate.
#[derive(Debug, Clone)]
struct Flags(Map<String, Value>);

impl Source for Flags {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

impl Overrides {
    fn source(&self) -> Flags {
        let flags = [
            ("store.url", "--store", &self.store_url),
            ("http.bind", "--bind", &self.bind),
            ("node.name", "--node-name", &self.node_name),
        ];
        let given = flags.into_iter().filter_map(|(key, flag, value)| {
            Some((key.to_owned(), Value::new(Some(&format!("the flag {flag}")), value.clone()?)))
        });
        Flags(given.collect())
    }
}

/// All values, each with its origin; those without one come from the file.
pub(super) fn merged(
    path: &Path,
    must_exist: bool,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    overrides: &Overrides,
) -> Result<Map<String, Value>, ConfigError> {
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => String::new(),
        Err(error) => return Err(ConfigError::Unreadable { path: shown, reason: error.to_string() }),
    };
    let file = File::from_str(&text, FileFormat::Toml);
    file.collect().map_err(|error| {
        ConfigError::Malformed(format!("{shown} is not TOML: {}", without_source_lines(&error.to_string())))
    })?;
    let environment = Environment::with_prefix("CARILLON").separator("__").source(Some(variables(environment)?));
    let builder = config::Config::builder().add_source(file).add_source(environment).add_source(overrides.source());
    let merged = builder.build().and_then(|config| config.collect());
    merged.map_err(|error| ConfigError::Malformed(format!("the configuration cannot be read: {error}")))
}

/// The variables that are meant for the server, as text.
fn variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<HashMap<String, String>, ConfigError> {
    let mut variables = HashMap::new();
    for (key, value) in environment {
        let Some(key) = key.to_str().filter(|key| key.to_ascii_uppercase().starts_with(PREFIX)) else { continue };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !key.chars().all(plain) || key[PREFIX.len()..].split("__").any(str::is_empty) {
            return Err(ConfigError::Malformed(format!(
                "the environment variable {key:?} is not of the form CARILLON__SECTION__KEY"
            )));
        }
        let Ok(value) = value.into_string() else {
            return Err(ConfigError::Malformed(format!("the environment variable {key} is not UTF-8")));
        };
        variables.insert(key.to_owned(), value);
    }
    Ok(variables)
}

/// The TOML parser quotes the faulty line, which may hold a password: what is told is where it is and what is wrong.
fn without_source_lines(error: &str) -> String {
    error
        .lines()
        .filter(|line| !line.contains('|'))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}
