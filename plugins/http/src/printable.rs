//! A stranger's bytes as text that a terminal can be shown.

/// The sign in place of a character that cannot be shown.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Turns bytes, as they arrive, into text: what is not UTF-8, and control characters other than tab and line feed, are
/// replaced. A carriage return before a line feed goes.
#[derive(Debug, Default)]
pub(crate) struct Printable {
    /// The beginning of a character or of a line's end, the rest of which has not come yet.
    pending: Vec<u8>,
}

impl Printable {
    /// The text of the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() - unfinished(&self.pending);
        let rest = self.pending.split_off(whole);
        text(&std::mem::replace(&mut self.pending, rest))
    }

    /// The text of what never became whole.
    pub(crate) fn finish(self) -> String {
        text(&self.pending)
    }
}

/// How many bytes at the end may be the beginning of something.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    text.chars().map(|c| if c.is_control() && !matches!(c, '\t' | '\n') { REPLACEMENT } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_however_it_is_cut() {
        for (bytes, expected) in [
            ("ä€😀\tx\r\n".as_bytes(), "ä€😀\tx\n"),
            (b"a\xffb\xc3", "a\u{fffd}b\u{fffd}"),
            (b"\x1b[2Jx\0\r", "\u{fffd}[2Jx\u{fffd}\u{fffd}"),
            (b"\xf0\x9f\x98", "\u{fffd}"),
            ("\u{9b}31m".as_bytes(), "\u{fffd}31m"),
        ] {
            for size in 1..=bytes.len() {
                let mut printable = Printable::default();
                let mut shown: String = bytes.chunks(size).map(|chunk| printable.push(chunk)).collect();
                shown.push_str(&printable.finish());
                assert_eq!(shown, expected, "by {size}");
            }
        }
    }
}
