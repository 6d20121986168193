//! The driver's and the server's errors as the three that a caller can act on, and the sentences for a database that
//! cannot be opened. The only file that knows numbers of errors.

use mysql_async::{DriverError, Error};

use crate::StoreError;

/// The outcome of a statement before the COMMIT: in any case nothing of it was applied.
#[derive(Debug)]
pub(in crate::mysql) struct StatementFailure {
    pub error: StoreError,
    /// The connection is not to be used again.
    pub lost: bool,
    /// Somebody else was faster; the whole transaction may be tried again at once.
    pub conflict: bool,
}

/// 1213 deadlock, 1020 changed since read; 1412 and 1615 a table got a column since.
const ROLLED_BACK: [u16; 4] = [1213, 1020, 1412, 1615];
/// Taken by somebody else since it was looked for; if it is so again each time, it is refused for good.
const DUPLICATE: u16 = 1062;
/// Busy, full, read-only for now, going down, cut short.
const PASSING: [u16; 25] = [
    1021, 1037, 1038, 1040, 1041, 1047, 1053, 1114, 1135, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1206, 1226, 1290,
    1317, 1792, 1836, 1927, 1969, 3024,
];
/// The server ends the connection along with these: shutdown, packet too large, net errors, killed, idle for too long.
const ENDING: [u16; 9] = [1053, 1152, 1153, 1158, 1159, 1160, 1161, 1927, 4031];

/// An error of a statement before the COMMIT was sent.
pub(in crate::mysql) fn statement(error: &Error) -> StatementFailure {
    let text = error.to_string();
    match error {
        Error::Server(server) => {
            let conflict = server.code == DUPLICATE || ROLLED_BACK.contains(&server.code);
            let passing = ROLLED_BACK.contains(&server.code) || PASSING.contains(&server.code) || server.code == 4031;
            let error = if passing { StoreError::Retryable(text) } else { StoreError::Permanent(text) };
            StatementFailure { error, lost: ENDING.contains(&server.code), conflict }
        }
        Error::Driver(DriverError::PacketTooLarge | DriverError::StmtParamsNumberExceedsLimit { .. }) => {
            StatementFailure { error: StoreError::Permanent(text), lost: true, conflict: false }
        }
        Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => {
            StatementFailure { error: StoreError::Retryable(text), lost: true, conflict: false }
        }
    }
}

/// An error of the COMMIT itself, or of a statement that commits by itself. The outcome is known only if the server says that it rolled
/// back.
pub(in crate::mysql) fn commit(error: &Error) -> StatementFailure {
    let text = error.to_string();
    match error {
        Error::Server(server) if [1213, 1205, 1020].contains(&server.code) => {
            StatementFailure { error: StoreError::Retryable(text), lost: false, conflict: server.code != 1205 }
        }
        _ => StatementFailure { error: StoreError::Unknown(text), lost: true, conflict: false },
    }
}

/// No answer in time. Before the COMMIT nothing is applied; the connection may still wait for a lock and must go.
pub(in crate::mysql) fn silence(committing: bool) -> StatementFailure {
    let text = "the database did not answer in time".to_owned();
    let error = if committing { StoreError::Unknown(text) } else { StoreError::Retryable(text) };
    StatementFailure { error, lost: true, conflict: false }
}

/// A stored value cannot be read by this binary.
pub(in crate::mysql) fn unreadable(problem: impl std::fmt::Display) -> StoreError {
    StoreError::Permanent(format!(
        "a stored row cannot be read: {problem}; it may have been written by a newer Carillon"
    ))
}

/// Why a database cannot be opened. No sentence shows a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is not one of MySQL's.
    #[error("the store's address is not one of MySQL's ({0}): write mysql://user:password@host:3306/carillon")]
    BadUrl(String),
    /// Nobody answers, or not now: trying again may help.
    #[error("the database at {place} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// The words of the driver or the server.
        reason: String,
    },
    /// The server is set up in a way in which promises cannot be kept.
    #[error("the database at {place} cannot be used: {reason}")]
    Unfit {
        /// Host and port.
        place: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// A newer binary made it.
    #[error(
        "the database at {place} was made by a newer Carillon: its schema is version {found}, this one knows up to \
         {known}; use the newer Carillon, or a backup from before the upgrade"
    )]
    Newer {
        /// Host and port.
        place: String,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> Error {
        Error::Server(mysql_async::ServerError { code, message: "m".into(), state: "HY000".into() })
    }

    #[test]
    fn what_was_rolled_back_may_be_tried_again() {
        for code in [1213, 1205, 1020] {
            assert!(matches!(statement(&server(code)).error, StoreError::Retryable(_)), "{code}");
            assert!(matches!(commit(&server(code)).error, StoreError::Retryable(_)), "{code}");
        }
        assert!(statement(&server(1213)).conflict && !statement(&server(1205)).conflict);
    }

    #[test]
    fn what_is_refused_is_refused_for_good_before_the_commit_and_unknown_at_it() {
        for code in [1406, 1366, 1153, 4025, 3819, 1146] {
            assert!(matches!(statement(&server(code)).error, StoreError::Permanent(_)), "{code}");
            assert!(matches!(commit(&server(code)).error, StoreError::Unknown(_)), "{code}");
        }
    }

    #[test]
    fn a_connection_that_breaks_is_not_used_again() {
        let broken = || Error::from(std::io::Error::other("reset"));
        assert!(statement(&broken()).lost && matches!(statement(&broken()).error, StoreError::Retryable(_)));
        assert!(commit(&broken()).lost && matches!(commit(&broken()).error, StoreError::Unknown(_)));
        assert!(matches!(silence(true).error, StoreError::Unknown(_)));
        assert!(matches!(silence(false).error, StoreError::Retryable(_)));
    }
}
