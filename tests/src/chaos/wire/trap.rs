//! The fate of one statement on a wire, and how it is chosen.

use std::sync::mpsc::Sender;
use std::time::Duration;

use super::packet::Answer;

/// A kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The end of a transaction: a COMMIT, or a statement that commits by itself, as an optimistic start does.
    Commit,
    /// Its beginning.
    Begin,
    /// A write within one.
    Write,
    /// Any statement that is not of the three others.
    Read,
}

impl Aim {
    /// All kinds.
    pub const ALL: [Aim; 4] = [Aim::Commit, Aim::Begin, Aim::Write, Aim::Read];

    /// The kind of a statement.
    pub fn of(sql: &str) -> Self {
        if sql.starts_with("UPDATE job_state ") {
            return Aim::Commit;
        }
        let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
        match word.to_ascii_uppercase().as_str() {
            "COMMIT" => Aim::Commit,
            "START" | "BEGIN" => Aim::Begin,
            "UPDATE" | "INSERT" | "DELETE" | "REPLACE" => Aim::Write,
            _ => Aim::Read,
        }
    }
}

/// The fate of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snare {
    /// The connection is cut; the server never sees it.
    CutBefore,
    /// The server answers it; the answer is lost with the connection.
    CutAfter,
    /// Half of its packet goes on, then the connection is cut.
    HalfPacket,
    /// It goes on after this time.
    Held(Duration),
    /// Its node is hung up on at once; it goes on after this time, unless the node has the server end the connection first.
    HeldClientGone(Duration),
    /// The same, and until then the wire is closed: the node cannot do anything about it.
    HeldBeyondReach(Duration),
}

/// The statement that went into a trap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caught {
    /// The beginning of the statement.
    pub sql: String,
    /// The server's answer to it; `None` where it cannot have seen it.
    pub answer: Option<Answer>,
    /// Whether its node had gone when it went on.
    pub client_gone: bool,
}

/// A trap that is set for the next statement of a kind.
pub(super) struct Trap {
    pub snare: Snare,
    pub aim: Aim,
    pub tell: Sender<Caught>,
}

impl Trap {
    /// Tells who set it what it caught; nobody may be waiting any more.
    pub fn caught(&self, sql: &str, answer: Option<Answer>, client_gone: bool) {
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        let _unheard = self.tell.send(Caught { sql, answer, client_gone });
    }
}
