//! Clocks: this machine's against the database's, by which a cluster goes, or against the world's, if it stands alone.

use std::time::Duration;

use carillon_domain::duration;
use carillon_store::mysql::ClockReading;

use super::super::finding::Finding;
use carillon_node::alerts::drifts;

const PART: &str = "clock";

/// Judges a reading of the database's clock, and the time that the answer took.
pub(super) fn of_database(reading: ClockReading, heartbeat_timeout: Duration) -> Vec<Finding> {
    let (ahead_ms, took) = (ahead_ms(reading), reading.arrived.since(reading.sent));
    let shown = duration::spoken(Duration::from_millis(ahead_ms.unsigned_abs()));
    let side = if ahead_ms > 0 { "behind" } else { "ahead of" };
    let clock = match drifts(false, ahead_ms) {
        true => Finding::warning(
            PART,
            format!(
                "this machine's clock is {shown} {side} the database's: jobs start by the database's, logs show this one"
            ),
            "Let both machines follow one time server (timedatectl set-ntp true, or chrony).",
        ),
        false => {
            let most = duration::spoken(Duration::from_millis(most_ms(reading)));
            Finding::ok(PART, format!("it differs from the database's by at most {most}"))
        }
    };
    let shown = duration::spoken(took + Duration::from_millis(1));
    let answer = match took * 4 > heartbeat_timeout {
        true => Finding::warning(
            "round trip",
            format!(
                "the database answered within {shown}; a heartbeat may take {}",
                duration::spoken(heartbeat_timeout)
            ),
            "Look for a slow network or a busy database, or let all times of [session] be longer.",
        ),
        false => Finding::ok("round trip", format!("the database answered within {shown}")),
    };
    vec![clock, answer]
}

/// How far the database's clock is ahead at the least: its answer was made between sending and arrival.
fn ahead_ms(reading: ClockReading) -> i64 {
    let ms = |time: carillon_domain::time::Timestamp| time.as_ms();
    let (least, most) = (ms(reading.told) - ms(reading.arrived), ms(reading.told) - ms(reading.sent));
    // All differences from the least to the most are possible; the one nearest to zero is certain.
    if least > 0 { least } else { most.min(0) }
}

/// How far the two clocks are apart at the most; both readings leave out a part of a millisecond.
fn most_ms(ClockReading { sent, told, arrived }: ClockReading) -> u64 {
    [sent, arrived].map(|own| (told.as_ms() - own.as_ms()).unsigned_abs()).into_iter().max().unwrap_or_default() + 1
}

/// This machine's clock, where no other one is near.
pub(super) fn of_machine() -> Finding {
    judge(is_kept_right())
}

fn judge(is_kept_right: Option<bool>) -> Finding {
    match is_kept_right {
        Some(true) => Finding::ok(PART, "the system keeps it right by a time server"),
        Some(false) => Finding::warning(
            PART,
            "the system does not keep it right by a time server: jobs start when this clock says so",
            "Run timedatectl set-ntp true, or install chrony; inside a container, do so on its host.",
        ),
        None => Finding::ok(PART, "the system does not tell whether a time server keeps it right"),
    }
}

/// Whether the kernel's clock is disciplined; `None` if it does not say.
fn is_kept_right() -> Option<bool> {
    // SAFETY: all-zero bytes are a valid timex, and with no mode bit set the call only reads the clock's state into it.
    let (state, status) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex.status)
    };
    (state >= 0).then_some(status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    use carillon_domain::time::Timestamp;

    use super::*;
    use crate::doctor::finding::Level;

    fn reading(sent: i64, told: i64, arrived: i64) -> ClockReading {
        let at = Timestamp::from_ms;
        ClockReading { sent: at(sent), told: at(told), arrived: at(arrived) }
    }

    #[test]
    fn a_difference_is_only_told_as_far_as_it_is_certain() {
        for (sent, told, arrived, ahead, clock, answer) in [
            (10_000, 10_001, 10_002, 0, Level::Ok, Level::Ok),
            (10_000, 10_999, 10_002, 997, Level::Ok, Level::Ok),
            (10_000, 11_002, 10_002, 1_000, Level::Warning, Level::Ok),
            (10_000, 8_900, 10_002, -1_100, Level::Warning, Level::Ok),
            // It may have been told at any moment of the three seconds.
            (10_000, 12_900, 13_000, 0, Level::Ok, Level::Warning),
        ] {
            let reading = reading(sent, told, arrived);
            assert_eq!(ahead_ms(reading), ahead, "{reading:?}");
            assert!(most_ms(reading) >= ahead.unsigned_abs(), "{reading:?}");
            let levels: Vec<Level> =
                of_database(reading, Duration::from_secs(2)).iter().map(|finding| finding.level).collect();
            assert_eq!(levels, [clock, answer], "{reading:?}");
        }
        assert_eq!(most_ms(reading(10_000, 10_001, 10_003)), 3);
        let behind = of_database(reading(10_000, 13_000, 10_002), Duration::from_secs(2));
        assert!(behind[0].says.contains("2.9 s behind the database's"), "{behind:?}");
    }

    #[test]
    fn a_clock_alone_is_judged_by_the_kernel() {
        for (kept, level) in [(Some(true), Level::Ok), (Some(false), Level::Warning), (None, Level::Ok)] {
            assert_eq!(judge(kept).level, level, "{kept:?}");
        }
        is_kept_right();
    }
}
