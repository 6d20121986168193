//! The schedule rules one by one, on examples that can be checked with a calendar.

use carillon_domain::schedule::{Dst, Gap, Options, Overlap, Schedule, Timeline, jitter_offset};
use carillon_domain::time::Timestamp;
use std::time::Duration;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn parse(text: &str, dst: Dst) -> Timeline {
    let options = Options { dst, hash_key: "default/nightly-backup", ..Options::default() };
    Timeline::new(Schedule::parse(text, &options).unwrap_or_else(|e| panic!("{text}: {e}")), Timestamp::EPOCH)
}

/// The due times after `after`, without the `Z`.
fn next(text: &str, dst: Dst, after: &str, count: usize) -> Vec<String> {
    let timeline = parse(text, dst);
    let due = timeline.after(at(after)).take(count).map(Timestamp::to_rfc3339_short);
    due.map(|t| t.trim_end_matches('Z').to_owned()).collect()
}

fn days(text: &str, after: &str, count: usize) -> Vec<String> {
    next(text, Dst::default(), after, count).iter().map(|t| t[..10].to_owned()).collect()
}

/// Two schedules with the same due times.
fn same(a: &str, b: &str) {
    let due = |text| parse(text, Dst::default()).after(at("2026-01-01T00:00:00Z")).take(200).collect::<Vec<_>>();
    assert_eq!(due(a), due(b), "{a} and {b}");
}

const SKIP: Dst = Dst { gap: Gap::Skip, overlap: Overlap::First };
const BOTH: Dst = Dst { gap: Gap::After, overlap: Overlap::Both };

#[test]
fn two_texts_of_the_same_schedule_are_equal() {
    same("0 0 * * 0", "0 0 * * 7");
    same("0 0 * * FRI-SUN", "0 0 * * 5,6,0");
    same("0 0 * * 5-7/2", "0 0 * * FRI,SUN");
    same("0 0 * * SUN-SUN", "0 0 * * SUN");
    same("0 0 * * sun-tue", "0 0 * * 0-2");
    same("0 0 * jan-Mar Mon", "0 0 * 1-3 1");
    same("5/15 * * * *", "5-59/15 * * * *");
    same("5-5/15 * * * *", "5 * * * *");
    same("*/90 * * * *", "0 * * * *");
    same("*,5 * * * *", "* * * * *");
    same("? ? ? ? ?", "* * * * *");
    same("0 0 0 * * *", "@daily");
    same("@annually", "@yearly");
    same("@midnight", "\t 0  0 *\t* * ");
    same("08 009 * * *", "8 9 * * *");
    same("0 0 15,L * *", "0 0 L,15 * *");
    same("0 0 * * 5l", "0 0 * * FRIL");
    same("0 0 l-3,15w * *", "0 0 L-3,15W * *");
}

#[test]
fn a_day_matches_either_day_field_or_both() {
    // Both fields are restricted: one is enough.
    assert_eq!(days("0 0 13 * FRI", "2026-02-12T12:00:00Z", 3), ["2026-02-13", "2026-02-20", "2026-02-27"]);
    // One field begins with a star, although it is restricted: both must match. 1, 8, 15, 22, 29 and Monday.
    assert_eq!(days("0 0 */7 * MON", "2026-01-01T00:00:00Z", 3), ["2026-06-01", "2026-06-08", "2026-06-15"]);
    assert_eq!(days("0 0 1-7 * */7", "2026-01-01T00:00:00Z", 2), ["2026-01-04", "2026-02-01"]);
}

#[test]
fn days_are_counted_from_the_end_of_the_month() {
    assert_eq!(days("0 0 L * *", "2028-01-31T12:00:00Z", 3), ["2028-02-29", "2028-03-31", "2028-04-30"]);
    assert_eq!(days("0 0 L-3 * *", "2026-02-01T00:00:00Z", 2), ["2026-02-25", "2026-03-28"]);
    assert_eq!(days("0 0 LW * *", "2026-01-01T00:00:00Z", 3), ["2026-01-30", "2026-02-27", "2026-03-31"]);
    assert_eq!(days("0 0 * * 5L", "2026-01-01T00:00:00Z", 2), ["2026-01-30", "2026-02-27"]);
}

