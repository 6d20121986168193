//! Descriptions of schedules: the sentences that users read, each pinned.

use carillon_domain::schedule::{Options, Schedule};

#[test]
fn every_kind_of_schedule_has_its_sentence() {
    let table = [
        ("* * * * *", "Every minute, UTC"),
        ("*/5 * * * *", "Every 5 minutes, UTC"),
        ("*/5 * * * MON-FRI", "Every 5 minutes on weekdays, UTC"),
        ("*/7 * * * *", "Every 7th minute from 0 to 56 of every hour, UTC"),
        ("29 * * * *", "At minute 29 of every hour, UTC"),
        ("0 * * * *", "At minute 0 of every hour, UTC"),
        ("0,30 * * * *", "Every 30 minutes, UTC"),
        ("CRON_TZ=Europe/Berlin 0 3 * * *", "At 03:00 every day, Europe/Berlin"),
        ("0 3,15 * * *", "At 03:00 and 15:00 every day, UTC"),
        ("0 */2 * * *", "At minute 0 of every 2nd hour, UTC"),
        ("5 */3 * * 0,6", "At minute 5 of every 3rd hour on weekends, UTC"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes of hours 9 to 17 on weekdays, UTC"),
        ("0 9-17 * * 1-5", "At minute 0 of hours 9 to 17 on weekdays, UTC"),
        ("*/20 8,12 * * *", "At 08:00, 08:20, 08:40, 12:00, 12:20 and 12:40 every day, UTC"),
        ("0 0 1 * *", "At 00:00 on day 1 of the month, UTC"),
        ("0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month, UTC"),
        ("0 0 1-7 * */7", "At 00:00 on days 1 to 7 of the month where they fall on a Sunday, UTC"),
        ("0 12 13 * FRI", "At 12:00 on day 13 of the month and on every Friday, UTC"),
        ("0 0 1-31 * MON", "At 00:00 every day, UTC"),
        ("0 0 L * *", "At 00:00 on the last day of the month, UTC"),
        (
            "0 0 L-3,L-1 * *",
            "At 00:00 on the day 3 days before the last day of the month and the day before the last day of the month, UTC",
        ),
        ("30 18 LW * *", "At 18:30 on the last Monday-to-Friday day of the month, UTC"),
        (
            "0 9 15W,L * *",
            "At 09:00 on the Monday-to-Friday day nearest to day 15 of the month and the last day of the month, UTC",
        ),
        ("0 9 * * FRI#3", "At 09:00 on the third Friday of the month, UTC"),
        ("0 9 * * 5L,MON#1", "At 09:00 on the last Friday of the month and the first Monday of the month, UTC"),
        (
            "0 9 1,L * FRI#3",
            "At 09:00 on day 1 of the month and the last day of the month and on the third Friday of the month, UTC",
        ),
        ("0 0 1 1 *", "At 00:00 on day 1 of the month in January, UTC"),
        ("0 0 1 JAN-MAR,JUL,DEC *", "At 00:00 on day 1 of the month in January to March, July and December, UTC"),
        ("* * * * * *", "Every second, UTC"),
        ("*/10 * * * * *", "Every 10 seconds, UTC"),
        ("15 * * * * *", "At second 15 of every minute, UTC"),
        ("0,30 */5 9 * * *", "Every 30 seconds of every 5th minute of hour 9, UTC"),
        ("* 30 2 * * *", "Every second of minute 30 of hour 2, UTC"),
        ("15 30 2 * * *", "At 02:30:15 every day, UTC"),
        ("0 30 2 * * *", "At 02:30 every day, UTC"),
        ("*/10 5 * * * *", "Every 10 seconds of minute 5 of every hour, UTC"),
        ("59 59 23 31 12 ?", "At 23:59:59 on day 31 of the month in December, UTC"),
        ("H 3 * * *", "At 03:41 every day, UTC"),
        ("H/15 * * * *", "At minutes 11, 26, 41 and 56 of every hour, UTC"),
        ("H H(0-5) * * SUN", "At 01:41 on Sunday, UTC"),
        ("* 3 * * *", "Every minute of hour 3, UTC"),
        ("*/5 */2 * 6-8 *", "Every 5 minutes of every 2nd hour in June to August, UTC"),
        ("0 0 * * 1,3,5", "At 00:00 on Monday, Wednesday and Friday, UTC"),
        ("0 0 * * *", "At 00:00 every day, UTC"),
        ("59 23 * * *", "At 23:59 every day, UTC"),
        ("1-59/2 1-23/2 * * *", "Every 2nd minute from 1 to 59 of every 2nd hour from 1 to 23, UTC"),
        ("@hourly", "At minute 0 of every hour, UTC"),
        ("@weekly", "At 00:00 on Sunday, UTC"),
        ("@monthly", "At 00:00 on day 1 of the month, UTC"),
        ("@yearly", "At 00:00 on day 1 of the month in January, UTC"),
        ("@every 90s", "Every 1 minute 30 seconds"),
        ("@every 1h", "Every hour"),
        ("@every 1s", "Every second"),
        ("@every 36h", "Every 1 day 12 hours"),
        ("@every 1500ms", "Every 1 second 500 ms"),
        ("@at 2027-01-01T00:00:00Z", "Once, at 2027-01-01T00:00:00Z"),
        ("@at 2027-01-01T01:00:00.250+01:00", "Once, at 2027-01-01T00:00:00.250Z"),
        (
            "0 0 */10 2 MON-FRI",
            "At 00:00 on days 1, 11, 21 and 31 of the month where they fall on a weekday in February, UTC",
        ),
        ("0 0 ? * 6L", "At 00:00 on the last Saturday of the month, UTC"),
        ("* * 1 * 1", "Every minute on day 1 of the month and on every Monday, UTC"),
        ("0 0 * 1-11/2 *", "At 00:00 every day in every 2nd month from January to November, UTC"),
        ("0 0 */2 * 1", "At 00:00 on every 2nd day from 1 to 31 of the month if it falls on a Monday, UTC"),
        (
            "0 0 2-30/2 * MON,TUE",
            "At 00:00 on every 2nd day from 2 to 30 of the month and on every Monday and Tuesday, UTC",
        ),
        (
            "0 0 29 2 */2",
            "At 00:00 on day 29 of the month if it falls on a Tuesday, Thursday, Saturday or Sunday in February, UTC",
        ),
        ("0 0 13 * */7", "At 00:00 on day 13 of the month if it falls on a Sunday, UTC"),
        ("0 0 * * 5-7", "At 00:00 on Friday to Sunday, UTC"),
        ("23 0-20/2 * * *", "At minute 23 of every 2nd hour from 0 to 20, UTC"),
        ("3-58/11 * * * *", "Every 11th minute from 3 to 58 of every hour, UTC"),
        ("2-50/12 2 * * *", "At 02:02, 02:14, 02:26, 02:38 and 02:50 every day, UTC"),
        ("0 0 L * */7", "At 00:00 on the last day of the month if it falls on a Sunday, UTC"),
        (
            "0 0 L,15W * */7",
            "At 00:00 on the last day of the month and the Monday-to-Friday day nearest to day 15 of the month where they \
             fall on a Sunday, UTC",
        ),
        (
            "0 0 1,L * */7",
            "At 00:00 on day 1 of the month and the last day of the month where they fall on a Sunday, UTC",
        ),
        ("30 6 * * 1-4,6", "At 06:30 on Monday to Thursday and Saturday, UTC"),
    ];
    for (text, words) in table {
        let options = Options { hash_key: "default/nightly-backup", ..Options::default() };
        let schedule = Schedule::parse(text, &options).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(schedule.describe(), words, "{text}");
    }
}
