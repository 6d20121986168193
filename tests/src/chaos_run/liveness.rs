//! Whether nodes ended for want of a database that was there, and whether they said that commits were lost where none were.

use carillon_checker::fault::{End, Fault};

use serde_json::{Value, json};

use super::watch::Window;

/// A fault may be seen a little later than it works.
const BLUR_US: i64 = 1_000_000;
/// The exit code of a node that has ended itself, as its lease ran out.
const FENCED: &str = "exit status: 70";

/// When a server took writes: stretches of time, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writable {
    stretches: Vec<(i64, i64)>,
    /// The last write was acknowledged.
    goes_on: bool,
}

impl Writable {
    /// It took a write that was asked for at one time and acknowledged at another.
    pub fn note(&mut self, asked_us: i64, acknowledged_us: i64) {
        match self.stretches.last_mut() {
            Some((_, until)) if self.goes_on => *until = acknowledged_us,
            _ => self.stretches.push((asked_us, acknowledged_us)),
        }
        self.goes_on = true;
    }

    /// It did not take a write: a stretch is over, however short the refusal was.
    pub fn note_refusal(&mut self) {
        self.goes_on = false;
    }

    /// Each from its beginning until its end, in microseconds since 1970.
    pub fn stretches(&self) -> &[(i64, i64)] {
        &self.stretches
    }

    /// Those parts of it that lie within these times.
    pub fn within(&self, times: &[(i64, i64)]) -> Self {
        let part = |of: &(i64, i64), time: &(i64, i64)| (of.0.max(time.0), of.1.min(time.1));
        let parts = self.stretches.iter().flat_map(|of| times.iter().map(move |time| part(of, time)));
        Self { stretches: parts.filter(|(from, until)| from < until).collect(), goes_on: false }
    }

    /// As JSON: a list of pairs in microseconds since 1970.
    pub fn to_json(&self) -> Value {
        json!(self.stretches)
    }

    /// The longest stretch between two times that no fault of `blocked` touches.
    fn longest(&self, from_us: i64, until_us: i64, blocked: &[(i64, i64)]) -> i64 {
        let within = self.stretches.iter().map(|(from, until)| ((*from).max(from_us), (*until).min(until_us)));
        within.map(|stretch| longest_free(stretch, blocked)).max().unwrap_or(0)
    }
}

/// The longest part of a stretch that none of these touches.
fn longest_free((from_us, until_us): (i64, i64), blocked: &[(i64, i64)]) -> i64 {
    let mut blocked: Vec<(i64, i64)> = blocked.to_vec();
    blocked.sort_unstable();
    let (mut free_from, mut longest) = (from_us, 0);
    for (from, until) in blocked.into_iter().chain([(until_us, until_us)]) {
        longest = longest.max(from.min(until_us) - free_from);
        free_from = free_from.max(until);
    }
    longest
}

/// The periods of the nodes.
#[derive(Debug, Clone, Copy)]
pub struct Periods {
    /// A sign of life that is cut off is followed by the next one after so long.
    pub heartbeat_us: i64,
    /// Without an acknowledged sign of life for so long a node ends.
    pub self_kill_us: i64,
    /// A node that finds a writer for so long has given a sign of life.
    pub enough_us: i64,
}

/// Faults of a node that are over in a moment, whenever that was, or that take nothing from it: they keep no node from its writer.
const PASSING: [&str; 6] =
    ["wire-cut-before", "wire-cut-after", "wire-half-packet", "child-killed", "child-frozen", "node-clock"];
/// Those of them that may take a sign of life each.
const CUTS: [&str; 3] = ["wire-cut-before", "wire-cut-after", "wire-half-packet"];
/// Faults that end a node whatever the servers do.
const ENDING: [&str; 2] = ["keeper-killed", "node-frozen-past-lease"];
/// The server takes the writes of those that are connected, and nodes are not.
const OF_ALL_NODES: &str = "out-of-connections";