#[test]
fn nearest_workdays_stay_inside_their_month() {
    assert_eq!(days("0 0 15W 2,3,8 *", "2026-01-01T00:00:00Z", 3), ["2026-02-16", "2026-03-16", "2026-08-14"]);
    // Saturday 1 August moves to the 3rd, Sunday 31 May to the 29th.
    assert_eq!(days("0 0 1W 8 *", "2026-01-01T00:00:00Z", 1), ["2026-08-03"]);
    assert_eq!(days("0 0 31W 5 *", "2026-01-01T00:00:00Z", 1), ["2026-05-29"]);
    // April 2027 ends on Friday the 30th. It has no 31st, so no day is nearest to it.
    assert_eq!(days("0 0 31W 4,5 *", "2027-04-01T00:00:00Z", 1), ["2027-05-31"]);
}

#[test]
fn leap_days_are_found_across_a_century_without_one() {
    assert_eq!(days("0 0 29 2 *", "2096-03-01T00:00:00Z", 2), ["2104-02-29", "2108-02-29"]);
    // A leap day that is a Monday comes after 28 years, or after 40 across such a century.
    assert_eq!(days("0 0 */28 2 MON#5", "2072-03-01T00:00:00Z", 2), ["2112-02-29", "2140-02-29"]);
}

#[test]
fn times_inside_a_gap_fire_once_after_it() {
    // New York, 2026-03-08: 02:00 becomes 03:00 at 07:00Z.
    let zone = "CRON_TZ=America/New_York";
    let after = "2026-03-08T00:00:00Z";
    let fixed = format!("{zone} 10,40 2 * * *");
    assert_eq!(next(&fixed, Dst::default(), after, 2), ["2026-03-08T07:00:00", "2026-03-09T06:10:00"]);
    assert_eq!(next(&fixed, SKIP, after, 1), ["2026-03-09T06:10:00"]);
    // A regular time at the very instant after the gap is the same due time.
    let coinciding = format!("{zone} 0 2,3 * * *");
    assert_eq!(next(&coinciding, Dst::default(), after, 2), ["2026-03-08T07:00:00", "2026-03-09T06:00:00"]);
    assert_eq!(parse(&coinciding, Dst::default()).count(at(after), at("2026-03-08T12:00:00Z")), 1);
    // Seconds do not change the rule: sixty skipped times are one due time.
    let seconds = format!("{zone} * 30 2 * * *");
    assert_eq!(next(&seconds, Dst::default(), after, 2), ["2026-03-08T07:00:00", "2026-03-09T06:30:00"]);
    // A schedule that follows real time: 02:xx does not exist.
    for star in ["*/30 2 * * *", "H/30 2 * * *"] {
        assert_eq!(next(&format!("{zone} {star}"), Dst::default(), after, 1)[0][..13], *"2026-03-09T06");
    }
}

#[test]
fn a_repeated_time_fires_at_the_first_of_two() {
    // New York, 2026-11-01: 02:00 becomes 01:00 at 06:00Z.
    let zone = "CRON_TZ=America/New_York";
    let after = "2026-11-01T04:00:00Z";
    let fixed = format!("{zone} 30 1 * * *");
    assert_eq!(next(&fixed, Dst::default(), after, 2), ["2026-11-01T05:30:00", "2026-11-02T06:30:00"]);
    assert_eq!(next(&fixed, BOTH, after, 2), ["2026-11-01T05:30:00", "2026-11-01T06:30:00"]);
    let star = format!("{zone} 30 */1 * * *");
    assert_eq!(next(&star, Dst::default(), "2026-11-01T05:00:00Z", 2), ["2026-11-01T05:30:00", "2026-11-01T06:30:00"]);
    // The query is in the middle of the second pass.
    assert_eq!(next(&fixed, Dst::default(), "2026-11-01T06:10:00Z", 1), ["2026-11-02T06:30:00"]);
}

#[test]
fn missing_midnights_and_days_are_gaps() {
    let sao_paulo = "CRON_TZ=America/Sao_Paulo 0 0 * * *";
    assert_eq!(
        next(sao_paulo, Dst::default(), "2018-11-03T12:00:00Z", 2),
        ["2018-11-04T03:00:00", "2018-11-05T02:00:00"]
    );
    // Samoa had no 30 December 2011.
    let apia = "CRON_TZ=Pacific/Apia 0 9 30 12 *";
    assert_eq!(next(apia, Dst::default(), "2011-12-01T00:00:00Z", 1), ["2011-12-30T10:00:00"]);
    assert_eq!(next(apia, SKIP, "2011-12-01T00:00:00Z", 1), ["2012-12-29T19:00:00"]);
}

