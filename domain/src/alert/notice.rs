//! Notices: the messages of a route.

use std::fmt;
use std::str::FromStr;

use crate::id::RunId;
use crate::schedule::stable_hash;
use crate::time::Timestamp;

use super::when::When;

/// The identity of a notice or of a call of a monitor. Repeats of one delivery carry the same id, so a receiver can drop them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeId(pub u128);

impl NoticeId {
    /// The id that follows from these parts: the same parts always give the same id.
    pub fn derived(parts: &[&str]) -> Self {
        // The unit separator stands in no name, so parts never run into each other.
        let text = parts.join("\u{1f}");
        let half = |purpose| u128::from(stable_hash(&text, purpose));
        Self(half("notice") << 64 | half("notice again"))
    }
}

impl fmt::Display for NoticeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is not the id of a notice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not the id of a notice: 32 hexadecimal digits are expected")]
pub struct BadNoticeId(String);

impl FromStr for NoticeId {
    type Err = BadNoticeId;

    fn from_str(text: &str) -> Result<Self, BadNoticeId> {
        let hex = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| hex);
        number.map(Self).ok_or_else(|| BadNoticeId(crate::name::quoted(text)))
    }
}

/// The parts of cron's mail that the definition knows: `Cron <user@node> command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronMail {
    /// The user of the crontab.
    pub user: String,
    /// The command as the crontab had it.
    pub command: String,
}

/// Whether a notice opens a trouble, closes it or only tries the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Something is wrong, or happened.
    Open,
    /// The trouble is over.
    Recovered,
    /// A person tries the route.
    Test,
}

impl State {
    /// Every value.
    pub const ALL: [State; 3] = [State::Open, State::Recovered, State::Test];

    /// The name that receivers read and that stores keep.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Recovered => "recovered",
            State::Test => "test",
        }
    }
}

/// A message of one route. Each target of the route gets one delivery of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Tells repeats apart.
    pub id: NoticeId,
    /// The route.
    pub route: String,
    /// The kind of the fact. A recovery has the kind of the trouble that is over.
    pub when: When,
    /// Whether it opens or closes.
    pub state: State,
    /// The namespace of the job; `None` for the cluster, and for a message about several subjects.
    pub namespace: Option<String>,
    /// The name of the job, as `namespace`.
    pub job: Option<String>,
    /// The node or part of the cluster, if it is about one.
    pub part: Option<String>,
    /// The run, if it is about one.
    pub run: Option<RunId>,
    /// The due time, if it is about one; the last of several.
    pub due_at: Option<Timestamp>,
    /// When it was made.
    pub at: Timestamp,
    /// One or more sentences: what, when and why.
    pub sentence: String,
    /// A sentence: what to do.
    pub then: String,
    /// How often the trouble was told before; 0 at first.
    pub repeats: u32,
    /// How many notices it stands for; 0 if it stands for itself.
    pub folded: u64,
    /// The same for all notices of one incident, such as for a thread of mails.
    pub thread: NoticeId,
    /// Whether the output of `run` belongs to the message.
    pub with_output: bool,
    /// Set where the message is to have the form of cron's mail.
    pub cron_mail: Option<CronMail>,
}
