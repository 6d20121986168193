//! Random schedules against a naive oracle, around unusual clock changes and over long times.

mod oracle;

use std::time::Duration;

use carillon_domain::schedule::{Dst, Gap, Options, Overlap, Schedule, ScheduleError, Timeline};
use carillon_domain::time::Timestamp;
use chrono::NaiveDate;
use oracle::{Fields, KEY, random};
use proptest::prelude::*;

/// Zones, and instants at which they change their clocks.
const CHANGES: [(&str, &str); 16] = [
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z"), // midnight repeats 23:00
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"), // midnight does not exist
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), // half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),     // a whole day is skipped
    ("Antarctica/Troll", "2026-03-29T01:00:00Z"), // two hours
    ("Antarctica/Troll", "2026-10-25T01:00:00Z"),
    ("Europe/Dublin", "2026-03-29T01:00:00Z"), // negative daylight saving
    ("Europe/Dublin", "2026-10-25T01:00:00Z"),
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"), // Ramadan
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("Asia/Kolkata", "2026-05-01T00:00:00Z"),
    ("UTC", "2024-02-29T12:00:00Z"),
    ("UTC", "2100-02-28T12:00:00Z"),
];

fn dst() -> impl Strategy<Value = Dst> {
    let gap = prop_oneof![2 => Just(Gap::After), 1 => Just(Gap::Skip)];
    let overlap = prop_oneof![2 => Just(Overlap::First), 1 => Just(Overlap::Both)];
    (gap, overlap).prop_map(|(gap, overlap)| Dst { gap, overlap })
}

