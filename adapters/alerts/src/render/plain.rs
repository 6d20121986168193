//! Text that others wrote, made harmless and short: names, reasons, and the output of jobs.

/// `text` without escape sequences of terminals and without control characters; line ends and tabs stay.
///
/// A carriage return is a line end only before a line feed. Elsewhere it would hide what stands before it.
pub(crate) fn clean(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                // CSI: parameters, then one final character.
                Some('[') => while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
                // OSC, DCS and their kin: a text that BEL or ESC \ ends.
                Some(']' | 'P' | '^' | '_' | 'X') => loop {
                    match rest.next() {
                        None | Some('\u{7}') => break,
                        // The rest of ESC \.
                        Some('\u{1b}') => {
                            rest.next();
                            break;
                        }
                        Some(_) => {}
                    }
                },
                _ => {}
            },
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            // Marks of direction would let a text show itself in another order than it has.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// `text` as one line of at most `most` characters: for subjects, titles and headers.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&clean(&words.join(" ")).replace(['\n', '\t'], " "), most)
}

/// The last `lines` lines of `text` in at most `most` characters, cleaned; `None` if nothing is left to see.
///
/// A first line that begins in the middle, or lines left out, are told by `...`.
pub(crate) fn tail(text: &str, lines: usize, most: usize) -> Option<String> {
    let text = clean(text);
    let text = text.trim_end().trim_start_matches('\n');
    if text.trim().is_empty() {
        return None;
    }
    let all: Vec<&str> = text.lines().collect();
    let last = all[all.len().saturating_sub(lines)..].join("\n");
    let count = last.chars().count();
    let cut: String = last.chars().skip(count.saturating_sub(most)).collect();
    let whole = all.len() <= lines && count <= most;
    Some(if whole { cut } else { format!("...\n{cut}") })
}

/// `text`, or its beginning and `...`, in at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(3)).collect::<String>() + "..."
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_and_controls_leave_nothing_behind() {
        for (text, clean_text) in [
            ("\u{1b}[31mred\u{1b}[0m and\u{1b}[1;4m bold", "red and bold"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;https://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
            ("a\r\nb\rc\n\td\u{0}\u{8}e", "a\nb\nc\n\tde"),
            ("\u{202e}gpj.exe\u{2066}", "gpj.exe"),
            ("cut off \u{1b}[", "cut off "),
            ("cut off \u{1b}", "cut off "),
            ("äöü 🔔", "äöü 🔔"),
        ] {
            assert_eq!(clean(text), clean_text, "{text:?}");
        }
    }

    #[test]
    fn a_tail_has_the_last_lines_and_tells_that_there_were_more() {
        assert_eq!(tail("", 3, 10), None);
        assert_eq!(tail(" \n\u{1b}[0m\n", 3, 10), None);
        assert_eq!(tail("\n a\nb\n\n", 3, 10).as_deref(), Some(" a\nb"));
        assert_eq!(tail("1\n2\n3\n4\n", 3, 10).as_deref(), Some("...\n2\n3\n4"));
        assert_eq!(tail("123456789", 3, 4).as_deref(), Some("...\n6789"));
        assert_eq!(tail("ä\nöü", 3, 3).as_deref(), Some("...\n\nöü"));
    }

    proptest! {
        #[test]
        fn one_line_is_one_line_and_as_short_as_asked(text in any::<String>(), most in 4..100_usize) {
            let line = one_line(&text, most);
            prop_assert!(!line.contains(char::is_control) && line.chars().count() <= most, "{line:?}");
        }

        #[test]
        fn a_tail_is_as_short_as_asked(text in any::<String>(), lines in 1..5_usize, most in 1..50_usize) {
            if let Some(tail) = tail(&text, lines, most) {
                prop_assert!(tail.lines().count() <= lines + 1 && tail.chars().count() <= most + 4);
                prop_assert!(!tail.contains('\u{1b}'), "{tail:?}");
            }
        }
    }
}
