//! The kinds of database servers: the session timing that fits each, and the limits of the servers that this timing needs.
//!
//! A node ends itself where nothing takes its heartbeats. So its lease must be longer than the servers need to name a new writer.

use std::fmt;
use std::time::Duration;

use super::Timing;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The kind of servers that a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// A server of its own, perhaps with replicas.
    OneServer,
    /// A member of a Galera cluster.
    Galera,
    /// A member of a group of Group Replication.
    GroupReplication,
}

impl Engine {
    /// Every kind, the shortest lease first.
    pub const ALL: [Engine; 3] = [Engine::OneServer, Engine::Galera, Engine::GroupReplication];

    /// The session timing where the configuration gives none. With the limits that servers come with, the death of a writer ends no node:
    ///
    /// | kind | a new writer after | lease |
    /// |---|---|---|
    /// | Galera | 6 s, and 16 s where the members disagree about the dead one | 18 s |
    /// | Group Replication | 22 s | 30 s |
    pub const fn timing(self) -> Timing {
        let (self_kill_after, expire_after) = match self {
            Engine::OneServer => (secs(12), secs(20)),
            Engine::Galera => (secs(18), secs(26)),
            Engine::GroupReplication => (secs(30), secs(40)),
        };
        Timing {
            heartbeat: secs(3),
            heartbeat_timeout: secs(2),
            self_kill_after,
            fence_grace: secs(3),
            pause: secs(4),
            expire_after,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::OneServer => "one server",
            Engine::Galera => "a Galera cluster",
            Engine::GroupReplication => "a group of Group Replication",
        })
    }
}

/// The limits of the servers that decide how long a failover takes; `None` where a server does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailoverLimits {
    /// `evs.suspect_timeout` of Galera: all members miss one.
    pub suspect: Option<Duration>,
    /// `evs.inactive_timeout` of Galera: some members miss one, and others do not.
    pub inactive: Option<Duration>,
    /// `group_replication_member_expel_timeout`: the wait between the suspicion and the end of a membership.
    pub expel: Option<Duration>,
    /// `group_replication_unreachable_majority_timeout`: members without a majority leave the group for good; zero is never.
    pub unreachable_majority: Option<Duration>,
}

/// The rest of a failover beyond the limits that can be set, as it took on one machine: finding out, agreeing, going on.
const GALERA_REST: Duration = secs(1);
/// A group whose `group_replication_member_expel_timeout` is 0 took 6.6 s.
const GROUP_AT_ONCE: Duration = secs(7);
/// With 5 s it took 22 s: the failed member is suspected first, then waited for, then expelled.
const GROUP_REST: Duration = secs(17);

/// How long a group may be without a writer when one dies.
fn group_failover(limits: &FailoverLimits) -> Duration {
    match limits.expel.unwrap_or(secs(5)) {
        Duration::ZERO => GROUP_AT_ONCE,
        expel => GROUP_REST + expel,
    }
}

impl Timing {
    /// The limits of the servers with which a failover or a short partition would end nodes, each in a sentence with its remedy. A server
    /// of its own has none: whoever fails it over decides how long that takes.
    pub fn misfits(&self, engine: Engine, limits: &FailoverLimits) -> Vec<String> {
        let lease = self.self_kill_after;
        let late = |takes: Duration, setting: &str, lower: &str| {
            (takes >= lease).then(|| {
                format!(
                    "{engine} may take {} s to replace a writer that died ({setting}), and each node ends itself after {} s without \
                     one (session.self_kill_after): {lower}, or raise session.self_kill_after and session.expire_after",
                    takes.as_secs_f64(),
                    lease.as_secs_f64(),
                )
            })
        };
        let found = match engine {
            Engine::OneServer => [None, None],
            Engine::Galera => {
                let takes = |limit: Option<Duration>, preset| limit.unwrap_or(secs(preset)) + GALERA_REST;
                let lower = |name: &str| format!("lower {name} in wsrep_provider_options of each member");
                [
                    ("evs.suspect_timeout", takes(limits.suspect, 5)),
                    ("evs.inactive_timeout", takes(limits.inactive, 15)),
                ]
                .map(|(name, takes)| late(takes, name, &lower(name)))
            }
            Engine::GroupReplication => {
                let name = "group_replication_member_expel_timeout";
                let slow = late(group_failover(limits), name, &format!("set {name} = 0 on each member"));
                let leaves = limits.unreachable_majority.filter(|limit| !limit.is_zero() && *limit < lease);
                let dissolves = leaves.map(|limit| {
                    format!(
                        "members without a majority leave their group for good after {} s \
                         (group_replication_unreachable_majority_timeout), before a node ends itself after {} s: a short partition \
                         then needs a person; set it to 0, or to more than session.self_kill_after, on each member",
                        limit.as_secs_f64(),
                        lease.as_secs_f64(),
                    )
                });
                [slow, dissolves]
            }
        };
        found.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_servers_has_a_timing_that_its_own_limits_fit() {
        for engine in Engine::ALL {
            let timing = engine.timing();
            assert_eq!(timing.check(), Ok(()), "{engine}");
            assert_eq!(timing.misfits(engine, &FailoverLimits::default()), [""; 0], "{engine}");
        }
        assert_eq!(Engine::OneServer.timing(), Timing::default());
    }

    #[test]
    fn limits_that_outlast_the_lease_are_told_with_a_remedy() {
        let limits = |change: fn(&mut FailoverLimits)| {
            let mut limits = FailoverLimits::default();
            change(&mut limits);
            limits
        };
        let short = Timing { self_kill_after: Duration::from_millis(2_500), ..Timing::default() };
        let one = Engine::OneServer.timing();
        let galera = Engine::Galera.timing();
        let group = Engine::GroupReplication.timing();
        use Engine::{Galera, GroupReplication, OneServer};
        for (timing, engine, limits, told) in [
            (short, OneServer, limits(|_| ()), &[][..]),
            (short, Galera, limits(|_| ()), &["take 6 s", "take 16 s"]),
            (one, Galera, limits(|_| ()), &["take 16 s"]),
            (one, Galera, limits(|all| all.inactive = Some(secs(10))), &[]),
            (galera, Galera, limits(|all| all.suspect = Some(secs(17))), &["lower evs.suspect_timeout in"]),
            (galera, Galera, limits(|all| all.suspect = Some(secs(16))), &[]),
            (one, GroupReplication, limits(|_| ()), &["take 22 s"]),
            (one, GroupReplication, limits(|all| all.expel = Some(secs(0))), &[]),
            (group, GroupReplication, limits(|all| all.expel = Some(secs(12))), &[]),
            (group, GroupReplication, limits(|all| all.expel = Some(secs(13))), &["member_expel_timeout = 0 on each"]),
            (group, GroupReplication, limits(|all| all.unreachable_majority = Some(secs(0))), &[]),
            (group, GroupReplication, limits(|all| all.unreachable_majority = Some(secs(30))), &[]),
            (group, GroupReplication, limits(|all| all.unreachable_majority = Some(secs(20))), &["set it to 0"]),
        ] {
            let found = timing.misfits(engine, &limits);
            assert_eq!(found.len(), told.len(), "{engine} {limits:?}: {found:?}");
            for (said, words) in found.iter().zip(told) {
                assert!(said.contains(words), "{engine} {limits:?}: {said}");
            }
        }
    }
}
