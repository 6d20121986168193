//! A wire between stores and their server that remembers every statement that passes.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The commands that carry the text of a statement: one to run, and one to prepare.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;

/// The bytes before each packet: three bytes for its length, one for its place in the command.
const HEADER: usize = 4;

/// The wire.
pub struct Recorder {
    port: u16,
    statements: Arc<Mutex<BTreeSet<String>>>,
}

impl Recorder {
    /// A wire to a port on 127.0.0.1. Connections through it must be in plain words.
    ///
    /// # Panics
    /// Where no port is free.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let statements = Arc::<Mutex<BTreeSet<String>>>::default();
        let heard = statements.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
                    carry(client, server, heard.clone());
                }
            }
        });
        Self { port, statements }
    }

    /// Its own port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Every distinct statement so far: the text as the server got it, with a `?` for each parameter.
    pub fn statements(&self) -> BTreeSet<String> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn carry(client: TcpStream, server: TcpStream, heard: Arc<Mutex<BTreeSet<String>>>) {
    let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else { return };
    // Small packets go at once, as on a wire of their own.
    let _best_effort = (client.set_nodelay(true), server.set_nodelay(true));
    std::thread::spawn(move || copy(from_server, to_client, |_| {}));
    let mut commands = Commands::default();
    std::thread::spawn(move || {
        copy(client, server, |bytes| {
            for statement in commands.statements(bytes) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).insert(statement);
            }
        });
    });
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        // Before the server can answer: whoever has an answer finds its statement recorded.
        see(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// The packets of one connection, as far as they have come.
#[derive(Default)]
struct Commands {
    bytes: Vec<u8>,
}

impl Commands {
    /// The statements that these bytes make whole.
    fn statements(&mut self, bytes: &[u8]) -> Vec<String> {
        self.bytes.extend_from_slice(bytes);
        let (mut at, mut whole) = (0, Vec::new());
        while let [a, b, c, place, rest @ ..] = &self.bytes[at..] {
            let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let Some(packet) = rest.get(..length) else { break };
            // Only the first packet of a command names it.
            if let ([QUERY | PREPARE, text @ ..], 0) = (packet, place) {
                whole.push(String::from_utf8_lossy(text).into_owned());
            }
            at += HEADER + length;
        }
        self.bytes.drain(..at);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_however_the_packets_are_cut() {
        // The answer of a handshake, a query, a ping and a statement to prepare.
        let sent = b"\x02\0\0\x01\x03X\x09\0\0\0\x03SELECT 1\x01\0\0\0\x0e\x09\0\0\0\x16SELECT ?";
        for cut in 0..sent.len() {
            let mut commands = Commands::default();
            let mut found = commands.statements(&sent[..cut]);
            found.extend(commands.statements(&sent[cut..]));
            assert_eq!(found, ["SELECT 1", "SELECT ?"], "cut at {cut}");
        }
    }
}
