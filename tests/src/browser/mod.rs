//! A real browser: Debian's Chromium, driven by its own driver over the WebDriver protocol.
//!
//! A test opens pages, types and clicks, and waits for what a person would see. At its end it asks for [`Browser::complaints`]: errors of
//! the console, and breaches of the content security policy.

mod driver;
mod keys;
mod pool;

pub use driver::{Driver, missing};
pub use keys::Key;
pub use pool::Borrowed;

use std::path::Path;
use std::time::Duration;

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::server::PATIENCE;
use crate::waiting::wait_until;

/// How a browser begins.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// The width of the window in CSS pixels.
    pub width: u32,
    /// Its height.
    pub height: u32,
    /// Whether the reader prefers a dark page.
    pub dark: bool,
    /// Whether scripts run.
    pub scripts: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self { width: 1_280, height: 800, dark: false, scripts: true }
    }
}

/// A window of a browser of its own.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    scripts: bool,
    // Ends after the client.
    _driver: Driver,
}

impl Browser {
    /// Starts one.
    pub fn start(look: Look) -> Self {
        let driver = Driver::start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let capabilities = driver.capabilities(&look);
        let client = runtime.block_on(async {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let mut builder = ClientBuilder::new(connector);
            builder.capabilities(capabilities).connect(&driver.url()).await
        });
        let client = client.unwrap_or_else(|error| panic!("Chromium did not start: {error}\n{}", driver.log()));
        let browser = Self { runtime, client, scripts: look.scripts, _driver: driver };
        browser.resize(look.width, look.height);
        browser.prefer(look.dark);
        browser
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap_or_else(|error| panic!("{url} does not open: {error}"));
    }

    /// The address of what is shown.
    pub fn url(&self) -> String {
        self.runtime.block_on(self.client.current_url()).expect("a page has an address").to_string()
    }

