//! Circles of imports between the files of one crate.
//!
//! It reads `use` statements and paths that begin with `crate::`, `self::` or `super::`, outside comments and unit
//! tests. Names that a module re-exports lead to the file that defines them. It does not see glob imports, names made
//! by macros, calls of methods, and circles between a module and its own children, which are one room.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, MAX_CIRCLE, Source};

type Path = Vec<String>;

/// One file of a crate: its imports as absolute paths, and the names that it re-exports.
struct Module<'a> {
    file: &'a str,
    imports: BTreeSet<Path>,
    exports: BTreeMap<String, Path>,
}

pub fn circles(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Module<'_>>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product()) {
        let Some((name, file)) = source.path.split_once("/src/") else { continue };
        let path = module_path(file);
        crates.entry(name).or_default().insert(path.clone(), module(source, &path));
    }
    let mut findings = Vec::new();
    for (name, modules) in &crates {
        let edges: BTreeMap<&Path, BTreeSet<&Path>> = modules
            .iter()
            .map(|(path, module)| (path, module.imports.iter().filter_map(|to| target(modules, path, to)).collect()))
            .collect();
        for circle in strongly_connected(&edges).into_iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            let files: Vec<&str> = circle.iter().map(|path| modules[*path].file).collect();
            let first = format!("{name}/src/{}", files[0].rsplit_once("/src/").map_or("", |(_, file)| file));
            findings.push(("circle", first, format!("a circle of {} files: {}", files.len(), files.join(" "))));
        }
    }
    findings
}

/// `a/b.rs` and `a/b/mod.rs` are both `a::b`; `lib.rs` and `main.rs` are the root.
fn module_path(file: &str) -> Path {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    let names = file.split('/').map(str::to_owned);
    names.filter(|name| !matches!(name.as_str(), "lib" | "main")).collect()
}

fn module<'a>(source: &'a Source, path: &Path) -> Module<'a> {
    let code = code(&source.text);
    let (mut imports, mut exports) = (BTreeSet::new(), BTreeMap::new());
    for statement in code.split(';') {
        let Some((before, tree)) =
            statement.rsplit_once("use ").filter(|(before, _)| !before.ends_with(char::is_alphanumeric))
        else {
            continue;
        };
        let public = before.trim_end().rsplit(['\n', '}']).next().is_some_and(|word| word.trim().starts_with("pub"));
        for import in leaves(tree) {
            if let Some(absolute) = absolute(&import, path) {
                if let Some(name) = absolute.last().filter(|_| public) {
                    exports.insert(name.clone(), absolute.clone());
                }
                imports.insert(absolute);
            }
        }
    }
    for prefix in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest: String =
                code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            let inner = code[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$'));
            imports.extend(absolute(&rest, path).filter(|_| !inner));
        }
    }
    Module { file: &source.path, imports, exports }
}

/// The text without comments and without what follows the first unit test.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The single paths of a tree of imports: `a::{b, c::{self, D as E}}` has `a::b`, `a::c::self` and `a::c::D`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or("").trim().to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut leaves_of, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaves_of.extend(leaves(&inner[start..at]).iter().map(|leaf| format!("{}{leaf}", prefix.trim())));
                start = at + 1;
            }
            _ => {}
        }
    }
    leaves_of
}

/// A path from the root of the crate; `None` for other crates. `from` is the module that has it.
fn absolute(import: &str, from: &Path) -> Option<Path> {
    let mut parts = import.split("::").filter(|part| !part.is_empty()).peekable();
    let mut path = match *parts.peek()? {
        "crate" => Path::new(),
        "self" | "super" => from.clone(),
        _ => return None,
    };
    for part in parts {
        match part {
            "crate" | "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
    }
    Some(path)
}

/// The module that an import of `from` leads to, unless it is the module itself, its parent or its child.
fn target<'a>(modules: &'a BTreeMap<Path, Module<'_>>, from: &Path, import: &Path) -> Option<&'a Path> {
    let mut import = import.clone();
    for _ in 0..8 {
        let module = (0..=import.len()).rev().find(|n| modules.contains_key(&import[..*n]))?;
        let (path, found) = modules.get_key_value(&import[..module])?;
        match import.get(module).and_then(|name| found.exports.get(name)).filter(|export| **export != import) {
            Some(export) => import = export.iter().chain(&import[module + 1..]).cloned().collect(),
            None => return Some(path).filter(|path| !from.starts_with(path) && !path.starts_with(from)),
        }
    }
    None
}

/// The sets of modules of which each reaches every other.
fn strongly_connected<'a>(edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>) -> Vec<BTreeSet<&'a Path>> {
    let reach = |from: &'a Path| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            open.extend(edges[next].iter().filter(|to| reached.insert(**to)));
        }
        reached
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges.keys().map(|path| (*path, reach(path))).collect();
    let circles = edges.keys().map(|path| {
        let mutual = reached[path].iter().filter(|other| reached[*other].contains(path)).copied();
        mutual.collect::<BTreeSet<&Path>>()
    });
    circles.filter(|circle| !circle.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn a_circle_is_found_through_a_re_export_and_not_through_a_parent() {
    let file = |path: &str, text: &str| Source { path: format!("app/src/{path}"), text: text.into() };
    let sources = [
        file("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;\npub use crate::c::C;"),
        file("a/mod.rs", "mod d;\nuse crate::{b::{self, B as Bee}, other};\nuse std::fmt;"),
        file("a/d.rs", "use super::A;\n// use crate::c;\n#[cfg(test)]\nmod tests { use crate::b; }"),
        file("b.rs", "fn f() { crate::C::new() }"),
        file("c.rs", "use super::e;"),
        file("e.rs", "use super::a::A;"),
    ];
    let circles = circles(&sources);
    let files = "app/src/a/mod.rs app/src/b.rs app/src/c.rs app/src/e.rs";
    assert_eq!(circles, [("circle", "app/src/a/mod.rs".to_owned(), format!("a circle of 4 files: {files}"))]);
}
