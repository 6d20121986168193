//! The style of the whole repository: short plain sentences, no citations of papers outside it, small files and folders,
//! and no large circles of imports. TigerBeetle's `tidy` is the model.

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
        let top = ["domain/src/", "adapters/", "app/", "plugins/", "clients/"];
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

    let faults: Vec<String> =
        findings.into_iter().map(|(rule, path, sentence)| format!("{path}: {sentence} ({rule})")).collect();
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
