//! Clusters: several servers as real processes on one database, each kept alive as a service manager would.

mod member;
mod outlive;
mod witness;

pub use member::Member;
pub use outlive::nodes_outlive;
pub use witness::Witness;

use std::path::{Path, PathBuf};

use crate::server::Server;

/// `[session]` with fast timing: a dead node is taken over within some five seconds.
pub const FAST: &str = "[session]\nheartbeat = \"500ms\"\nheartbeat_timeout = \"600ms\"\nself_kill_after = \"2400ms\"\n\
                        fence_grace = \"500ms\"\npause = \"1s\"\nexpire_after = \"4s\"\n";

/// `[session]` with a heartbeat each second: a node ends itself after `self_kill_after`, and others take over after `expire_after`.
#[macro_export]
macro_rules! session {
    ($self_kill_after:literal, $expire_after:literal) => {
        concat!(
            "[session]\nheartbeat = \"1s\"\nheartbeat_timeout = \"1s\"\nself_kill_after = \"",
            $self_kill_after,
            "\"\nfence_grace = \"1s\"\npause = \"1s\"\nexpire_after = \"",
            $expire_after,
            "\"\n"
        )
    };
}

/// Fast enough for chaos, slow enough for a machine that is busy with other things: a node that gets no CPU for some
/// seconds fences itself, as it must.
pub const BRISK: &str = session!("5s", "8s");

/// Where a test waits for a dead node, and the others must live: nodes outlive what lasts for some seconds, and are found dead soon.
pub const STEADY: &str = session!("8s", "11s");

/// Where nobody waits for a dead node: nodes outlive a machine that stands still, and a database that is away, or whose answers get lost.
pub const PATIENT: &str = session!("60s", "70s");

/// Nodes that share a database.
pub struct Cluster {
    dir: tempfile::TempDir,
    url: String,
    config: String,
    store: String,
    environment: Vec<(String, String)>,
}

impl Cluster {
    /// A cluster on the database at `url`; `config` is what `carillon.toml` of each node holds beside the store.
    pub fn new(url: &str, config: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the nodes");
        Self { dir, url: url.to_owned(), config: config.to_owned(), store: String::new(), environment: Vec::new() }
    }

    /// The nodes have these further lines in `[store]`.
    #[must_use]
    pub fn with_store(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.store);
        self
    }

    /// The nodes that [`Cluster::node`] starts find this variable in their environment.
    #[must_use]
    pub fn in_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where the nodes keep their files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a node and waits until it can schedule.
    pub fn node(&self, name: &str) -> Server {
        Server::start_as(&self.home(name), |command| command.envs(self.environment.iter().cloned()))
    }

    /// Starts a node that serves its API and cannot schedule yet.
    pub fn unready_node(&self, name: &str) -> Server {
        Server::start_unready(&self.home(name))
    }

    /// As [`Cluster::node`], of another binary.
    pub fn node_of(&self, program: &Path, name: &str) -> Server {
        Server::start_of(program, &self.home(name))
    }

    /// Starts a node that is started again whenever it ends.
    pub fn member(&self, name: &str) -> Member {
        Member::start(self.home(name), name, Vec::new())
    }

    /// As [`Cluster::member`], with its own way to the database and in an environment (`NAME=value`).
    pub fn member_at(&self, name: &str, url: &str, environment: Vec<String>) -> Member {
        Member::start(self.home_at(name, url), name, environment)
    }

    /// The directory of a node, with its configuration.
    fn home(&self, name: &str) -> PathBuf {
        self.home_at(name, &self.url)
    }

    fn home_at(&self, name: &str, url: &str) -> PathBuf {
        let home = self.dir.path().join(name);
        std::fs::create_dir_all(&home).expect("a directory for the node");
        let text = format!("{}\n[store]\nurl = \"{url}\"\n{}[node]\nname = \"{name}\"\n", self.config, self.store);
        std::fs::write(home.join("carillon.toml"), text).expect("the configuration can be written");
        home
    }
}
