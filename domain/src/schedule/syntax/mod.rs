//! Reads a whole schedule: the zone prefix, the descriptors and the fields.

mod ask;
pub(in crate::schedule) mod days;
pub(in crate::schedule) mod field;
pub(in crate::schedule) mod term;

use std::sync::Arc;

use self::days::Days;
use self::field::Field;
use self::term::Terms;
use super::cron::Cron;
use super::cron::calendar::Calendar;
use super::cron::daytime::Daytime;
use super::error::{MAX_LENGTH, Problem, ScheduleError, shown};
use super::interval::Interval;
use super::zone::Zone;
use super::{Gap, Options, Overlap, Schedule, ScheduleKind};
use crate::time::Timestamp;

/// As [`Schedule::parse`].
pub(in crate::schedule) fn parse(text: &str, options: &Options<'_>) -> Result<Schedule, ScheduleError> {
    if text.len() > MAX_LENGTH {
        return Err(ScheduleError::TooLong { length: text.len() });
    }
    let (prefix, rest) = split_prefix(text.trim());
    let zone = zone(prefix, options.timezone)?;
    let kind = if rest.starts_with('@') { descriptor(rest, zone, options)? } else { fields(rest, zone, options)? };
    Ok(Schedule { kind, zone })
}

/// `CRON_TZ=Area/City ` or `TZ=Area/City `, as in robfig/cron.
fn split_prefix(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
        Some(rest) => {
            let (zone, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(zone), rest.trim_start())
        }
        None => (None, text),
    }
}

fn zone(prefix: Option<&str>, option: Option<&str>) -> Result<&'static Zone, ScheduleError> {
    let named = |name: &str| Zone::named(name).ok_or_else(|| ScheduleError::UnknownTimezone { text: shown(name) });
    match (prefix, option) {
        (Some(prefix), Some(option)) if named(prefix)? != named(option)? => {
            Err(ScheduleError::TimezoneConflict { prefix: shown(prefix), option: shown(option) })
        }
        (Some(name), _) | (None, Some(name)) => named(name),
        (None, None) => named("UTC"),
    }
}

fn descriptor(text: &str, zone: &'static Zone, options: &Options<'_>) -> Result<ScheduleKind, ScheduleError> {
    let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let argument = argument.trim();
    let same_as = match word {
        "@every" => {
            let interval = Interval::parse(argument).ok_or_else(|| ScheduleError::Every { text: shown(text) })?;
            return Ok(ScheduleKind::Every(interval));
        }
        "@at" => {
            let at = Timestamp::parse_rfc3339(argument).ok_or_else(|| ScheduleError::At { text: shown(text) })?;
            return Ok(ScheduleKind::At(at));
        }
        _ if !argument.is_empty() => None,
        "@yearly" | "@annually" => Some("0 0 1 1 *"),
        "@monthly" => Some("0 0 1 * *"),
        "@weekly" => Some("0 0 * * 0"),
        "@daily" | "@midnight" => Some("0 0 * * *"),
        "@hourly" => Some("0 * * * *"),
        _ => None,
    };
    match same_as {
        Some(text) => fields(text, zone, options),
        None => Err(ScheduleError::Descriptor { text: shown(text) }),
    }
}

fn fields(text: &str, zone: &'static Zone, options: &Options<'_>) -> Result<ScheduleKind, ScheduleError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let (seconds, rest) = match parts[..] {
        [] => return Err(ScheduleError::Empty),
        [_, _, _, _, _] => (None, &parts[..]),
        [seconds, _, _, _, _, _] => (Some(seconds), &parts[1..]),
        [_] => return Err(ScheduleError::FieldCount { text: shown(text), found: "1 field".to_owned() }),
        _ => return Err(ScheduleError::FieldCount { text: shown(text), found: format!("{} fields", parts.len()) }),
    };
    let read = |field, part| Terms::parse(field, part, options.hash_key);
    let seconds = seconds.map_or_else(|| Ok(Terms::zero()), |part| read(Field::Seconds, part))?;
    let (minute, hour) = (read(Field::Minute, rest[0])?, read(Field::Hour, rest[1])?);
    let month = read(Field::Month, rest[3])?;
    let (dom, dow) = (read(Field::DayOfMonth, rest[2])?, read(Field::DayOfWeek, rest[4])?);

    let refused = |field| ScheduleError::in_field(field, text, Problem::NotUnderstood);
    let mask = |field, terms: &Terms| ask::values(field, &terms.items).ok_or_else(|| refused(field));
    let days = Days::compile(&dom, &dow).map_err(refused)?;
    let calendar = Calendar {
        months: mask(Field::Month, &month)?,
        days: days.by_shape().map_err(refused)?,
        times: Daytime {
            seconds: mask(Field::Seconds, &seconds)?,
            minutes: mask(Field::Minute, &minute)?,
            hours: mask(Field::Hour, &hour)?,
        },
    };
    if !calendar.ever() {
        return Err(ScheduleError::NeverFires { text: shown(text) });
    }
    let real_time = minute.star || hour.star;
    let cron = Cron {
        calendar,
        days,
        zone,
        after_gap: !real_time && options.dst.gap == Gap::After,
        repeats: real_time || options.dst.overlap == Overlap::Both,
    };
    Ok(ScheduleKind::Cron(Arc::new(cron)))
}
