//! How far a reader has got in the output of a run at another node, and what comes next.
//!
//! The other node publishes the newest part of the output and its length. The record keeps the beginning and the end. The reader gets each
//! part once and in order, with a sentence where a part is missing.

use carillon_store::{LivePart, Output};

/// How many bytes at the end of what was passed on tell where in the record that is.
const COMPARED: usize = 4 * 1024;
/// The part of a truncated record that comes after what was left out, in bytes.
const KEPT_END: usize = 32 * 1024;
/// Where it cannot be told how much is missing.
const SOME_LEFT_OUT: &[u8] = b"\n[some output was left out here]\n";

/// Where so many bytes are missing.
pub(in crate::http) fn left_out(bytes: u64) -> Vec<u8> {
    format!("\n[{bytes} bytes of output were left out]\n").into_bytes()
}

/// The part that a reader has received.
#[derive(Debug, Default)]
pub(in crate::http) struct Passed {
    /// How far that goes, in bytes from the beginning of the output.
    written: u64,
    /// The newest of it, without a gap.
    last: Vec<u8>,
}

impl Passed {
    /// The part of a newer state that the reader lacks.
    pub fn news(&mut self, part: &LivePart) -> Vec<u8> {
        let new = part.written.saturating_sub(self.written);
        let shown = usize::try_from(new).unwrap_or(usize::MAX).min(part.tail.len());
        let shown = &part.tail[part.tail.len() - shown..];
        let missing = new - shown.len() as u64;
        let mut news = Vec::with_capacity(shown.len());
        if missing > 0 {
            self.last.clear();
            news = left_out(missing);
        }
        news.extend_from_slice(shown);
        self.last.extend_from_slice(shown);
        self.last.drain(..self.last.len().saturating_sub(COMPARED));
        self.written += new;
        news
    }

    /// The part of the record that the reader lacks, when the run has ended.
    pub fn rest(&self, kept: &Output) -> Vec<u8> {
        let all = kept.bytes.as_slice();
        let seam = if kept.truncated { all.len().saturating_sub(KEPT_END) } else { all.len() };
        let (begin, end) = all.split_at(seam);
        let passed = usize::try_from(self.written).unwrap_or(usize::MAX);
        if begin.get(..passed).is_some_and(|passed| passed.ends_with(&self.last)) {
            let gap = if kept.truncated { SOME_LEFT_OUT } else { &[] };
            return [&begin[passed..], gap, end].concat();
        }
        let newest = &all[all.len().saturating_sub(KEPT_END)..];
        match after_the_only(&self.last, newest) {
            Some(rest) => rest.to_vec(),
            None if newest.ends_with(&self.last) => Vec::new(),
            None => [SOME_LEFT_OUT, newest].concat(),
        }
    }
}

/// The bytes after `part` in `all`, if it occurs there once.
fn after_the_only<'a>(part: &[u8], all: &'a [u8]) -> Option<&'a [u8]> {
    let mut places = all.windows(part.len().max(1)).enumerate().filter(|(_, window)| *window == part);
    let (at, _) = places.next()?;
    places.next().is_none().then(|| &all[at + part.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(written: u64, tail: &str) -> LivePart {
        LivePart { written, tail: tail.into() }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    /// Lines that differ, so many bytes of them.
    fn lines(bytes: usize) -> String {
        (0..).map(|n| format!("line {n}\n")).flat_map(String::into_bytes).map(char::from).take(bytes).collect()
    }

    #[test]
    fn each_look_passes_on_what_is_new() {
        for (what, looks) in [
            ("first look", vec![(part(3, "one"), "one")]),
            ("nothing yet", vec![(part(0, ""), ""), (part(3, "one"), "one")]),
            ("no change", vec![(part(3, "one"), "one"), (part(3, "one"), "")]),
            ("more of it", vec![(part(3, "one"), "one"), (part(6, "onetwo"), "two")]),
            ("the tail has moved on", vec![(part(3, "one"), "one"), (part(8, "twomo"), "twomo")]),
            ("it overlaps", vec![(part(3, "one"), "one"), (part(7, "netwom"), "twom")]),
            ("a gap", vec![(part(3, "one"), "one"), (part(9, "two"), "\n[3 bytes of output were left out]\ntwo")]),
            ("late", vec![(part(9, "two"), "\n[6 bytes of output were left out]\ntwo")]),
            ("an older state", vec![(part(6, "onetwo"), "onetwo"), (part(3, "one"), ""), (part(7, "netwom"), "m")]),
        ] {
            let mut passed = Passed::default();
            for (part, news) in looks {
                assert_eq!(text(passed.news(&part)), news, "{what}");
            }
        }
    }

    #[test]
    fn the_record_adds_what_was_not_passed_on() {
        let missing = text(SOME_LEFT_OUT.to_vec());
        let long = lines(64 * 1024);
        let (begin, end) = long.split_at(32 * 1024);
        let loud = format!("{}end\n", "x".repeat(64 * 1024 - 4));
        for (what, looks, kept, truncated, rest) in [
            ("never seen", vec![], "one two", false, "one two".to_owned()),
            ("never seen and long", vec![], &*long, true, format!("{begin}{missing}{end}")),
            ("nothing more", vec![part(3, "one")], "one", false, String::new()),
            ("printed nothing", vec![part(0, "")], "", false, String::new()),
            ("more", vec![part(3, "one")], "one two", false, " two".to_owned()),
            ("the same again and again", vec![part(2, "x\n")], "x\nx\nx\n", false, "x\nx\n".to_owned()),
            ("after a gap", vec![part(3, "one"), part(8, "two")], "one..two!", false, "!".to_owned()),
            ("pieces were lost live", vec![part(6, "onetwo")], "one..onetwo!", false, "!".to_owned()),
            ("not in the record", vec![part(3, "two")], "no", false, format!("{missing}no")),
            ("the output was not kept", vec![part(3, "two")], "", true, missing.clone()),
            ("seen to the end", vec![part(1 << 20, &long)], &*long, true, String::new()),
            ("seen to shortly before", vec![part(1 << 20, &long[..60_000])], &*long, true, long[60_000..].to_owned()),
            ("only the beginning", vec![part(9, &long[..9])], &*long, true, format!("{}{missing}{end}", &begin[9..])),
            (
                "not where",
                vec![part(1 << 20, &loud[..60_000])],
                &*loud,
                true,
                format!("{missing}{}", &loud[32 * 1024..]),
            ),
            ("not where, but at its end", vec![part(1 << 20, &loud)], &*loud, true, String::new()),
        ] {
            let mut passed = Passed::default();
            for part in looks {
                passed.news(&part);
            }
            let output = Output { bytes: kept.into(), truncated };
            assert_eq!(text(passed.rest(&output)), rest, "{what}");
        }
    }
}
