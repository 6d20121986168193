//! The stable hash of a job's name, which spreads jobs over `H` fields, jitter and partitions.
//!
//! It must never change: stored due times and partition numbers depend on it, and nodes of different versions must
//! agree. The known answers below pin it. It is FNV-1a over 64 bits (RFC 9923), then the 64-bit avalanche step of
//! MurmurHash3. FNV alone leaves the low bits of similar names similar.

use std::time::Duration;

/// Hashes `key` (usually `namespace/name`) for one `purpose`, so that two purposes spread the same key independently.
///
/// The hashed bytes are `key`, one zero byte and `purpose`. Purposes in use are `jitter`, `partition`, `rendezvous`,
/// `trace-high`, `trace-low`, `span`, and for `H` the names of the schedule fields: `seconds`, `minute`, `hour`, `day-of-month`, `month`, `day-of-week`.
pub fn stable_hash(key: &str, purpose: &str) -> u64 {
    let bytes = key.bytes().chain(std::iter::once(0)).chain(purpose.bytes());
    let fnv = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    avalanche(fnv)
}

/// The stable offset of a job in `[0, jitter]`, in whole milliseconds.
///
/// Every due time of the job moves by this same offset, so that due times keep their order and no state is needed.
pub fn jitter_offset(key: &str, jitter: Duration) -> Duration {
    let choices = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    Duration::from_millis(stable_hash(key, "jitter") % choices)
}

/// Makes every input bit reach every output bit.
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These values are a promise: changing one moves the due times and partitions of existing jobs.
    #[test]
    fn known_answers() {
        let answers = [
            ("", "", 0xb903_4ad3_7056_f5fb),
            ("default/nightly-backup", "minute", 0xd5ef_fab1_bc72_7701),
            ("default/nightly-backup", "hour", 0x8476_c471_d499_651d),
            ("default/nightly-backup", "jitter", 0x2067_4bb8_2367_7bbd),
            ("default/nightly-backup", "partition", 0x93c4_8fb2_aea3_7c00),
        ];
        for (key, purpose, expected) in answers {
            assert_eq!(stable_hash(key, purpose), expected, "{key:?} {purpose:?}");
        }
    }

    #[test]
    fn spreads_evenly_over_small_counts() {
        for buckets in [7_u64, 16, 24, 60] {
            let mut counts = vec![0_u64; usize::try_from(buckets).unwrap()];
            for job in 0..60_000 {
                let bucket = stable_hash(&format!("default/job-{job}"), "minute") % buckets;
                counts[usize::try_from(bucket).unwrap()] += 1;
            }
            let fair = 60_000 / buckets;
            assert!(counts.iter().all(|&n| n.abs_diff(fair) < fair / 5), "{buckets}: {counts:?}");
        }
    }

    #[test]
    fn jitter_stays_inside_its_bounds() {
        assert_eq!(jitter_offset("default/a", Duration::ZERO), Duration::ZERO);
        let most = Duration::from_millis(3);
        let offsets: Vec<_> = (0..200).map(|n| jitter_offset(&format!("default/{n}"), most)).collect();
        assert!(offsets.iter().all(|&o| o <= most));
        assert!((0..=3).all(|ms| offsets.contains(&Duration::from_millis(ms))));
        assert!(jitter_offset("default/a", Duration::MAX) <= Duration::MAX);
    }
}
