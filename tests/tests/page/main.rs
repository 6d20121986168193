//! The page in a real browser.

mod actions;
mod budgets;
mod edit;
mod harness;
mod hostile;
mod keys;
mod live;
mod news;
mod rights;
mod schedules;
mod screens;
mod sign_in;
mod timeline;
mod trust;
mod undo;
mod without_scripts;

use carillon_tests::browser::{Borrowed, Browser, Look, missing};
use carillon_tests::skipped;

/// A browser; where none is found, this is told once for each test.
fn browser(look: Look) -> Option<Borrowed> {
    match missing() {
        Some(why) => {
            skipped::tell(&why);
            None
        }
        None => Some(Browser::borrow(look)),
    }
}

/// No error of the console, and no breach of the content security policy, since the last question.
#[track_caller]
fn no_complaint(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<String>::new(), "at {}", browser.url());
}

/// The console tells of the refusals that a test provokes, and of nothing else.
#[track_caller]
fn only_refusals(browser: &Browser, status: u16) {
    let complaints = browser.complaints();
    let said = format!("status of {status}");
    assert!(complaints.iter().all(|complaint| complaint.contains(&said)), "{complaints:?}");
}
