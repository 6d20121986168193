//! The errors for refused schedules: they name the field, the text at fault, and the allowed values.

use carillon_domain::schedule::{Options, Schedule};

const SIXTIETHS: &str = "0-59, * and H, with lists, ranges and steps such as 1,5-20/5";
const HOURS: &str = "0-23, * and H, with lists, ranges and steps such as 1,8-18/2";
const DAYS: &str = "1-31, *, H, L, LW, L-1 to L-30 and 1W to 31W, with lists, ranges and steps of numbers";
const MONTHS: &str = "1-12, JAN-DEC, * and H, with lists, ranges and steps such as JAN,4-10/3";
const WEEKDAYS: &str =
    "0-7 (0 and 7 are Sunday), SUN-SAT, *, H, FRI#1 to FRI#5 and 5L, with lists, ranges and steps of days";
const FIELDS: &str = "5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first";
const DESCRIPTORS: &str =
    "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every DURATION and @at TIME";
const INTERVALS: &str = "@every 1s to @every 36500d, such as @every 90s or @every 1h30m";
const TIMES: &str = "RFC 3339 times of the years 1970 to 9999, such as @at 2027-01-01T00:00:00Z";
const ZONES: &str = "names of the IANA time zone database, such as Europe/Berlin";
const REAL_DAYS: &str = "days that at least one of its months has";
const SOMETHING: &str = "5 or 6 fields, or a descriptor such as @daily";

