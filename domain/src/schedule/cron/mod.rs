//! The due times of a cron schedule: its wall-clock times as instants in a zone.
//!
//! This is Debian cron's daylight saving rule without its state. Let `F(w)` be the first instant at which the wall
//! clock of the zone shows `w` *or later*. For a time inside a gap that is the first instant after the gap. For a time
//! that occurs twice it is the first of the two.
//!
//! A schedule at fixed times is due at `F(w)` for each of its wall times `w`. Several times inside a gap share one
//! instant, perhaps with a regular time, and count as one due time. A schedule whose minute or hour begins with `*`
//! follows real time: it is due whenever the wall clock shows one of its times.
//!
//! So every combination of options is two flags: whether skipped times fire after the gap, and whether repeated times
//! fire again.

pub(in crate::schedule) mod calendar;
pub(in crate::schedule) mod daytime;
pub(in crate::schedule) mod month;

use self::calendar::Calendar;
use crate::schedule::syntax::days::Days;
use crate::schedule::zone::{END, FIRST, Span, Zone};

/// A cron schedule in a zone. All instants are seconds since the epoch, in the years 1970 to 9999.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::schedule) struct Cron {
    pub calendar: Calendar,
    /// The day fields that the calendar was made from, for the description.
    pub days: Days,
    pub zone: &'static Zone,
    /// Whether it fires once at the end of a gap that skipped at least one time.
    pub after_gap: bool,
    /// Whether it fires again when the wall clock repeats a time.
    pub repeats: bool,
}

impl Cron {
    /// The first due time at or after `from`.
    pub fn first_from(&self, from: i64) -> Option<i64> {
        let from = from.max(FIRST);
        if from >= END {
            return None;
        }
        self.zone.spans()[self.zone.span_at(from)..].iter().find_map(|span| {
            if span.start >= from && self.fires_after_gap(span) {
                return Some(span.start);
            }
            let (low, high) = self.walls(span);
            Some(self.calendar.first_in(low.max(from + span.offset), high)? - span.offset)
        })
    }

    /// The last due time at or before `until`, which must be before [`END`].
    pub fn last_until(&self, until: i64) -> Option<i64> {
        if until < FIRST {
            return None;
        }
        self.zone.spans()[..=self.zone.span_at(until)].iter().rev().find_map(|span| {
            let (low, high) = self.walls(span);
            match self.calendar.last_in(low, high.min(until + 1 + span.offset)) {
                Some(wall) => Some(wall - span.offset),
                None => self.fires_after_gap(span).then_some(span.start),
            }
        })
    }

    /// The number of due times in `[from, to)`.
    pub fn count_in(&self, from: i64, to: i64) -> u64 {
        let (from, to) = (from.max(FIRST), to.min(END));
        if from >= to {
            return 0;
        }
        let spans = self.zone.spans()[self.zone.span_at(from)..].iter().take_while(|span| span.start < to);
        spans
            .map(|span| {
                let (low, high) = self.walls(span);
                let regular = self.calendar.count_in(low.max(from + span.offset), high.min(to + span.offset));
                // A regular time at the very end of the gap is the same due time, so it counts once.
                let at_gap_end =
                    span.start >= from && self.fires_after_gap(span) && self.calendar.first_in(low, low + 1).is_none();
                regular + u64::from(at_gap_end)
            })
            .sum()
    }

    /// The wall times `[low, high)` at which this schedule may be due inside a span.
    fn walls(&self, span: &Span) -> (i64, i64) {
        let low = span.start + span.offset;
        (if self.repeats { low } else { low.max(span.reached) }, span.end + span.offset)
    }

    fn fires_after_gap(&self, span: &Span) -> bool {
        self.after_gap && self.calendar.first_in(span.reached, span.start + span.offset).is_some()
    }
}
