//! How long engines take to name a new writer, beside how long a node lives without one.

use std::time::Duration;

use super::{Answers, Engine};

/// The rest of a failover beyond the limits that can be set, as it took on one machine: finding out, agreeing, going on.
const GALERA_REST: Duration = Duration::from_secs(1);
/// A group whose `group_replication_member_expel_timeout` is 0 took 6.6 s.
const GROUP_AT_ONCE: Duration = Duration::from_secs(7);
/// With 5 s it took 22 s: the failed member is suspected first, then waited for, then expelled.
const GROUP_REST: Duration = Duration::from_secs(17);

/// How long this engine may be without a writer when one dies, as far as it says. Unknown for a server of its own.
fn failover(answers: &Answers) -> Option<Duration> {
    match answers.engine() {
        Engine::OneServer => None,
        Engine::Galera => {
            let suspects =
                answers.state.text("wsrep_provider_options").and_then(|options| period(options, "evs.suspect_timeout"));
            Some(suspects.unwrap_or(Duration::from_secs(5)) + GALERA_REST)
        }
        Engine::GroupReplication => {
            let seconds = answers.state.number("group_replication_member_expel_timeout").unwrap_or(5);
            Some(if seconds == 0 { GROUP_AT_ONCE } else { GROUP_REST + Duration::from_secs(seconds) })
        }
    }
}

/// The sentence for a node that ends itself before the engine has a new writer.
pub(in crate::mysql) fn outlasts(answers: &Answers, self_kill_after: Duration) -> Option<String> {
    let takes = failover(answers).filter(|takes| *takes >= self_kill_after)?;
    let remedy = match answers.engine() {
        Engine::GroupReplication => "set group_replication_member_expel_timeout = 0 on each member, or raise",
        Engine::Galera | Engine::OneServer => "lower evs.suspect_timeout in wsrep_provider_options, or raise",
    };
    Some(format!(
        "{} may take {} s to replace a writer that died, and each node ends itself after {} s without one \
         (session.self_kill_after): {remedy} session.self_kill_after and session.expire_after",
        answers.describe(),
        takes.as_secs(),
        self_kill_after.as_secs_f64(),
    ))
}

/// A period such as `PT5S` or `PT0.5S` among `name = value; name = value`.
fn period(options: &str, name: &str) -> Option<Duration> {
    let mut pairs = options.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| found.trim() == name)?;
    let seconds: f64 = value.trim().strip_prefix("PT")?.strip_suffix('S')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::topology::ServerState;

    #[test]
    fn a_lease_that_the_failover_outlasts_is_told() {
        let secs = Duration::from_secs;
        let group =
            |expel| vec![("group_replication_group_name", "g"), ("group_replication_member_expel_timeout", expel)];
        let galera = |options| vec![("wsrep_on", "ON"), ("wsrep_provider_options", options)];
        for (pairs, lease, told) in [
            (vec![], secs(1), ""),
            (group("5"), secs(12), "22 s"),
            (group("5"), secs(30), ""),
            (group("0"), secs(12), ""),
            (group("0"), secs(5), "7 s"),
            (galera(""), secs(12), ""),
            (galera("base_port = 4567; evs.suspect_timeout = PT5S; gcs.fc_limit = 16"), secs(12), ""),
            (galera("base_port = 4567; evs.suspect_timeout = PT15S; gcs.fc_limit = 16"), secs(12), "16 s"),
            (galera("evs.suspect_timeout=PT0.5S"), secs(2), ""),
            (galera("evs.suspect_timeout = PT5S"), Duration::from_millis(2_500), "after 2.5 s"),
        ] {
            let state = ServerState::of(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
            let said = outlasts(&Answers { state, members: None }, lease).unwrap_or_default();
            assert!(said.contains(told) && said.is_empty() == told.is_empty(), "{pairs:?} {lease:?}: {said}");
        }
    }
}
