//! Tests that cannot be made on this machine say so where everybody sees it; `./check` gathers the sentences.

use std::io::Write as _;

/// Says that something is not tested here, and why.
pub fn tell(what: &str) {
    let words = format!("\n\nSKIPPED, NOT TESTED HERE: {what}\n\n");
    // Not through the macros, which tests capture.
    let _unheard = std::io::stderr().write_all(words.as_bytes());
}

/// Whether something can be tested, as nothing is `missing` for it; else says so.
pub fn can_be_tested(what: &str, missing: Option<String>) -> bool {
    if let Some(why) = &missing {
        tell(&format!("{what}: {why}"));
    }
    missing.is_none()
}
