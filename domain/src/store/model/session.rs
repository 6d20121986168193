//! Sessions as a store knows them, and the record of lost commits.

use crate::id::SessionId;
use crate::lost_commits::LossWindow;
use crate::time::Timestamp;

/// A node that registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Drawn at this start.
    pub id: SessionId,
    /// The node's name.
    pub node: String,
    /// Where its API listens.
    pub address: String,
    /// The version of the binary.
    pub version: String,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// It claims.
    Live,
    /// It finishes its runs and claims nothing.
    Draining,
    /// It was ended (tombstone); its rows are being swept.
    Ended,
}

impl SessionState {
    /// Every value.
    pub const ALL: [SessionState; 3] = [SessionState::Live, SessionState::Draining, SessionState::Ended];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionState::Live => "live",
            SessionState::Draining => "draining",
            SessionState::Ended => "ended",
        }
    }
}

/// The part of a session that other sessions see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionBeat {
    /// Which session.
    pub id: SessionId,
    /// Its newest heartbeat.
    pub seq: u64,
    /// Whether it claims, drains or was ended.
    pub state: SessionState,
}

/// A session as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    /// The part that others see.
    pub beat: SessionBeat,
    /// The node's name.
    pub node: String,
    /// The time of its newest heartbeat.
    pub heartbeat_at: Timestamp,
}

/// A session that is to write back its runs after lost commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritingSession {
    /// The node's name.
    pub node: String,
    /// Whether it was ended.
    pub state: SessionState,
    /// The time of its newest heartbeat.
    pub heartbeat_at: Timestamp,
    /// The end of the newest loss window for which it has written back every run that it knows; the epoch before the first. `None` for a
    /// binary that cannot.
    pub wrote_back: Option<Timestamp>,
}

/// The standing of a session: asked before each claim and start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The session that asks; `None` where the database does not know it.
    pub session: Option<KnownSession>,
    /// The loss window that nobody has accepted yet.
    pub open: Option<LossWindow>,
    /// The end of the newest loss window there ever was.
    pub losses_until: Option<Timestamp>,
}

impl Standing {
    /// The state of the session, where the database knows it.
    pub fn state(&self) -> Option<SessionState> {
        self.session.as_ref().map(|own| own.beat.state)
    }

    /// Whether the session is known and not ended, and no loss window is open.
    pub fn is_in_order(&self) -> bool {
        matches!(self.state(), Some(SessionState::Live | SessionState::Draining)) && self.open.is_none()
    }
}

/// A loss window with who noticed and who accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedLoss {
    /// From when until when, and when it was noticed.
    pub window: LossWindow,
    /// Who noticed it first.
    pub session: SessionId,
    /// Its node's name; `None` where the database has forgotten the session.
    pub node: Option<String>,
    /// When somebody accepted it.
    pub accepted_at: Option<Timestamp>,
}

impl RecordedLoss {
    /// Whether nobody has accepted it yet.
    pub const fn is_open(&self) -> bool {
        self.accepted_at.is_none()
    }
}
