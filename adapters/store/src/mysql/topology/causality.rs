//! The settings by which a server that was behind waits in place of answering from the past.
//!
//! A member of a cluster may apply later what another one has acknowledged. A node stays at one member, so its reads miss nothing of its own
//! until it goes to another one. There each new connection first waits for everything that was acknowledged before.

use super::{Engine, Topology};

/// Waits once, and for no statement after it.
const WAIT_ONCE: [&str; 3] =
    ["SET SESSION wsrep_sync_wait = 15", "SELECT COUNT(*) FROM meta", "SET SESSION wsrep_sync_wait = 0"];
/// Waits once, and before each transaction and read after it: acknowledgements come from other members, too.
const WAIT_ALWAYS: [&str; 3] =
    ["SET SESSION wsrep_sync_wait = 15", "SELECT COUNT(*) FROM meta", "SET SESSION wsrep_sync_wait = 1"];
/// A new primary answers once it has applied everything of the one before.
const AFTER_FAILOVER: [&str; 1] = ["SET SESSION group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'"];

/// The statements at the beginning of every connection.
pub(in crate::mysql) fn causality(engine: Engine, topology: Topology) -> Vec<&'static str> {
    match engine {
        Engine::OneServer => Vec::new(),
        Engine::Galera if topology.allows_several_writers() => WAIT_ALWAYS.to_vec(),
        Engine::Galera => WAIT_ONCE.to_vec(),
        Engine::GroupReplication => AFTER_FAILOVER.to_vec(),
    }
}

/// The statement after which reads miss nothing that was acknowledged at any member; `None` where they never do.
pub(in crate::mysql) const fn reads_everything(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::OneServer => None,
        Engine::Galera => Some("SET SESSION wsrep_sync_wait = 15"),
        Engine::GroupReplication => Some("SET SESSION group_replication_consistency = 'BEFORE'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_wait_where_another_server_may_be_ahead() {
        let last = |engine, topology| causality(engine, topology).last().copied().unwrap_or_default();
        assert_eq!(last(Engine::OneServer, Topology::Auto), "");
        assert_eq!(last(Engine::Galera, Topology::Auto), "SET SESSION wsrep_sync_wait = 0");
        assert_eq!(last(Engine::Galera, Topology::GaleraMultiWriter), "SET SESSION wsrep_sync_wait = 1");
        assert!(last(Engine::GroupReplication, Topology::Auto).contains("BEFORE_ON_PRIMARY_FAILOVER"));
        assert_eq!(reads_everything(Engine::OneServer), None);
        assert!(reads_everything(Engine::Galera).unwrap().ends_with("= 15"));
        assert!(reads_everything(Engine::GroupReplication).unwrap().ends_with("'BEFORE'"));
    }
}
