//! Who else comes up in the same minute, and where `H` would put the schedule.

use std::time::Duration;

use carillon_domain::id::JobId;
use carillon_domain::schedule::Schedule;
use carillon_domain::time::Timestamp;
use carillon_store::{JobCursor, JobQuery, JobSort};
use chrono_tz::Tz;
use maud::{Markup, html};

use super::explain::Asked;
use crate::page::screens::parts::{bounded, key_of, plural};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{utc, wall};
use carillon_json::next_due_at;

/// How many others are counted.
const COUNTED: usize = 100;
const A_MINUTE: Duration = Duration::from_secs(60);

/// A sentence about the minute of the next due time; nothing where nobody else is due in it.
pub(super) async fn note(visit: &Visit, asked: &Asked<'_>, schedule: &Schedule) -> Result<Markup, Fault> {
    let Some(next) = schedule.next_after(visit.now) else { return Ok(html! {}) };
    let (count, more) = others(visit, asked.key, next).await?;
    if count == 0 {
        return Ok(html! {});
    }
    let spread = with_h(asked.schedule);
    let minute = spread.as_deref().and_then(|text| minute_of(visit, &Asked { schedule: text, ..*asked }));
    Ok(html! {
        p.note {
            (bounded(count, more)) " " (plural(count, "other is", "others are")) " due next in the minute of "
            time datetime=(next.to_rfc3339_short()) title=(utc(next)) { (wall(next, visit.zone).format("%H:%M")) } "."
            @if let Some(text) = &spread {
                " " code { (text) }
                @match minute { Some(minute) => { " would put it at :" (minute) "." } None => " gives each job a minute of its own." }
            }
        }
    })
}

/// The minute of the next due time on the schedule's own clock; `None` where no job is named, of whose name `H` makes it.
fn minute_of(visit: &Visit, asked: &Asked<'_>) -> Option<String> {
    let schedule = asked.read().ok().filter(|_| !asked.key.trim_end_matches('/').is_empty())?;
    let zone: Tz = schedule.timezone().parse().ok()?;
    Some(wall(schedule.next_after(visit.now)?, zone).format("%M").to_string())
}

/// How many other jobs have their next due time in the minute of `at`, and whether there are more. The job itself is none.
async fn others(visit: &Visit, own: &str, at: Timestamp) -> Result<(usize, bool), Fault> {
    let begin = Timestamp::from_ms(at.as_ms() - at.as_ms().rem_euclid(60_000));
    let after = JobCursor::Next { claim_at: Some(begin - Timestamp::TICK), id: JobId(0) };
    let query = JobQuery { sort: JobSort::Next, after: Some(after), limit: COUNTED + 2, ..JobQuery::default() };
    let (scope, until) = (visit.caller.scope(), begin + A_MINUTE);
    let is_other = |view: &carillon_store::JobView| {
        let key = key_of(view);
        let is_due = next_due_at(view).is_some_and(|due| begin <= due && due < until);
        is_due && scope.includes(&key.namespace) && format!("{}/{}", key.namespace, key.name) != own
    };
    let count = visit.api.store.jobs(&query).await?.items.iter().filter(|view| is_other(view)).count();
    Ok((count.min(COUNTED), count > COUNTED))
}

/// The schedule with `H` in place of its minute; `None` where that is no single number.
fn with_h(schedule: &str) -> Option<String> {
    let mut fields: Vec<&str> = schedule.split_whitespace().collect();
    let first = fields.iter().take_while(|field| field.contains('=')).count();
    let minute = first + usize::from(fields.len() - first == 6);
    if !(5..=6).contains(&(fields.len() - first)) || !fields[minute].bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    fields[minute] = "H";
    Some(fields.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_minute_that_is_one_number_can_be_spread() {
        for (schedule, spread) in [
            ("0 3 * * *", Some("H 3 * * *")),
            ("30 0 3 * * *", Some("30 H 3 * * *")),
            ("CRON_TZ=Europe/Berlin 5 * * * *", Some("CRON_TZ=Europe/Berlin H * * * *")),
            ("*/5 * * * *", None),
            ("H 3 * * *", None),
            ("0,30 3 * * *", None),
            ("@daily", None),
            ("", None),
            ("0 3", None),
        ] {
            assert_eq!(with_h(schedule).as_deref(), spread, "{schedule}");
        }
    }
}
