//! Partitions: fixed buckets of jobs, each with its own lock row. Sessions share them by bounded rendezvous hashing.
//!
//! Plain rendezvous hashing gives each partition to the session with the highest weight for it. Over 16 partitions that
//! is uneven: one of eight sessions often gets none. So a session with a full share takes no more, and the next in
//! weight does.
//!
//! Shares then differ by at most one. A session that joins or leaves moves its own share, and a few partitions whose
//! first choice has become full or free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::SessionId;
use crate::schedule::stable_hash;

/// The partition of a job. It never changes, because the number of partitions is fixed when a database is created.
pub fn partition_of(namespace: &str, name: &str, partitions: u16) -> u16 {
    let hash = stable_hash(&format!("{namespace}/{name}"), "partition");
    u16::try_from(hash % u64::from(partitions.max(1))).unwrap_or(0)
}

/// The partitions of `me` among the `live` sessions, ascending; none if `me` is not one of them.
pub fn share_of(me: SessionId, live: &[SessionId], partitions: u16) -> Vec<u16> {
    shares(live, partitions).remove(&me).unwrap_or_default()
}

/// The partitions of each of the `live` sessions, ascending. They depend only on the list of sessions, so that every
/// node computes the same shares. Nodes may see different lists for a moment: lock rows keep that safe, shares keep it
/// fast.
pub fn shares(live: &[SessionId], partitions: u16) -> BTreeMap<SessionId, Vec<u16>> {
    let mut shares: BTreeMap<SessionId, Vec<u16>> = live.iter().map(|session| (*session, Vec::new())).collect();
    let Some(least) = usize::from(partitions).checked_div(shares.len()) else { return shares };
    let mut larger = usize::from(partitions) % shares.len();
    let mut free: BTreeSet<u16> = (0..partitions).collect();
    for (session, partition) in by_weight(shares.keys().copied().collect(), partitions) {
        let Some(share) = shares.get_mut(&session).filter(|_| free.contains(&partition)) else { continue };
        if share.len() > least || share.len() == least && larger == 0 {
            continue;
        }
        larger -= usize::from(share.len() == least);
        free.remove(&partition);
        share.push(partition);
    }
    shares.values_mut().for_each(|share| share.sort_unstable());
    shares
}

/// Every pair of a session and a partition, the highest weight first.
fn by_weight(sessions: Vec<SessionId>, partitions: u16) -> Vec<(SessionId, u16)> {
    let all = sessions.into_iter().flat_map(|session| (0..partitions).map(move |partition| (session, partition)));
    let mut pairs: Vec<_> = all.collect();
    pairs.sort_by_cached_key(|(session, partition)| (Reverse(weight(*session, *partition)), *session, *partition));
    pairs
}

fn weight(session: SessionId, partition: u16) -> u64 {
    stable_hash(&format!("{session}/{partition}"), "rendezvous")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sessions of cluster number `draw`.
    fn sessions(draw: u64, count: u64) -> Vec<SessionId> {
        let random = |n: u64| stable_hash(&n.to_string(), &draw.to_string());
        (0..count).map(|n| SessionId::from_random(random(n))).collect()
    }

    fn holders(live: &[SessionId], partitions: u16) -> BTreeMap<u16, SessionId> {
        let shares = shares(live, partitions).into_iter();
        shares.flat_map(|(session, share)| share.into_iter().map(move |partition| (partition, session))).collect()
    }

    #[test]
    fn every_partition_has_one_holder_and_shares_differ_by_at_most_one() {
        for (partitions, count) in [(1, 1), (1, 3), (4, 9), (16, 3), (16, 16), (64, 7), (250, 8), (1024, 5)] {
            let live = sessions(1, count);
            let shares = shares(&live, partitions);
            let mut all: Vec<u16> = shares.values().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..partitions).collect::<Vec<_>>());
            let sizes = || shares.values().map(Vec::len);
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1, "{partitions} among {count}: {shares:?}");
        }
        assert!(shares(&[], 16).is_empty());
    }

    #[test]
    fn shares_do_not_depend_on_the_order_of_the_sessions() {
        let live = sessions(2, 5);
        let told: Vec<SessionId> = live.iter().rev().chain(&live[..2]).copied().collect();
        for me in &live {
            assert_eq!(share_of(*me, &live, 64), share_of(*me, &told, 64));
        }
        assert_eq!(share_of(SessionId::from_random(99), &live, 64), []);
    }

    /// `1/n` of the partitions is the session's own share; the others that move are the price of even shares.
    #[test]
    fn a_session_that_joins_or_leaves_moves_about_its_own_share() {
        for (partitions, most_others) in [(16, 0.15), (64, 0.08), (256, 0.045)] {
            for count in 2..=8_u16 {
                let draws = 3_200 / partitions;
                let (mut moved, mut others) = (0_u32, 0_u32);
                for draw in 0..draws {
                    let live = sessions(u64::from(draw), u64::from(count));
                    let (joined, before) = (live[0], &live[1..]);
                    let (with, without) = (holders(&live, partitions), holders(before, partitions));
                    let changed: Vec<_> = with.iter().filter(|(at, holder)| without[at] != **holder).collect();
                    moved += changed.len() as u32;
                    others += changed.iter().filter(|(_, holder)| **holder != joined).count() as u32;
                }
                let of_all = |n: u32| f64::from(n) / f64::from(draws) / f64::from(partitions);
                let (moved, others, own) = (of_all(moved), of_all(others), 1.0 / f64::from(count));
                assert!(others <= most_others, "{partitions} among {count}: {others} moved between other sessions");
                let rounding = 1.0 / f64::from(partitions);
                assert!((moved - others - own).abs() <= rounding, "{partitions} among {count}: {moved} moved");
            }
        }
    }

    #[test]
    fn a_partition_depends_only_on_the_name_and_the_number_of_partitions() {
        assert_eq!(partition_of("default", "backup", 1), 0);
        assert_eq!(partition_of("default", "backup", 16), partition_of("default", "backup", 16));
    }
}
