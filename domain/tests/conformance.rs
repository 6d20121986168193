//! Due times as other schedulers compute them. Every line of `tests/data/*.jsonl` must hold forwards, backwards and
//! counted.

use carillon_domain::schedule::{Options, Schedule, Timeline};
use carillon_domain::time::Timestamp;
use serde_json::Value;

/// Lines that are wrong: the schedule, and the correct due times.
///
/// - cronsim reads a range of one number with a step, `19-19/1`, as `19/1`, and goes on to the end of the field. Debian
///   cron, whose rules it models, steps from the first number of a range to its last. So does robfig/cron (see
///   `56 6 14 * * 2-2/3` in seconds.jsonl).
/// - cronsim moves by whole hours in UTC. Across Lord Howe's change of 30 minutes it loses the minutes 03:00 to 03:29 and
///   02:43. They exist on that day (02:00 became 02:30), so a schedule that follows real time is due then.
const WRONG: [(&str, &[&str]); 6] = [
    ("56-57/16 19-19/1,21-21 30,2 * *", &["2024-04-30T19:56:00Z", "2024-04-30T21:56:00Z", "2024-05-02T19:56:00Z"]),
    ("37-37/18 5,7,21 L * *", &["2029-01-31T05:37:00Z", "2029-01-31T07:37:00Z", "2029-01-31T21:37:00Z"]),
    (
        "2,56 9 10 2-12,6-11/3,MAY 5-5/1,MON,1",
        &["2032-11-15T09:02:00Z", "2032-11-15T09:56:00Z", "2032-11-19T09:02:00Z"],
    ),
    ("0-0/19,36-52,48-57 * 29 * *", &["2029-09-29T00:00:00Z", "2029-09-29T00:36:00Z", "2029-09-29T00:37:00Z"]),
    ("* 3 L * 0", &["2030-10-05T16:00:00Z", "2030-10-05T16:01:00Z", "2030-10-05T16:02:00Z"]),
    ("43 * * * SUN", &["2024-10-05T14:13:00Z", "2024-10-05T15:13:00Z", "2024-10-05T15:43:00Z"]),
];

fn lines(file: &str) -> Vec<Value> {
    let path = format!("{}/../tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(file: &str) -> usize {
    let lines = lines(file);
    for line in &lines {
        let text = line["schedule"].as_str().unwrap();
        let options = Options { timezone: line["timezone"].as_str(), ..Options::default() };
        let after = Timestamp::parse_rfc3339(line["after"].as_str().unwrap()).unwrap();
        let schedule = Schedule::parse(text, &options).unwrap_or_else(|e| panic!("{line}: {e}"));
        let timeline = Timeline::new(schedule, after);

        let stated: Vec<_> = line["next"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
        let wrong = WRONG.iter().find(|(schedule, _)| *schedule == text);
        let expected = wrong.map_or(&stated[..], |(_, right)| right);
        let expected: Vec<_> = expected.iter().map(|t| Timestamp::parse_rfc3339(t).unwrap()).collect();

        let due: Vec<_> = timeline.after(after).take(expected.len()).collect();
        assert_eq!(due, expected, "{line}");
        let last = *due.last().unwrap();
        assert_eq!(timeline.count(after, last), due.len() as u64, "{line}");
        let mut backwards: Vec<_> = timeline.until(last).take(due.len()).collect();
        backwards.reverse();
        assert_eq!(backwards, due, "{line}");
    }
    lines.len()
}

#[test]
fn debian_cron_in_utc() {
    assert_eq!(check("debian-utc.jsonl"), 150);
}

#[test]
fn debian_cron_around_clock_changes() {
    assert_eq!(check("debian-dst.jsonl"), 120);
}

#[test]
fn robfig_cron_with_six_fields() {
    assert_eq!(check("seconds.jsonl"), 120);
}
