//! The driver's and the server's errors as the three that a caller can act on, and the sentences for a database that
//! cannot be opened. The only file that knows numbers of errors.

use mysql_async::{DriverError, Error, ServerError};

use crate::StoreError;

/// The outcome of a statement before the COMMIT: in any case nothing of it was applied.
#[derive(Debug)]
pub(in crate::mysql) struct StatementFailure {
    pub error: StoreError,
    /// The connection is not to be used again.
    pub lost: bool,
    /// Somebody else was faster; the whole transaction may be tried again at once.
    pub conflict: bool,
    /// This server takes no writes any more: no connection to it is to be used again.
    pub not_writer: bool,
}

/// 1213 deadlock, 1020 changed since read, 3101 refused by the other members of a group; 1412 and 1615 a table got a column since.
const ROLLED_BACK: [u16; 5] = [1213, 1020, 3101, 1412, 1615];
/// The server is no writer now. 1290 and 1836: read-only; 1792: a read-only session; 1047: it left its Galera cluster. 3032: offline; 3100: its
/// group cannot take the transaction.
const NOT_WRITER: [u16; 6] = [1290, 1836, 1792, 1047, 3032, 3100];
/// Those of them that refuse a statement before it does anything, so one that commits by itself has not done so.
const REFUSED_BEFORE: [u16; 3] = [1290, 1836, 1792];
/// Taken by somebody else since it was looked for; if it is so again each time, it is refused for good.
const DUPLICATE: u16 = 1062;
/// A privilege is missing, which the server names.
const NO_PRIVILEGE: u16 = 1227;
/// The server refuses the user or the database, as any other server would do.
pub(in crate::mysql) const REFUSES_USER: [u16; 6] = [1044, 1045, 1049, 1142, NO_PRIVILEGE, 3159];
/// Busy, full, going down, cut short.
const PASSING: [u16; 21] = [
    1021, 1037, 1038, 1040, 1041, 1053, 1114, 1135, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1206, 1226, 1317, 1927,
    1969, 3024,
];
/// The server ends the connection along with these: shutdown, packet too large, net errors, killed, idle for too long.
const ENDING: [u16; 9] = [1053, 1152, 1153, 1158, 1159, 1160, 1161, 1927, 4031];

impl StatementFailure {
    /// A failure after which the connection is gone.
    const fn with_lost_connection(error: StoreError) -> Self {
        Self { error, lost: true, conflict: false, not_writer: false }
    }

    /// The transaction was rolled back, as somebody else was faster.
    const fn rolled_back(text: String) -> Self {
        Self { error: StoreError::Retryable(text), lost: false, conflict: true, not_writer: false }
    }
}

/// An error of a statement before the COMMIT was sent.
pub(in crate::mysql) fn statement(error: &Error) -> StatementFailure {
    let text = error.to_string();
    match error {
        Error::Server(server) => {
            let code = server.code;
            let conflict = code == DUPLICATE || ROLLED_BACK.contains(&code);
            let not_writer = NOT_WRITER.contains(&code);
            let passing = ROLLED_BACK.contains(&code) || PASSING.contains(&code) || not_writer || code == 4031;
            let error = if passing { StoreError::Retryable(text) } else { StoreError::Permanent(text) };
            StatementFailure { error, lost: not_writer || ENDING.contains(&code), conflict, not_writer }
        }
        Error::Driver(DriverError::PacketTooLarge | DriverError::StmtParamsNumberExceedsLimit { .. }) => {
            StatementFailure::with_lost_connection(StoreError::Permanent(text))
        }
        Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => {
            StatementFailure::with_lost_connection(StoreError::Retryable(text))
        }
    }
}

/// An error of the COMMIT. The outcome is known only if the server says that it rolled back.
pub(in crate::mysql) fn commit(error: &Error) -> StatementFailure {
    let text = error.to_string();
    match error {
        Error::Server(server) if [1213, 1020, 3101].contains(&server.code) || is_group_deadlock(server) => {
            StatementFailure::rolled_back(text)
        }
        Error::Server(server) if server.code == 1205 => {
            StatementFailure { conflict: false, ..StatementFailure::rolled_back(text) }
        }
        Error::Server(server) => {
            let not_writer = NOT_WRITER.contains(&server.code);
            StatementFailure { not_writer, ..StatementFailure::with_lost_connection(StoreError::Unknown(text)) }
        }
        _ => StatementFailure::with_lost_connection(StoreError::Unknown(text)),
    }
}

/// An error of a statement that commits by itself.
pub(in crate::mysql) fn single_statement(error: &Error) -> StatementFailure {
    match error {
        Error::Server(server) if REFUSED_BEFORE.contains(&server.code) => statement(error),
        _ => commit(error),
    }
}

/// Whether a statement that makes the schema failed only because another node makes it too, and was rolled back. 1213, 1205, 1020, 3101 and 1180 say
/// so; 1062 means that its row is there; 1412 and 1615, that a table got a column meanwhile.
pub(in crate::mysql) fn lost_against_another(error: &Error) -> bool {
    match error {
        Error::Server(server) => {
            let code = server.code;
            code == DUPLICATE || code == 1205 || ROLLED_BACK.contains(&code) || is_group_deadlock(server)
        }
        _ => false,
    }
}