    /// The title of what is shown.
    pub fn title(&self) -> String {
        self.runtime.block_on(self.client.title()).expect("a page has a title")
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).expect("a page loads again");
    }

    /// One page back.
    pub fn back(&self) {
        self.runtime.block_on(self.client.back()).expect("a page goes back");
    }

    /// Whether something matches the selector now.
    pub fn has(&self, css: &str) -> bool {
        self.count(css) > 0
    }

    /// How many elements match the selector now.
    pub fn count(&self, css: &str) -> usize {
        self.runtime.block_on(self.client.find_all(Locator::Css(css))).expect("a selector").len()
    }

    /// The visible text of the first match; empty where there is none.
    pub fn text(&self, css: &str) -> String {
        self.runtime.block_on(async {
            match self.client.find(Locator::Css(css)).await {
                // An element that is replaced at this moment has no text yet.
                Ok(element) => element.text().await.unwrap_or_default(),
                Err(_) => String::new(),
            }
        })
    }

    /// Waits until the first match shows this text, and answers all that it shows.
    pub fn wait_for_text(&self, css: &str, text: &str) -> String {
        let mut shown = String::new();
        self.wait(&format!("{css} to show {text:?}"), || {
            shown = self.text(css);
            shown.contains(text)
        });
        shown
    }

    /// Waits until something matches.
    pub fn wait_for(&self, css: &str) {
        self.wait(&format!("{css} to be there"), || self.has(css));
    }

    /// Waits until nothing matches any more.
    pub fn wait_until_gone(&self, css: &str) {
        self.wait(&format!("{css} to go"), || !self.has(css));
    }

    /// Waits for a condition; shows the page's text when it does not come.
    pub fn wait(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_until(what, &mut condition)));
        if waited.is_err() {
            panic!("waited in vain for {what} at {}\n{}\n{:#?}", self.url(), self.text("body"), self.complaints());
        }
    }

    /// The first match. The page that a click before led to may still be on its way: so this waits for it.
    async fn find(&self, locator: Locator<'_>, what: &str) -> Element {
        let element = self.client.wait().at_most(PATIENCE).for_element(locator).await;
        element.unwrap_or_else(|error| panic!("{what} is not there: {error}"))
    }

    /// Clicks the first match.
    pub fn click(&self, css: &str) {
        self.runtime.block_on(async {
            let element = self.find(Locator::Css(css), css).await;
            element.click().await.unwrap_or_else(|error| panic!("{css} cannot be clicked: {error}"));
        });
    }

    /// Clicks a link or button by its visible words.
    pub fn click_words(&self, words: &str) {
        let path = format!("//*[self::a or self::button or self::summary][contains(normalize-space(.), '{words}')]");
        self.runtime.block_on(async {
            let element = self.find(Locator::XPath(&path), words).await;
            element.click().await.unwrap_or_else(|error| panic!("{words:?} cannot be clicked: {error}"));
        });
    }

    /// Empties a field and types into it.
    pub fn fill(&self, css: &str, text: &str) {
        self.runtime.block_on(async {
            let element = self.find(Locator::Css(css), css).await;
            element.clear().await.expect("a field can be emptied");
            element.send_keys(text).await.expect("a field takes text");
        });
    }

    /// Chooses the option of this value.
    pub fn choose(&self, css: &str, value: &str) {
        self.runtime.block_on(async {
            let element = self.find(Locator::Css(css), css).await;
            element.select_by_value(value).await.expect("the list has this value");
        });
    }

    /// Types at whatever has the focus, as a keyboard does. Sent to an element, keys are refused while the page replaces it.
    pub fn press(&self, text: &str) {
        let strokes = text.chars().flat_map(|value| [KeyAction::Down { value }, KeyAction::Up { value }]);
        let keyboard = strokes.fold(KeyActions::new("keyboard".into()), InputSource::then);
        self.runtime.block_on(self.client.perform_actions(keyboard)).expect("keys can be pressed");
    }

    /// Presses a key that writes nothing.
    pub fn key(&self, key: Key) {
        self.press(&key.text());
    }

    /// The answer of a script: its body, with `arguments`.
    pub fn script(&self, body: &str, arguments: Vec<Value>) -> Value {
        let answer = self.runtime.block_on(self.client.execute(body, arguments));
        answer.unwrap_or_else(|error| panic!("a script failed: {error}\n{body}"))
    }

    /// The answer of a script that calls its last argument in the end.
    pub fn script_async(&self, body: &str, arguments: Vec<Value>) -> Value {
        let answer = self.runtime.block_on(self.client.execute_async(body, arguments));
        answer.unwrap_or_else(|error| panic!("a script failed: {error}\n{body}"))
    }

    /// The size of what is shown, in CSS pixels; smaller windows than Chromium allows are emulated.
    pub fn resize(&self, width: u32, height: u32) {
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
    }

    /// Whether the reader prefers a dark page.
    pub fn prefer(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": value}]}),
        );
    }

    /// The time zone of the reader; the machine's own where it is empty.
    pub fn in_zone(&self, zone: &str) {
        self.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": zone}));
    }

    /// A command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        let call = Extension { path: "goog/cdp/execute", body: json!({"cmd": command, "params": parameters}) };
        let answer = self.runtime.block_on(self.client.issue_cmd(call));
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Keeps a picture of the window as a PNG.
    pub fn picture(&self, path: &Path) {
        let png = self.runtime.block_on(self.client.screenshot()).expect("a picture");
        std::fs::write(path, png).expect("a picture can be kept");
    }

    /// Everything that the console has complained about since the last question.
    pub fn complaints(&self) -> Vec<String> {
        let call = Extension { path: "se/log", body: json!({"type": "browser"}) };
        let log = self.runtime.block_on(self.client.issue_cmd(call)).expect("the console can be read");
        let entries = log.as_array().cloned().unwrap_or_default();
        let said = |entry: &Value| format!("{}: {}", entry["level"], entry["message"]);
        entries.iter().filter(|entry| entry["level"] != "INFO" && entry["level"] != "DEBUG").map(said).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let client = self.client.clone();
        // The driver is ended in any case.
        let closed = async { tokio::time::timeout(Duration::from_secs(5), client.close()).await };
        let _ended = self.runtime.block_on(closed);
    }
}

/// A command of Chromium's driver beside the standard.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}
