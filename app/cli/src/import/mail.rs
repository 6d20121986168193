//! `MAILTO=`: a route `output` by mail for each set of addresses and each namespace. A route that somebody has changed stays as it is.

use carillon_domain::crontab::Line;

use super::report::Row;
use crate::client::{Call, Client};
use crate::failure::{CommandFailure, FailureKind};
use carillon_json::crontab_jobs::MailRoute;

/// Makes the routes that the lines need, and says so at the lines of `MAILTO=`. `rows` are those of the lines, in their order.
pub(super) fn routes(client: &Client, namespace: &str, dry_run: bool, lines: &[Line], rows: &mut [Row]) {
    for (place, route) in MailRoute::wanted(lines.iter(), namespace) {
        let Some(row) = rows.get_mut(place) else { continue };
        let told = match dry_run {
            true => Ok("would mail"),
            false => make(client, &route),
        };
        match told {
            Ok(does) => row.reason = Some(route.told(does)),
            Err(failure) => row.fail(&format!("no route mails what the jobs below write: {}", failure.sentence)),
        }
    }
}

/// Makes the route unless there is one of its name.
fn make(client: &Client, route: &MailRoute) -> Result<&'static str, CommandFailure> {
    let path = format!("/v1/alerts/{}", route.name);
    match client.call(Call::get(path.as_str())) {
        Ok(found) if route.is_done_by(&found.body) => return Ok("mails already"),
        Ok(_) => return Ok(MailRoute::CHANGED),
        Err(failure) if failure.kind == FailureKind::NotFound => {}
        Err(failure) => return Err(failure),
    }
    client.call(Call::put(path).body(route.body())).map(|_| "mails")
}
