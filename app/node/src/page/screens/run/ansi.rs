//! The output of a run as HTML: text is escaped, colours of a terminal become classes, every other command is left out.
//!
//! Output is written by anybody, so nothing of it becomes markup, an address or a style. A parser keeps its state between chunks: a colour
//! may begin in one and end in another, and a character may be cut in two.

use std::fmt::Write;

/// The longest command that is waited for; a longer one is dropped.
const LONGEST_COMMAND: usize = 256;

/// The kind of text that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// `ESC [`: parameters up to a letter.
    Command,
    /// `ESC ]` and others that end with BEL or `ESC \`: titles and links.
    Words,
    /// The ESC that may end them.
    WordsEscape,
    /// One more character, as in `ESC ( B`.
    One,
}

/// Turns output into HTML, chunk by chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ansi {
    within: Within,
    command: String,
    colour: Option<u8>,
    ground: Option<u8>,
    bold: bool,
    faint: bool,
    italic: bool,
    underlined: bool,
    /// The beginning of a character whose end has not come.
    cut: Vec<u8>,
    after_return: bool,
    spoken: bool,
}

impl Ansi {
    /// The HTML of a chunk; all elements that it opens are closed in it.
    pub fn html(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let whole = whole_characters(&all);
        self.cut = all[whole..].to_vec();
        let text = String::from_utf8_lossy(&all[..whole]);
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        for c in text.chars() {
            self.take(c, &mut out);
        }
        self.close(&mut out);
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        match (self.within, c) {
            (Within::Text, '\x1b') => self.within = Within::Escape,
            (Within::Text, c) => self.show(c, out),
            (Within::Escape, '[') => (self.within, self.command) = (Within::Command, String::new()),
            (Within::Escape, ']' | 'P' | 'X' | '^' | '_') => self.within = Within::Words,
            (Within::Escape, '(' | ')' | '*' | '+' | '#' | '%') => self.within = Within::One,
            (Within::Escape | Within::One, _) => self.within = Within::Text,
            (Within::Command, '@'..='~') => {
                self.within = Within::Text;
                if c == 'm' {
                    self.close(out);
                    self.style();
                }
            }
            (Within::Command, ' '..='?') if self.command.len() < LONGEST_COMMAND => self.command.push(c),
            // Not a command after all, or one without an end.
            (Within::Command, c) => {
                self.within = Within::Text;
                self.show(c, out);
            }
            (Within::Words, '\x07') | (Within::WordsEscape, '\\') => self.within = Within::Text,
            (Within::Words, '\x1b') => self.within = Within::WordsEscape,
            (Within::WordsEscape, _) => self.within = Within::Words,
            (Within::Words, _) => {}
        }
    }

    fn show(&mut self, c: char, out: &mut String) {
        let after_return = std::mem::take(&mut self.after_return);
        match c {
            // A line that is written again, as by progress bars, becomes a line of its own.
            '\r' => return self.after_return = true,
            '\n' => {}
            _ if after_return => self.text('\n', out),
            _ => {}
        }
        // Commands that turn the direction of text could make it read as something else.
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        match c {
            '\n' | '\t' => self.text(c, out),
            c if c.is_control() || turns => self.text('\u{fffd}', out),
            c => self.text(c, out),
        }
    }

    fn text(&mut self, c: char, out: &mut String) {
        self.open(out);
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }

    /// Opens an element where the text is not plain and none is open.
    fn open(&mut self, out: &mut String) {
        let flags = [(self.bold, "b"), (self.faint, "f"), (self.italic, "i"), (self.underlined, "u")];
        let plain = self.colour.is_none() && self.ground.is_none() && flags.iter().all(|(on, _)| !on);
        if plain || self.spoken {
            return;
        }
        let mut classes: Vec<String> =
            flags.iter().filter(|(on, _)| *on).map(|(_, name)| format!("a-{name}")).collect();
        classes.extend(self.colour.map(|n| format!("a{n}")));
        classes.extend(self.ground.map(|n| format!("ab{n}")));
        // Writing into a string does not fail.
        let _ = write!(out, "<span class=\"{}\">", classes.join(" "));
        self.spoken = true;
    }

    fn close(&mut self, out: &mut String) {
        if std::mem::take(&mut self.spoken) {
            out.push_str("</span>");
        }
    }

