//! The scenarios, a file for each.

mod alerts;
mod api;
pub mod at_once;
mod ceilings;
pub mod interval;
mod nodes;
mod pages;
mod purge;
mod shell;
pub mod shots;
mod steady;
mod store;
mod stored;
mod takeover;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::found::Found;
use crate::lab::Lab;

/// Something that is measured.
pub struct Scenario {
    /// As `only=` calls it.
    pub name: &'static str,
    /// In a sentence.
    pub about: &'static str,
    run: fn(&Lab, &mut Found),
}

/// All of them, in the order of the report.
pub const SCENARIOS: [Scenario; 14] = [
    Scenario { name: "ceilings", about: "what database, disk and kernel can do without Carillon", run: ceilings::run },
    Scenario {
        name: "store",
        about: "claims, starts and finishes straight through the stores, in batches",
        run: store::run,
    },
    Scenario { name: "shots", about: "one-shot jobs of a plugin that does nothing, all due at once", run: shots::run },
    Scenario {
        name: "interval",
        about: "jobs of a plugin that come due each second, more than the machine can do",
        run: interval::run,
    },
    Scenario {
        name: "shell",
        about: "one-shot jobs that start a program or a shell, all due at once",
        run: shell::run,
    },
    Scenario { name: "at_once", about: "how late runs begin that are due in the same second", run: at_once::run },
    Scenario {
        name: "steady",
        about: "jobs that come due each second, spread over it or all together: lag and statements",
        run: steady::run,
    },
    Scenario {
        name: "stored",
        about: "many jobs stored: scans, start-up, memory, pages of the list",
        run: stored::run,
    },
    Scenario { name: "api", about: "calls of the API by themselves, and pauses under full load", run: api::run },
    Scenario { name: "takeover", about: "kill -9 of one of two nodes with fast timing", run: takeover::run },
    Scenario {
        name: "nodes",
        about: "the load of `interval` on several nodes that share the database",
        run: nodes::run,
    },
    Scenario { name: "purge", about: "old history is deleted while jobs run", run: purge::run },
    Scenario {
        name: "pages",
        about: "the page with many jobs and a long history, beside a steady load; readers of events",
        run: pages::run,
    },
    Scenario {
        name: "alerts",
        about: "a steady load without routes of alerts, with one and with many; without failures and with some",
        run: alerts::run,
    },
];

impl Scenario {
    /// Measures it. A failure is one of its findings, and nothing else suffers.
    pub fn measure(&self, lab: &Lab) -> Found {
        let (began, mut found) = (Instant::now(), Found::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(lab, &mut found)));
        found.failed = outcome.err().map(|why| {
            let text = why.downcast_ref::<String>().map(String::as_str).or(why.downcast_ref::<&str>().copied());
            text.unwrap_or("it panicked").to_owned()
        });
        found.seconds = began.elapsed().as_secs_f64();
        found
    }
}
