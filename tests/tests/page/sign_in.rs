//! Signing in by token and by link, and signing out.

use std::process::Command;

use carillon_tests::browser::{Browser, Look};
use carillon_tests::page_site::{Reader, Site};
use carillon_tests::server::binary;

use super::{browser, no_complaint, only_refusals};

#[test]
fn people_sign_in_by_token_or_link() {
    let Some(browser) = browser(Look::default()) else { return };
    a_token_signs_in_and_a_wrong_one_is_told_in_words(&browser);
    a_link_of_the_command_line_signs_in_once(&browser);
    a_session_outlives_its_server_and_ends_with_its_token(&browser);
}

fn a_token_signs_in_and_a_wrong_one_is_told_in_words(browser: &Browser) {
    let site = Site::start();
    browser.open(&site.at("/jobs?q=backup"));
    assert!(browser.url().contains("/sign-in?next="), "{}", browser.url());
    assert_eq!(browser.script("return document.activeElement.id", vec![]), "token");
    no_complaint(browser);
    browser.fill("#token", "not-a-token");
    browser.click("button.primary");
    browser.wait_for_text("#token-fault", "This token is not known here.");
    only_refusals(browser, 401);
    browser.fill("#token", &Reader::Operator.token());
    browser.click("button.primary");
    browser.wait_for_text(".status .menu", "operator");
    assert_eq!(browser.url(), site.at("/jobs?q=backup"), "it leads to where the reader wanted to go");
    browser.click(".status .menu summary");
    browser.click_words("Sign out");
    browser.wait_for("#token");
    browser.open(&site.at("/"));
    browser.wait_for("#token");
    browser.open(&site.at("/sign-in?next=javascript:window.hacked=1"));
    browser.fill("#token", &Reader::Viewer.token());
    browser.click("button.primary");
    browser.wait_for_text(".status .menu", "viewer");
    assert_eq!(browser.url(), site.at("/"), "no other place is led to");
    no_complaint(browser);
}

fn a_link_of_the_command_line_signs_in_once(browser: &Browser) {
    browser.forget();
    let site = Site::start();
    let output = Command::new(binary())
        .args(["open", "--print", "--server", site.server.url()])
        .current_dir(site.directory())
        .env_remove("CARILLON_TOKEN")
        .output()
        .expect("the binary can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link = String::from_utf8(output.stdout).expect("a link is text").trim().to_owned();
    assert!(link.starts_with(&site.at("/sign-in/link/")), "{link}");
    browser.open(&link);
    browser.wait_for_text("#main", "signs you in as admin");
    browser.reload();
    browser.click_words("Sign in as admin");
    browser.wait_for_text(".status .menu", "admin");
    assert_eq!(browser.url(), site.at("/"));
    no_complaint(browser);
    browser.open(&link);
    browser.wait_for_text("#main", "This link is spent");
    only_refusals(browser, 410);
}

fn a_session_outlives_its_server_and_ends_with_its_token(browser: &Browser) {
    let site = Site::start();
    site.sign_in(browser, Reader::Operator);
    // A page that is open refreshes itself, and Chromium complains while no server is there.
    browser.open("about:blank");
    let site = site.started_again_for(&[Reader::Admin, Reader::Operator]);
    browser.open(&site.at("/jobs"));
    browser.wait_for_text(".status .menu", "operator");
    browser.open("about:blank");
    let site = site.started_again_for(&[Reader::Admin]);
    browser.open(&site.at("/jobs"));
    browser.wait_for("#token");
    assert!(browser.url().contains("/sign-in?next="), "{}", browser.url());
    no_complaint(browser);
}
