//! The kinds of databases that chaos runs on, and the classes of faults that make no sense on each.

use super::class::Class;
use crate::databases::Brand;

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One server of a brand.
    One(Brand),
    /// A Galera cluster of three members, of which the nodes write through one.
    Galera,
    /// The same, and each node begins at another member and stays there.
    GaleraMultiWriter,
    /// A group of Group Replication of three members with a single primary.
    Group,
    /// A source of a brand and its asynchronous replica.
    Replicated(Brand),
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::One(Brand::MariaDb),
        Kind::One(Brand::MySql),
        Kind::Galera,
        Kind::GaleraMultiWriter,
        Kind::Group,
        Kind::Replicated(Brand::MariaDb),
        Kind::Replicated(Brand::MySql),
    ];

    /// Its name on command lines and in the names of reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::One(Brand::MariaDb) => "mariadb",
            Kind::One(Brand::MySql) => "mysql",
            Kind::Galera => "galera",
            Kind::GaleraMultiWriter => "galera-multi-writer",
            Kind::Group => "group",
            Kind::Replicated(Brand::MariaDb) => "mariadb-replica",
            Kind::Replicated(Brand::MySql) => "mysql-replica",
        }
    }

    /// Its name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Kind::One(brand) => brand.name(),
            Kind::Galera => "a Galera cluster of three, one writer",
            Kind::GaleraMultiWriter => "a Galera cluster of three, several writers",
            Kind::Group => "a group of three of Group Replication, single primary",
            Kind::Replicated(Brand::MariaDb) => "a MariaDB source and its asynchronous replica",
            Kind::Replicated(Brand::MySql) => "a MySQL source and its asynchronous replica",
        }
    }

    /// The kind of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it has several servers.
    pub fn has_several_servers(self) -> bool {
        !matches!(self, Kind::One(_))
    }

    /// Whether its servers agree by themselves which of them takes writes.
    pub fn is_cluster(self) -> bool {
        matches!(self, Kind::Galera | Kind::GaleraMultiWriter | Kind::Group)
    }

    /// The classes of faults that make sense on it.
    pub fn classes(self) -> Vec<Class> {
        Class::ALL.into_iter().filter(|class| self.why_not(*class).is_none()).collect()
    }

    /// The sentence for a class that makes no sense on it.
    pub fn why_not(self, class: Class) -> Option<&'static str> {
        match (class, self) {
            (
                Class::MemberCutOff
                | Class::MemberBehind
                | Class::MemberOutside
                | Class::ClusterCrashed
                | Class::ClusterBehind,
                Kind::One(_) | Kind::Replicated(_),
            ) => Some("there are no members that agree with each other"),
            (Class::SwitchedOver, Kind::One(_)) => Some("no other server can take over"),
            (Class::BalancerRotates, Kind::One(_)) => Some("one server needs no balancer"),
            (Class::Restored, Kind::Galera | Kind::GaleraMultiWriter | Kind::Group) => {
                Some("a member alone cannot go back in time; cluster-behind loses commits of the whole cluster")
            }
            (Class::Restored, Kind::Replicated(_)) => {
                Some("the replica has what is lost; failed-over loses commits of both")
            }
            (Class::FailedOver, Kind::Replicated(_)) => None,
            (Class::FailedOver, _) => Some("there is no asynchronous replica"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_name_and_says_why_a_class_is_left_out() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_name(kind.name()), Some(kind));
            let left_out = Class::ALL.into_iter().filter(|class| kind.why_not(*class).is_some()).count();
            assert_eq!(left_out + kind.classes().len(), Class::ALL.len());
            assert!(kind.classes().contains(&Class::DatabaseKilled) && kind.classes().contains(&Class::NodeKilled));
        }
        assert_eq!(Kind::of_name("postgres"), None);
        assert!(Kind::Group.classes().contains(&Class::ClusterBehind));
        assert!(!Kind::One(Brand::MySql).classes().contains(&Class::MemberCutOff));
        let replicated = Kind::Replicated(Brand::MySql).classes();
        assert!(replicated.contains(&Class::FailedOver) && replicated.contains(&Class::SwitchedOver));
    }
}
