//! The ways of nodes to the members of a cluster.

use super::kind::Kind;
use super::wire::{Choice, Standing, Wires};
use crate::databases::Servers;

/// How the nodes of a field reach the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// Each node names all members.
    Named,
    /// Each node has a balancer of its own, and all balancers lead to one member.
    Balanced,
    /// The second node has a balancer that keeps connections, the third one that drops them, the others name all members.
    Mixed,
}

impl Ways {
    /// All of them, with their names on command lines.
    pub const ALL: [(&str, Ways); 3] = [("named", Ways::Named), ("balanced", Ways::Balanced), ("mixed", Ways::Mixed)];

    /// Those of a kind of database unless something else is asked for. Nodes that choose their member themselves and those behind
    /// balancers may choose different ones; Galera with one writer does not want that.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::One(_) => Ways::Named,
            Kind::Galera => Ways::Balanced,
            Kind::GaleraMultiWriter | Kind::Group | Kind::Replicated(_) => Ways::Mixed,
        }
    }

    /// Whether there are balancers.
    pub fn have_balancers(self) -> bool {
        self != Ways::Named
    }

    /// The fate of standing connections at the balancer of the `number`-th node; `None` where it has no balancer.
    fn standing(self, number: usize) -> Option<Standing> {
        match (self, number % 4) {
            (Ways::Balanced, 1 | 3) | (Ways::Mixed, 2) => Some(Standing::Kept),
            (Ways::Balanced, _) | (Ways::Mixed, 3) => Some(Standing::Dropped),
            _ => None,
        }
    }

    /// The wires of the `number`-th node, counted from 1. Balancers need a choice.
    pub(super) fn wires(self, number: usize, servers: &Servers, choice: Option<&Choice>) -> Wires {
        let members = servers.members().iter().map(|member| (member.host(), member.port()));
        match self.standing(number).zip(choice) {
            Some((standing, choice)) => Wires::balanced(members, choice, standing),
            None => Wires::to(members),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_nodes_have_both_sorts_of_balancers() {
        let of = |ways: Ways| [1, 2, 3, 4].map(|number| ways.standing(number));
        let (kept, dropped) = (Some(Standing::Kept), Some(Standing::Dropped));
        assert_eq!(of(Ways::Named), [None; 4]);
        assert_eq!(of(Ways::Balanced), [kept, dropped, kept, dropped]);
        assert_eq!(of(Ways::Mixed), [None, kept, dropped, None]);
    }
}
