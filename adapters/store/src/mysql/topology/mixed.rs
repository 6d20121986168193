//! Whether the nodes of a cluster write through one server, and which of them live.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::lease::{OtherNode, Terms};
use carillon_domain::time::Timestamp;

/// A session that is not ended: its node, its server and its terms where it told them, and its newest heartbeat.
#[derive(Debug, Clone, Copy)]
pub(in crate::mysql) struct BeatOfServer<'a> {
    pub node: &'a str,
    pub server: Option<&'a str>,
    pub terms: Option<Terms>,
    pub at: Timestamp,
}

/// A session whose heartbeat is older by more than the newest of all says nothing: its node may be dead, and its server left.
const STALE: Duration = Duration::from_secs(10);

fn fresh<'a>(beats: &'a [BeatOfServer<'a>]) -> impl Iterator<Item = &'a BeatOfServer<'a>> {
    let newest = beats.iter().map(|beat| beat.at).max();
    beats.iter().filter(move |beat| newest.is_some_and(|newest| newest.since(beat.at) <= STALE))
}

/// The nodes whose heartbeats are fresh, with their terms.
pub(in crate::mysql) fn fresh_nodes(beats: &[BeatOfServer<'_>]) -> Vec<OtherNode> {
    fresh(beats).map(|beat| OtherNode { node: beat.node.to_owned(), terms: beat.terms }).collect()
}

/// The sentence for nodes that write through different servers. `None` if all that tell a server tell the same one.
pub(in crate::mysql) fn mixed_writers(beats: &[BeatOfServer<'_>]) -> Option<String> {
    let mut nodes_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for beat in fresh(beats) {
        if let Some(server) = beat.server {
            nodes_of.entry(server).or_default().push(beat.node);
        }
    }
    let listed: Vec<String> =
        nodes_of.iter().map(|(server, nodes)| format!("{} through {server}", nodes.join(", "))).collect();
    (listed.len() > 1).then(|| {
        format!(
            "nodes write through different servers ({}): name the same servers in the same order at each node, or allow it with \
             store.topology = \"galera-multi-writer\"",
            listed.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_on_different_servers_are_told_once_their_heartbeats_are_fresh() {
        let said = |beats: &[(&str, Option<&str>, i64)]| {
            let beats = beats.iter().map(|&(node, server, second)| BeatOfServer {
                node,
                server,
                terms: None,
                at: Timestamp::from_ms(second * 1_000),
            });
            mixed_writers(&beats.collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(said(&[]), "");
        assert_eq!(said(&[("n1", Some("a:1"), 100), ("n2", Some("a:1"), 100)]), "");
        assert_eq!(said(&[("n1", Some("a:1"), 100), ("old", None, 100)]), "", "an older binary tells none");
        assert_eq!(said(&[("n1", Some("a:1"), 100), ("dead", Some("b:1"), 89)]), "", "it died before the others moved");
        let mixed = said(&[("n1", Some("a:1"), 100), ("n2", Some("b:1"), 91), ("n3", Some("a:1"), 99)]);
        assert!(mixed.contains("n1, n3 through a:1; n2 through b:1"), "{mixed}");
        assert!(mixed.contains("galera-multi-writer"), "{mixed}");
    }
}