/// The ends with exit code 70 that neither a fault of the node nor the want of a writer explains, each with the time for which one server
/// had taken writes in the last lease while nothing kept the node from it, less a heartbeat for each that may have been cut off.
pub fn needless_ends(ends: &[End], faults: &[Fault], servers: &[Writable], periods: Periods) -> Vec<(End, i64)> {
    let free = |end: &End| {
        let from_us = end.at_us - periods.self_kill_us;
        let keeps = |fault: &&Fault| {
            let own = fault.node.as_ref() == Some(&end.node) && !PASSING.contains(&&*fault.class);
            own || fault.loses_commits || fault.class == OF_ALL_NODES
        };
        let blocked: Vec<(i64, i64)> =
            faults.iter().filter(keeps).map(|fault| (fault.from_us, fault.until_us)).collect();
        let cuts = |fault: &&Fault| {
            fault.node.as_ref() == Some(&end.node)
                && CUTS.contains(&&*fault.class)
                && fault.touches(from_us, end.at_us, 0)
        };
        let cut_us = periods.heartbeat_us * i64::try_from(faults.iter().filter(cuts).count()).unwrap_or(i64::MAX);
        let free_us = servers.iter().map(|server| server.longest(from_us, end.at_us, &blocked)).max().unwrap_or(0);
        free_us.saturating_sub(cut_us)
    };
    let was_ended = |end: &End| {
        let own = |fault: &&Fault| fault.node.as_ref() == Some(&end.node) && ENDING.contains(&&*fault.class);
        faults.iter().filter(own).any(|fault| fault.touches(end.at_us, end.at_us, BLUR_US))
    };
    let fenced = ends.iter().filter(|end| end.how == FENCED && !was_ended(end));
    fenced.map(|end| (end.clone(), free(end))).filter(|(_, free_us)| *free_us >= periods.enough_us).collect()
}

/// How many nodes ended with exit code 70.
pub fn fenced(ends: &[End]) -> usize {
    ends.iter().filter(|end| end.how == FENCED).count()
}

