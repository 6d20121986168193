//! Chromium's driver as a process of its own, with a profile of its own.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Map, Value, json};

use super::Look;
use crate::waiting::wait_for;

/// Why no browser can be driven here; `None` where one can.
pub fn missing() -> Option<String> {
    let absent: Vec<&str> = ["chromium", "chromedriver"].into_iter().filter(|program| !is_there(program)).collect();
    (!absent.is_empty()).then(|| {
        format!("pages in a real browser: no {} (packages chromium and chromium-driver)", absent.join(", no "))
    })
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A running driver. Its end is the end of its browser, and so is the end of this process, however it comes.
pub struct Driver {
    watcher: Child,
    port: u16,
    directory: PathBuf,
}

impl Driver {
    /// Starts one on a port that it chooses.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the browser").keep();
        let log = directory.join("driver.log");
        let mut command = Command::new("bash");
        command.args(["-c", include_str!("driver.sh"), "driver"]).arg(&directory).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Chromium keeps crash reports and caches below these.
        command.env("HOME", &directory).env("XDG_CONFIG_HOME", &directory).env("TMPDIR", &directory);
        let watcher = command.spawn().expect("bash starts");
        let port = wait_for("chromedriver says its port", || {
            let said = std::fs::read_to_string(&log).ok()?;
            let (_, rest) = said.split_once("started successfully on port ")?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        });
        Self { watcher, port, directory }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that it said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("driver.log")).unwrap_or_default()
    }

    /// How its browser is to begin.
    pub(super) fn capabilities(&self, look: &Look) -> Map<String, Value> {
        let profile: PathBuf = self.directory.join("profile");
        let mut arguments: Vec<String> = [
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
        ]
        .map(str::to_owned)
        .to_vec();
        if nix::unistd::geteuid().is_root() {
            arguments.push("--no-sandbox".into());
        }
        arguments.push(format!("--window-size={},{}", look.width.max(500), look.height));
        arguments.push(format!("--user-data-dir={}", profile.display()));
        let scripts = if look.scripts { 1 } else { 2 };
        let capabilities = json!({
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {
                "args": arguments,
                "prefs": {"profile.managed_default_content_settings.javascript": scripts},
            },
        });
        capabilities.as_object().cloned().unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _reaped = self.watcher.wait();
    }
}
