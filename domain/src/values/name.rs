//! The rules for the names of jobs, namespaces and labels.
//!
//! Names appear in URL paths, file names, metrics and log lines, so no character of their alphabet needs quoting in any
//! of them. Errors show the offending character escaped, because names come from strangers and are printed on
//! terminals.

/// The longest name of a job, namespace or label key, in characters.
pub const MAX_NAME: usize = 128;

/// The longest value of a label, in characters.
pub const MAX_LABEL_VALUE: usize = 256;

/// The reason why a name or a label's value is refused, as a sentence for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("the {what} is empty: 1 to {MAX_NAME} of the characters A-Z a-z 0-9 . _ - are expected")]
    Empty {
        /// The kind of name, such as `job name`.
        what: &'static str,
    },
    /// It has more characters than allowed.
    #[error("the {what} is {length} characters long: at most {allowed} are allowed")]
    TooLong {
        /// The kind of name, such as `job name`.
        what: &'static str,
        /// Its number of characters.
        length: usize,
        /// The limit.
        allowed: usize,
    },
    /// It is `.` or `..`, which would change the path of a URL.
    #[error("the {what} is \"{text}\", which URLs read as a step between directories")]
    Dots {
        /// The kind of name, such as `job name`.
        what: &'static str,
        /// The name.
        text: String,
    },
    /// It contains a character outside the alphabet of names.
    #[error("the {what} {text} holds {character}: only A-Z a-z 0-9 . _ - are allowed")]
    Character {
        /// The kind of name, such as `job name`.
        what: &'static str,
        /// The name, escaped and in quotes.
        text: String,
        /// The first offending character, escaped and in quotes.
        character: String,
    },
    /// A label's value contains a character that cannot be printed.
    #[error("the label value {text} holds {character}, which is not printable")]
    Unprintable {
        /// The value, escaped and in quotes.
        text: String,
        /// The first offending character, escaped and in quotes.
        character: String,
    },
}

/// Checks a job's name: 1-128 characters of `[A-Za-z0-9._-]`, and neither `.` nor `..`.
pub fn check_job_name(text: &str) -> Result<(), NameError> {
    check_name("job name", text)
}

/// Checks a namespace by the rule of job names.
pub fn check_namespace(text: &str) -> Result<(), NameError> {
    check_name("namespace", text)
}

/// Checks the name of an alert route.
///
/// # Errors
/// [`NameError`] says what is wrong.
pub fn check_route_name(text: &str) -> Result<(), NameError> {
    check_name("route name", text)
}

/// Checks a label's key by the rule of job names.
pub fn check_label_key(text: &str) -> Result<(), NameError> {
    check_name("label key", text)
}

/// Checks a label's value: up to 256 printable characters, possibly none.
pub fn check_label_value(text: &str) -> Result<(), NameError> {
    check_length("label value", text, MAX_LABEL_VALUE)?;
    match text.chars().find(|c| !printable(*c)) {
        Some(c) => Err(NameError::Unprintable { text: quoted(text), character: quoted_char(c) }),
        None => Ok(()),
    }
}

/// `text` in quotes, escaped, and cut to a length that fits into a sentence.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    let mut out = String::from("\"");
    text.chars().take(SHOWN).for_each(|c| push_escaped(&mut out, c));
    out.push_str(if text.chars().nth(SHOWN).is_some() { "...\"" } else { "\"" });
    out
}

/// `text` on one line, with every character escaped that a terminal could take for a command.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if printable(c) { out.push(c) } else { push_escaped(&mut out, c) }
    }
    out
}

fn check_name(what: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    check_length(what, text, MAX_NAME)?;
    if let Some(c) = text.chars().find(|c| !is_of_names(*c)) {
        return Err(NameError::Character { what, text: quoted(text), character: quoted_char(c) });
    }
    if text == "." || text == ".." {
        return Err(NameError::Dots { what, text: text.into() });
    }
    Ok(())
}

