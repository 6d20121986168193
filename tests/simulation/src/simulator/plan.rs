//! The plans of a cluster's life, and the parts of each.

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plan {
    /// None: many short jobs, for throughput.
    Calm,
    /// Connections break, answers are lost, COMMITs come late, nodes are cut off, the database is away or silent.
    Network,
    /// Lock waits that take too long, deadlocks, rows that changed; people who write to the same rows.
    Locks,
    /// Crashes, freezes, drains, rolling restarts, dead keepers.
    Nodes,
    /// Clocks that run fast or slow, and a database's clock that is set.
    Clocks,
    /// More due at once than may execute.
    Overload,
    /// Nights on which the clocks change.
    Dst,
    /// People who pause, resume, delete, update, trigger and cancel.
    People,
    /// All of it.
    Everything,
}

impl Plan {
    /// Every plan.
    pub const ALL: [Plan; 9] = [
        Plan::Calm,
        Plan::Network,
        Plan::Locks,
        Plan::Nodes,
        Plan::Clocks,
        Plan::Overload,
        Plan::Dst,
        Plan::People,
        Plan::Everything,
    ];

    /// Its name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Plan::Calm => "calm",
            Plan::Network => "network",
            Plan::Locks => "locks",
            Plan::Nodes => "nodes",
            Plan::Clocks => "clocks",
            Plan::Overload => "overload",
            Plan::Dst => "dst",
            Plan::People => "people",
            Plan::Everything => "everything",
        }
    }

    /// The plan of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plan| plan.name() == name)
    }

    fn has(self, part: Plan) -> bool {
        self == part || self == Plan::Everything
    }

    pub(super) fn network(self) -> bool {
        self.has(Plan::Network)
    }

    pub(super) fn locks(self) -> bool {
        self.has(Plan::Locks)
    }

    pub(super) fn nodes(self) -> bool {
        self.has(Plan::Nodes)
    }

    pub(super) fn clocks(self) -> bool {
        self.has(Plan::Clocks)
    }

    pub(super) fn people(self) -> bool {
        self.has(Plan::People) || self == Plan::Locks
    }

    /// How long trouble lasts, in seconds of virtual time.
    pub(super) const fn troubled_s(self) -> u64 {
        match self {
            Plan::Dst => 7_200,
            Plan::Calm => 180,
            _ => 40,
        }
    }

    /// For how long due times go on after it.
    pub(super) const fn quiet_s(self) -> u64 {
        match self {
            Plan::Dst => 60,
            _ => 15,
        }
    }

    /// How long a node waits between two looks at its alerts. Rarer looks cost less and see more at once; a night is long.
    pub(super) const fn looks_every_s(self) -> u64 {
        match self {
            Plan::Dst => 30,
            Plan::Calm => 5,
            _ => 2,
        }
    }
}
