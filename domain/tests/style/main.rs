//! The style of the whole repository: short plain sentences, no citations of papers outside it, small files and folders,
//! and no large circles of imports. TigerBeetle's `tidy` is the model.
//!
//! The debt in `debt.txt` lists the paths that do not keep a rule yet, each with its number of findings. The debt may
//! only shrink: more findings fail the test, and so does an entry without any. `UPDATE=1 cargo test -p carillon-domain
//! --test style` lowers the numbers and removes such entries; it never raises one.

mod imports;
mod prose;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a Rust file.
const MAX_LINES: usize = 400;

/// The most Rust files of one folder of product code.
const MAX_FILES: usize = 12;

/// The most files that may import each other in a circle.
const MAX_CIRCLE: usize = 3;

/// A breach of one rule: the rule, the path, and a sentence about it.
type Finding = (&'static str, String, String);

/// A text file of the repository; `path` is relative to its root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file ships: the source of a crate that is not a test.
    fn is_product(&self) -> bool {
        let top = ["domain/src/", "adapters/", "app/src/", "plugins/"];
        self.is_rust() && top.iter().any(|top| self.path.starts_with(top)) && self.path.contains("/src/")
    }

    fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

#[test]
fn the_repository_keeps_its_style() {
    let sources = sources();
    assert!(sources.iter().filter(|source| source.is_product()).count() > 100, "the repository was not found");
    let mut findings = prose::findings(&sources);
    findings.extend(sizes(&sources));
    findings.extend(imports::circles(&sources));

    let (mut debt, mut faults) = (debt(), Vec::new());
    for (rule, path, sentence) in findings {
        match debt.iter_mut().find(|entry| entry.covers(rule, &path)) {
            Some(entry) => entry.found.push(format!("{path}: {sentence}")),
            None => faults.push(format!("{path}: {sentence} ({rule})")),
        }
    }
    let shrink = std::env::var_os("UPDATE").is_some();
    for Entry { rule, prefix, allowed, found } in &debt {
        println!("debt: {prefix} has {} findings of {rule}, {allowed} are allowed", found.len());
        if found.len() > *allowed {
            faults.push(format!("{prefix}: {} findings of {rule}:\n  {}", found.len(), found.join("\n  ")));
        } else if found.is_empty() && !shrink {
            faults.push(format!("{prefix} keeps the rule {rule} now: remove its line from debt.txt"));
        }
    }
    if shrink {
        write_debt(&debt);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn sizes(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            findings.push(("lines", source.path.clone(), format!("{lines} lines, {MAX_LINES} are allowed")));
        }
        if source.is_product() {
            *folders.entry(source.folder()).or_default() += 1;
        }
    }
    let large = folders.into_iter().filter(|(_, files)| *files > MAX_FILES);
    findings.extend(large.map(|(folder, files)| {
        ("files", folder.to_owned(), format!("a folder of {files} Rust files, {MAX_FILES} are allowed"))
    }));
    findings
}

/// A path that does not keep a rule yet.
struct Entry {
    rule: &'static str,
    prefix: &'static str,
    allowed: usize,
    found: Vec<String>,
}

impl Entry {
    fn covers(&self, rule: &str, path: &str) -> bool {
        self.rule == rule && path.strip_prefix(self.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The entries of `debt.txt`; the longest path first, so that a file goes before its folder.
fn debt() -> Vec<Entry> {
    let lines = include_str!("debt.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut entries: Vec<Entry> = lines
        .map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            [rule, allowed, prefix] => Entry { rule, prefix, allowed: allowed.parse().unwrap(), found: Vec::new() },
            _ => panic!("debt.txt: {line} is not RULE NUMBER PATH"),
        })
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.prefix.len()));
    entries
}

/// Writes the debt with its numbers as low as the findings are.
fn write_debt(debt: &[Entry]) {
    let header = include_str!("debt.txt").lines().take_while(|line| line.starts_with('#'));
    let mut lines: Vec<String> = header.map(str::to_owned).collect();
    let owed = debt.iter().filter(|entry| !entry.found.is_empty());
    let mut entries: Vec<String> =
        owed.map(|entry| format!("{} {} {}", entry.rule, entry.allowed.min(entry.found.len()), entry.prefix)).collect();
    entries.sort();
    lines.extend(entries);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/style/debt.txt");
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// The Rust sources of the repository, and the Markdown of its root and of `docs`.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut sources, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in entries {
            let path = entry.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let name = path.rsplit('/').next().unwrap();
            if entry.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(entry);
                }
            } else if path.ends_with(".rs")
                || (path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/")))
            {
                sources.push(Source { text: fs::read_to_string(&entry).unwrap_or_default(), path });
            }
        }
    }
    sources
}
