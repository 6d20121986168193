//! The wires between one node and its servers: they understand what passes, and can cut it, hold it back or swallow it.
//!
//! One thread carries all connections of a wire.

mod balancer;
mod connection;
mod packet;
mod trap;

pub use balancer::{Choice, Standing};
pub use packet::Answer;
pub use trap::{Aim, Caught, Snare};

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::sync::watch;

use balancer::Balancer;
use trap::Trap;

/// In which directions packets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// From the node to the server; new connections too.
    pub to_server: bool,
    /// From the server to the node.
    pub to_node: bool,
}

impl Flow {
    /// Both ways.
    pub const OPEN: Flow = Flow { to_server: true, to_node: true };
    /// Neither way.
    pub const CLOSED: Flow = Flow { to_server: false, to_node: false };
}

/// The state that the connections of a wire share with its holder.
struct Control {
    trap: Mutex<Option<Trap>>,
    flow: watch::Sender<Flow>,
    /// Packets and new connections that found their way closed.
    stopped: AtomicUsize,
}

impl Control {
    fn trap(&self) -> std::sync::MutexGuard<'_, Option<Trap>> {
        self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the trap if it is meant for this statement.
    fn spring(&self, sql: &str) -> Option<Trap> {
        self.trap().take_if(|trap| trap.aim == Aim::of(sql))
    }

    /// Waits until packets of a direction pass.
    async fn pass(&self, direction: fn(&Flow) -> bool) {
        let mut flow = self.flow.subscribe();
        if !direction(&flow.borrow()) {
            self.stopped.fetch_add(1, Ordering::SeqCst);
        }
        let _ever = flow.wait_for(direction).await;
    }
}

/// All wires of a node: one to each server, of which it uses one at a time, or one with a balancer behind it.
pub struct Wires(Vec<Wire>);

impl Wires {
    /// Wires to these servers, each a host and a port.
    pub fn to<'a>(servers: impl IntoIterator<Item = (&'a str, u16)>) -> Self {
        let straight = |(host, port): (&str, u16)| Wire::by(Way::Straight((host.to_owned(), port)));
        Self(servers.into_iter().map(straight).collect())
    }

    /// One wire to a balancer before these servers.
    pub fn balanced<'a>(
        servers: impl IntoIterator<Item = (&'a str, u16)>,
        choice: &Choice,
        standing: Standing,
    ) -> Self {
        let servers = servers.into_iter().map(|(host, port)| (host.to_owned(), port)).collect();
        Self(vec![Wire::by(Way::Balanced(Balancer::new(servers, choice, standing)))])
    }

    fn balancer(&self) -> Option<&Balancer> {
        self.0.iter().find_map(|wire| match &*wire.way {
            Way::Balanced(balancer) => Some(balancer),
            Way::Straight(_) => None,
        })
    }

    /// Whether there is a balancer.
    pub fn has_balancer(&self) -> bool {
        self.balancer().is_some()
    }

    /// The balancer hangs up on all and leads to each server in turn for a while; then to one again. How many connections it has led to each.
    /// `None` where there is no balancer.
    pub fn turn<T>(&self, while_it_turns: impl FnOnce() -> T) -> Option<(T, Vec<usize>)> {
        let balancer = self.balancer()?;
        let before = balancer.led();
        balancer.turn();
        let done = while_it_turns();
        let led = balancer.led().iter().zip(before).map(|(now, before)| now - before).collect();
        balancer.turn_no_more();
        Some((done, led))
    }

    /// Their ports, in the order of the servers.
    pub fn ports(&self) -> Vec<u16> {
        self.0.iter().map(|wire| wire.port).collect()
    }

    /// Sets the trap for the next statement of a kind; what it caught comes out of the channel.
    pub fn set(&self, snare: Snare, aim: Aim) -> Receiver<Caught> {
        let (tell, caught) = channel();
        for wire in &self.0 {
            *wire.control.trap() = Some(Trap { snare, aim, tell: tell.clone() });
        }
        caught
    }

    /// Takes the trap away if nothing went into it.
    pub fn disarm(&self) {
        for wire in &self.0 {
            wire.control.trap().take();
        }
    }

    /// Opens and closes the two ways. Packets that come in between wait, and pass when their way is open again.
    pub fn let_pass(&self, flow: Flow) {
        for wire in &self.0 {
            wire.control.flow.send_replace(flow);
        }
    }

    /// How many packets and new connections have found their way closed so far.
    pub fn stopped(&self) -> usize {
        self.0.iter().map(|wire| wire.control.stopped.load(Ordering::SeqCst)).sum()
    }
}

/// Where the connections of a wire go.
enum Way {
    /// To one server.
    Straight((String, u16)),
    /// To one of several.
    Balanced(Balancer),
}

/// A wire. Cut for good when dropped.
struct Wire {
    port: u16,
    control: Arc<Control>,
    way: Arc<Way>,
    over: Option<tokio::sync::oneshot::Sender<()>>,
    carrier: Option<JoinHandle<()>>,
}

impl Wire {
    fn by(way: Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let control = Arc::new(Control {
            trap: Mutex::default(),
            flow: watch::Sender::new(Flow::OPEN),
            stopped: AtomicUsize::new(0),
        });
        let (over, is_over) = tokio::sync::oneshot::channel();
        let way = Arc::new(way);
        let (of_carrier, its_way) = (Arc::clone(&control), Arc::clone(&way));
        let carrier = std::thread::spawn(move || carry(listener, its_way, of_carrier, is_over));
        Self { port: own, control, way, over: Some(over), carrier: Some(carrier) }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.over.take());
        let _ended = self.carrier.take().map(JoinHandle::join);
    }
}

fn carry(listener: TcpListener, way: Arc<Way>, control: Arc<Control>, over: tokio::sync::oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    listener.set_nonblocking(true).expect("a listener can be made not to block");
    let accepting = async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        loop {
            if let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, Arc::clone(&way), Arc::clone(&control)));
            }
        }
    };
    runtime.block_on(async {
        tokio::select! {
            () = accepting => {}
            _ = over => {}
        }
    });
}

async fn connect(client: TcpStream, way: Arc<Way>, control: Arc<Control>) {
    control.pass(|flow| flow.to_server).await;
    match &*way {
        Way::Straight(target) => join(client, target, control).await,
        Way::Balanced(balancer) => {
            // Where no member is fit it hangs up, as balancers do.
            let Some((number, target)) = balancer.next() else { return };
            tokio::select! {
                () = join(client, target, control) => {}
                () = balancer.ends(number) => {}
            }
        }
    }
}

async fn join(client: TcpStream, target: &(String, u16), control: Arc<Control>) {
    if let Ok(server) = TcpStream::connect(target).await {
        let _slow = (client.set_nodelay(true), server.set_nodelay(true));
        connection::carry(client, server, control).await;
    }
}
