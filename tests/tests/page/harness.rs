//! The browser itself: that it sees what it must see, or no other test here means anything.

use carillon_tests::browser::{Key, Look};

use super::browser;

#[test]
fn a_complaint_of_the_console_is_seen() {
    let Some(browser) = browser(Look::default()) else { return };
    browser.open("data:text/html,<title>t</title><input id=a><p id=b>b</p><script>console.error('broken')</script>");
    assert_eq!((browser.title().as_str(), browser.text("#b").as_str()), ("t", "b"));
    assert_eq!(browser.script("return innerWidth", vec![]), 1_280);
    browser.fill("#a", "typed");
    browser.key(Key::Tab);
    assert_eq!(browser.script("return document.querySelector('#a').value", vec![]), "typed");
    let complaints = browser.complaints();
    assert!(complaints.len() == 1 && complaints[0].contains("broken"), "{complaints:?}");
    browser.resize(360, 640);
    assert_eq!(browser.script("return innerWidth", vec![]), 360);
    browser.prefer(true);
    assert_eq!(browser.script("return matchMedia('(prefers-color-scheme: dark)').matches", vec![]), true);
}

#[test]
fn scripts_can_be_switched_off() {
    let Some(browser) = browser(Look { scripts: false, ..Look::default() }) else { return };
    browser.open("data:text/html,<noscript><p id=n>none</p></noscript><script>document.title='ran'</script>");
    assert_eq!((browser.title().as_str(), browser.text("#n").as_str()), ("", "none"));
}