#[test]
fn h_spreads_jobs_and_never_changes() {
    let minute_of = |key: &str, text: &str| {
        let schedule = Schedule::parse(text, &Options { hash_key: key, ..Options::default() }).unwrap();
        schedule.next_after(at("2026-01-01T00:00:00Z")).unwrap().as_ms() / 60_000 % 60
    };
    // These are promises: a new version must not move existing jobs.
    assert_eq!(minute_of("default/nightly-backup", "H 3 * * *"), 41);
    assert_eq!(minute_of("default/nightly-backup", "H(0-29)/10 3 * * *"), 1);
    let minutes: std::collections::BTreeSet<_> =
        (0..1_000).map(|n| minute_of(&format!("default/job-{n}"), "H 3 * * *")).collect();
    assert_eq!(minutes.len(), 60);
    // A hashed day exists in every month.
    for n in 0..200 {
        let key = format!("default/job-{n}");
        let schedule = Schedule::parse("0 0 H * *", &Options { hash_key: &key, ..Options::default() }).unwrap();
        let timeline = Timeline::new(schedule, Timestamp::EPOCH);
        assert_eq!(
            timeline.count(at("2026-01-01T00:00:00Z") - Duration::from_millis(1), at("2026-12-31T23:59:59Z")),
            12
        );
    }
}

#[test]
fn jitter_moves_a_job_as_a_whole() {
    let mut timeline = parse("*/5 * * * *", Dst::default());
    timeline.jitter = jitter_offset("default/nightly-backup", Duration::from_secs(60));
    let due: Vec<_> = timeline.after(at("2026-01-01T00:00:00Z")).take(3).collect();
    assert_eq!(due[1].since(due[0]), Duration::from_secs(300));
    assert_eq!(due[2].since(due[1]), Duration::from_secs(300));
    assert_eq!(timeline.until(due[2]).take(3).last(), Some(due[0]));
}

#[test]
fn a_hashed_phase_runs_to_the_end_of_its_field_and_counts_sunday_once() {
    for n in 0..20 {
        let key = format!("default/job-{n}");
        let due = |text: &str, count: usize| -> Vec<String> {
            let options = Options { hash_key: &key, ..Options::default() };
            let timeline = Timeline::new(Schedule::parse(text, &options).unwrap(), Timestamp::EPOCH);
            let due = timeline.after(at("2025-12-31T12:00:00Z")).take(count);
            due.map(|t| t.to_rfc3339_short()[..10].to_owned()).collect()
        };
        let day = |text: &String| text[8..].parse::<u32>().unwrap();
        let in_2026 = |text: &&String| text.starts_with("2026");
        let january: Vec<u32> = due("0 0 H/5 1 *", 7).iter().filter(in_2026).map(day).collect();
        assert!(january[0] <= 5 && january[january.len() - 1] + 5 > 31, "{key}: {january:?}");
        assert!(january.windows(2).all(|pair| pair[1] - pair[0] == 5), "{key}: {january:?}");
        // 4 January 2026 is a Sunday.
        let week: Vec<u32> = due("0 0 * * H/2", 8).iter().map(day).filter(|day| (4..11).contains(day)).collect();
        assert!(week.windows(2).all(|pair| pair[1] - pair[0] == 2), "{key}: {week:?}");
    }
}

#[test]
fn the_first_instant_can_be_a_due_time() {
    let every_second = parse("* * * * * *", Dst::default());
    assert_eq!(every_second.last_until(Timestamp::EPOCH), Some(Timestamp::EPOCH));
    assert_eq!(every_second.next_after(Timestamp::from_ms(-1)), Some(Timestamp::EPOCH));
    assert_eq!(every_second.last_until(Timestamp::from_ms(-1)), None);
    assert_eq!(every_second.last_until(Timestamp::MAX), Some(at("9999-12-31T23:59:59Z")));
    assert_eq!(every_second.count(Timestamp::from_ms(-1), Timestamp::EPOCH), 1);
}

#[test]
fn a_due_time_at_the_end_of_a_gap_is_counted_there() {
    let swallowed = parse("CRON_TZ=Europe/Berlin 30 2 * * *", Dst::default());
    let count = |until| swallowed.count(at("2026-03-28T12:00:00Z"), at(until));
    assert_eq!((count("2026-03-29T00:59:59Z"), count("2026-03-29T01:00:00Z")), (0, 1));
}

#[test]
fn a_schedule_may_have_the_longest_length() {
    let padded = |length: usize| format!("{:length$}", "* * * * *");
    assert!(Schedule::parse(&padded(1_024), &Options::default()).is_ok());
    assert!(Schedule::parse(&padded(1_025), &Options::default()).is_err());
}
