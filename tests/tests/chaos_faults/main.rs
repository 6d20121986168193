//! Every fault of chaos runs strikes once, on two nodes with a handful of jobs: it takes effect, and the cluster gets over
//! it. The faults of several servers take minutes, so they run only where they are asked for.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::{Brand, Galera, Group, Replicated};
use carillon_tests::skipped::can_be_tested;

mod fixture;
mod of_balancers;
mod of_database;
mod of_nodes;

/// Tests of one kind of database.
macro_rules! faults {
    ($database:ident, $kind:expr, if $is_asked_for:expr, $($faults:ident::$fault:ident)+) => {
        mod $database {
            use super::*;

            $(#[test]
            fn $fault() {
                if $is_asked_for {
                    $faults::$fault($kind);
                }
            })+
        }
    };
}

faults! {
    mariadb, Kind::One(Brand::MariaDb), if true,
    of_database::faults_of_the_database_take_effect
    of_database::a_restored_older_state_is_noticed_and_accepted
    of_nodes::faults_of_a_wire_take_effect
    of_nodes::faults_of_a_node_take_effect
    of_nodes::faults_at_the_same_time_leave_each_other_alone
}

faults! {
    mysql, Kind::One(Brand::MySql), if true,
    of_database::faults_of_the_database_take_effect
    of_database::a_restored_older_state_is_noticed_and_accepted
}

/// The same of several servers with balancers before them.
macro_rules! faults_of_several {
    ($database:ident, $kind:expr, if $is_asked_for:expr) => {
        faults! {
            $database, $kind, if $is_asked_for,
            of_database::faults_of_the_database_take_effect
            of_database::a_restored_older_state_is_noticed_and_accepted
            of_balancers::a_balancer_that_rotates_takes_effect_and_raises_no_false_alarm
        }
    };
}

faults_of_several!(galera, Kind::Galera, if can_be_tested("the faults of a Galera cluster", Galera::missing()));
faults_of_several!(group, Kind::Group, if can_be_tested("the faults of a group of Group Replication", Group::not_asked_for()));
faults_of_several!(mariadb_replica, Kind::Replicated(Brand::MariaDb), if is_replica_asked_for());
faults_of_several!(mysql_replica, Kind::Replicated(Brand::MySql), if is_replica_asked_for());

fn is_replica_asked_for() -> bool {
    can_be_tested("the faults of a source and its asynchronous replica", Replicated::missing())
}
