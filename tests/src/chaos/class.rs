//! The kinds of faults.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "Class::what says it in words that reports use too")]
pub enum Class {
    WireCutBefore,
    WireCutAfter,
    WireHalfPacket,
    WireHeld,
    WireHeldClientGone,
    WireBlackHole,
    WireOneWay,
    NodeKilled,
    NodeFrozen,
    NodeFrozenPastLease,
    KeeperKilled,
    KeeperFrozen,
    ChildKilled,
    ChildFrozen,
    DatabaseKilled,
    DatabaseRestarted,
    DatabaseFrozen,
    OutOfConnections,
    DiskFull,
    ReadOnly,
    ReadLock,
    ConnectionsKilled,
    DatabaseClock,
    NodeClock,
    BalancerRotates,
    Restored,
    MemberCutOff,
    MemberBehind,
    SwitchedOver,
    MemberOutside,
    ClusterCrashed,
    ClusterBehind,
    FailedOver,
}

/// The part of the field that a fault occupies while it lasts. Faults on two nodes, or one on a node and one on the database, may last
/// at the same time; two on one node, or two on the database, wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One node: its processes, its wire, its clock.
    Node,
    /// The database server.
    Database,
    /// Everything: nothing else may happen meanwhile.
    Alone,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 33] = [
        Class::WireCutBefore,
        Class::WireCutAfter,
        Class::WireHalfPacket,
        Class::WireHeld,
        Class::WireHeldClientGone,
        Class::WireBlackHole,
        Class::WireOneWay,
        Class::NodeKilled,
        Class::NodeFrozen,
        Class::NodeFrozenPastLease,
        Class::KeeperKilled,
        Class::KeeperFrozen,
        Class::ChildKilled,
        Class::ChildFrozen,
        Class::DatabaseKilled,
        Class::DatabaseRestarted,
        Class::DatabaseFrozen,
        Class::OutOfConnections,
        Class::DiskFull,
        Class::ReadOnly,
        Class::ReadLock,
        Class::ConnectionsKilled,
        Class::DatabaseClock,
        Class::NodeClock,
        Class::BalancerRotates,
        Class::Restored,
        Class::MemberCutOff,
        Class::MemberBehind,
        Class::SwitchedOver,
        Class::MemberOutside,
        Class::ClusterCrashed,
        Class::ClusterBehind,
        Class::FailedOver,
    ];

    /// Whether commits that were acknowledged are lost by it.
    pub fn loses_commits(self) -> bool {
        matches!(self, Class::Restored | Class::ClusterBehind | Class::FailedOver)
    }

    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::WireCutBefore => "wire-cut-before",
            Class::WireCutAfter => "wire-cut-after",
            Class::WireHalfPacket => "wire-half-packet",
            Class::WireHeld => "wire-held",
            Class::WireHeldClientGone => "wire-held-client-gone",
            Class::WireBlackHole => "wire-black-hole",
            Class::WireOneWay => "wire-one-way",
            Class::NodeKilled => "node-killed",
            Class::NodeFrozen => "node-frozen",
            Class::NodeFrozenPastLease => "node-frozen-past-lease",
            Class::KeeperKilled => "keeper-killed",
            Class::KeeperFrozen => "keeper-frozen",
            Class::ChildKilled => "child-killed",
            Class::ChildFrozen => "child-frozen",
            Class::DatabaseKilled => "database-killed",
            Class::DatabaseRestarted => "database-restarted",
            Class::DatabaseFrozen => "database-frozen",
            Class::OutOfConnections => "out-of-connections",
            Class::DiskFull => "disk-full",
            Class::ReadOnly => "read-only",
            Class::ReadLock => "read-lock",
            Class::ConnectionsKilled => "connections-killed",
            Class::DatabaseClock => "database-clock",
            Class::NodeClock => "node-clock",
            Class::BalancerRotates => "balancer-rotates",
            Class::Restored => "restored",
            Class::MemberCutOff => "member-cut-off",
            Class::MemberBehind => "member-behind",
            Class::SwitchedOver => "switched-over",
            Class::MemberOutside => "member-outside",
            Class::ClusterCrashed => "cluster-crashed",
            Class::ClusterBehind => "cluster-behind",
            Class::FailedOver => "failed-over",
        }
    }

    /// The fault itself, and when it counts as effective.
    pub fn what(self) -> &'static str {
        match self {
            Class::WireCutBefore => "a statement is cut off before the server sees it; the proxy had it",
            Class::WireCutAfter => "the server's answer to a statement is cut off; the proxy had the answer",
            Class::WireHalfPacket => "half of a statement's packet reaches the server; the proxy sent it and hung up",
            Class::WireHeld => "a statement reaches the server late; the server's answer to it was seen",
            Class::WireHeldClientGone => {
                "a statement reaches the server when its node has hung up; the server's answer, or that it had hung up \
                 too, was seen"
            }
            Class::WireBlackHole => "nothing passes between a node and the server for a while; packets were stopped",
            Class::WireOneWay => "nothing passes from the server to a node, or back, for a while; packets were stopped",
            Class::NodeKilled => "SIGKILL of a node; it was seen to end by it, and another process took its place",
            Class::NodeFrozen => "SIGSTOP of a node for less than its lease; /proc showed it stopped",
            Class::NodeFrozenPastLease => "SIGSTOP of a node beyond its lease; another node saw its session ended",
            Class::KeeperKilled => "SIGKILL of a keeper; its node was seen to end with exit code 70",
            Class::KeeperFrozen => "SIGSTOP of a keeper for less than `pause`; /proc showed it stopped",
            Class::ChildKilled => "SIGKILL of a run's process; it was seen to be gone",
            Class::ChildFrozen => "SIGSTOP of a run's process for a while; /proc showed it stopped",
            Class::DatabaseKilled => {
                "SIGKILL of the server, or of a member, and a start after a while; it was seen to end and answered again"
            }
            Class::DatabaseRestarted => "the server is stopped in good order and started; its uptime began anew",
            Class::DatabaseFrozen => "SIGSTOP of the server for a while; /proc showed it stopped",
            Class::OutOfConnections => {
                "the server takes no more connections for a while; a probe was refused with 1040"
            }
            Class::DiskFull => "the disk of the data is full for a while; a probe's write failed or waited",
            Class::ReadOnly => "the server is read-only for a while; a probe's write was refused with 1290 or 1836",
            Class::ReadLock => "FLUSH TABLES WITH READ LOCK for a while; a node's statement was seen waiting for it",
            Class::ConnectionsKilled => "KILL of connections of the nodes; the server took the orders and they went",
            Class::DatabaseClock => {
                "the server's clock jumps by some seconds and back; UTC_TIMESTAMP(6) was seen to jump"
            }
            Class::NodeClock => {
                "a node's wall clock jumps by minutes or hours and back; its /metrics showed the offset"
            }
            Class::BalancerRotates => {
                "the balancer before a node hangs up and leads each connection to the next member for a while; it led some to \
                 different ones"
            }
            Class::Restored => "an older state of the data is put back; nodes said that the database went back in time",
            Class::MemberCutOff => {
                "nothing passes between a member and the others for a while, perhaps between it and the nodes; packets were \
                 stopped, and it was with the others again"
            }
            Class::MemberBehind => {
                "a member applies late what another one has acknowledged, perhaps while it becomes the writer; a mark was seen there \
                 at least half a second late"
            }
            Class::SwitchedOver => "another member becomes the writer as planned; no node was seen at the one before",
            Class::MemberOutside => {
                "a member runs outside of its cluster for a while; a probe could have written to it, no node used it, and it \
                 joined the others again"
            }
            Class::ClusterCrashed => {
                "SIGKILL of all members; the cluster was made anew from the one that had everything, and takes writes"
            }
            Class::ClusterBehind => {
                "the same from a member that is behind; nodes said that the database went back in time"
            }
            Class::FailedOver => {
                "SIGKILL of the source while its replica is behind, which takes over; nodes said that the database went back in time"
            }
        }
    }

    /// The class of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The parts of the field that it occupies.
    pub fn reach(self) -> Reach {
        match self {
            Class::WireCutBefore
            | Class::WireCutAfter
            | Class::WireHalfPacket
            | Class::WireHeld
            | Class::WireHeldClientGone
            | Class::WireBlackHole
            | Class::WireOneWay
            | Class::NodeKilled
            | Class::NodeFrozen
            | Class::NodeFrozenPastLease
            | Class::KeeperKilled
            | Class::KeeperFrozen
            | Class::ChildKilled
            | Class::ChildFrozen
            | Class::NodeClock
            | Class::BalancerRotates => Reach::Node,
            Class::DatabaseKilled
            | Class::DatabaseRestarted
            | Class::DatabaseFrozen
            | Class::OutOfConnections
            | Class::DiskFull
            | Class::ReadOnly
            | Class::ReadLock
            | Class::ConnectionsKilled
            | Class::DatabaseClock
            | Class::MemberCutOff
            | Class::MemberBehind
            | Class::SwitchedOver
            | Class::MemberOutside
            | Class::ClusterCrashed => Reach::Database,
            Class::Restored | Class::ClusterBehind | Class::FailedOver => Reach::Alone,
        }
    }
}