    /// `ESC [ ... m`
    fn style(&mut self) {
        let command = std::mem::take(&mut self.command);
        let mut numbers =
            command.split([';', ':']).map(|text| if text.is_empty() { Some(0) } else { text.parse::<u16>().ok() });
        while let Some(number) = numbers.next() {
            match number {
                Some(0) => {
                    (self.colour, self.ground, self.bold, self.faint, self.italic, self.underlined) = Default::default()
                }
                Some(1) => self.bold = true,
                Some(2) => self.faint = true,
                Some(3) => self.italic = true,
                Some(4) => self.underlined = true,
                Some(22) => (self.bold, self.faint) = (false, false),
                Some(23) => self.italic = false,
                Some(24) => self.underlined = false,
                Some(n @ 30..=37) => self.colour = u8::try_from(n - 30).ok(),
                Some(n @ 90..=97) => self.colour = u8::try_from(n - 82).ok(),
                Some(n @ 40..=47) => self.ground = u8::try_from(n - 40).ok(),
                Some(n @ 100..=107) => self.ground = u8::try_from(n - 92).ok(),
                Some(39) => self.colour = None,
                Some(49) => self.ground = None,
                Some(which @ (38 | 48)) => {
                    let colour = extended(&mut numbers);
                    *(if which == 38 { &mut self.colour } else { &mut self.ground }) = colour;
                }
                _ => {}
            }
        }
    }
}

/// A colour of 256, or of all: one of the sixteen that themes have, or none.
fn extended(numbers: &mut impl Iterator<Item = Option<u16>>) -> Option<u8> {
    match numbers.next().flatten() {
        Some(5) => numbers.next().flatten().and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 16),
        Some(2) => {
            numbers.by_ref().take(3).for_each(drop);
            None
        }
        _ => None,
    }
}

/// How many of the bytes are whole characters; up to three at the end may be the beginning of one.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return bytes.len(),
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        Ansi::default().html(text.as_bytes())
    }

    #[test]
    fn colours_become_classes_and_text_stays_text() {
        for (text, expected) in [
            ("plain", "plain"),
            ("<script>alert('x')</script>&\"", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"),
            ("\x1b[31mred\x1b[0m not", "<span class=\"a1\">red</span> not"),
            ("\x1b[1;94;41mx\x1b[22;39;49my", "<span class=\"a-b a12 ab1\">x</span>y"),
            ("\x1b[38;5;9ma\x1b[38;5;200mb\x1b[38;2;1;2;3mc", "<span class=\"a9\">a</span>bc"),
            ("\x1b[31;\"><img src=x onerror=alert(1)>m", "mg src=x onerror=alert(1)&gt;m"),
            ("\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x07", "link"),
            ("\x1b]0;title\x07x\x1b[2J\x1b[1;1Hy\x1b(Bz", "xyz"),
            ("50%\r100%\r\ndone\n", "50%\n100%\ndone\n"),
            ("a\x00b\x08c\u{202e}d", "a\u{fffd}b\u{fffd}c\u{fffd}d"),
            ("\x1b[9999999999;31mx", "<span class=\"a1\">x</span>"),
        ] {
            assert_eq!(html(text), expected, "{text:?}");
        }
    }

    #[test]
    fn chunks_may_be_cut_anywhere() {
        let text = "a \x1b[32mgrün ✓ 🙂\x1b[0m <b>\r\nend \x1b]0;t\x07!";
        let plain = |html: &str| html.replace("</span><span class=\"a2\">", "");
        let whole = html(text);
        for size in 1..text.len() {
            let mut ansi = Ansi::default();
            let parts: String = text.as_bytes().chunks(size).map(|chunk| ansi.html(chunk)).collect();
            assert_eq!(plain(&parts), whole, "chunks of {size}");
        }
    }

    #[test]
    fn any_bytes_give_balanced_elements() {
        let mut seed = 7_u32;
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..64)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"\x1b[];m0123456789<>&\"\r\n\x07\\a\xc3\xff"[(seed >> 16) as usize % 26]
                })
                .collect();
            let out = Ansi::default().html(&bytes);
            let without = out.replace("</span>", "");
            assert_eq!(out.matches("<span class=\"").count(), out.matches("</span>").count(), "{out}");
            assert_eq!(without.matches('<').count(), without.matches("<span class=\"").count(), "{out}");
        }
    }
}
