//! The handle of a keeper: it starts the process, sends commands and receives reports.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::run::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Live, Stop};
use crate::node_side::awaited_runs::{Registry, Slot};
use crate::process::startup::{arguments, before_exec};
use crate::protocol::fields::BadFrame;
use crate::protocol::fields::next_frame;
use crate::protocol::frames::{Command, MAX_FRAME_BYTES, Report};
use crate::spawn_request::Spawn;

/// Taken from the socket at a time.
const READ_BYTES: usize = 64 << 10;

/// How to start a keeper.
#[derive(Debug)]
pub struct KeeperOptions {
    /// The program whose `arguments` lead to [`crate::main`]; usually /proc/self/exe.
    pub program: PathBuf,
    /// The arguments before the keeper's own; usually `keeper`.
    pub arguments: Vec<OsString>,
    /// A file lock that is to be held until the last child is reaped (the SQLite lease). The keeper gets a duplicate;
    /// keep another one to hold it in the node as well.
    pub lock: Option<OwnedFd>,
    /// Whether each run gets a cgroup where that is possible. Off, leftovers are looked for in /proc only.
    pub cgroups: bool,
    /// For a node that has runs in itself: how long after the deadline the keeper kills the node if that has not ended.
    /// `None` leaves the node alone.
    pub kill_node_after: Option<Duration>,
}

/// A running keeper. Clones are the same keeper. When the last of them and the last [`RunningChild`] are dropped, the socket closes
/// and the keeper kills all remaining processes.
#[derive(Clone)]
pub struct KeeperHandle {
    registry: Arc<Registry>,
    /// Unbounded, but holds no more than a spawn and two stops for each run that the engine has in flight.
    orders: mpsc::UnboundedSender<Order>,
    /// Apart from the orders, so that a lease never waits in a queue. Written by `extend_deadline` only.
    deadline_ms: Arc<watch::Sender<u64>>,
    pid: u32,
}

enum Order {
    Frame(Vec<u8>),
    Close,
}

impl KeeperHandle {
    /// Starts the keeper process with an empty environment and a deadline in the past: nothing can be spawned before the
    /// first [`KeeperHandle::extend_deadline`]. Call it within a tokio runtime, before the node raises limits of its own:
    /// the keeper's limits at this moment are the children's.
    pub fn start(options: KeeperOptions) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let lock = options.lock.as_ref();
        let inherited: Vec<_> =
            [Some(theirs.as_raw_fd()), lock.map(OwnedFd::as_raw_fd)].into_iter().flatten().collect();
        let mut command = tokio::process::Command::new(&options.program);
        command.args(&options.arguments).args(arguments(&theirs, lock, options.cgroups, options.kill_node_after));
        command.env_clear().stdin(Stdio::null());
        // SAFETY: `before_exec` makes only system calls on numbers; reading a vector allocates nothing.
        unsafe { command.pre_exec(move || before_exec(&inherited)) };
        let child = command.spawn()?;
        let registry = Arc::new(Registry::new());
        let (orders, queue) = mpsc::unbounded_channel();
        let deadline_ms = Arc::new(watch::Sender::new(0));
        let pid = child.id().unwrap_or_default();
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        tokio::spawn(write_orders(writer, queue, deadline_ms.subscribe()));
        tokio::spawn(watch_keeper(reader, child, registry.clone()));
        Ok(Self { registry, orders, deadline_ms, pid })
    }

    /// The keeper's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Starts a run. Its output goes to `live` as it comes. Never fails: what could not be
    /// started is an [`Exit`] that says why. Does not block, but is not ordered with an `extend_deadline` that is called
    /// later; one called earlier holds for it.
    pub fn spawn(&self, spawn: Spawn, live: Live) -> RunningChild {
        let (run, (sender, exit)) = (spawn.run, oneshot::channel());
        let mut frame = Vec::with_capacity(512);
        Command::Spawn(Box::new(spawn)).encode(&mut frame);
        let refused = if frame.len() > MAX_FRAME_BYTES {
            let sentence =
                format!("the command, its environment and its stdin together exceed {MAX_FRAME_BYTES} bytes");
            Some(Exit::without_process(Outcome::Failed, sentence))
        } else {
            self.registry.enter(run, Slot { live, exit: sender, group: None }).err()
        };
        if refused.is_none() {
            // If the writer is gone the keeper is, and its end reaches the run through the registry.
            let _ = self.orders.send(Order::Frame(frame));
        }
        RunningChild { run, exit, refused, over: false, keeper: self.clone() }
    }

    /// Asks a run to end. Unknown runs are ignored: their exit is already on the way.
    pub fn stop(&self, run: RunId, how: Stop) {
        let mut frame = Vec::new();
        Command::Stop(run, how).encode(&mut frame);
        let _ = self.orders.send(Order::Frame(frame));
    }

    /// The lease holds until `boottime_ms` on CLOCK_BOOTTIME ([`crate::boottime_ms`]); `u64::MAX` is for ever. Overtakes
    /// whatever waits to be sent. Never shortens a lease.
    pub fn extend_deadline(&self, boottime_ms: u64) {
        self.deadline_ms.send_if_modified(|deadline_ms| {
            let later = boottime_ms > *deadline_ms;
            *deadline_ms = boottime_ms.max(*deadline_ms);
            later
        });
    }

    /// Until when the lease holds, as far as it was extended: on CLOCK_BOOTTIME, in milliseconds.
    pub fn deadline_ms(&self) -> u64 {
        *self.deadline_ms.borrow()
    }

    /// `Some(sentence)` once the keeper is gone and every run was given up as lost. The node must then end (exit 70),
    /// unless it called [`KeeperHandle::close`] itself.
    pub fn died(&self) -> watch::Receiver<Option<String>> {
        self.registry.died()
    }

    /// Lets the keeper go: it kills what is left, reaps it, and exits; then this returns.
    pub async fn close(&self) {
        let _ = self.orders.send(Order::Close);
        // An error means that the registry is gone, which cannot be while we hold it.
        let _ = self.died().wait_for(Option::is_some).await;
    }
}

