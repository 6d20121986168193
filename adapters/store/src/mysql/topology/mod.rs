//! Which kind of servers a database has, and whether one of them may be written to. Pure: what servers say goes in, sentences come out.
//!
//! Carillon writes through one server at a time wherever it can, as locks of a cluster of servers are local to each of them.

mod causality;
mod follow;
mod limits;
mod members;
mod mixed;
mod state;

use std::str::FromStr;

pub(in crate::mysql) use carillon_domain::lease::Engine;

pub(in crate::mysql) use causality::{causality, reads_everything};
pub(in crate::mysql) use follow::{Follow, Seen, follow};
pub(in crate::mysql) use members::{Member, Members};
pub(in crate::mysql) use mixed::{BeatOfServer, fresh_nodes, mixed_writers};
pub(in crate::mysql) use state::ServerState;

/// The operator's word about the servers of a database (`store.topology`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Topology {
    /// Whatever the servers say; all nodes write through one of them.
    #[default]
    Auto,
    /// One server, or a primary with replicas.
    OneServer,
    /// A Galera cluster; all nodes write through one member.
    Galera,
    /// A Galera cluster; nodes may write through different members.
    GaleraMultiWriter,
    /// Group Replication with a single primary.
    GroupReplication,
}

impl Topology {
    /// Every value.
    pub const ALL: [Topology; 5] = [
        Topology::Auto,
        Topology::OneServer,
        Topology::Galera,
        Topology::GaleraMultiWriter,
        Topology::GroupReplication,
    ];

    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Topology::Auto => "auto",
            Topology::OneServer => "one-server",
            Topology::Galera => "galera",
            Topology::GaleraMultiWriter => "galera-multi-writer",
            Topology::GroupReplication => "group-replication",
        }
    }

    /// The engine that it asks for; none where any will do.
    const fn engine(self) -> Option<Engine> {
        match self {
            Topology::Auto => None,
            Topology::OneServer => Some(Engine::OneServer),
            Topology::Galera | Topology::GaleraMultiWriter => Some(Engine::Galera),
            Topology::GroupReplication => Some(Engine::GroupReplication),
        }
    }

    /// Whether nodes may write through different servers.
    pub const fn allows_several_writers(self) -> bool {
        matches!(self, Topology::GaleraMultiWriter)
    }

    /// Why a server is none of those that the operator means, as the end of a sentence that begins with its name. `before` is
    /// the engine that was recognised first: a member that was started outside its cluster looks like a server of its own.
    pub(in crate::mysql) fn why_not(self, found: Engine, before: Option<Engine>) -> Option<String> {
        if let Some(wanted) = self.engine().filter(|wanted| *wanted != found) {
            return Some(format!("it is {found}, and store.topology = \"{}\" asks for {wanted}", self.as_str()));
        }
        let was_cluster = before.filter(|before| *before != Engine::OneServer && *before != found);
        was_cluster.map(|before| {
            format!(
                "it is {found}, and the database was {before} when this node started: join the server to its cluster again, or \
                 restart the node if the servers were changed for good"
            )
        })
    }
}

impl FromStr for Topology {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = Self::ALL.iter().map(|one| format!("\"{}\"", one.as_str())).collect();
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| format!("one of {}", names.join(", ")))
    }
}

/// Everything that a server says about itself.
#[derive(Debug, Default)]
pub(in crate::mysql) struct Answers {
    pub state: ServerState,
    /// `None` if it has no such list, or its user may not read it.
    pub members: Option<Members>,
}

impl Answers {
    /// Which kind of servers it belongs to.
    pub fn engine(&self) -> Engine {
        if self.state.is_on("wsrep_on") {
            Engine::Galera
        } else if self.state.is_in_group() {
            Engine::GroupReplication
        } else {
            Engine::OneServer
        }
    }

    /// Why nothing is written to this server now, as the end of a sentence that begins with its name. `None` if it takes writes.
    pub fn why_no_writer(&self) -> Option<String> {
        let of_group = || self.members.as_ref().filter(|_| self.state.is_in_group())?.why_no_writer();
        self.state.why_no_writer().or_else(of_group)
    }

    /// Why a node cannot work on such servers at all, and what to do about it.
    pub fn why_unfit(&self) -> Option<String> {
        let state = &self.state;
        if let Some(engine) = state.unproved_engine() {
            return Some(format!("it is {engine}, on which Carillon is not proved; use MySQL, MariaDB or Galera"));
        }
        if self.engine() == Engine::GroupReplication && state.is("group_replication_single_primary_mode", "OFF") {
            return Some(
                "its group has several primaries (group_replication_single_primary_mode is OFF), of which each grants the \
                 same lock; let the group have one: SELECT group_replication_switch_to_single_primary_mode()"
                    .to_owned(),
            );
        }
        if self.engine() == Engine::GroupReplication && self.members.is_none() {
            return Some(
                "its user may not read the state of its group, and a member outside of the group must not be written to: GRANT \
                 SELECT ON performance_schema.replication_group_members TO that user"
                    .to_owned(),
            );
        }
        None
    }

    /// How many servers there are and which, in a few words.
    pub fn describe(&self) -> String {
        match self.engine() {
            Engine::OneServer => Engine::OneServer.to_string(),
            Engine::Galera => match self.state.number("wsrep_cluster_size") {
                Some(size) => format!("a Galera cluster of {size}"),
                None => Engine::Galera.to_string(),
            },
            Engine::GroupReplication => match &self.members {
                Some(members) => format!("a group of Group Replication of {}", members.count()),
                None => Engine::GroupReplication.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