/// Compares all queries about one window of time with the oracle's list.
fn compare(fields: &Fields, zone: &str, dst: Dst, from: i64, to: i64, probe_ms: i64) -> Result<(), TestCaseError> {
    let text = fields.text();
    let expected = fields.due(zone.parse().unwrap(), dst.gap, dst.overlap, from, to);
    let options = Options { timezone: Some(zone), dst, hash_key: KEY };
    let schedule = match Schedule::parse(&text, &options) {
        Ok(schedule) => schedule,
        Err(ScheduleError::NeverFires { .. }) => {
            prop_assert!(expected.is_empty(), "{} is due at {:?}", text, expected);
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{text}: {error}"))),
    };
    prop_assert!(!schedule.describe().is_empty());
    let timeline = Timeline::new(schedule, Timestamp::EPOCH);
    let expected: Vec<_> = expected.into_iter().map(Timestamp::from_secs).collect();
    let (before, last) = (Timestamp::from_secs(from - 1), Timestamp::from_secs(to - 1));

    let due: Vec<_> = timeline.after(before).take_while(|&t| t <= last).collect();
    prop_assert_eq!(&due, &expected, "{} in {} {:?} from {:?}", text, zone, dst, before);
    let mut backwards: Vec<_> = timeline.until(last).take_while(|&t| t > before).collect();
    backwards.reverse();
    prop_assert_eq!(&backwards, &expected, "{} in {} {:?} until {:?}", text, zone, dst, last);
    prop_assert_eq!(timeline.count(before, last), expected.len() as u64, "{} in {}", text, zone);

    let probe = Timestamp::from_ms(from * 1_000 + probe_ms % ((to - from) * 1_000));
    let split = expected.partition_point(|&t| t <= probe);
    prop_assert_eq!(timeline.count(before, probe), split as u64);
    prop_assert_eq!(timeline.count(probe, last), (expected.len() - split) as u64);
    if let Some(&next) = expected.get(split) {
        prop_assert_eq!(timeline.next_after(probe), Some(next));
    }
    if let Some(&previous) = expected[..split].last() {
        prop_assert_eq!(timeline.last_until(probe), Some(previous));
    }
    Ok(())
}

fn change(n: usize) -> (&'static str, i64) {
    let (zone, at) = CHANGES[n];
    (zone, Timestamp::parse_rfc3339(at).unwrap().as_ms() / 1_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn five_fields_agree_around_clock_changes(
        fields in random::fields(false), n in 0..CHANGES.len(), dst in dst(), shift in -36_i64 * 60..6 * 60, probe in 0_i64..1 << 40,
    ) {
        let (zone, at) = change(n);
        let from = at + shift * 60;
        compare(&fields, zone, dst, from, from + 40 * 3_600, probe)?;
    }

    #[test]
    fn days_agree_over_years(fields in random::days(), first in 0_i32..47_000) {
        let options = Options { hash_key: KEY, ..Options::default() };
        let midnight = |day: i32| Timestamp::from_secs(i64::from(day) * 86_400);
        let expected: Vec<_> = (first..first + 1_500)
            .filter(|&day| fields.on(NaiveDate::from_epoch_days(day).unwrap()))
            .map(midnight)
            .collect();
        match Schedule::parse(&fields.text(), &options) {
            Ok(schedule) => {
                let timeline = Timeline::new(schedule, Timestamp::EPOCH);
                let (before, last) = (midnight(first) - Duration::from_millis(1), midnight(first + 1_499));
                let due: Vec<_> = timeline.after(before).take_while(|&t| t <= last).collect();
                prop_assert_eq!(&due, &expected, "{}", fields.text());
                prop_assert_eq!(timeline.count(before, last), due.len() as u64);
            }
            Err(error) => prop_assert!(matches!(error, ScheduleError::NeverFires { .. }) && expected.is_empty(), "{}", error),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 180, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn six_fields_agree_around_clock_changes(
        fields in random::fields(true), n in 0..CHANGES.len(), dst in dst(), shift in -4_i64 * 3_600..3_600, probe in 0_i64..1 << 40,
    ) {
        let (zone, at) = change(n);
        let from = at + shift;
        compare(&fields, zone, dst, from, from + 4 * 3_600, probe)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn backwards_is_the_inverse_of_forwards(
        fields in any::<bool>().prop_flat_map(random::fields), n in 0..CHANGES.len(), dst in dst(),
        t in 0_i64..Timestamp::MAX.as_ms() / 2, jitter_ms in prop_oneof![Just(0_u64), 0_u64..100_000],
    ) {
        let options = Options { timezone: Some(CHANGES[n].0), dst, hash_key: KEY };
        let Ok(schedule) = Schedule::parse(&fields.text(), &options) else { return Ok(()) };
        let mut timeline = Timeline::new(schedule, Timestamp::EPOCH);
        timeline.jitter = Duration::from_millis(jitter_ms);
        let start = Timestamp::from_ms(t);
        let due: Vec<_> = timeline.after(start).take(20).collect();
        prop_assert_eq!(due.len(), 20, "{} stops", fields.text());
        prop_assert!(start < due[0] && due.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", due);
        let mut back: Vec<_> = timeline.until(due[19]).take(20).collect();
        back.reverse();
        prop_assert_eq!(&back, &due);
        prop_assert_eq!(timeline.count(start, due[19]), 20);
        prop_assert_eq!(timeline.count(due[4], due[19] - Duration::from_millis(1)), 14);
        if let Some(previous) = timeline.last_until(start) {
            prop_assert!(previous <= start);
            prop_assert_eq!(timeline.next_after(previous), Some(due[0]));
        }
    }

    #[test]
    fn no_text_and_no_instant_panics(
        text in prop_oneof![".{0,60}", "[-0-9*/,LWH#?() @A-Z=]{0,40}", "@(every|at) .{0,20}", r"([0-9*H?L,/#W-]{1,6}[ \t]){4,5}[*0-9LSUNRI,#-]{1,6}"],
        zone in prop_oneof![Just(None), Just(Some("Europe/Berlin")), Just(Some("Nowhere"))],
        anchor in any::<i64>(), t in any::<i64>(), jitter in any::<u64>(),
    ) {
        let options = Options { timezone: zone, hash_key: &text, ..Options::default() };
        match Schedule::parse(&text, &options) {
            Ok(schedule) => {
                schedule.describe();
                let mut timeline = Timeline::new(schedule, Timestamp::from_ms(anchor));
                timeline.jitter = Duration::from_millis(jitter);
                for t in [t, t.rem_euclid(Timestamp::MAX.as_ms())].map(Timestamp::from_ms) {
                    timeline.next_after(t);
                    timeline.last_until(t);
                    timeline.count(t, Timestamp::MAX);
                    timeline.schedule.next_after(t);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control) && error.to_string().len() < 400),
        }
    }
}

#[test]
fn very_long_text_is_refused_at_once() {
    for text in ["*,".repeat(500_000), "é".repeat(500_000), " ".repeat(1 << 20)] {
        assert_eq!(Schedule::parse(&text, &Options::default()), Err(ScheduleError::TooLong { length: text.len() }));
    }
}
