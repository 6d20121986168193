//! Tables of what servers say, and what follows.

use super::*;

fn answers(pairs: &[(&str, &str)], members: Option<Vec<Member>>) -> Answers {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Answers { state: ServerState::of(pairs), members: members.map(Members::of) }
}

fn member(is_me: bool, state: &str, role: &str) -> Member {
    Member { is_me, state: state.to_owned(), role: role.to_owned() }
}

const GALERA: [(&str, &str); 5] = [
    ("wsrep_on", "ON"),
    ("wsrep_ready", "ON"),
    ("wsrep_cluster_status", "Primary"),
    ("wsrep_local_state_comment", "Synced"),
    ("wsrep_cluster_size", "3"),
];
const GROUP: [(&str, &str); 2] =
    [("group_replication_group_name", "g"), ("group_replication_single_primary_mode", "ON")];

fn of_three() -> Vec<Member> {
    vec![
        member(true, "ONLINE", "PRIMARY"),
        member(false, "ONLINE", "SECONDARY"),
        member(false, "UNREACHABLE", "SECONDARY"),
    ]
}

#[test]
fn a_server_tells_which_kind_it_is() {
    for (pairs, members, engine, words) in [
        (&[("read_only", "OFF")][..], None, Engine::OneServer, "one server"),
        // Debian's MariaDB knows the variable everywhere; a MySQL with the plug-in and no group is a server of its own.
        (&[("wsrep_on", "OFF"), ("wsrep_provider", "none")], None, Engine::OneServer, "one server"),
        (&[("group_replication_group_name", "")], Some(vec![]), Engine::OneServer, "one server"),
        (&GALERA, None, Engine::Galera, "a Galera cluster of 3"),
        (&GROUP, Some(of_three()), Engine::GroupReplication, "a group of Group Replication of 3"),
    ] {
        let answers = answers(pairs, members);
        assert_eq!((answers.engine(), answers.describe().as_str()), (engine, words), "{pairs:?}");
        assert_eq!((answers.why_no_writer(), answers.why_unfit()), (None, None), "{pairs:?}");
    }
}

#[test]
fn a_member_outside_its_cluster_takes_no_writes() {
    let left = [("wsrep_on", "ON"), ("wsrep_ready", "OFF"), ("wsrep_cluster_status", "non-Primary")];
    assert!(answers(&left, None).why_no_writer().unwrap().contains("majority"));
    let outside = answers(&GROUP, Some(vec![member(true, "OFFLINE", "")]));
    assert!(outside.why_no_writer().unwrap().contains("outside its group"));
    // The list of members counts only where there is a group: MySQL has an empty one everywhere.
    assert_eq!(answers(&[], Some(vec![member(true, "OFFLINE", "")])).why_no_writer(), None);
}

#[test]
fn engines_that_are_not_proved_are_refused() {
    for (pairs, words) in [
        (&[("version", "8.0.11-TiDB-v8.5.0")][..], "it is TiDB"),
        (&[("version", "8.0.30"), ("version_comment", "TiDB Server (Apache License 2.0)")], "it is TiDB"),
        (&[("version", "8.0.30-Vitess")], "it is Vitess"),
        (
            &[("group_replication_group_name", "g"), ("group_replication_single_primary_mode", "OFF")],
            "several primaries",
        ),
        (&GROUP, "GRANT SELECT ON performance_schema.replication_group_members"),
    ] {
        let said = answers(pairs, None).why_unfit().unwrap_or_default();
        assert!(said.contains(words), "{pairs:?}: {said}");
    }
    for version in ["10.11.6-MariaDB-0+deb12u1", "9.7.0", "8.4.3-commercial"] {
        assert_eq!(answers(&[("version", version)], None).why_unfit(), None, "{version}");
    }
}

#[test]
fn the_operators_word_is_held_against_what_is_found() {
    use Engine::{Galera, GroupReplication, OneServer};
    for (said, found, before, words) in [
        (Topology::Auto, OneServer, None, ""),
        (Topology::Auto, Galera, Some(Galera), ""),
        (Topology::Auto, Galera, Some(OneServer), ""),
        (Topology::Auto, OneServer, Some(Galera), "was a Galera cluster when"),
        (Topology::Auto, OneServer, Some(GroupReplication), "was a group of Group Replication when"),
        (
            Topology::OneServer,
            Galera,
            None,
            "it is a Galera cluster, and store.topology = \"one-server\" asks for one server",
        ),
        (Topology::Galera, OneServer, None, "asks for a Galera cluster"),
        (Topology::Galera, Galera, None, ""),
        (Topology::GaleraMultiWriter, Galera, None, ""),
        (Topology::GaleraMultiWriter, GroupReplication, None, "asks for a Galera cluster"),
        (Topology::GroupReplication, OneServer, None, "asks for a group of Group Replication"),
        (Topology::GroupReplication, GroupReplication, None, ""),
    ] {
        let why = said.why_not(found, before).unwrap_or_default();
        assert!(why.contains(words) && why.is_empty() == words.is_empty(), "{said:?} {found:?} {before:?}: {why}");
    }
}

#[test]
fn a_topology_is_known_by_its_name() {
    for one in Topology::ALL {
        assert_eq!(one.as_str().parse(), Ok(one));
    }
    let said = "multi".parse::<Topology>().unwrap_err();
    assert!(said.contains("\"auto\"") && said.contains("\"galera-multi-writer\""), "{said}");
    let several: Vec<Topology> = Topology::ALL.into_iter().filter(|one| one.allows_several_writers()).collect();
    assert_eq!(several, [Topology::GaleraMultiWriter]);
}
