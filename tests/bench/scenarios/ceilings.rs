//! The raw ceilings by themselves.

use crate::ceilings::synced_appends;
use crate::found::{Found, Row};
use crate::lab::Lab;

pub fn run(lab: &Lab, found: &mut Found) {
    let sql = lab.sql();
    found.row(
        Row::new("the store's SQL batches from bare clients", sql.firings, "firings/s")
            .note(format!("{:.0} statements per 1,000 firings", sql.statements * 1_000.0)),
    );
    found.row(Row::new("null round trips (`SELECT 1`)", sql.round_trips, "/s"));
    let appends = synced_appends(&lab.server.data(), lab.size.ceiling);
    found.row(Row::new("fdatasync of 4 KiB appended, on the disk of the database", appends, "/s"));
    let spawning = lab.spawning();
    found.row(Row::new("spawns of `/bin/true`", spawning.program, "/s"));
    found.row(Row::new("spawns of `/bin/true`, output read from a pipe", spawning.piped_program, "/s"));
    found.row(Row::new("spawns of `bash -c true`", spawning.shell, "/s"));
    found.row(Row::new("spawns of `bash -c true`, output read from a pipe", spawning.piped_shell, "/s"));
}
