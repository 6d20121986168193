//! A server whose page is worth looking at: people of each role, a crontab as a company has one, a month of history.

mod crontab;
mod history;
mod screens;

pub use screens::{SCREENS, Screen};

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::server::Server;

/// Who looks at the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// May do everything.
    Admin,
    /// May run, pause and cancel.
    Operator,
    /// May look.
    Viewer,
}

impl Reader {
    /// The name of the token, which is its role too.
    pub const fn name(self) -> &'static str {
        match self {
            Reader::Admin => "admin",
            Reader::Operator => "operator",
            Reader::Viewer => "viewer",
        }
    }

    /// The token.
    pub fn token(self) -> String {
        format!("the-secret-of-{}", self.name())
    }

    /// Its entry in `http.tokens`.
    fn entry(self) -> String {
        let digest: String = Sha256::digest(self.token()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[http.tokens]]\nname = \"{0}\"\nsha256 = \"{digest}\"\nrole = \"{0}\"\n", self.name())
    }
}

/// The server and its directory.
pub struct Site {
    /// The server. Its own calls are the admin's.
    pub server: Server,
    directory: tempfile::TempDir,
    /// A run that failed and printed something; only on a site with history.
    failed_run: Option<String>,
}

impl Site {
    /// A server without jobs.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the site");
        let entries = [Reader::Admin, Reader::Operator, Reader::Viewer].map(Reader::entry).concat();
        let token = directory.path().join("carillon.token");
        fs::write(&token, Reader::Admin.token()).expect("the token can be written");
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a file of our own");
        let config = format!("[node]\nname = \"bell-1\"\n[history]\nkeep = \"60d\"\n{entries}");
        let server = Server::start_with(directory.path(), &config);
        Self { server, directory, failed_run: None }
    }

    /// A server with a crontab and a month of history. One job is in trouble, one is paused, one runs.
    pub fn with_history() -> Self {
        let Self { server, directory, .. } = Self::start();
        server.post("/v1/jobs:batch", &json!({"items": crontab::definitions()}));
        assert!(server.drain().success(), "nothing runs yet");
        history::write(&directory.path().join("carillon.db"));
        let server = Server::start(directory.path(), &[]);
        server.post(
            "/v1/jobs/rotate-certificates/pause",
            &json!({"reason": "the new authority comes on Thursday", "until": "2090-01-01T00:00:00Z"}),
        );
        let route = json!({"when": ["failed"], "to": [{"type": "mail", "to": ["ops@example.org"]}]});
        assert_eq!(server.call("PUT", "/v1/alerts/ops", Some(&route)).0, 201, "a route is stored");
        let failed = server.run_now("invoice-export");
        assert_eq!(server.ended(&failed)["status"], "failed");
        let running = server.run_now("rebuild-search-index");
        server.started(&running);
        Self { server, directory, failed_run: Some(failed) }
    }

    /// The address of a path; `{run}` in it stands for a run that failed.
    pub fn at(&self, path: &str) -> String {
        let path = path.replace("{run}", self.failed_run.as_deref().unwrap_or_default());
        format!("{}{path}", self.server.url())
    }

    /// Where the server keeps its files.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Leaves what is shown, whose server may be gone, with its cookies and complaints.
    pub fn forget(browser: &Browser) {
        browser.open("about:blank");
        browser.devtools("Network.clearBrowserCookies", json!({}));
        let _of_another_server = browser.complaints();
    }

    /// Signs somebody in by the form, which needs no script; whoever was signed in is forgotten.
    pub fn sign_in(&self, browser: &Browser, reader: Reader) {
        Self::forget(browser);
        browser.open(&self.at("/sign-in"));
        browser.fill("#token", &reader.token());
        browser.click("button.primary");
        browser.wait_for_text(".status .menu", reader.name());
    }
}
