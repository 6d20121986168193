//! The place of a run in a distributed trace (W3C Trace Context): all attempts of a firing are spans of one trace.
//!
//! Ids follow from the firing and the attempt alone. So a retry, a rerun and an adopted run belong to the trace of the first
//! attempt, whichever node runs them. No table keeps ids. The link to the attempt before follows in the same way.

use std::fmt;

use crate::firing::Firing;
use crate::schedule::stable_hash;

/// The number of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanNumber(pub u64);

/// Which share of traces is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Traces whose number is below it, by their low 63 bits; all of them where it is `1 << 63`.
    below: u64,
}

impl Sample {
    /// Every trace.
    pub const ALL: Self = Self { below: 1 << 63 };

    /// A share from 0 to 1; `None` for another number.
    pub fn of(share: f64) -> Option<Self> {
        let below = (share * (1_u64 << 63) as f64) as u64;
        (0.0..=1.0).contains(&share).then_some(Self { below })
    }

    /// As `TraceIdRatioBased` of OpenTelemetry decides, so that services which follow sample the same traces.
    const fn takes(self, trace_low: u64) -> bool {
        trace_low >> 1 < self.below
    }
}

/// The ids of one attempt. Its text is the value of `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunTrace {
    high: u64,
    low: u64,
    span: SpanNumber,
    before: Option<SpanNumber>,
    sampled: bool,
}

impl RunTrace {
    /// The trace of a firing of the job `key` (`namespace/name`). `service` names the cluster: two clusters with the same jobs, which
    /// report to one collector, have traces of their own.
    pub fn of(service: &str, key: &str, firing: &Firing, sample: Sample) -> Self {
        let firing_key = format!("{service}/{key}/{}/{}", firing.due_at.as_ms(), firing.trigger.as_str());
        // Zero is no id.
        let [high, low] = ["trace-high", "trace-low"].map(|purpose| stable_hash(&firing_key, purpose).max(1));
        let span = |attempt: u32| SpanNumber(stable_hash(&format!("{firing_key}/{attempt}"), "span").max(1));
        let before = firing.attempt.checked_sub(1).filter(|before| *before > 0).map(span);
        Self { high, low, span: span(firing.attempt), before, sampled: sample.takes(low) }
    }

    /// The number of the trace.
    pub const fn number(&self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    /// The span of this attempt.
    pub const fn span(&self) -> SpanNumber {
        self.span
    }

    /// The span of the attempt before, if there was one.
    pub const fn attempt_before(&self) -> Option<SpanNumber> {
        self.before
    }

    /// Whether the span goes to the collector.
    pub const fn is_sampled(&self) -> bool {
        self.sampled
    }
}

impl fmt::Display for RunTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { high, low, span: SpanNumber(span), sampled, .. } = self;
        write!(f, "00-{high:016x}{low:016x}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn firing() -> Firing {
        Firing::regular(Timestamp::from_secs(1_800_000_000))
    }

    fn traced(service: &str, key: &str, firing: &Firing) -> RunTrace {
        RunTrace::of(service, key, firing, Sample::ALL)
    }

    /// It must never change: nodes of two versions may run two attempts.
    #[test]
    fn ids_are_pinned() {
        let known = "00-e1adfcc91842efb0c7fd577d99cfc600-4bb7ff90ab6b7fed-01";
        let trace = traced("carillon", "default/nightly", &firing());
        assert_eq!((trace.to_string().as_str(), trace.number()), (known, 0xe1ad_fcc9_1842_efb0_c7fd_577d_99cf_c600));
    }

    #[test]
    fn attempts_share_a_trace_and_each_leads_to_the_one_before() {
        let first = firing();
        let second = first.next_attempt(first.due_at);
        let third = second.next_attempt(second.start_at + std::time::Duration::from_secs(60));
        let [first, second, third] =
            [first, second, third].map(|firing| traced("carillon", "default/nightly", &firing));
        assert_eq!((first.number(), second.number()), (second.number(), third.number()));
        assert_eq!(first.attempt_before(), None);
        assert_eq!(second.attempt_before(), Some(first.span()));
        assert_eq!(third.attempt_before(), Some(second.span()));
        assert_ne!(first.span(), third.span());
    }

    #[test]
    fn other_firings_and_other_clusters_have_other_traces() {
        let this = traced("carillon", "default/nightly", &firing());
        let later = Firing { due_at: firing().due_at + std::time::Duration::from_millis(1), ..firing() };
        for other in [
            traced("carillon", "default/nightly", &later),
            traced("carillon", "default/nightly", &Firing::manual(firing().due_at)),
            traced("carillon", "default/hourly", &firing()),
            traced("staging", "default/nightly", &firing()),
        ] {
            assert!(other.number() != this.number() && other.span() != this.span(), "{other}");
        }
    }

    #[test]
    fn a_share_of_the_traces_is_sampled_by_every_node_alike() {
        for (share, least, most) in [(0.0, 0, 0), (0.1, 850, 1_150), (0.5, 4_750, 5_250), (1.0, 10_000, 10_000)] {
            let sample = Sample::of(share).unwrap();
            let sampled = |second: &i64| {
                let firing = Firing::regular(Timestamp::from_secs(*second));
                let trace = RunTrace::of("carillon", "default/nightly", &firing, sample);
                let retried = RunTrace::of("carillon", "default/nightly", &firing.next_attempt(firing.due_at), sample);
                assert_eq!(trace.is_sampled(), retried.is_sampled());
                assert_eq!(trace.to_string().ends_with("-01"), trace.is_sampled());
                trace.is_sampled()
            };
            let count = (0..10_000).filter(sampled).count();
            assert!((least..=most).contains(&count), "{count} of 10,000 at {share}");
        }
        let takes = |share, low| Sample::of(share).is_some_and(|sample| sample.takes(low));
        assert!(!takes(0.0, 0) && takes(1.0, u64::MAX) && takes(0.5, u64::MAX / 2) && !takes(0.5, 1 << 63));
        assert_eq!([-0.1, 1.1, f64::NAN, f64::INFINITY].map(Sample::of), [None; 4]);
    }
}
