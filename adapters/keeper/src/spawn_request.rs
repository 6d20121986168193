//! The request to start a program, from the node to the keeper.

use std::ffi::CString;
use std::time::Duration;

use carillon_domain::id::RunId;

/// A program to start, with everything about it decided: the keeper looks nothing up.
///
/// Strings are `CString`s because the kernel takes nothing else. There is no `Debug`: `env` and `stdin` hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Spawn {
    /// The run that this child is; at most one child lives under an id.
    pub run: RunId,
    /// Program and arguments. A program without a slash is looked for in the PATH of `env`. Must not be empty.
    pub argv: Vec<CString>,
    /// The whole environment, `NAME=value`; nothing is added to it.
    pub env: Vec<CString>,
    /// Working directory, entered as the run's user.
    pub dir: CString,
    /// Whether a `dir` that cannot be entered is replaced by `/` (cron does so for a missing home).
    pub dir_or_root: bool,
    /// Bytes on stdin; `None` for /dev/null.
    pub stdin: Option<Vec<u8>>,
    /// User to switch to; `None` to stay the keeper's own.
    pub user: Option<UserIds>,
    /// How long the run may take, in whole milliseconds; `None` for as long as it likes.
    pub timeout: Option<Duration>,
    /// How long after SIGTERM the run is killed.
    pub kill_grace: Duration,
}

/// The numbers of a user. The node resolves them: name services may hang, and the keeper must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserIds {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// All groups, the primary one among them.
    pub groups: Vec<u32>,
}
