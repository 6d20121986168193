//! Partitions: fixed buckets of jobs, each with a lock row of its own, shared out by rendezvous hashing (DESIGN section 3).

use crate::id::SessionId;
use crate::schedule::stable_hash;

/// The bucket of a job; fixed for ever, as is the number of partitions once a database is made.
pub fn partition_of(namespace: &str, name: &str, partitions: u16) -> u16 {
    let hash = stable_hash(&format!("{namespace}/{name}"), "partition");
    u16::try_from(hash % u64::from(partitions.max(1))).unwrap_or(0)
}

/// The partitions that fall to `me` among the `live` sessions: each goes to the session with the highest weight for it, so
/// that a session that joins or leaves moves only its own share. Views may differ for a moment; the lock rows keep that
/// safe, this only keeps it fast.
pub fn share_of(me: SessionId, live: &[SessionId], partitions: u16) -> Vec<u16> {
    (0..partitions).filter(|partition| holder_of(*partition, live) == Some(me)).collect()
}

/// Who holds a partition among the `live` sessions.
pub fn holder_of(partition: u16, live: &[SessionId]) -> Option<SessionId> {
    live.iter().copied().max_by_key(|session| (weight(*session, partition), *session))
}

fn weight(session: SessionId, partition: u16) -> u64 {
    stable_hash(&format!("{session}/{partition}"), "rendezvous")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(count: u64) -> Vec<SessionId> {
        (0..count).map(|n| SessionId::from_random(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
    }

    #[test]
    fn every_partition_has_exactly_one_holder() {
        let live = sessions(3);
        let mut all: Vec<u16> = live.iter().flat_map(|me| share_of(*me, &live, 64)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..64).collect::<Vec<_>>());
        assert_eq!(holder_of(0, &[]), None);
    }

    #[test]
    fn a_session_that_leaves_moves_only_its_own_share() {
        let live = sessions(4);
        let without_last = &live[..3];
        for partition in 0..256 {
            let before = holder_of(partition, &live);
            if before != Some(live[3]) {
                assert_eq!(holder_of(partition, without_last), before);
            }
        }
    }

    #[test]
    fn shares_are_even_enough() {
        let live = sessions(4);
        for me in &live {
            let share = share_of(*me, &live, 1024).len();
            assert!((128..=384).contains(&share), "a session of four holds {share} of 1024 partitions");
        }
    }

    #[test]
    fn a_partition_does_not_depend_on_anything_but_the_name_and_the_number_of_partitions() {
        assert_eq!(partition_of("default", "backup", 1), 0);
        assert_eq!(partition_of("default", "backup", 16), partition_of("default", "backup", 16));
    }
}
