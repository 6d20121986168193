//! The lease of a session: how long a node may trust it, and when other nodes may take over its work.
//!
//! A node trusts its session for `self_kill_after`. It counts from the moment *before it sent* the last acknowledged
//! heartbeat; after that it ends, its children first. Other nodes wait for `expire_after`. They count from the moment
//! when *they* last saw the heartbeat sequence change.
//!
//! The first clock starts before the second. The fencing inequality ([`Timing::check`]) keeps room between the two for
//! the keeper and for clocks that drift by one percent. So the children of a node are dead before another node acts for
//! it. Wall clocks play no part.

mod agreement;
mod engine;

pub use agreement::{ChosenTiming, OtherNode, Terms, TimingSource, choose};
pub use engine::{Engine, FailoverLimits};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::guard::{Guard, enabled};
use crate::id::SessionId;
use crate::time::{BootTime, Timestamp};

/// The session timing: the settings under `session.` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    /// The interval between heartbeats.
    pub heartbeat: Duration,
    /// The time that one heartbeat may take.
    pub heartbeat_timeout: Duration,
    /// The lease: how long a node lives after its last acknowledged heartbeat.
    pub self_kill_after: Duration,
    /// The time that killing all children may take.
    pub fence_grace: Duration,
    /// The time that the keeper may get no CPU.
    pub pause: Duration,
    /// The silence after which other nodes end a session.
    pub expire_after: Duration,
}

/// The timing for one server.
impl Default for Timing {
    fn default() -> Self {
        Engine::OneServer.timing()
    }
}

/// Whether all children are dead before another node acts, although both clocks drift by one percent.
fn is_fenced(dead_after: Duration, expire_after: Duration) -> bool {
    dead_after.as_millis() * 101 < expire_after.as_millis() * 99
}

/// A timing that is refused, because a node's work could be taken over while its children live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// Other nodes would not wait long enough.
    #[error(
        "session.expire_after is too short: (self_kill_after {self_kill_ms} ms + fence_grace {fence_ms} ms + pause \
         {pause_ms} ms) x 1.01 = {needed_ms} ms must be less than expire_after {expire_ms} ms x 0.99 = {given_ms} ms; \
         raise expire_after or lower the others"
    )]
    ExpiresTooSoon {
        /// `self_kill_after` in milliseconds.
        self_kill_ms: u64,
        /// `fence_grace` in milliseconds.
        fence_ms: u64,
        /// `pause` in milliseconds.
        pause_ms: u64,
        /// `expire_after` in milliseconds.
        expire_ms: u64,
        /// The left side, in milliseconds.
        needed_ms: u64,
        /// The right side, in milliseconds.
        given_ms: u64,
    },
    /// A single lost heartbeat would end the node.
    #[error(
        "session.self_kill_after is too short: heartbeat {heartbeat_ms} ms + heartbeat_timeout {timeout_ms} ms must be \
         less than half of self_kill_after ({half_ms} ms), so that one lost heartbeat ends nothing"
    )]
    NoSecondHeartbeat {
        /// `heartbeat` in milliseconds.
        heartbeat_ms: u64,
        /// `heartbeat_timeout` in milliseconds.
        timeout_ms: u64,
        /// Half of `self_kill_after` in milliseconds.
        half_ms: u64,
    },
    /// A duration of zero.
    #[error("session.{0} must be longer than zero")]
    Zero(&'static str),
}

impl Timing {
    /// Checks the fencing inequality, so that no node acts for another whose children may live.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use carillon_domain::lease::{Timing, TimingError};
    ///
    /// // Twelve seconds of lease, three to kill the children, four without CPU: 19 s plus drift, below 20 s.
    /// let timing = Timing::default();
    /// assert_eq!(timing.check(), Ok(()));
    ///
    /// let hasty = Timing { expire_after: Duration::from_secs(15), ..timing };
    /// assert!(matches!(hasty.check(), Err(TimingError::ExpiresTooSoon { needed_ms: 19_190, .. })));
    /// ```
    ///
    /// # Errors
    /// [`TimingError`], whose text names the settings with their numbers and tells which to change.
    pub fn check(&self) -> Result<(), TimingError> {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 1000);
        let positive = [
            ("heartbeat", self.heartbeat),
            ("heartbeat_timeout", self.heartbeat_timeout),
            ("self_kill_after", self.self_kill_after),
            ("fence_grace", self.fence_grace),
            ("expire_after", self.expire_after),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, duration)| ms(*duration) == 0) {
            return Err(TimingError::Zero(name));
        }
        let (self_kill_ms, fence_ms, pause_ms, expire_ms) =
            (ms(self.self_kill_after), ms(self.fence_grace), ms(self.pause), ms(self.expire_after));
        let needed = (self_kill_ms + fence_ms + pause_ms) * 101;
        let given = expire_ms * 99;
        if needed >= given && enabled(Guard::FencingInequality) {
            let (needed_ms, given_ms) = (needed.div_ceil(100), given / 100);
            return Err(TimingError::ExpiresTooSoon {
                self_kill_ms,
                fence_ms,
                pause_ms,
                expire_ms,
                needed_ms,
                given_ms,
            });
        }
        let (heartbeat_ms, timeout_ms) = (ms(self.heartbeat), ms(self.heartbeat_timeout));
        if (heartbeat_ms + timeout_ms) * 2 >= self_kill_ms {
            return Err(TimingError::NoSecondHeartbeat { heartbeat_ms, timeout_ms, half_ms: self_kill_ms / 2 });
        }
        Ok(())
    }
}

