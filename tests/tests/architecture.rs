//! ARCHITECTURE.md shows the exception matrix, the states of a row and the guards as the code has them.
//!
//! `UPDATE=1 cargo test -p carillon-tests --test architecture` writes them.

use std::path::Path;

use carillon_domain::{firing, guard, matrix};
use carillon_tests::markdown::with_generated;

#[test]
fn the_page_shows_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let page = std::fs::read_to_string(&path).expect("ARCHITECTURE.md");
    let generated = with_generated(&page, "matrix", &matrix::as_markdown())
        .and_then(|page| with_generated(&page, "states", &firing::states_as_mermaid()))
        .and_then(|page| with_generated(&page, "guards", &guard::as_markdown()))
        .expect("the page has a place for each");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &generated).expect("the page can be written");
    }
    assert!(page == generated || std::env::var_os("UPDATE").is_some(), "the page is old: run this test with UPDATE=1");
}
