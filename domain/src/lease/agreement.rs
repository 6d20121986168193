//! The timings of the nodes of a cluster must fit each other: no node may take over while the children of another one live.
//!
//! Each session tells when its own children are dead and when it takes over from others. A node that starts looks at all of them.

use std::fmt;
use std::time::Duration;

use super::{Engine, Timing, is_fenced};

/// The part of a node's timing that other nodes depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// After its last heartbeat its children are dead within this time.
    pub dead_after: Duration,
    /// After this silence it takes over from another node.
    pub expire_after: Duration,
}

impl Terms {
    /// Whether neither of two nodes takes over while children of the other one may live.
    pub fn fits(&self, other: &Terms) -> bool {
        is_fenced(self.dead_after, other.expire_after) && is_fenced(other.dead_after, self.expire_after)
    }
}

impl From<Timing> for Terms {
    fn from(timing: Timing) -> Self {
        let dead_after = timing.self_kill_after + timing.fence_grace + timing.pause;
        Self { dead_after, expire_after: timing.expire_after }
    }
}

/// Another node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherNode {
    /// Its name.
    pub node: String,
    /// The terms that it told. An older binary tells nothing.
    pub terms: Option<Terms>,
}

/// The first of the others with which a timing does not fit, in a sentence. One that tells nothing is not looked at.
fn disagreement(mine: &Timing, others: &[OtherNode]) -> Option<String> {
    let mine = Terms::from(*mine);
    let misfit =
        |other: &OtherNode| other.terms.filter(|terms| !mine.fits(terms)).map(|terms| (other.node.clone(), terms));
    others.iter().find_map(misfit).map(|(node, theirs)| {
        let of = |terms: Terms| {
            let (dead, expire) = (terms.dead_after.as_secs_f64(), terms.expire_after.as_secs_f64());
            format!("has ended all its children after {dead} s and takes over after {expire} s")
        };
        format!(
            "session timing: this node {}, and node {node} {}, so one would act while children of the other live. Give the same \
             [session] to each node, or stop all nodes before the timing changes. A node that died is forgotten within two minutes",
            of(mine),
            of(theirs)
        )
    })
}

/// Where a timing comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimingSource {
    /// The configuration gives it.
    Configured,
    /// It is the default for this kind of servers.
    DefaultOf(Engine),
    /// It is the default for other servers than these, since other nodes that live have it.
    AsOthers {
        /// Whose default it is.
        default_of: Engine,
        /// The servers that were found.
        found: Engine,
    },
}

impl fmt::Display for TimingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("the configuration gives it"),
            Self::DefaultOf(engine) => write!(f, "the default for {engine}"),
            Self::AsOthers { default_of, found } => write!(
                f,
                "the default for {default_of}, as the nodes have that were there first; it becomes that for {found} once all nodes \
                 have stopped"
            ),
        }
    }
}

/// The timing of a node, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenTiming {
    /// The timing.
    pub timing: Timing,
    /// Its source.
    pub source: TimingSource,
}

impl ChosenTiming {
    /// The timing of a node that shares its database with nobody.
    pub fn alone(given: Option<Timing>) -> Self {
        match given {
            Some(timing) => Self { timing, source: TimingSource::Configured },
            None => Self::default_of(Engine::OneServer),
        }
    }

    /// The first of the others with which this timing does not fit, in a sentence. Nodes that tell nothing have the same `[session]`, where it
    /// is given, and otherwise the one default that older binaries know.
    pub fn disagreement(&self, others: &[OtherNode]) -> Option<String> {
        match self.source {
            TimingSource::Configured => disagreement(&self.timing, others),
            TimingSource::DefaultOf(_) | TimingSource::AsOthers { .. } => disagreement(&self.timing, &as_older(others)),
        }
    }

    const fn default_of(engine: Engine) -> Self {
        Self { timing: engine.timing(), source: TimingSource::DefaultOf(engine) }
    }
}

/// Nodes that tell nothing, with the terms of an older binary.
fn as_older(others: &[OtherNode]) -> Vec<OtherNode> {
    let older = Terms::from(Engine::OneServer.timing());
    others.iter().map(|other| OtherNode { terms: other.terms.or(Some(older)), ..other.clone() }).collect()
}