/// A node's estimate of the database's time. It is a lower bound, so that nothing starts early.
///
/// The database read its clock between the sending of a question and the arrival of its answer. So each answer tells two bounds. At the
/// arrival the clock shows at least this time, and at the sending it showed at most this time. The best lower bound is kept until
/// an answer contradicts it, because a clock was set back or drifts. An answer that took long contradicts nothing, so a stall of the
/// database does not make firings late.
#[derive(Debug, Clone, Default, Hash)]
pub struct DatabaseClock {
    /// The best lower bound: the database's time minus the boot clock, in milliseconds.
    offset_ms: Option<i64>,
}

impl DatabaseClock {
    /// Takes in an answer that carried the time `utc`. It was asked for at `sent` and arrived at `arrived`.
    pub fn heard(&mut self, utc: Timestamp, sent: BootTime, arrived: BootTime) {
        let offset_at = |at: BootTime| utc.as_ms().saturating_sub(i64::try_from(at.as_ms()).unwrap_or(i64::MAX));
        // Both clocks are told in whole milliseconds.
        let highest = offset_at(sent).saturating_add(1);
        let kept = self.offset_ms.filter(|offset| *offset <= highest);
        self.offset_ms = kept.max(Some(offset_at(arrived)));
    }

    /// The database's time at `now`; the epoch before the first answer.
    pub fn utc(&self, now: BootTime) -> Timestamp {
        self.offset_ms.map_or(Timestamp::EPOCH, |offset| {
            Timestamp::from_ms(i64::try_from(now.as_ms()).unwrap_or(i64::MAX).saturating_add(offset))
        })
    }

    /// The boot time at which the database's time reaches `utc`; `None` before the first answer.
    pub fn boot(&self, utc: Timestamp) -> Option<BootTime> {
        let ms = utc.as_ms().saturating_sub(self.offset_ms?);
        Some(BootTime::from_ms(u64::try_from(ms).unwrap_or(0)))
    }
}

/// Finds the sessions that went silent. It measures silence on this node's own clock only.
#[derive(Debug, Clone, Default, Hash)]
pub struct FailureDetector {
    /// The last sequence of each session, and since when it has not changed.
    seen: BTreeMap<SessionId, (u64, BootTime)>,
}

impl FailureDetector {
    /// Measures every silence from zero again. After lost commits an old sequence may come back, and would look like
    /// silence.
    pub fn restart(&mut self) {
        self.seen.clear();
    }

    /// Takes in the heartbeat sequences that were just read. Sessions that are not among them are forgotten.
    pub fn observe(&mut self, beats: impl IntoIterator<Item = (SessionId, u64)>, now: BootTime) {
        let mut seen = BTreeMap::new();
        for (session, seq) in beats {
            let since = match self.seen.get(&session) {
                Some((known, since)) if *known == seq || !enabled(Guard::HeartbeatRestartsExpiry) => *since,
                _ => now,
            };
            seen.insert(session, (seq, since));
        }
        self.seen = seen;
    }

