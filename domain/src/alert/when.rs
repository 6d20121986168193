//! The kinds of facts that a route may ask for.

/// A kind of fact. Routes list them under `when`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// A run failed, and it is not tried again.
    Failed,
    /// A run was ended because its timeout passed, and it is not tried again.
    TimedOut,
    /// The node of a run died or lost it, so its outcome is unknown.
    Lost,
    /// Due times did not run, and a record tells why.
    Skipped,
    /// A due time did not start as early as its job expects.
    LateStart,
    /// A due time did not succeed as early as its job expects.
    LateFinish,
    /// A trouble that was told is over.
    Recovered,
    /// A run wrote something to its standard output or error.
    Output,
    /// A node went silent, and its session was ended.
    NodeLost,
    /// The database went back in time, and scheduling is suspended.
    CommitsLost,
    /// The clock of a node differs from the database's.
    ClockDrift,
    /// A node had no database for a while.
    DatabaseAway,
    /// A disk of a node is nearly full.
    DiskFull,
    /// A node does not load a plugin.
    PluginRefused,
    /// A certificate ends soon.
    CertificateExpires,
}

impl When {
    /// Every value.
    pub const ALL: [When; 15] = [
        When::Failed,
        When::TimedOut,
        When::Lost,
        When::Skipped,
        When::LateStart,
        When::LateFinish,
        When::Recovered,
        When::Output,
        When::NodeLost,
        When::CommitsLost,
        When::ClockDrift,
        When::DatabaseAway,
        When::DiskFull,
        When::PluginRefused,
        When::CertificateExpires,
    ];

    /// The name that users read and write, and that stores keep.
    pub const fn as_str(self) -> &'static str {
        match self {
            When::Failed => "failed",
            When::TimedOut => "timed_out",
            When::Lost => "lost",
            When::Skipped => "skipped",
            When::LateStart => "late_start",
            When::LateFinish => "late_finish",
            When::Recovered => "recovered",
            When::Output => "output",
            When::NodeLost => "node_lost",
            When::CommitsLost => "commits_lost",
            When::ClockDrift => "clock_drift",
            When::DatabaseAway => "database_away",
            When::DiskFull => "disk_full",
            When::PluginRefused => "plugin_refused",
            When::CertificateExpires => "certificate_expires",
        }
    }

    /// The value of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|when| when.as_str() == name)
    }

    /// Whether it is a fact of the cluster and not of a job. `recovered` is a fact of either.
    pub const fn of_cluster(self) -> bool {
        match self {
            When::NodeLost
            | When::CommitsLost
            | When::ClockDrift
            | When::DatabaseAway
            | When::DiskFull
            | When::PluginRefused
            | When::CertificateExpires => true,
            When::Failed
            | When::TimedOut
            | When::Lost
            | When::Skipped
            | When::LateStart
            | When::LateFinish
            | When::Recovered
            | When::Output => false,
        }
    }
}
