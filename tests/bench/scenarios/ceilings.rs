//! The raw ceilings by themselves.

use crate::ceilings::{PROGRAM, SHELL, Spawns, Sql, synced_appends};
use crate::found::{Found, Row};
use crate::lab::Lab;

pub fn run(lab: &Lab, found: &mut Found) {
    let sql = Sql::measure(lab);
    found.row(
        Row::new("the store's SQL batches from bare clients", sql.firings, "firings/s")
            .note(format!("{:.0} statements per 1,000 firings", sql.statements * 1_000.0)),
    );
    found.row(Row::new("null round trips (`SELECT 1`)", sql.round_trips, "/s"));
    let appends = synced_appends(&lab.server.data(), lab.size.ceiling);
    found.row(Row::new("fdatasync of 4 KiB appended, on the disk of the database", appends, "/s"));
    for (name, words) in [("`/bin/true`", PROGRAM), ("`bash -c true`", SHELL)] {
        let spawns = Spawns::of(words, lab.size.ceiling);
        found.row(Row::new(format!("spawns of {name}"), spawns.bare, "/s"));
        found.row(Row::new(format!("spawns of {name}, output read from a pipe"), spawns.piped, "/s"));
    }
}
