//! A server whose page is worth looking at: people of each role, a crontab as a company has one, a month of history.

mod crontab;
mod history;
mod screens;

pub use screens::{CRONTAB, EMPTY_SCREENS, FULL_SCREENS, SCREENS, Screen};

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::server::{PATIENCE, Server};

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
    /// A run that failed and printed something, and one that lives; only on a site with history.
    runs: Option<[String; 2]>,
}

impl Site {
    /// A server without jobs.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the site");
        let token = directory.path().join("carillon.token");
        fs::write(&token, Reader::Admin.token()).expect("the token can be written");
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a file of our own");
        let readers = [Reader::Admin, Reader::Operator, Reader::Viewer];
        let server = Server::start_with(directory.path(), &config(&readers));
        Self { server, directory, runs: None }
    }

    /// A server with so many jobs of many tenants, without a past.
    pub fn with_many_jobs(count: usize) -> Self {
        let site = Self::start();
        let jobs: Vec<_> = (0..count).map(crontab::of_tenant).collect();
        for some in jobs.chunks(1_000) {
            site.server.post("/v1/jobs:batch", &json!({"items": some}));
        }
        site
    }

    /// The same site at another address, for these readers alone.
    pub fn started_again_for(self, readers: &[Reader]) -> Self {
        let Self { server, directory, runs } = self;
        assert!(server.drain().success(), "nothing runs");
        let server = Server::start_with(directory.path(), &config(readers));
        Self { server, directory, runs }
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
        Self { server, directory, runs: Some([failed, running]) }
    }

    /// The address of a path; `{run}` in it stands for a run that failed, `{living}` for one that lives.
    pub fn at(&self, path: &str) -> String {
        let [failed, living] = self.runs.as_ref().map_or(["", ""], |runs| runs.each_ref().map(String::as_str));
        let path = path.replace("{run}", failed).replace("{living}", living);
        format!("{}{path}", self.server.url())
    }

    /// Where the server keeps its files.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Opens a screen and waits until it is there.
    pub fn show(&self, browser: &Browser, screen: &Screen) {
        browser.open(&self.at(screen.path));
        (screen.then)(self, browser);
        browser.wait_for(screen.element);
        browser.wait_for_text(screen.element, screen.words);
    }

    /// Takes the newest heartbeats out of the database, as a restore from a backup does.
    pub fn go_back_in_time(&self) {
        let database = Connection::open(self.directory().join("carillon.db")).expect("the database");
        database.busy_timeout(PATIENCE).expect("a patient connection");
        let beats =
            || -> i64 { database.query_row("SELECT min(seq) FROM session", [], |row| row.get(0)).expect("a session") };
        self.server.wait_until("a heartbeat is acknowledged", || beats() > 1);
        database.execute("UPDATE session SET seq = 1", []).expect("the newer heartbeats are gone");
    }

    /// Signs somebody in by the form, which needs no script; whoever was signed in is forgotten.
    pub fn sign_in(&self, browser: &Browser, reader: Reader) {
        browser.forget();
        browser.open(&self.at("/sign-in"));
        browser.fill("#token", &reader.token());
        browser.click("button.primary");
        browser.wait_for_text(".status .menu", reader.name());
    }
}

/// The text of `carillon.toml`.
fn config(readers: &[Reader]) -> String {
    let entries: String = readers.iter().map(|reader| reader.entry()).collect();
    format!("[node]\nname = \"bell-1\"\n[history]\nkeep = \"60d\"\n{entries}")
}
