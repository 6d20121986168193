//! Lines that set a variable: `NAME = value`, with the quotes of cron.
//!
//! Blanks around the name and the value are dropped. Matching single or double quotes around the value keep its blanks.
//! Variables are not expanded: `PATH=$HOME/bin` is that text.

use crate::name::quoted;

const BLANKS: [char; 2] = [' ', '\t'];

/// Reads the name and the value. `None` if the line is not an assignment, so that it must be a job.
pub(super) fn parse(line: &str) -> Option<Result<(String, String), String>> {
    let (name, rest) = match unquote(line) {
        Some((name, rest)) => (name, rest),
        None => line.split_at(line.find(['=', ' ', '\t'])?),
    };
    let value = rest.trim_start_matches(BLANKS).strip_prefix('=')?.trim_matches(BLANKS);
    if name.contains('=') {
        return None;
    }
    if !is_name(name) {
        return Some(Err(format!("{} is not a name for a variable: letters, digits and _ are expected", quoted(name))));
    }
    Some(unquoted_value(name, value).map(|value| (name.to_owned(), value.to_owned())))
}

/// The line that [`parse`] reads back, or `None` if there is none.
pub(super) fn print(name: &str, value: &str) -> Option<String> {
    let writable = is_name(name) && !value.chars().any(|c| c.is_control() && c != '\t');
    if !writable {
        return None;
    }
    let bare = !value.is_empty() && value.trim_matches(BLANKS) == value && !value.starts_with(['"', '\'']);
    if bare {
        return Some(format!("{name}={value}"));
    }
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote))?;
    Some(format!("{name}={quote}{value}{quote}"))
}

/// Whether a text may be a name: letters, digits and `_`, and also `-` and `.`, which occur in practice. It does not
/// begin with a digit, or `5=` would be a name.
pub(super) fn is_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn unquoted_value<'a>(name: &str, value: &'a str) -> Result<&'a str, String> {
    match unquote(value) {
        Some((inner, "")) => Ok(inner),
        Some((_, after)) => Err(format!("{} follows the closing quote of {name}", quoted(after.trim_matches(BLANKS)))),
        None if value.starts_with(['"', '\'']) => {
            Err(format!("the quote that begins the value of {name} is not closed"))
        }
        None => Ok(value),
    }
}

/// The text between the quotes at the start of `text`, and the rest after them.
fn unquote(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn assignments_are_read_as_cron_reads_them() {
        for (line, name, value) in [
            ("PATH=/usr/bin:/bin", "PATH", "/usr/bin:/bin"),
            ("A = b c ", "A", "b c"),
            ("A\t=\t b", "A", "b"),
            ("A=\" b \"", "A", " b "),
            ("A=' b\"' ", "A", " b\""),
            ("'A' = b", "A", "b"),
            ("A=b \"c\"", "A", "b \"c\""),
            ("A=it's", "A", "it's"),
            ("A==", "A", "="),
            ("A=", "A", ""),
            ("A=''", "A", ""),
            ("A=$HOME/%d # no comment", "A", "$HOME/%d # no comment"),
        ] {
            assert_eq!(parse(line), Some(Ok((name.into(), value.into()))), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_assignments() {
        for line in ["* * * * * A=b", "@daily A=b", "1 2", "word", "A b=c", "\"a=b\"=c", ""] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn errors_say_why_an_assignment_is_invalid() {
        for (line, reason) in [
            ("A=\"b", "the quote that begins the value of A is not closed"),
            ("A='b' c", "\"c\" follows the closing quote of A"),
            ("5=b", "\"5\" is not a name for a variable: letters, digits and _ are expected"),
            ("= b", "\"\" is not a name for a variable: letters, digits and _ are expected"),
            ("'A B'=c", "\"A B\" is not a name for a variable: letters, digits and _ are expected"),
        ] {
            assert_eq!(parse(line), Some(Err(reason.into())), "{line}");
        }
    }

    #[test]
    fn values_that_cannot_be_quoted_are_not_printed() {
        assert_eq!(print("A", "a\nb"), None);
        assert_eq!(print("A", " \"it's\""), None);
        assert_eq!(print("A B", "c"), None);
    }

    proptest! {
        #[test]
        fn a_printed_assignment_is_read_back(name in "[A-Z_][A-Z0-9_]{0,5}", value in "[a '\"=#%\\\\\t]{0,8}") {
            if let Some(line) = print(&name, &value) {
                prop_assert_eq!(parse(&line), Some(Ok((name, value))));
            }
        }
    }
}
