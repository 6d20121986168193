//! Times as people say them: `in 3 h`, `5 min ago`. Exact ones are a flag away.

use carillon_domain::time::Timestamp;
use carillon_store::{Clock, SystemClock};

/// How the times of a table are shown.
#[derive(Debug, Clone, Copy)]
pub struct TimeStyle {
    /// The moment to which they are related; `None` shows them exactly.
    now: Option<Timestamp>,
}

impl TimeStyle {
    /// Exact times in UTC, or the distance from this moment.
    pub fn new(utc: bool) -> Self {
        // A column of distances must not be torn by the time that it takes to write it.
        Self { now: (!utc).then(|| SystemClock.now()) }
    }

    /// Whether times are exact, and so 20 characters long.
    pub fn is_exact(self) -> bool {
        self.now.is_none()
    }

    /// A time of the API. Text that is none stays as it is.
    pub fn show(self, text: &str) -> String {
        match (Timestamp::parse_rfc3339(text), self.now) {
            (Some(time), Some(now)) => relative(time, now),
            (Some(time), None) => time.to_rfc3339_short(),
            (None, _) => text.to_owned(),
        }
    }
}

fn relative(time: Timestamp, now: Timestamp) -> String {
    let is_past = time < now;
    let distance = if is_past { now.since(time) } else { time.since(now) };
    let seconds = distance.as_secs();
    let shown = match seconds {
        0 => return "now".into(),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    };
    if is_past { format!("{shown} ago") } else { format!("in {shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_has_one_unit() {
        let now = Timestamp::from_secs(1_800_000_000);
        for (seconds, expected) in [
            (0, "now"),
            (1, "in 1 s"),
            (-119, "119 s ago"),
            (120, "in 2 min"),
            (7_199, "in 119 min"),
            (-7_200, "2 h ago"),
            (172_799, "in 47 h"),
            (-400 * 86_400, "400 d ago"),
        ] {
            assert_eq!(relative(Timestamp::from_secs(1_800_000_000 + seconds), now), expected);
        }
        let exact = TimeStyle { now: None };
        assert_eq!(exact.show("2026-01-01T00:00:00.000Z"), "2026-01-01T00:00:00Z");
        assert_eq!(TimeStyle { now: Some(now) }.show(""), "");
    }
}
