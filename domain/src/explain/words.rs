//! Times in a sentence.

use chrono::{Offset, TimeZone};
use chrono_tz::Tz;

use crate::schedule::Timeline;
use crate::time::Timestamp;

/// The wall clock of a job's zone. It leaves out today's date, and parts that are zero.
pub(super) struct Clock {
    zone: Tz,
    now: Timestamp,
}

impl Clock {
    pub fn of(timeline: &Timeline, now: Timestamp) -> Self {
        Self { zone: timeline.schedule.timezone().parse().unwrap_or(Tz::UTC), now }
    }

    /// Such as `02:00`, `02:00:10` or `2027-01-02 02:00`.
    pub fn at(&self, time: Timestamp) -> String {
        let wall = |time: Timestamp| {
            let naive = time.naive();
            self.zone.offset_from_utc_datetime(&naive).fix().from_utc_datetime(&naive)
        };
        let (then, today) = (wall(time), wall(self.now));
        let clock = if time.as_ms() % 1_000 != 0 {
            "%H:%M:%S%.3f"
        } else if time.as_ms() % 60_000 != 0 {
            "%H:%M:%S"
        } else {
            "%H:%M"
        };
        let date = if then.date_naive() == today.date_naive() { "" } else { "%Y-%m-%d " };
        then.format(&format!("{date}{clock}")).to_string()
    }
}

/// `message` as the end of a sentence: without the full stop that it may have, and on one line.
pub(crate) fn clause(message: &str) -> String {
    let one_line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Options, Schedule};

    #[test]
    fn a_time_is_told_as_the_zone_of_the_job_shows_it() {
        let options = Options { timezone: Some("Europe/Berlin"), ..Options::default() };
        let at = |text| Timestamp::parse_rfc3339(text).unwrap();
        let timeline = Timeline::new(Schedule::parse("0 3 * * *", &options).unwrap(), Timestamp::EPOCH);
        let clock = Clock::of(&timeline, at("2027-01-01T23:30:00Z"));
        for (time, told) in [
            ("2027-01-02T02:00:00Z", "03:00"),
            ("2027-01-02T02:00:07Z", "03:00:07"),
            ("2027-01-02T02:00:07.250Z", "03:00:07.250"),
            ("2027-01-01T22:59:00Z", "2027-01-01 23:59"),
        ] {
            assert_eq!(clock.at(at(time)), told);
        }
    }

    #[test]
    fn a_clause_is_one_line_without_a_full_stop() {
        assert_eq!(clause("it went\n wrong."), "it went wrong");
    }
}
