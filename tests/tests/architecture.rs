//! The pages show the matrix, the states of a row and the guards as the code has them, and name only files that exist.
//!
//! `UPDATE=1 cargo test -p carillon-tests --test architecture` writes the generated parts.

use std::path::{Path, PathBuf};

use carillon_domain::{firing, guard, matrix};
use carillon_tests::markdown::with_generated;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository").to_owned()
}

#[test]
fn the_pages_show_what_the_code_says() {
    let update = std::env::var_os("UPDATE").is_some();
    for (file, name, text) in [
        ("docs/matrix.md", "matrix", matrix::as_markdown()),
        ("docs/firing.md", "states", firing::states_as_mermaid()),
        ("docs/proof.md", "guards", guard::as_markdown()),
    ] {
        let path = repository().join(file);
        let page = std::fs::read_to_string(&path).expect(file);
        let generated = with_generated(&page, name, &text).expect("the page has a place for it");
        if update {
            std::fs::write(&path, &generated).expect("the page can be written");
        }
        assert!(page == generated || update, "{file} is old: run this test with UPDATE=1");
    }
}

/// The pages for those who change the code.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "domain/mutants.md"].map(|page| root.join(page)).into();
    for folder in ["docs", "docs/decisions"] {
        let entries = std::fs::read_dir(root.join(folder)).expect(folder);
        pages.extend(entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some()));
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md") && page.exists());
    pages
}

/// The paths in backticks that a page names: each begins with a folder of the repository.
fn named_paths(page: &str) -> impl Iterator<Item = &str> {
    const ROOMS: [&str; 6] = ["domain/", "adapters/", "app/", "plugins/", "clients/", "tests/"];
    let in_backticks = page.split('`').skip(1).step_by(2);
    in_backticks
        .filter(|text| ROOMS.iter().any(|room| text.starts_with(room)))
        .filter(|text| !text.contains(['*', '{', '<', ' ']))
}

#[test]
fn the_pages_name_only_files_that_exist() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for path in named_paths(&text).filter(|path| !repository().join(path).exists()) {
            missing.push(format!("{} names {path}", page.display()));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_tour_and_the_glossary_stay_short() {
    for (file, most) in [("ARCHITECTURE.md", 200), ("docs/glossary.md", 60)] {
        let Ok(text) = std::fs::read_to_string(repository().join(file)) else { continue };
        let lines = text.lines().count();
        assert!(lines <= most, "{file} has {lines} lines; {most} are the most");
    }
}
