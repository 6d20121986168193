//! Due times as wall clocks show them: in UTC, in the schedule's zone, and where the reader sits.

use carillon_domain::time::Timestamp;
use chrono::{Local, Offset, TimeZone};
use chrono_tz::Tz;

use super::answer::ScheduleAnswer;
use crate::table::Table;

/// The due times in columns; a column that would repeat the one before it is left out.
pub(super) fn table(answer: &ScheduleAnswer) -> Table {
    let zone: Tz = answer.timezone.parse().unwrap_or(Tz::UTC);
    let in_zone: Vec<String> = answer.next.iter().map(|due| wall_clock(&zone, *due)).collect();
    let local: Vec<String> = answer.next.iter().map(|due| wall_clock(&Local, *due)).collect();
    let shows_zone = answer.timezone != "UTC";
    let shows_local = local != in_zone;

    let heading = [Some("UTC"), shows_zone.then_some(answer.timezone), shows_local.then_some("local time")];
    let mut table = Table::new(heading.into_iter().flatten());
    for ((due, in_zone), local) in answer.texts().into_iter().zip(in_zone).zip(local) {
        let cells = [Some(due), shows_zone.then_some(in_zone), shows_local.then_some(local)];
        table.row(cells.into_iter().flatten());
    }
    table
}

/// Such as `Sat 2027-01-02 03:00:00 +01:00`.
fn wall_clock<Z: TimeZone>(zone: &Z, due: Timestamp) -> String {
    let offset = zone.offset_from_utc_datetime(&due.naive()).fix();
    offset.from_utc_datetime(&due.naive()).format("%a %Y-%m-%d %H:%M:%S%.f %:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_shows_its_offset() {
        let due = Timestamp::from_ms(1_798_855_200_000);
        assert_eq!(wall_clock(&Tz::Europe__Berlin, due), "Sat 2027-01-02 03:00:00 +01:00");
        assert_eq!(wall_clock(&Tz::UTC, Timestamp::from_ms(1_798_855_200_250)), "Sat 2027-01-02 02:00:00.250 +00:00");
    }
}
