//! A limit on the rate of starts. Firings that fall due together start together. But many firings with a moment of their own would need a
//! statement and a commit each, at several times the cost. So the more firings there are, the longer a start waits for others. It waits
//! a thirtieth of a second from a thousand firings a second on, a tenth of that at a hundred, and nothing below thirty.

use std::time::Duration;

use crate::node::flow::tuned::ENOUGH;
use crate::time::BootTime;

/// The starts in a second at a thousand firings a second and more.
const STARTS: u32 = 30;
/// The longest that a start waits for others, in milliseconds.
const LONGEST_MS: u32 = 1_000 / STARTS;
/// So many starts may follow each other at once after a pause: firings of the full second do not wait.
const SAVED: u32 = 4;

/// The starts sent lately, and how long the next one waits.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct StartRate {
    /// A second of the boot clock, how many runs were started in it, and in the one before.
    second: u64,
    runs: u32,
    runs_before: u32,
    /// How many of the saved starts are spent, at that time.
    spent: u32,
    as_of: BootTime,
}

impl StartRate {
    /// The time from one start to the next.
    fn gap(&self) -> Duration {
        Duration::from_millis(u64::from((self.runs_before / STARTS).min(LONGEST_MS)))
    }

    /// Takes in the time that has passed.
    fn pass(&mut self, now: BootTime) {
        let second = now.as_ms() / 1_000;
        if second != self.second {
            let follows = second == self.second + 1;
            (self.runs_before, self.runs) = (if follows { self.runs } else { 0 }, 0);
            self.second = second;
        }
        let gap = self.gap();
        while self.spent > 0 && self.as_of + gap <= now {
            (self.spent, self.as_of) = (self.spent - 1, self.as_of + gap);
        }
        if self.spent == 0 {
            self.as_of = BootTime::default();
        }
    }

    /// Until when a start of so many runs waits for more, if it does.
    pub fn wait(&mut self, runs: usize, now: BootTime) -> Option<BootTime> {
        self.pass(now);
        let is_spent = self.spent >= SAVED && runs < ENOUGH;
        is_spent.then(|| self.as_of + self.gap())
    }

    /// A start of so many runs goes.
    pub fn sent(&mut self, runs: usize, now: BootTime) {
        self.pass(now);
        self.runs = self.runs.saturating_add(u32::try_from(runs).unwrap_or(u32::MAX));
        if runs < ENOUGH && !self.gap().is_zero() {
            if self.spent == 0 {
                self.as_of = now;
            }
            self.spent += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `each` runs come due every so many milliseconds. Answers how many starts there are in the last second, and the longest wait of
    /// any of them.
    fn starts(each: usize, every_ms: u64) -> (u32, u64) {
        let (mut rate, mut due, mut since) = (StartRate::default(), 0, None);
        let (mut count, mut longest) = (0, 0);
        for ms in 0..5_000 {
            let now = BootTime::from_ms(1_000_000 + ms);
            if ms % every_ms == 0 {
                due += each;
                since = since.or(Some(ms));
            }
            if due > 0 && rate.wait(due, now).is_none() {
                rate.sent(due, now);
                if ms >= 4_000 {
                    (count, longest) = (count + 1, longest.max(ms - since.unwrap_or(ms)));
                }
                (due, since) = (0, None);
            }
        }
        (count, longest)
    }

    #[test]
    fn the_more_there_is_the_longer_a_start_waits_for_others() {
        assert_eq!(starts(1, 50), (20, 0), "few wait for nobody");
        assert_eq!(starts(1, 10), (100, 0), "nor do a hundred a second that are apart");
        assert_eq!(starts(50, 50), (20, 0), "nor those that come together");
        assert_eq!(starts(1_000, 1_000), (1, 0));
        let (busy, waited) = starts(1, 1);
        assert!((30..=32).contains(&busy) && (30..=33).contains(&waited), "{busy} starts, {waited} ms");
        let (some, waited) = starts(1, 3);
        assert!((80..=100).contains(&some) && waited <= 12, "{some} starts, {waited} ms");
        let (fast, waited) = starts(3, 1);
        assert!((30..=32).contains(&fast) && (30..=34).contains(&waited), "{fast} starts, {waited} ms: no longer");
        let (most, waited) = starts(10, 1);
        assert!(most <= 75 && waited <= 25, "{most} starts, {waited} ms: enough for a call of their own go at once");
    }

    #[test]
    fn what_was_saved_is_for_those_that_come_together() {
        let mut rate = StartRate::default();
        let at = |ms: u64| BootTime::from_ms(10_000 + ms);
        (0..20).for_each(|n| rate.sent(50, at(50 * n)));
        // The next second: four at once, then one at a time.
        let now = at(1_000);
        for _ in 0..SAVED {
            assert_eq!(rate.wait(50, now), None);
            rate.sent(50, now);
        }
        assert_eq!(rate.wait(50, now), Some(at(1_033)));
        assert_eq!(rate.wait(ENOUGH, now), None, "many go at once");
        let mut many = StartRate::default();
        (0..20).for_each(|n| many.sent(50, at(50 * n)));
        (0..SAVED).for_each(|_| many.sent(ENOUGH, now));
        assert_eq!(many.wait(50, now), None, "and spend nothing");
        assert!(rate.wait(1, at(1_032)).is_some() && rate.wait(1, at(1_033)).is_none());
        rate.sent(1, at(1_033));
        assert!(rate.wait(1, at(1_034)).is_some());
        // A second without any, and nothing waits.
        assert_eq!(rate.wait(1, at(3_000)), None);
    }
}