/// `text` in the alphabet of names: any other character becomes `_`, and the end of a long text is left out.
pub fn in_alphabet(text: &str) -> String {
    text.chars().map(|c| if is_of_names(c) { c } else { '_' }).take(MAX_NAME).collect()
}

fn is_of_names(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

fn check_length(what: &'static str, text: &str, allowed: usize) -> Result<(), NameError> {
    match text.chars().count() {
        length if length > allowed => Err(NameError::TooLong { what, length, allowed }),
        _ => Ok(()),
    }
}

/// Whether a character is safe to print: no control character, and none that changes text direction or breaks lines.
fn printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn quoted_char(c: char) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, c);
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, c: char) {
    if printable(c) && c != '"' && c != '\\' { out.push(c) } else { out.extend(c.escape_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_alphabet_are_accepted() {
        for text in ["a", "nightly-backup", "A.b_c-9", "...", "-", &"x".repeat(128)] {
            assert_eq!(check_job_name(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_names_are_refused_with_a_sentence() {
        let long = "x".repeat(129);
        for (text, sentence) in [
            ("", "the job name is empty: 1 to 128 of the characters A-Z a-z 0-9 . _ - are expected"),
            (long.as_str(), "the job name is 129 characters long: at most 128 are allowed"),
            (".", "the job name is \".\", which URLs read as a step between directories"),
            ("..", "the job name is \"..\", which URLs read as a step between directories"),
            ("a/b", "the job name \"a/b\" holds '/': only A-Z a-z 0-9 . _ - are allowed"),
            ("a b", "the job name \"a b\" holds ' ': only A-Z a-z 0-9 . _ - are allowed"),
            ("caf\u{e9}", "the job name \"caf\u{e9}\" holds '\u{e9}': only A-Z a-z 0-9 . _ - are allowed"),
            ("\u{1b}[2J", "the job name \"\\u{1b}[2J\" holds '\\u{1b}': only A-Z a-z 0-9 . _ - are allowed"),
            ("x\u{202e}", "the job name \"x\\u{202e}\" holds '\\u{202e}': only A-Z a-z 0-9 . _ - are allowed"),
        ] {
            assert_eq!(check_job_name(text).map_err(|e| e.to_string()), Err(sentence.to_owned()));
        }
    }

    #[test]
    fn other_characters_become_underscores_and_a_long_name_is_cut() {
        for (text, name) in [("a.b-C_9", "a.b-C_9"), ("a/b caf\u{e9}", "a_b_caf_"), ("", "")] {
            assert_eq!(in_alphabet(text), name);
        }
        assert_eq!(in_alphabet(&"y".repeat(200)), "y".repeat(128));
    }

    #[test]
    fn namespaces_and_label_keys_follow_the_same_rule() {
        assert!(check_namespace("prod").is_ok() && check_label_key("team").is_ok());
        assert!(check_namespace("*").unwrap_err().to_string().starts_with("the namespace "));
        assert!(check_label_key("a=b").unwrap_err().to_string().starts_with("the label key "));
    }

    #[test]
    fn label_values_are_short_and_printable() {
        let longest = "\u{fc}".repeat(256);
        for text in ["", "data platform", "a=b, \"c\"", &longest] {
            assert_eq!(check_label_value(text), Ok(()), "{text}");
        }
        let sentence = |text: &str| check_label_value(text).unwrap_err().to_string();
        assert_eq!(sentence("a\tb"), "the label value \"a\\tb\" holds '\\t', which is not printable");
        assert_eq!(sentence(&"x".repeat(257)), "the label value is 257 characters long: at most 256 are allowed");
    }

    #[test]
    fn long_texts_are_cut_in_errors() {
        assert_eq!(quoted(&"y".repeat(100)), format!("\"{}...\"", "y".repeat(64)));
        assert_eq!(on_one_line("a\nb \"c\\"), "a\\nb \"c\\");
    }
}
