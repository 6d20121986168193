//! Instants as text, without a library for calendars.

const MS_A_DAY: i64 = 86_400_000;

/// An instant in milliseconds since the Unix epoch, in RFC 3339, in UTC, with milliseconds.
pub(crate) fn rfc3339(ms: i64) -> String {
    let (year, month, day) = date(ms.div_euclid(MS_A_DAY));
    let ms = ms.rem_euclid(MS_A_DAY);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// Year, month and day of a day counted from 1970-01-01. The calendar repeats every 400 years; years begin in March here,
/// so that the day that leaps is the last one.
fn date(day: i64) -> (i64, i64, i64) {
    let since_march_0 = day + 719_468;
    let (era, day) = (since_march_0.div_euclid(146_097), since_march_0.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_what_the_calendar_says() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_800_000_000_123, "2027-01-15T08:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for count in 0..146_097 {
            assert_eq!(date(count), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day == length) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                (_, false) => (year, month, day + 1),
            };
        }
    }
}