#[test]
fn every_error_names_field_text_and_allowed_values() {
    let table = [
        ("", "schedule: it is empty", SOMETHING),
        ("   ", "schedule: it is empty", SOMETHING),
        ("* * * *", r#"schedule: "* * * *" has 4 fields"#, FIELDS),
        ("*", r#"schedule: "*" has 1 field"#, FIELDS),
        ("5", r#"schedule: "5" has 1 field"#, FIELDS),
        ("* * * * * * *", r#"schedule: "* * * * * * *" has 7 fields"#, FIELDS),
        ("60 * * * *", r#"minute: "60" is out of range"#, SIXTIETHS),
        ("-1 * * * *", r#"minute: "-1" is not understood"#, SIXTIETHS),
        ("a * * * *", r#"minute: "a" is not understood"#, SIXTIETHS),
        ("1,,2 * * * *", r#"minute: "1,,2" has an empty list item"#, SIXTIETHS),
        (",1 * * * *", r#"minute: ",1" has an empty list item"#, SIXTIETHS),
        ("1, * * * *", r#"minute: "1," has an empty list item"#, SIXTIETHS),
        ("5-1 * * * *", r#"minute: "5-1" runs backwards"#, SIXTIETHS),
        ("*/0 * * * *", r#"minute: "*/0" has a step of 0"#, SIXTIETHS),
        ("*/x * * * *", r#"minute: "*/x" is not understood"#, SIXTIETHS),
        ("*/ * * * *", r#"minute: "*/" is not understood"#, SIXTIETHS),
        ("1-2-3 * * * *", r#"minute: "1-2-3" is not understood"#, SIXTIETHS),
        ("1/2/3 * * * *", r#"minute: "1/2/3" is not understood"#, SIXTIETHS),
        ("*-5 * * * *", r#"minute: "*-5" is not understood"#, SIXTIETHS),
        ("+5 * * * *", r#"minute: "+5" is not understood"#, SIXTIETHS),
        ("99999999999999999999 * * * *", r#"minute: "99999999999999999999" is out of range"#, SIXTIETHS),
        ("* 24 * * *", r#"hour: "24" is out of range"#, HOURS),
        ("* 1-24 * * *", r#"hour: "1-24" is out of range"#, HOURS),
        ("* ** * * *", r#"hour: "**" is not understood"#, HOURS),
        ("* * 0 * *", r#"day-of-month: "0" is out of range"#, DAYS),
        ("* * 32 * *", r#"day-of-month: "32" is out of range"#, DAYS),
        ("* * L-0 * *", r#"day-of-month: "L-0" is out of range"#, DAYS),
        ("* * L-31 * *", r#"day-of-month: "L-31" is out of range"#, DAYS),
        ("* * 32W * *", r#"day-of-month: "32W" is out of range"#, DAYS),
        ("* * L-3W * *", r#"day-of-month: "L-3W" is not understood"#, DAYS),
        ("* * W * *", r#"day-of-month: "W" is not understood"#, DAYS),
        ("* * LL * *", r#"day-of-month: "LL" is not understood"#, DAYS),
        ("* * MON * *", r#"day-of-month: "MON" is not understood"#, DAYS),
        ("* * * 13 *", r#"month: "13" is out of range"#, MONTHS),
        ("* * * 0 *", r#"month: "0" is out of range"#, MONTHS),
        ("* * * JANUARY *", r#"month: "JANUARY" is not understood"#, MONTHS),
        ("* * * DEC-JAN *", r#"month: "DEC-JAN" runs backwards"#, MONTHS),
        ("* * * * 8", r#"day-of-week: "8" is out of range"#, WEEKDAYS),
        ("* * * * L", r#"day-of-week: "L" is not understood"#, WEEKDAYS),
        ("* * * * 8L", r#"day-of-week: "8L" is out of range"#, WEEKDAYS),
        ("* * * * FRI#6", r#"day-of-week: "FRI#6" is out of range"#, WEEKDAYS),
        ("* * * * FRI#0", r#"day-of-week: "FRI#0" is out of range"#, WEEKDAYS),
        ("* * * * #2", r##"day-of-week: "#2" is not understood"##, WEEKDAYS),
        ("* * * * FRI-MON", r#"day-of-week: "FRI-MON" runs backwards"#, WEEKDAYS),
        ("* * * * SUNDAY", r#"day-of-week: "SUNDAY" is not understood"#, WEEKDAYS),
        ("* * * * 1#1#1", r#"day-of-week: "1#1#1" is not understood"#, WEEKDAYS),
        ("60 * * * * *", r#"seconds: "60" is out of range"#, SIXTIETHS),
        ("H(5-1) * * * *", r#"minute: "H(5-1)" runs backwards"#, SIXTIETHS),
        ("H(0-60) * * * *", r#"minute: "H(0-60)" is out of range"#, SIXTIETHS),
        ("H(1) * * * *", r#"minute: "H(1)" is not understood"#, SIXTIETHS),
        ("H5 * * * *", r#"minute: "H5" is not understood"#, SIXTIETHS),
        ("H/0 * * * *", r#"minute: "H/0" has a step of 0"#, SIXTIETHS),
        ("* * H(1-40) * *", r#"day-of-month: "H(1-40)" is out of range"#, DAYS),
        ("0 0 30 2 *", r#"schedule: "0 0 30 2 *" can never fire"#, REAL_DAYS),
        ("0 0 31 4,6,9,11 *", r#"schedule: "0 0 31 4,6,9,11 *" can never fire"#, REAL_DAYS),
        ("0 0 L-29 2 *", r#"schedule: "0 0 L-29 2 *" can never fire"#, REAL_DAYS),
        ("0 0 31W 2,4 *", r#"schedule: "0 0 31W 2,4 *" can never fire"#, REAL_DAYS),
        ("@reboot", r#"schedule: "@reboot" is not a descriptor"#, DESCRIPTORS),
        ("@Daily", r#"schedule: "@Daily" is not a descriptor"#, DESCRIPTORS),
        ("@daily 5", r#"schedule: "@daily 5" is not a descriptor"#, DESCRIPTORS),
        ("@every", r#"schedule: "@every" has no usable interval"#, INTERVALS),
        ("@every 5", r#"schedule: "@every 5" has no usable interval"#, INTERVALS),
        ("@every 500ms", r#"schedule: "@every 500ms" has no usable interval"#, INTERVALS),
        ("@every 99999999d", r#"schedule: "@every 99999999d" has no usable interval"#, INTERVALS),
        ("@at tomorrow", r#"schedule: "@at tomorrow" has no usable time"#, TIMES),
        ("@at 1969-12-31T23:59:59Z", r#"schedule: "@at 1969-12-31T23:59:59Z" has no usable time"#, TIMES),
        ("@at 2027-01-01", r#"schedule: "@at 2027-01-01" has no usable time"#, TIMES),
        ("CRON_TZ=Mars/Olympus * * * * *", r#"timezone: "Mars/Olympus" is unknown"#, ZONES),
        ("TZ= * * * * *", r#"timezone: "" is unknown"#, ZONES),
        ("CRON_TZ=Europe/Berlin", "schedule: it is empty", SOMETHING),
        ("CRON_TZ=Europe/Berlin @nightly", r#"schedule: "@nightly" is not a descriptor"#, DESCRIPTORS),
        ("cron_tz=Europe/Berlin * * * * *", r#"seconds: "cron_tz=Europe/Berlin" is not understood"#, SIXTIETHS),
    ];
    for (text, problem, allowed) in table {
        let error = Schedule::parse(text, &Options::default()).expect_err(text);
        assert_eq!(error.to_string(), format!("{problem}; allowed are {allowed}"), "{text}");
        assert!(problem.starts_with(error.field()), "{text}");
    }
}

#[test]
fn long_and_hostile_text_is_shortened_and_escaped() {
    let refused = |text: &str| Schedule::parse(text, &Options::default()).expect_err(text).to_string();
    let long = format!("{}x * * * *", "1".repeat(300));
    let start = format!("minute: \"{}...\" is not understood;", "1".repeat(40));
    assert!(refused(&long).starts_with(&start), "{}", refused(&long));
    assert!(refused("\u{1b}[31m * * * *").starts_with(r#"minute: "\u{1b}[31m" is not understood;"#));
    assert_eq!(refused(&"*".repeat(1_025)), "schedule: it is 1025 bytes long; allowed are at most 1024");
}

#[test]
fn two_zones_must_agree() {
    let parse = |text, timezone| Schedule::parse(text, &Options { timezone, ..Options::default() });
    let error = parse("CRON_TZ=Europe/Berlin @daily", Some("UTC")).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"timezone: "Europe/Berlin" in the schedule differs from the timezone setting "UTC"; allowed is one of them, or both the same"#
    );
    assert_eq!(error.field(), "timezone");
    let zone = |text, option| parse(text, option).unwrap().timezone();
    assert_eq!(zone("TZ=Europe/Berlin @daily", Some("Europe/Berlin")), "Europe/Berlin");
    assert_eq!(zone("TZ=Europe/Berlin @daily", None), "Europe/Berlin");
    assert_eq!(zone("@daily", Some("Asia/Tokyo")), "Asia/Tokyo");
    assert_eq!(zone("@daily", None), "UTC");
    assert!(parse("@daily", Some("Nowhere")).is_err());
}
