//! The prose of comments and pages: sentence length, first words, and citations.

use super::{Finding, Source};

/// The most words of a sentence.
const MAX_WORDS: usize = 25;

/// Beginnings that hide the subject of a sentence.
const OPENINGS: [&str; 3] = ["What ", "Whoever ", "Of what "];

/// Papers that are not in the repository. The names are split, so that this file does not cite them itself.
const CITATIONS: [&str; 2] = [concat!("DESIGN", " section"), concat!("SPEC", " section")];

pub fn findings(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let mut add = |rule, line: usize, sentence: String| {
            findings.push((rule, source.path.clone(), format!("line {line}: {sentence}")));
        };
        for (line, text) in source.text.lines().enumerate() {
            if let Some(citation) = CITATIONS.iter().find(|citation| text.contains(**citation)) {
                add("citation", line + 1, format!("cites \"{citation}\", which is not in the repository"));
            }
        }
        for (line, paragraph) in paragraphs(source) {
            if source.is_rust() && OPENINGS.iter().any(|opening| paragraph.starts_with(opening)) {
                add("opening", line, format!("\"{}\"", shortened(&paragraph)));
            }
            if source.is_product() || !source.is_rust() {
                for sentence in sentences(&paragraph) {
                    let words = words(&sentence);
                    if words > MAX_WORDS {
                        add("sentence", line, format!("{words} words: \"{}\"", shortened(&sentence)));
                    }
                }
            }
        }
    }
    findings
}

/// The paragraphs of running text with their lines: of comments that fill a line, or of a Markdown page. Code blocks,
/// lists, tables and headings are left out.
fn paragraphs(source: &Source) -> Vec<(usize, String)> {
    let (mut paragraphs, mut code, mut list, mut marker) = (Vec::<(usize, String)>::new(), false, false, "");
    let mut open = false;
    for (number, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        let (this_marker, text) = match source.is_rust() {
            true => ["///", "//!", "//"].iter().find_map(|m| Some((*m, line.strip_prefix(m)?))).unwrap_or(("", "")),
            false => ("", line),
        };
        if this_marker != marker {
            (code, list, open, marker) = (false, false, false, this_marker);
        }
        let text = text.trim();
        if text.starts_with("```") {
            (code, open) = (!code, false);
        } else if code || text.is_empty() {
            (list, open) = (list && code, false);
        } else if text.starts_with(['|', '#', '<', '>']) {
            open = false;
        } else if is_item(text) {
            (list, open) = (true, false);
        } else if !list {
            match paragraphs.last_mut().filter(|_| open) {
                Some((_, paragraph)) => *paragraph = format!("{paragraph} {text}"),
                None => paragraphs.push((number + 1, text.to_owned())),
            }
            open = true;
        }
    }
    paragraphs
}

fn is_item(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.starts_with("- ") || text.starts_with("* ") || (number.len() < text.len() && number.starts_with(". "))
}

/// The sentences of a paragraph. Each code span is one word.
fn sentences(paragraph: &str) -> Vec<String> {
    let spans = paragraph.split('`').enumerate();
    let text: String = spans.map(|(n, part)| if n % 2 == 0 { part } else { "Code" }).collect();
    let (mut sentences, mut sentence) = (Vec::new(), String::new());
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        sentence = format!("{sentence} {word}");
        let ends = word.trim_end_matches([')', '"', '*', '_', ']']).ends_with(['.', '?', '!']);
        let begins = words.peek().is_none_or(|next| !next.starts_with(|c: char| c.is_lowercase()));
        if ends && begins {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    sentences.push(sentence);
    sentences
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn shortened(text: &str) -> String {
    text.split_whitespace().take(9).collect::<Vec<_>>().join(" ") + " ..."
}

#[test]
fn sentences_are_counted_without_code_lists_and_tables() {
    let text = "//! One `two two` three, i.e. four. Five\n//! six!\n//!\n//! - an item\n//!   of two lines\n//! | table |\n\
                //! ```\n//! let code = 1;\n//! ```\n// Another.\nfn code() {} // not this\n";
    let source = Source { path: "a.rs".into(), text: text.into() };
    let paragraphs = paragraphs(&source);
    assert_eq!(paragraphs.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 10]);
    let counts: Vec<usize> = sentences(&paragraphs[0].1).iter().map(|sentence| words(sentence)).collect();
    assert_eq!(counts, [5, 2, 0]);
}