/// Whether a server has no named locks for us: 1235 as a member of Galera by its version, 1105 in the strict mode of Percona's.
pub(in crate::mysql) fn gives_no_named_lock(error: &Error) -> bool {
    matches!(error, Error::Server(server) if server.code == 1235 || server.code == 1105)
}

/// The refusal of a setting of the session, with the setting and the remedy. Other errors stay.
pub(in crate::mysql) fn refused_setting(setting: &str, error: Error) -> Error {
    match error {
        Error::Server(ServerError { code: NO_PRIVILEGE, message, state }) => {
            let message = format!(
                "its user may not say {setting} ({message}): GRANT SESSION_VARIABLES_ADMIN ON *.* TO that user, or another of \
                 those privileges"
            );
            Error::Server(ServerError { code: NO_PRIVILEGE, message, state })
        }
        other => other,
    }
}

/// A member of a group rolls back a transaction that lost against another member's at the COMMIT: 1180 with InnoDB's number of a deadlock.
fn is_group_deadlock(server: &ServerError) -> bool {
    server.code == 1180 && server.message.contains("149")
}

/// No answer in time. Before the COMMIT nothing is applied; the connection may still wait for a lock and must go.
pub(in crate::mysql) fn silence(committing: bool) -> StatementFailure {
    let text = "the database did not answer in time".to_owned();
    let error = if committing { StoreError::Unknown(text) } else { StoreError::Retryable(text) };
    StatementFailure::with_lost_connection(error)
}

/// A stored value cannot be read by this binary.
pub(in crate::mysql) fn unreadable(problem: impl std::fmt::Display) -> StoreError {
    StoreError::Permanent(format!(
        "a stored row cannot be read: {problem}; it may have been written by a newer Carillon"
    ))
}

/// The part of a login that a server denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The user or the password.
    Login,
    /// The database, or rights in it.
    Rights,
    /// The database: there is none of this name.
    NoDatabase,
    /// A connection without TLS.
    Plaintext,
}

impl Denial {
    /// The denial that an error tells of.
    pub(in crate::mysql) fn of(error: &Error) -> Option<Self> {
        let Error::Server(server) = error else { return None };
        match server.code {
            1045 => Some(Self::Login),
            1044 | 1142 | NO_PRIVILEGE => Some(Self::Rights),
            1049 => Some(Self::NoDatabase),
            3159 => Some(Self::Plaintext),
            _ => None,
        }
    }
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
        saying(code, "m")
    }

    fn saying(code: u16, message: &str) -> Error {
        Error::Server(ServerError { code, message: message.into(), state: "HY000".into() })
    }

    #[test]
    fn a_server_that_takes_no_writes_any_more_loses_its_connections() {
        for code in NOT_WRITER {
            let failure = statement(&server(code));
            assert!(failure.lost && failure.not_writer && matches!(failure.error, StoreError::Retryable(_)), "{code}");
            let failure = commit(&server(code));
            assert!(failure.lost && failure.not_writer && matches!(failure.error, StoreError::Unknown(_)), "{code}");
            let refused_before = matches!(single_statement(&server(code)).error, StoreError::Retryable(_));
            assert_eq!(refused_before, REFUSED_BEFORE.contains(&code), "{code}");
        }
        assert!(!statement(&server(1205)).not_writer);
    }

    #[test]
    fn a_group_that_refuses_a_transaction_has_rolled_it_back() {
        let deadlock = saying(1180, "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT");
        for error in [server(3101), deadlock] {
            let failure = commit(&error);
            assert!(failure.conflict && !failure.lost && matches!(failure.error, StoreError::Retryable(_)), "{error}");
        }
        let full = saying(1180, "Got error 28 - 'No space left on device' during COMMIT");
        assert!(matches!(commit(&full).error, StoreError::Unknown(_)));
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
    fn a_schema_is_made_again_only_after_another_node_was_faster() {
        for code in [1213, 1205, 1020, 1062, 3101, 1412, 1615] {
            assert!(lost_against_another(&server(code)), "{code}");
        }
        assert!(lost_against_another(&saying(
            1180,
            "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"
        )));
        for code in [1142, 1044, 1050, 1114, 1290, 1047, 1180] {
            assert!(!lost_against_another(&server(code)), "{code}");
        }
        assert!(!lost_against_another(&Error::from(std::io::Error::other("reset"))));
        assert!(gives_no_named_lock(&server(1235)) && !gives_no_named_lock(&server(1205)));
    }

    #[test]
    fn a_setting_that_is_refused_is_told_with_the_privilege_that_it_needs() {
        let setting = "SET SESSION group_replication_consistency = 'BEFORE'";
        let denied = "Access denied; you need (at least one of) the SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN \
                      privilege(s) for this operation";
        let said = refused_setting(setting, saying(NO_PRIVILEGE, denied)).to_string();
        for part in [setting, "SYSTEM_VARIABLES_ADMIN", "GRANT SESSION_VARIABLES_ADMIN ON *.* TO that user"] {
            assert!(said.contains(part), "{said}");
        }
        let other = refused_setting(setting, saying(1193, "Unknown variable")).to_string();
        assert!(other.contains("Unknown variable") && !other.contains("GRANT"), "{other}");
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