/// The losses that were noticed while no fault had lost commits. Strikes that were not seen to take effect may have lost some, too.
pub fn false_alarms<'a>(windows: &'a [Window], lossy: &[(i64, i64)]) -> Vec<&'a Window> {
    let is_explained = |window: &&Window| {
        lossy.iter().any(|(from, until)| (from - BLUR_US..=until + BLUR_US).contains(&window.noticed_us))
    };
    windows.iter().filter(|window| !is_explained(window)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const PERIODS: Periods = Periods { heartbeat_us: SECOND, self_kill_us: 5 * SECOND, enough_us: 3 * SECOND };

    fn end(node: &str, at: i64, how: &str) -> End {
        End { node: node.to_owned(), at_us: at * SECOND, how: how.to_owned() }
    }

    fn fault(class: &str, node: Option<&str>, from: i64, until: i64) -> Fault {
        Fault {
            class: class.to_owned(),
            node: node.map(str::to_owned),
            from_us: from * SECOND,
            until_us: until * SECOND,
            kills_runs: false,
            moves_clock: false,
            loses_commits: false,
        }
    }

    fn writable(stretches: &[(i64, i64)]) -> Writable {
        let mut all = Writable::default();
        for (from, until) in stretches {
            (*from..*until).for_each(|second| all.note(second * SECOND, (second + 1) * SECOND));
            all.note_refusal();
        }
        all
    }

    #[test]
    fn a_balancer_leads_to_one_server_at_a_time() {
        let server = writable(&[(0, 10), (20, 24)]);
        let led = server.within(&[(2 * SECOND, 5 * SECOND), (8 * SECOND, 22 * SECOND)]);
        let parts = [(2, 5), (8, 10), (20, 22)].map(|(from, until)| (from * SECOND, until * SECOND));
        assert_eq!(led.stretches(), parts);
        assert_eq!(server.within(&[]), Writable::default());
    }

    #[test]
    fn a_short_refusal_ends_a_stretch_and_a_late_question_does_not() {
        let mut server = writable(&[(0, 2)]);
        server.note(3 * SECOND, 4 * SECOND);
        server.note(9 * SECOND, 10 * SECOND);
        assert_eq!(server.stretches(), [(0, 2 * SECOND), (3 * SECOND, 10 * SECOND)]);
    }

    #[test]
    fn answers_that_follow_each_other_are_one_stretch() {
        let server = writable(&[(0, 10), (20, 24)]);
        assert_eq!(server.stretches(), [(0, 10 * SECOND), (20 * SECOND, 24 * SECOND)]);
        assert_eq!(server.longest(8 * SECOND, 23 * SECOND, &[]), 3 * SECOND);
        let blocked = [(6 * SECOND, 7 * SECOND), (SECOND, 2 * SECOND)];
        assert_eq!(server.longest(0, 30 * SECOND, &blocked), 4 * SECOND);
        assert_eq!(server.longest(0, 30 * SECOND, &[(0, 22 * SECOND)]), 2 * SECOND);
        assert_eq!(server.longest(11 * SECOND, 19 * SECOND, &[]), 0);
    }

    #[test]
    fn an_end_is_needless_where_neither_the_node_nor_the_servers_explain_it() {
        let needless = |ends: &[End], faults: &[Fault], servers: &[Writable]| {
            needless_ends(ends, faults, servers, PERIODS).into_iter().map(|(end, _)| end.node).collect::<Vec<_>>()
        };
        let ends = [end("a", 100, "exit status: 70"), end("b", 100, "signal: 9 (SIGKILL)")];
        let always = [writable(&[(0, 200)])];
        assert_eq!(needless(&ends, &[], &always), ["a"]);
        let others = [fault("node-frozen", Some("b"), 90, 110), fault("database-killed", None, 90, 110)];
        assert_eq!(needless(&ends, &others, &always), ["a"]);
        assert_eq!(needless(&ends, &[fault("wire-cut-after", Some("a"), 90, 110)], &always), ["a"]);
        for explains in [
            fault("node-frozen", Some("a"), 94, 98),
            fault("keeper-killed", Some("a"), 99, 103),
            fault("out-of-connections", None, 90, 99),
            Fault { loses_commits: true, ..fault("cluster-behind", None, 90, 99) },
        ] {
            assert_eq!(needless(&ends, std::slice::from_ref(&explains), &always), [""; 0], "{explains:?}");
        }
        let cuts = [96, 97, 98].map(|at| fault("wire-cut-after", Some("a"), at, at));
        assert_eq!(needless(&ends, &cuts[..2], &always), ["a"], "two of five signs of life were cut off");
        assert_eq!(needless(&ends, &cuts, &always), [""; 0]);
        assert_eq!(needless(&ends, &[], &[writable(&[(0, 95), (98, 200)])]), [""; 0], "2 s are not enough");
        assert_eq!(needless(&ends, &[], &[writable(&[(0, 95)]), writable(&[(97, 200)])]), ["a"]);
        assert_eq!(needless_ends(&ends, &[], &always, PERIODS)[0].1, 5 * SECOND);
        assert_eq!(fenced(&ends), 1);
    }

    #[test]
    fn a_loss_is_a_false_alarm_where_nothing_was_lost() {
        let window =
            |at: i64| Window { noticed_us: at * SECOND, accepted_us: None, node: "a".to_owned(), is_open: false };
        let windows = [window(10), window(50)];
        assert_eq!(false_alarms(&windows, &[(8 * SECOND, 12 * SECOND)]), [&windows[1]]);
        assert_eq!(false_alarms(&windows, &[(0, 60 * SECOND)]).len(), 0);
        assert_eq!(false_alarms(&windows, &[]).len(), 2);
    }
}