/// The timing of a node that starts: the given one, or else the default for the servers that it found. Other nodes may have begun with
/// another default, for instance those of an older binary, which tell nothing and know one default only.
///
/// # Errors
/// The sentence for a node that would act too early for the others, or they for it.
pub fn choose(given: Option<Timing>, found: Engine, others: &[OtherNode]) -> Result<ChosenTiming, String> {
    if let Some(timing) = given {
        return disagreement(&timing, others)
            .map_or(Ok(ChosenTiming { timing, source: TimingSource::Configured }), Err);
    }
    let others = as_older(others);
    let own = found.timing();
    let Some(why) = disagreement(&own, &others) else { return Ok(ChosenTiming::default_of(found)) };
    let theirs = Engine::ALL.into_iter().find(|engine| disagreement(&engine.timing(), &others).is_none());
    theirs.map_or(Err(why), |default_of| {
        Ok(ChosenTiming { timing: default_of.timing(), source: TimingSource::AsOthers { default_of, found } })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Engine::{Galera, GroupReplication, OneServer};

    fn node(name: &str, timing: Option<Timing>) -> OtherNode {
        OtherNode { node: name.to_owned(), terms: timing.map(Terms::from) }
    }

    fn brisk() -> Timing {
        let secs = Duration::from_secs;
        Timing {
            self_kill_after: secs(5),
            fence_grace: secs(1),
            pause: secs(1),
            expire_after: secs(8),
            ..Timing::default()
        }
    }

    #[test]
    fn a_source_is_told_as_a_part_of_a_sentence() {
        for (source, words) in [
            (TimingSource::Configured, "the configuration gives it"),
            (TimingSource::DefaultOf(GroupReplication), "the default for a group of Group Replication"),
            (
                TimingSource::AsOthers { default_of: OneServer, found: Galera },
                "the default for one server, as the nodes have that were there first; it becomes that for a Galera \
                 cluster once all nodes have stopped",
            ),
        ] {
            assert_eq!(source.to_string(), words);
        }
    }

    #[test]
    fn the_timing_follows_the_servers_unless_it_is_given_or_others_began_with_another_one() {
        let as_others = |default_of, found| TimingSource::AsOthers { default_of, found };
        let told = |engine: Engine| node("told", Some(engine.timing()));
        let given = Some(brisk());
        for (given, found, others, source) in [
            (None, OneServer, vec![], TimingSource::DefaultOf(OneServer)),
            (None, Galera, vec![], TimingSource::DefaultOf(Galera)),
            (None, GroupReplication, vec![], TimingSource::DefaultOf(GroupReplication)),
            (None, Galera, vec![told(Galera)], TimingSource::DefaultOf(Galera)),
            (None, Galera, vec![told(OneServer)], as_others(OneServer, Galera)),
            (None, Galera, vec![node("older", None)], as_others(OneServer, Galera)),
            (
                None,
                GroupReplication,
                vec![node("older", None), told(OneServer)],
                as_others(OneServer, GroupReplication),
            ),
            (None, OneServer, vec![told(GroupReplication)], as_others(GroupReplication, OneServer)),
            (given, Galera, vec![], TimingSource::Configured),
            (given, Galera, vec![node("brisk", given), node("older", None)], TimingSource::Configured),
        ] {
            let chosen = choose(given, found, &others).unwrap();
            assert_eq!(chosen.source, source, "{given:?} {found} {others:?}");
            let expected = match source {
                TimingSource::Configured => brisk(),
                TimingSource::DefaultOf(engine) | TimingSource::AsOthers { default_of: engine, .. } => engine.timing(),
            };
            assert_eq!(chosen.timing, expected);
        }
    }

    #[test]
    fn a_node_that_would_act_while_children_of_another_live_is_refused() {
        for (given, found, others) in [
            (Some(brisk()), OneServer, vec![node("slow", Some(OneServer.timing()))]),
            (Some(OneServer.timing()), OneServer, vec![node("slow", Some(brisk()))]),
            (Some(Timing::default()), Galera, vec![node("slow", Some(Galera.timing()))]),
            (None, Galera, vec![node("slow", Some(brisk()))]),
            (None, Galera, vec![node("x", Some(OneServer.timing())), node("slow", Some(GroupReplication.timing()))]),
        ] {
            let said = choose(given, found, &others).unwrap_err();
            assert!(said.contains("Give the same [session] to each node"), "{said}");
        }
        let said = choose(Some(brisk()), OneServer, &[node("n2", Some(OneServer.timing()))]).unwrap_err();
        assert!(said.contains("this node has ended all its children after 7 s and takes over after 8 s"), "{said}");
        assert!(said.contains("node n2 has ended all its children after 19 s and takes over after 20 s"), "{said}");
    }

    #[test]
    fn an_older_binary_that_comes_later_is_noticed_beside_a_default_that_it_does_not_know() {
        let older = [node("older", None)];
        let noticed = |given, found| choose(given, found, &[]).unwrap().disagreement(&older).is_some();
        assert!(noticed(None, Galera) && noticed(None, GroupReplication));
        assert!(!noticed(None, OneServer) && !noticed(Some(brisk()), Galera));
    }

    #[test]
    fn neither_of_two_that_fit_takes_over_too_early() {
        for mine in Engine::ALL {
            for theirs in Engine::ALL {
                let (a, b) = (Terms::from(mine.timing()), Terms::from(theirs.timing()));
                assert_eq!(a.fits(&b), mine == theirs, "{mine} beside {theirs}");
                assert_eq!(a.fits(&b), b.fits(&a));
            }
        }
        let patient = Terms { expire_after: Duration::from_secs(60), ..Terms::from(OneServer.timing()) };
        assert!(patient.fits(&Terms::from(OneServer.timing())), "a longer wait alone harms nobody");
    }
}
