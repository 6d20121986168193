//! A wire between a store and its server that can be cut, or hold something back, at a place that the test names.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A query packet that says COMMIT, and not the settings that speak of READ COMMITTED.
pub const COMMIT: &str = "\u{3}COMMIT";
/// A query packet that starts known rows and commits by itself.
pub const LONE_START: &str = "\u{3}UPDATE job_state";

/// The fate of the next packet that contains the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// The connection is cut; the server never sees the packet.
    CutBefore,
    /// The server does what the packet says; its answer is lost with the connection.
    CutAfter,
    /// The packet waits until [`Proxy::release`].
    Hold,
}

/// A trap that is set.
struct Set {
    trap: Trap,
    /// Words that must have passed on the same connection since it was set.
    after: Option<String>,
    words: String,
    number: u64,
}

#[derive(Default)]
struct State {
    set: Option<Set>,
    numbered: u64,
    held: bool,
    sprung: usize,
}

/// The wire.
pub struct Proxy {
    port: u16,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Proxy {
    /// A wire to a port on 127.0.0.1.
    pub fn to(target: u16) -> Self {
        Self::in_turn(vec![target])
    }

    /// A wire that leads each connection to the next of these ports.
    pub fn in_turn(targets: Vec<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let state = shared.clone();
        std::thread::spawn(move || {
            for (client, target) in listener.incoming().map_while(Result::ok).zip(targets.iter().copied().cycle()) {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
                    carry(client, server, state.clone());
                }
            }
        });
        Self { port, shared }
    }

    /// Its own port.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the trap for the next packet with these words.
    pub fn set(&self, trap: Trap, words: &str) {
        self.put(trap, None, words);
    }

    /// Sets the trap for the next packet with these words that comes on a connection after one with those.
    pub fn set_after(&self, trap: Trap, after: &str, words: &str) {
        self.put(trap, Some(after.to_owned()), words);
    }

    fn put(&self, trap: Trap, after: Option<String>, words: &str) {
        let mut state = self.state();
        state.numbered += 1;
        state.set = Some(Set { trap, after, words: words.to_owned(), number: state.numbered });
    }

    /// How many packets went into a trap.
    pub fn sprung(&self) -> usize {
        self.state().sprung
    }

    /// Waits until a packet is in the trap.
    pub fn wait_until_sprung(&self) {
        let mut state = self.state();
        while state.sprung == 0 {
            state = self.shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets a packet go that is held.
    pub fn release(&self) {
        self.state().held = false;
        self.shared.1.notify_all();
    }
}

fn carry(client: TcpStream, server: TcpStream, shared: Arc<(Mutex<State>, Condvar)>) {
    let mute = Arc::new(AtomicBool::new(false));
    let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else { return };
    let muted = mute.clone();
    std::thread::spawn(move || answers(from_server, to_client, &muted));
    std::thread::spawn(move || questions(client, server, &mute, &shared));
}

fn answers(mut server: TcpStream, mut client: TcpStream, mute: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        if mute.load(Ordering::SeqCst) || client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn questions(mut client: TcpStream, mut server: TcpStream, mute: &AtomicBool, shared: &(Mutex<State>, Condvar)) {
    let mut buffer = vec![0; 1 << 16];
    let mut armed = 0;
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        match sprung(&buffer[..length], &mut armed, shared) {
            Some(Trap::CutBefore) => break,
            Some(Trap::CutAfter) => mute.store(true, Ordering::SeqCst),
            Some(Trap::Hold) => wait_for_release(shared),
            None => {}
        }
        if server.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Answers that the server still owes may come while a cut after a packet waits for them.
    if !mute.load(Ordering::SeqCst) {
        let _gone = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    }
}

/// `armed` is the number of the trap for which this connection has carried what must come before.
fn sprung(packet: &[u8], armed: &mut u64, (state, changed): &(Mutex<State>, Condvar)) -> Option<Trap> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let Set { trap, after, words, number } = state.set.as_ref()?;
    let has = |words: &str| packet.windows(words.len()).any(|window| window == words.as_bytes());
    match after {
        Some(after) if *armed != *number => {
            if has(after) {
                *armed = *number;
            }
            return None;
        }
        _ if !has(words) => return None,
        _ => {}
    }
    let trap = *trap;
    state.set = None;
    state.held = trap == Trap::Hold;
    state.sprung += 1;
    changed.notify_all();
    Some(trap)
}

fn wait_for_release((state, changed): &(Mutex<State>, Condvar)) {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while state.held {
        state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}
