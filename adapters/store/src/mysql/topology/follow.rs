//! Which server a node begins with, where other nodes write already.

/// A server of the address as a starting node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mysql) enum Seen {
    /// It does not answer, or takes no writes.
    Away,
    /// It takes writes; its identity.
    Writer(String),
}

/// The choice of a starting node.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::mysql) enum Follow {
    /// The one that it has chosen will do.
    Stay,
    /// The one at this place of its address is that of the others.
    Move(usize),
    /// The others write to servers that this node's address does not name.
    Refuse(String),
}

/// `others` are the servers of the sessions that live, `own` is the one that was chosen, `hosts` are all of the address. A host that is away may be the
/// server that the others are about to leave, so it proves nothing.
pub(in crate::mysql) fn follow(own: &str, others: &[String], hosts: &[Seen]) -> Follow {
    if others.is_empty() || others.iter().any(|other| other == own) {
        return Follow::Stay;
    }
    let is_theirs = |seen: &Seen| matches!(seen, Seen::Writer(identity) if others.contains(identity));
    if let Some(place) = hosts.iter().position(is_theirs) {
        return Follow::Move(place);
    }
    if hosts.contains(&Seen::Away) {
        return Follow::Stay;
    }
    let others = others.join(", ");
    Follow::Refuse(format!(
        "other nodes write through {others}, and this node would write through {own}: name the same servers at each node, or \
         allow it with store.topology = \"galera-multi-writer\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starting_node_goes_where_the_others_are() {
        let writer = |name: &str| Seen::Writer(name.to_owned());
        let others = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let three = [writer("a"), writer("b"), writer("c")];
        assert_eq!(follow("a", &others(&[]), &three), Follow::Stay, "it is the first");
        assert_eq!(follow("a", &others(&["a", "b"]), &three), Follow::Stay, "they are mixed already");
        assert_eq!(follow("a", &others(&["b"]), &three), Follow::Move(1), "they moved while it was down");
        let failing_over = [Seen::Away, writer("b")];
        assert_eq!(follow("b", &others(&["a"]), &failing_over), Follow::Stay, "theirs has just died");
        let Follow::Refuse(said) = follow("a", &others(&["x"]), &three) else { panic!("a server that is not named") };
        assert!(said.contains("through x") && said.contains("through a"), "{said}");
    }
}
