//! One connection of a node, packet by packet, both ways.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::{AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::packet::{self, Answer, Question};
use super::trap::{Snare, Trap};
use super::{Control, Flow};

/// A wide pipe: rows come in many small packets.
const BUFFER: usize = 1 << 16;

/// The state that the two directions share.
#[derive(Default)]
struct Talk {
    /// The texts of prepared statements.
    statements: BTreeMap<u32, String>,
    /// The text that is being prepared.
    preparing: Option<String>,
    /// The server's next answer is for a statement that went into a trap.
    awaited: Option<Awaited>,
}

struct Awaited {
    trap: Trap,
    sql: String,
    client_gone: bool,
}

/// Whether the connection goes on.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    HangUp,
}

type Shared = Arc<Mutex<Talk>>;

fn locked(talk: &Shared) -> MutexGuard<'_, Talk> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries a connection until one side, or a trap, ends it; then both sides are hung up on.
pub(super) async fn carry(client: TcpStream, server: TcpStream, control: Arc<Control>) {
    let talk = Shared::default();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut questions = Questions {
        client: BufReader::with_capacity(BUFFER, from_client),
        server: BufWriter::with_capacity(BUFFER, to_server),
        control: Arc::clone(&control),
        talk: Arc::clone(&talk),
    };
    tokio::select! {
        () = questions.carry() => {}
        () = answers(from_server, to_client, &control, &talk) => {}
    }
    // The server hung up on what went into a trap.
    let awaited = locked(&talk).awaited.take();
    if let Some(of) = awaited {
        of.trap.caught(&of.sql, Some(Answer::HungUp), of.client_gone);
    }
}

struct Questions {
    client: BufReader<OwnedReadHalf>,
    server: BufWriter<OwnedWriteHalf>,
    control: Arc<Control>,
    talk: Shared,
}

impl Questions {
    async fn carry(&mut self) {
        let mut packet = Vec::new();
        while packet::read(&mut self.client, &mut packet).await {
            self.control.pass(|flow| flow.to_server).await;
            let sprung = self.statement(&packet).and_then(|sql| Some((self.control.spring(&sql)?, sql)));
            if let Some((trap, sql)) = sprung
                && self.catch(trap, sql, &packet).await == Then::HangUp
            {
                return;
            }
            if self.send(&packet).await.is_err() {
                return;
            }
        }
        // Where the node hung up while the server still has to answer what went into a trap, that answer is waited for.
        if locked(&self.talk).awaited.is_some() {
            std::future::pending::<()>().await;
        }
    }

    /// The text of the statement that a packet runs, if it does.
    fn statement(&self, packet: &[u8]) -> Option<String> {
        let mut talk = locked(&self.talk);
        match Question::of(packet) {
            Question::Query(sql) => Some(sql),
            Question::Execute(number) => talk.statements.get(&number).cloned(),
            Question::Prepare(sql) => {
                talk.preparing = Some(sql);
                None
            }
            Question::Other => None,
        }
    }

    async fn send(&mut self, packet: &[u8]) -> std::io::Result<()> {
        self.server.write_all(packet).await?;
        if self.client.buffer().is_empty() { self.server.flush().await } else { Ok(()) }
    }

    /// Does to a statement what the trap is for.
    async fn catch(&mut self, trap: Trap, sql: String, packet: &[u8]) -> Then {
        match trap.snare {
            Snare::CutBefore => {
                trap.caught(&sql, None, false);
                return Then::HangUp;
            }
            Snare::HalfPacket => {
                let half = &packet[..packet.len().div_ceil(2)];
                if self.server.write_all(half).await.is_ok() && self.server.flush().await.is_ok() {
                    trap.caught(&sql, None, false);
                }
                return Then::HangUp;
            }
            Snare::CutAfter => self.await_answer(trap, sql, false),
            Snare::Held(time) => {
                self.await_answer(trap, sql, false);
                tokio::time::sleep(time).await;
            }
            Snare::HeldClientGone(time) | Snare::HeldBeyondReach(time) => {
                if matches!(trap.snare, Snare::HeldBeyondReach(_)) {
                    self.control.flow.send_replace(Flow::CLOSED);
                }
                self.await_answer(trap, sql, true);
                let _gone = shutdown(self.client.get_ref().as_ref().as_raw_fd(), Shutdown::Both);
                tokio::time::sleep(time).await;
            }
        }
        Then::GoOn
    }

    /// From now on what the server says is the answer to what went into a trap; a server that is told to end the connection
    /// says so before it was asked anything.
    fn await_answer(&self, trap: Trap, sql: String, client_gone: bool) {
        locked(&self.talk).awaited = Some(Awaited { trap, sql, client_gone });
    }
}

async fn answers(server: OwnedReadHalf, client: OwnedWriteHalf, control: &Control, talk: &Shared) {
    let mut server = BufReader::with_capacity(BUFFER, server);
    let mut client = BufWriter::with_capacity(BUFFER, client);
    let mut packet = Vec::new();
    while packet::read(&mut server, &mut packet).await {
        if hear(&packet, talk) == Then::HangUp {
            return;
        }
        control.pass(|flow| flow.to_node).await;
        let sent = client.write_all(&packet).await.is_ok();
        if !sent || (server.buffer().is_empty() && client.flush().await.is_err()) {
            return;
        }
    }
}

/// Notes the number of a prepared statement, and the answer to what went into a trap.
fn hear(packet: &[u8], talk: &Shared) -> Then {
    let mut talk = locked(talk);
    if let Some(sql) = talk.preparing.take()
        && let Some(number) = packet::prepared(packet)
    {
        talk.statements.insert(number, sql);
    }
    let Some(of) = talk.awaited.take() else { return Then::GoOn };
    of.trap.caught(&of.sql, Some(Answer::of(packet)), of.client_gone);
    // The node is not to have the answer, or is not there to have it.
    if of.client_gone || of.trap.snare == Snare::CutAfter { Then::HangUp } else { Then::GoOn }
}
