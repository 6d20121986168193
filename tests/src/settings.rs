//! The words on the command line of a long run, as `name=value`.

use std::collections::BTreeMap;

/// The values given, and defaults for the others.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// From the words of a command line.
    ///
    /// # Panics
    /// On a word that is no `name=value`.
    pub fn of(words: impl Iterator<Item = String>) -> Self {
        let pair = |word: String| {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("{word:?} is no name=value"));
            (name.to_owned(), value.to_owned())
        };
        Self(words.map(pair).collect())
    }

    /// A number.
    ///
    /// # Panics
    /// On a value that is none.
    pub fn number(&self, name: &str, preset: u64) -> u64 {
        self.0.get(name).map_or(preset, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    }

    /// A text.
    pub fn text<'a>(&'a self, name: &str, preset: &'a str) -> &'a str {
        self.0.get(name).map_or(preset, String::as_str)
    }

    /// Whether `name=yes` was said.
    pub fn says(&self, name: &str) -> bool {
        self.text(name, "no") == "yes"
    }
}
