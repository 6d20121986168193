//! Colours on a terminal: when they are wanted, and what each word has.

use std::ffi::OsStr;
use std::io::IsTerminal;

use clap::ValueEnum;

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether standard output gets colours.
    pub fn on_stdout(self) -> bool {
        let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        self.is_wanted(std::io::stdout().is_terminal(), no_color.as_deref(), term.as_deref())
    }

    /// As no-color.org has it: a variable that is set to nothing counts as not set, and a flag is stronger.
    fn is_wanted(self, is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                is_terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
            }
        }
    }
}

/// The text in the colour of its first word, or as it is.
pub fn painted(text: &str) -> String {
    let code = match text.split(' ').next().unwrap_or_default() {
        "succeeded" | "ok" | "live" | "sent" => 32,
        "failed" | "timed_out" | "lost" | "error" | "fenced" => 31,
        "paused" | "skipped" | "cancelled" | "warning" => 33,
        "running" | "executing" | "prepared" | "waiting" => 36,
        _ => return text.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        for (choice, is_terminal, no_color, term, expected) in [
            (Colour::Auto, true, None, Some("xterm"), true),
            (Colour::Auto, true, Some(""), None, true),
            (Colour::Auto, true, Some("1"), None, false),
            (Colour::Auto, true, None, Some("dumb"), false),
            (Colour::Auto, false, None, Some("xterm"), false),
            (Colour::Always, false, Some("1"), Some("dumb"), true),
            (Colour::Never, true, None, Some("xterm"), false),
        ] {
            let wanted = choice.is_wanted(is_terminal, no_color.map(OsStr::new), term.map(OsStr::new));
            assert_eq!(wanted, expected, "{choice:?} {is_terminal} {no_color:?} {term:?}");
        }
        assert_eq!(painted("failed 2 h ago"), "\u{1b}[31mfailed 2 h ago\u{1b}[0m");
        assert_eq!(painted("idle"), "idle");
    }
}
