//! The percent sign: the first unescaped `%` ends the command and begins its standard input.
//!
//! The rules are those of Debian's cron, byte for byte:
//! - In the command, a backslash before `%` or before another backslash is removed.
//! - In the standard input, only a backslash before `%` is removed. Every other `%` is a newline.
//! - A missing last newline of the standard input is added.
//!
//! So a crontab cannot express a standard input without a last newline, or with a backslash at the end of a line.

/// The two parts of the text after a schedule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// The text for the shell.
    pub(super) command: String,
    /// The standard input; `None` if it is empty.
    pub(super) stdin: Option<String>,
    /// Whether two backslashes became one. Cronie would keep both.
    pub(super) halved: bool,
}

/// Splits the text after the schedule into the command and its standard input.
pub(super) fn split(text: &str) -> Parts {
    let mut parts = Parts::default();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '%' => {
                parts.stdin = Some(stdin(&text[at + 1..])).filter(|s| !s.is_empty());
                break;
            }
            '\\' => match chars.next() {
                Some((_, '%')) => parts.command.push('%'),
                Some((_, '\\')) => {
                    parts.command.push('\\');
                    parts.halved = true;
                }
                Some((_, other)) => parts.command.extend(['\\', other]),
                None => parts.command.push('\\'),
            },
            other => parts.command.push(other),
        }
    }
    parts
}

/// The text that [`split`] splits into `command` and `stdin`, or the reason why there is none.
pub(super) fn join(command: &str, stdin: Option<&str>) -> Result<String, &'static str> {
    let stdin = stdin.unwrap_or_default();
    let mut out = String::with_capacity(command.len() + stdin.len());
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = match c {
            '%' => true,
            '\\' => chars.peek().map_or(!stdin.is_empty(), |next| matches!(next, '%' | '\\')),
            _ => false,
        };
        if escaped {
            out.push('\\');
        }
        out.push(c);
    }
    if stdin.is_empty() {
        return Ok(out);
    }
    if !stdin.ends_with('\n') {
        return Err("its standard input does not end with a newline, and cron would add one");
    }
    if stdin.contains("\\\n") {
        return Err("a line of its standard input ends with a backslash, which a crontab cannot express");
    }
    out.push('%');
    for c in stdin.chars() {
        match c {
            '%' => out.push_str("\\%"),
            '\n' => out.push('%'),
            other => out.push(other),
        }
    }
    Ok(out)
}

fn stdin(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    let mut escaped = false;
    for c in text.chars() {
        match (escaped, c) {
            (true, '%') => out.push('%'),
            (false, '%') => out.push('\n'),
            _ => {
                if escaped {
                    out.push('\\');
                }
                if c != '\\' {
                    out.push(c);
                }
            }
        }
        escaped = c == '\\';
    }
    if escaped {
        out.push('\\');
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_bare_percent_begins_the_standard_input() {
        for (text, command, stdin) in [
            ("backup", "backup", None),
            (r"date +\%d", "date +%d", None),
            ("mail joe%Joe,%%Where?%", "mail joe", Some("Joe,\n\nWhere?\n")),
            ("cat%one", "cat", Some("one\n")),
            ("cat%", "cat", None),
            ("cat%%", "cat", Some("\n")),
            (r"cat%50\% off%a\b", "cat", Some("50% off\na\\b\n")),
            (r"cat%a\\b\\%", "cat", Some("a\\\\b\\%\n")),
            (r"cat%a\", "cat", Some("a\\\n")),
            (r"sed 's/\s\+//; s/\\/x/' f", r"sed 's/\s\+//; s/\/x/' f", None),
            (r"echo \\%in", r"echo \", Some("in\n")),
            (r"echo \\\%", r"echo \%", None),
            (r"echo \", r"echo \", None),
        ] {
            let parts = split(text);
            assert_eq!((parts.command.as_str(), parts.stdin.as_deref()), (command, stdin), "{text}");
        }
    }

    #[test]
    fn errors_say_why_a_text_cannot_be_written() {
        assert!(join("cat", Some("a")).unwrap_err().contains("does not end with a newline"));
        assert!(join("cat", Some("a\\\nb\n")).unwrap_err().contains("backslash"));
    }

    proptest! {
        #[test]
        fn a_joined_text_splits_into_the_same_parts(
            command in r"[a%\\ ]{0,12}",
            lines in proptest::collection::vec(r"([a%\\]{0,5}a)?", 0..4),
        ) {
            let stdin = Some(lines.iter().map(|line| format!("{line}\n")).collect::<String>()).filter(|s| !s.is_empty());
            let text = join(&command, stdin.as_deref()).unwrap();
            let parts = split(&text);
            prop_assert_eq!((parts.command, parts.stdin), (command, stdin));
        }
    }
}
