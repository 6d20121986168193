//! Identifiers: sessions, jobs and runs.

use std::fmt;
use std::str::FromStr;

/// The id of a session: one lifetime of a node. Each start draws a new one, so that a restarted node never passes for
/// the session before.
///
/// The top bit is always set. It keeps drawn run ids apart from those that are derived from a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    const DRAWN: u64 = 1 << 63;

    /// From 64 random bits. The caller draws them, because the domain has no randomness.
    pub const fn from_random(bits: u64) -> Self {
        Self(bits | Self::DRAWN)
    }

    /// The number that stores keep.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id of a job. It is never used twice, although the name of a deleted job is free at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of a run: one attempt to execute a firing, or the record of due times that did not run.
///
/// A drawn id is the session's id and a counter inside the process, so that it is unique without any coordination.
/// Records of skipped due times derive their id from the job and the due time, so that a repeated write has the same
/// id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    high: u64,
    low: u64,
}

impl RunId {
    /// Run number `seq` of `session`.
    pub const fn drawn(session: SessionId, seq: u64) -> Self {
        Self { high: session.as_u64(), low: seq }
    }

    /// The id of the record of a due time of `job` that did not run. `kind` tells apart records of one due time.
    pub const fn derived(job: JobId, due_at_ms: i64, kind: u8) -> Self {
        Self { high: job.0 & !SessionId::DRAWN, low: ((due_at_ms as u64) << 8) | kind as u64 }
    }

    /// Rebuilds an id from the two numbers that a store keeps.
    pub const fn from_parts(high: u64, low: u64) -> Self {
        Self { high, low }
    }

    /// The two numbers that a store keeps.
    pub const fn parts(self) -> (u64, u64) {
        (self.high, self.low)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:x}", self.high, self.low)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a run id: expected 16 hexadecimal digits, a dash and more hexadecimal digits")]
pub struct BadRunId(pub String);

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        let bad = || BadRunId(text.chars().take(64).collect());
        let (high, low) = text.split_once('-').ok_or_else(bad)?;
        let hex = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        if high.len() != 16 || low.is_empty() || low.len() > 16 || !hex(high) || !hex(low) {
            return Err(bad());
        }
        let number = |s: &str| u64::from_str_radix(s, 16).map_err(|_| bad());
        Ok(Self { high: number(high)?, low: number(low)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_read_back_from_its_text() {
        for id in [RunId::drawn(SessionId::from_random(7), 42), RunId::derived(JobId(9), 1_700_000_000_000, 3)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn a_text_that_is_not_a_run_id_is_quoted_in_the_error() {
        for text in
            ["", "-", "../etc", "8000000000000007", "8000000000000007-", "8000000000000007-G", "+000000000000007-1"]
        {
            assert_eq!(text.parse::<RunId>(), Err(BadRunId(text.into())));
        }
    }

    #[test]
    fn drawn_and_derived_ids_never_meet() {
        let drawn = RunId::drawn(SessionId::from_random(0), 1);
        let derived = RunId::derived(JobId(u64::MAX), 0, 1);
        assert_ne!(drawn.parts().0, derived.parts().0);
    }

    #[test]
    fn ids_print_the_numbers_that_stores_keep() {
        let session = SessionId::from_random(7);
        assert_eq!((session.as_u64(), SessionId::from_random(1 << 63 | 7)), (1 << 63 | 7, session));
        assert_eq!(
            (session.to_string(), format!("{session:?}")),
            ("8000000000000007".into(), "8000000000000007".into())
        );
        assert_eq!(JobId(42).to_string(), "42");
        let run = RunId::drawn(session, 0x2a);
        assert_eq!((run.to_string(), format!("{run:?}")), ("8000000000000007-2a".into(), "8000000000000007-2a".into()));
        assert_eq!((run.parts(), RunId::from_parts(1 << 63 | 7, 0x2a)), ((1 << 63 | 7, 0x2a), run));
    }

    #[test]
    fn a_derived_id_contains_job_due_time_and_kind() {
        assert_eq!(RunId::derived(JobId(9), 5, 3).parts(), (9, 5 << 8 | 3));
        let kinds = [0, 1, 127, 128, 255].map(|kind| RunId::derived(JobId(9), 0x0101, kind));
        assert!(kinds.is_sorted_by(|one, other| one < other), "{kinds:?}");
    }

    #[test]
    fn the_parts_of_a_run_id_have_fixed_lengths() {
        let longest = "ffffffffffffffff-ffffffffffffffff";
        assert_eq!(longest.parse(), Ok(RunId::from_parts(u64::MAX, u64::MAX)));
        for text in
            ["fffffffffffffffff-1", "fffffffffffffff-1", "ffffffffffffffff-00000000000000001", "FFFFFFFFFFFFFFFF-1"]
        {
            assert_eq!(text.parse::<RunId>(), Err(BadRunId(text.into())));
        }
        let endless = "x".repeat(1_000);
        assert_eq!(endless.parse::<RunId>(), Err(BadRunId("x".repeat(64))), "it is quoted in part");
    }
}