    /// The sessions other than `me` that were silent for `expire_after`, each with its last sequence.
    pub fn expired(&self, me: SessionId, expire_after: Duration, now: BootTime) -> Vec<(SessionId, u64)> {
        let silent = |since: BootTime| now.since(since) >= expire_after;
        let others = self.seen.iter().filter(|(session, _)| **session != me);
        others.filter(|(_, (_, since))| silent(*since)).map(|(session, (seq, _))| (*session, *seq)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_default_timing_holds_and_each_side_of_the_inequality_is_needed() {
        let good = Timing::default();
        assert_eq!(good.check(), Ok(()));
        // (12 + 3 + 4) x 1.01 = 19.19 < 20 x 0.99 = 19.8
        let short = Timing { expire_after: Duration::from_millis(19_383), ..good };
        let text = short.check().unwrap_err().to_string();
        assert!(text.contains("12000 ms") && text.contains("19190 ms") && text.contains("19383 ms"), "{text}");
        assert!(text.contains("19189 ms"), "{text}");
        assert_eq!(Timing { expire_after: Duration::from_millis(19_385), ..good }.check(), Ok(()));
        let slow = Timing { heartbeat: secs(4), ..good };
        assert!(matches!(slow.check(), Err(TimingError::NoSecondHeartbeat { half_ms: 6000, .. })));
        assert_eq!(Timing { heartbeat: Duration::ZERO, ..good }.check(), Err(TimingError::Zero("heartbeat")));
    }

    #[test]
    fn both_clocks_may_drift_by_one_percent() {
        // 9,900 x 101 = 10,100 x 99
        assert!(!is_fenced(Duration::from_millis(9_900), Duration::from_millis(10_100)));
        assert!(is_fenced(Duration::from_millis(9_900), Duration::from_millis(10_101)));
    }

    #[test]
    fn huge_durations_do_not_overflow() {
        let good = Timing::default();
        assert_eq!(Timing { expire_after: Duration::MAX, ..good }.check(), Ok(()));
        let never = Timing { self_kill_after: Duration::MAX, fence_grace: Duration::MAX, pause: Duration::MAX, ..good };
        assert!(matches!(never.check(), Err(TimingError::ExpiresTooSoon { .. })));
    }

    #[test]
    fn a_session_expires_on_the_observers_clock_after_the_last_change_that_it_saw() {
        let (me, other) = (SessionId::from_random(1), SessionId::from_random(2));
        let at = BootTime::from_ms;
        let mut detector = FailureDetector::default();
        detector.observe([(me, 1), (other, 7)], at(0));
        detector.observe([(me, 2), (other, 7)], at(10_000));
        assert_eq!(detector.expired(me, secs(20), at(19_999)), []);
        assert_eq!(detector.expired(me, secs(20), at(20_000)), [(other, 7)]);
        detector.observe([(me, 3), (other, 8)], at(20_000));
        assert_eq!(detector.expired(me, secs(20), at(39_999)), []);
        detector.observe([(me, 4)], at(40_000));
        assert_eq!(detector.expired(me, secs(20), at(90_000)), [], "a session that is gone is not expired again");
    }

    /// An answer with the time `utc_ms`, asked for at `sent` and heard at `arrived`.
    fn hear(clock: &mut DatabaseClock, utc_ms: i64, sent: u64, arrived: u64) {
        clock.heard(Timestamp::from_ms(utc_ms), BootTime::from_ms(sent), BootTime::from_ms(arrived));
    }

    #[test]
    fn the_database_clock_is_the_best_lower_bound_that_no_answer_contradicts() {
        let mut clock = DatabaseClock::default();
        assert_eq!(clock.utc(BootTime::from_ms(5)), Timestamp::EPOCH);
        hear(&mut clock, 1_000_000, 90, 100);
        hear(&mut clock, 1_000_100, 200, 250);
        assert_eq!(clock.utc(BootTime::from_ms(300)), Timestamp::from_ms(1_000_200));
        assert_eq!(clock.boot(Timestamp::from_ms(1_000_200)), Some(BootTime::from_ms(300)));
        hear(&mut clock, 500_001, 300, 301);
        assert_eq!(
            clock.utc(BootTime::from_ms(400)),
            Timestamp::from_ms(500_100),
            "a clock that was set back is followed"
        );
        hear(&mut clock, 800_000, 500, 501);
        assert_eq!(clock.utc(BootTime::from_ms(501)), Timestamp::from_ms(800_000), "and one that was set forward");
    }

    #[test]
    fn a_stall_of_the_database_makes_nothing_late() {
        let mut clock = DatabaseClock::default();
        hear(&mut clock, 1_000_000, 0, 1);
        // Each answer comes two seconds after the clock was read, for as long as one likes.
        for beat in 1..100 {
            let sent = beat * 3_000;
            hear(&mut clock, 1_000_000 + sent as i64, sent, sent + 2_000);
        }
        assert_eq!(clock.utc(BootTime::from_ms(300_001)), Timestamp::from_ms(1_300_000));
    }

    #[test]
    fn drift_is_followed_within_the_time_of_an_answer() {
        let mut clock = DatabaseClock::default();
        hear(&mut clock, 1_000_000, 0, 1);
        // The database's clock loses a millisecond in two seconds.
        for beat in 1..1_000_u64 {
            let (sent, lost) = (beat * 2_000, beat as i64);
            hear(&mut clock, 1_000_000 + sent as i64 - lost, sent, sent + 1);
            let ahead = clock.utc(BootTime::from_ms(sent)).as_ms() - (1_000_000 + sent as i64 - lost);
            assert!((-1..=1).contains(&ahead), "{ahead} ms at {sent}");
        }
    }
}
