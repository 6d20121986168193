//! Commands, beside what the machine can spawn at the most.

use crate::ceilings::{Around, PROGRAM, SHELL, Spawns};
use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::site::{Setting, Work};

use super::shots::fire;

pub fn run(lab: &Lab, found: &mut Found) {
    for (name, work, words) in [("`/bin/true`", Work::True, PROGRAM), ("`bash -c true`", Work::BashTrue, SHELL)] {
        let before = Spawns::of(words, lab.size.ceiling);
        let shots = lab.size.shell_shots;
        // Few are claimed before they are due, and so left out of the rate although they are spawned like the others.
        let executing = shots / 40;
        let setting = Setting { limits: (executing, executing), ..Setting::default() };
        let (rate, cost) = fire(lab, &setting, work, shots);
        let after = Spawns::of(words, lab.size.ceiling);
        let bare = Around { before: before.bare, after: after.bare };
        let piped = Around { before: before.piped, after: after.piped };
        let row = Row::new(format!("shell firings/s, {name}"), rate, "firings/s");
        found.row(row.beside("raw spawns", bare).share_at_least(70.0, 85.0).note(format!(
            "{shots} jobs, max_in_flight = max_executing = {executing}; {:.0} % of spawns whose output is read from a pipe",
            rate * 100.0 / piped.mean().max(1.0)
        )));
        found.cost(&format!("one-shot jobs, {name}"), &cost);
    }
}
