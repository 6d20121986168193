//! `finish_by` on the days on which clocks change.

use carillon_domain::alert::TimeOfDay;
use carillon_domain::time::Timestamp;
use proptest::prelude::*;

fn utc(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn by(clock: &str, zone: &str, after: &str) -> String {
    clock.parse::<TimeOfDay>().unwrap().first_after(zone, utc(after)).to_rfc3339_short()
}

#[test]
fn the_first_such_time_of_day_after_the_due_time_counts() {
    for (clock, zone, after, limit) in [
        ("06:00", "UTC", "2026-11-24T03:00:00Z", "2026-11-24T06:00:00Z"),
        ("06:00", "UTC", "2026-11-24T06:00:00Z", "2026-11-25T06:00:00Z"),
        ("06:00", "UTC", "2026-11-24T23:00:00Z", "2026-11-25T06:00:00Z"),
        ("06:00", "Europe/Berlin", "2026-11-24T03:00:00Z", "2026-11-24T05:00:00Z"),
        ("06:00", "Europe/Berlin", "2026-11-24T05:30:00Z", "2026-11-25T05:00:00Z"),
        ("00:00", "Asia/Tokyo", "2026-11-24T14:59:59Z", "2026-11-24T15:00:00Z"),
        ("23:59:59", "America/New_York", "2026-11-25T04:59:58Z", "2026-11-25T04:59:59Z"),
        // Berlin, 29 March 2026: 02:00 to 03:00 is skipped, so the limit is right after the gap.
        ("02:30", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z"),
        ("02:30", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
        ("06:00", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z"),
        // Berlin, 25 October 2026: 02:00 to 03:00 comes twice, and the later time counts.
        ("02:30", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T01:30:00Z"),
        ("02:30", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"),
        ("02:30", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"),
        // Lord Howe's clock moves by half an hour.
        ("02:15", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", "2026-10-03T15:30:00Z"),
        // Samoa had no 30 December 2011.
        ("12:00", "Pacific/Apia", "2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z"),
        ("12:00", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"),
        // Midnight itself is skipped.
        ("00:00", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"),
        ("00:30", "America/Sao_Paulo", "2018-11-04T02:59:00Z", "2018-11-04T03:00:00Z"),
        ("06:00", "Mars/Olympus", "2026-11-24T03:00:00Z", "2026-11-24T06:00:00Z"),
    ] {
        assert_eq!(by(clock, zone, after), limit, "{clock} {zone} after {after}");
    }
}

#[test]
fn a_time_of_day_is_written_as_people_write_it() {
    for text in ["00:00", "06:00", "23:59", "06:00:30", "23:59:59"] {
        assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), text);
    }
    assert_eq!("06:00:00".parse::<TimeOfDay>().unwrap().to_string(), "06:00");
    for text in
        ["", "6:00", "24:00", "06:60", "06:00:60", "06", "06:00:00:00", " 06:00", "06:00pm", "+6:00", "\u{0664}6:00"]
    {
        let error = text.parse::<TimeOfDay>().unwrap_err().to_string();
        assert!(error.contains("is not a time of day: write it like 06:00"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn limits_come_after_their_due_time_and_in_their_order(
        secs in 1_767_225_600_i64..1_830_297_600,
        step in 1_i64..200_000,
        (hour, minute, second) in (0u32..24, 0u32..60, 0u32..60),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca"]),
    ) {
        let by = TimeOfDay::new(hour, minute, second).unwrap();
        let (one, other) = (Timestamp::from_secs(secs), Timestamp::from_secs(secs + step));
        let limit = by.first_after(zone, one);
        prop_assert!(limit > one && limit.since(one).as_secs() <= 25 * 3_600 + 1_800, "{one} {limit}");
        prop_assert!(limit <= by.first_after(zone, other));
        prop_assert!(other >= limit || limit == by.first_after(zone, other), "{one} {other}: no time is left out");
    }
}
