//! The statements that stand in Rust sources, found as text: what a store could send, beside what it has sent.

use std::fs;
use std::path::{Path, PathBuf};

/// The words that statements begin with.
const VERBS: [&str; 13] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "SET", "KILL", "START", "COMMIT", "ROLLBACK", "SHOW", "CREATE",
    "ALTER",
];

/// A statement in a source, or the beginning of one, with holes that are filled when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The folder of its file.
    pub folder: String,
    /// Its file, and the number of its line.
    pub place: String,
    /// The texts between its holes.
    pub parts: Vec<String>,
}

impl Statement {
    /// Whether a statement that was sent may be this one.
    pub fn is_in(&self, sent: &str) -> bool {
        let mut rest = sent;
        self.parts.iter().all(|part| match rest.find(part.as_str()) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}

/// Every statement in the sources of a folder and those below it, but for their tests. Folders are named from there.
///
/// # Panics
/// Where a source cannot be read.
pub fn statements(root: &Path) -> Vec<Statement> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a folder");
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = |path: &Path| path.strip_prefix(root).expect("below it").display().to_string();
                let text = fs::read_to_string(&entry).expect("a source");
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                for (line, literal) in literals(text) {
                    if begins_a_statement(&literal) {
                        let place = format!("{}:{line}", name(&entry));
                        found.push(Statement { folder: name(&folder), place, parts: parts(&literal) });
                    }
                }
            }
        }
    }
    found
}

fn begins_a_statement(literal: &str) -> bool {
    let first = literal.trim_start_matches('(').split(' ').next().unwrap_or_default();
    VERBS.contains(&first)
}

/// The text literals of a source with the numbers of their lines, as they are once the program runs.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut chars, mut line) = (Vec::new(), source.chars().peekable(), 1);
    while let Some(next) = chars.next() {
        match next {
            '\n' => line += 1,
            '/' if chars.peek() == Some(&'/') => {
                chars.find(|next| *next == '\n');
                line += 1;
            }
            // A quotation mark as a character; lifetimes have none.
            '\'' if chars.peek() == Some(&'"') => _ = chars.next(),
            '"' => {
                let (begun, mut text) = (line, String::new());
                loop {
                    match chars.next() {
                        None | Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some('\n') => {
                                line += 1;
                                while let Some(blank) = chars.next_if(|next| next.is_whitespace()) {
                                    line += usize::from(blank == '\n');
                                }
                            }
                            Some('n') => text.push('\n'),
                            Some(escaped) => text.push(escaped),
                            None => break,
                        },
                        Some(next) => {
                            line += usize::from(next == '\n');
                            text.push(next);
                        }
                    }
                }
                found.push((begun, text));
            }
            _ => {}
        }
    }
    found
}

/// The texts between `{...}`, without blanks around them.
fn parts(literal: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in literal.split('{') {
        let kept = piece.split_once('}').map_or(piece, |(_, kept)| kept).trim();
        if !kept.is_empty() {
            parts.push(kept.to_owned());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_as_the_compiler_reads_them() {
        let source = "f('\"', \"a\\\n     b\"); // \"no\"\nlet x: &'static str = \"c\\\"d\";";
        assert_eq!(literals(source), [(1, "ab".to_owned()), (3, "c\"d".to_owned())]);
    }

    #[test]
    fn a_statement_is_known_by_what_stands_between_its_holes() {
        let statement =
            |literal: &str| Statement { folder: String::new(), place: String::new(), parts: parts(literal) };
        assert!(statement("DELETE FROM {table} WHERE id IN ({})").is_in("DELETE FROM run WHERE id IN (1,2)"));
        assert!(!statement("DELETE FROM {table} WHERE id = {}").is_in("DELETE FROM run WHERE at < 1"));
        assert!(begins_a_statement("(SELECT 1)") && !begins_a_statement("SELECTED rows"));
    }
}