/// A run in the keeper. Dropping it before its exit kills the run.
pub struct RunningChild {
    run: RunId,
    exit: oneshot::Receiver<Exit>,
    refused: Option<Exit>,
    over: bool,
    keeper: KeeperHandle,
}

impl RunningChild {
    /// Waits for the end of the run: its main process and everything it left behind. Cancel safe. It answers once; later
    /// calls find no exit any more and say so.
    pub async fn exit(&mut self) -> Exit {
        let exit = match self.refused.take() {
            Some(exit) => exit,
            None if self.over => Exit::without_process(Outcome::Lost, "the exit of this run was taken before"),
            None => {
                (&mut self.exit).await.unwrap_or_else(|_| Exit::without_process(Outcome::Lost, "the keeper is gone"))
            }
        };
        self.over = true;
        exit
    }

    /// Asks the run to end.
    pub fn stop(&self, how: Stop) {
        self.keeper.stop(self.run, how);
    }

    /// Waits for the end of the run as [`RunningChild::exit`] does, asking it to end politely when `stop` is cancelled.
    pub async fn follow(mut self, stop: &CancellationToken) -> Exit {
        tokio::select! {
            exit = self.exit() => return exit,
            () = stop.cancelled() => self.stop(Stop::Politely),
        }
        self.exit().await
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        if !self.over && self.refused.is_none() {
            self.keeper.stop(self.run, Stop::Now);
        }
    }
}

/// Sends deadlines first, then orders, as many in one write as there are. Ends, closing our half, when told to, when all
/// handles are gone or when the keeper is.
async fn write_orders(
    mut writer: OwnedWriteHalf,
    mut queue: mpsc::UnboundedReceiver<Order>,
    mut deadline_ms: watch::Receiver<u64>,
) {
    let (mut orders, mut bytes) = (Vec::new(), Vec::new());
    let mut open = true;
    while open {
        orders.clear();
        bytes.clear();
        tokio::select! {
            biased;
            changed = deadline_ms.changed() => open = changed.is_ok(),
            count = queue.recv_many(&mut orders, 64) => open = count > 0,
        }
        if deadline_ms.has_changed().unwrap_or(false) || orders.is_empty() {
            Command::ExtendDeadline(*deadline_ms.borrow_and_update()).encode(&mut bytes);
        }
        for order in orders.drain(..) {
            match order {
                Order::Frame(frame) => bytes.extend_from_slice(&frame),
                Order::Close => open = false,
            }
        }
        open &= writer.write_all(&bytes).await.is_ok();
    }
}

/// Takes in reports until the keeper is gone, then gives its runs up and reaps it.
async fn watch_keeper(reader: OwnedReadHalf, mut child: Child, registry: Arc<Registry>) {
    let pid = child.id().unwrap_or_default();
    let mut reports = Reports { reader, bytes: Vec::with_capacity(READ_BYTES) };
    let broken = tokio::select! {
        broken = reports.until_closed(&registry) => broken,
        // The socket outlives the keeper where a child that hangs before its exec holds a copy.
        _ = child.wait() => reports.what_is_there(&registry),
    };
    if let Some(error) = broken {
        tracing::error!("keeper {pid}: {error}");
    }
    registry.on_death(&format!("the keeper (process {pid}) died"));
    drop(reports);
    let sentence = match child.wait().await {
        Ok(status) => format!("the keeper (process {pid}) ended: {status}"),
        Err(error) => format!("the keeper (process {pid}) ended, how is not known: {error}"),
    };
    registry.announce_death(sentence);
}

/// The stream of reports, and what of it is not a whole frame yet.
struct Reports {
    reader: OwnedReadHalf,
    bytes: Vec<u8>,
}

impl Reports {
    /// Returns when the socket is closed; with what was wrong, if it was not closed in good order. Cancel safe.
    async fn until_closed(&mut self, registry: &Registry) -> Option<String> {
        loop {
            match self.reader.read_buf(&mut self.bytes).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(error.to_string()),
            }
            if let Err(error) = self.pass_on(registry) {
                return Some(error.to_string());
            }
        }
    }

    /// Takes in what a dead keeper had sent; with what was wrong.
    fn what_is_there(&mut self, registry: &Registry) -> Option<String> {
        while self.reader.try_read_buf(&mut self.bytes).is_ok_and(|length| length > 0) {
            if let Err(error) = self.pass_on(registry) {
                return Some(error.to_string());
            }
        }
        None
    }

    fn pass_on(&mut self, registry: &Registry) -> Result<(), BadFrame> {
        let mut taken = 0;
        while let Some((body, used)) = next_frame(&self.bytes[taken..], MAX_FRAME_BYTES)? {
            registry.on_report(Report::decode(body)?);
            taken += used;
        }
        self.bytes.drain(..taken);
        self.bytes.reserve(READ_BYTES);
        Ok(())
    }
}
