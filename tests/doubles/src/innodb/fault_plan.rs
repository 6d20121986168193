//! The faults between a client and its server, planned by the driver of the time.

/// The fate of a statement before the COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFate {
    /// It is carried out.
    Arrives,
    /// The server says that it waited too long for a lock (1205): only the statement is rolled back.
    TimesOut,
    /// The server rolled the transaction back for a deadlock (1213) or because a row had changed (1020).
    RolledBack,
    /// The connection breaks, and the server notices that after so many microseconds: until then the locks stay.
    Lost {
        /// Until the server notices.
        noticed_after_us: u64,
    },
}

/// The fate of a COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFate {
    /// It is carried out and answered.
    Arrives,
    /// The server rolled it back and says so (1213).
    RolledBack,
    /// It never arrives; the server rolls back when it notices that the connection is gone.
    LostBefore {
        /// Until the server notices.
        noticed_after_us: u64,
    },
    /// It is carried out, and its answer is lost.
    LostAfter,
    /// The server carries it out so much later, whether its client still waits or not.
    Late {
        /// Until it is carried out.
        after_us: u64,
    },
}

/// Decides. Asked in the order in which things happen, so that a seeded one replays.
pub trait FaultPlan: Send {
    /// How long a statement of `client` is on its way, in microseconds.
    fn latency_us(&mut self, client: u64) -> u64;
    /// The fate of the next statement.
    fn statement(&mut self, client: u64) -> StatementFate;
    /// The fate of a COMMIT.
    fn commit(&mut self, client: u64) -> CommitFate;
    /// When the KILL of a connection in doubt takes effect; `None` when it does not get through.
    fn kill(&mut self, client: u64) -> Option<u64>;
}

/// Nothing goes wrong and nothing takes time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calm;

impl FaultPlan for Calm {
    fn latency_us(&mut self, _: u64) -> u64 {
        0
    }

    fn statement(&mut self, _: u64) -> StatementFate {
        StatementFate::Arrives
    }

    fn commit(&mut self, _: u64) -> CommitFate {
        CommitFate::Arrives
    }

    fn kill(&mut self, _: u64) -> Option<u64> {
        Some(0)
    }
}
