//! The field that the faults act on.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::class::{Class, Reach};
use super::dice::Dice;
use super::timing::Timing;
use super::wire::Wire;
use crate::cluster::{Cluster, Member};
use crate::databases::{Brand, Clock, Database, Server, Surroundings};

/// The parts of a field.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Of the database server.
    pub brand: Brand,
    /// Further options of the database server.
    pub options: Vec<String>,
    /// How many nodes there are: `node-1`, `node-2`, ...
    pub nodes: usize,
    /// The settings in `carillon.toml` of each, without the store.
    pub config: String,
    /// The disk of the database is small, so that it can be filled ([`Class::DiskFull`]).
    pub small_disk: bool,
    /// Clocks can be moved ([`Class::DatabaseClock`], [`Class::NodeClock`]). Each look at one costs microseconds more.
    pub clocks: bool,
}

/// A node behind its own wire.
pub struct Target {
    /// The node under its service manager.
    pub member: Member,
    /// Its only way to the database.
    pub wire: Wire,
    /// Its wall clock; why it cannot be moved.
    pub clock: Result<Clock, String>,
    busy: Mutex<()>,
}

impl Target {
    /// Its name.
    pub fn name(&self) -> &str {
        self.member.name()
    }
}

/// The nodes, the database server, its disk, the clocks.
pub struct Field {
    /// The nodes.
    pub nodes: Vec<Target>,
    /// The database of the nodes, reached past their wires.
    pub database: Database,
    /// The database server.
    pub server: Arc<Server>,
    /// Where the nodes keep their files.
    pub cluster: Cluster,
    /// How long the nodes may be without the database, or without CPU.
    pub timing: Timing,
    /// The table that probes write to.
    pub(super) probe: Database,
    of_database: Mutex<()>,
    alone: RwLock<()>,
}

/// The part that a fault has occupied.
pub(super) enum Hold<'a> {
    Node(&'a Target, #[allow(dead_code)] (RwLockReadGuard<'a, ()>, MutexGuard<'a, ()>)),
    Database(#[allow(dead_code)] (RwLockReadGuard<'a, ()>, MutexGuard<'a, ()>)),
    Alone(#[allow(dead_code)] RwLockWriteGuard<'a, ()>),
}

impl Field {
    /// Starts everything and waits until all nodes can schedule.
    pub fn start(plan: &Plan) -> Self {
        let surroundings = Surroundings {
            disk_mib: plan.small_disk.then_some(DISK_MIB),
            clock: plan.clocks,
            ..Surroundings::default()
        };
        let options: Vec<&str> = plan.options.iter().map(String::as_str).collect();
        let server = Arc::new(Server::start_in(plan.brand, surroundings, &options));
        let (database, probe) = blocking(async { (server.database().await, server.database().await) });
        let cluster = Cluster::new(&database.url(), &plan.config);
        let nodes = (1..=plan.nodes).map(|n| target(plan, &cluster, &database, server.port(), n)).collect();
        let timing = Timing::of(&plan.config);
        Self {
            nodes,
            database,
            server,
            cluster,
            timing,
            probe,
            of_database: Mutex::default(),
            alone: RwLock::default(),
        }
    }

    /// Waits until a fault of this class may begin, and picks the node.
    pub(super) fn hold(&self, class: Class, dice: &mut Dice) -> Hold<'_> {
        if class.reach() == Reach::Alone {
            return Hold::Alone(self.alone.write().unwrap_or_else(PoisonError::into_inner));
        }
        let with_others = self.alone.read().unwrap_or_else(PoisonError::into_inner);
        if class.reach() == Reach::Database {
            return Hold::Database((with_others, self.of_database.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        let first = usize::try_from(dice.roll() % self.nodes.len() as u64).expect("an index");
        let order = (0..self.nodes.len()).map(|n| &self.nodes[(first + n) % self.nodes.len()]);
        let free = order.clone().find_map(|target| Some((target, target.busy.try_lock().ok()?)));
        let (target, busy) = free.unwrap_or_else(|| {
            let target = &self.nodes[first];
            (target, target.busy.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Hold::Node(target, (with_others, busy))
    }
}

/// Enough for an empty server, its logs, and what a day of chaos writes.
const DISK_MIB: u32 = 640;

fn target(plan: &Plan, cluster: &Cluster, database: &Database, port: u16, number: usize) -> Target {
    let (wire, name) = (Wire::to(port), format!("node-{number}"));
    let dir = cluster.dir().join(format!("{name}.clock"));
    let clock = if plan.clocks {
        std::fs::create_dir_all(&dir).expect("a directory for a clock");
        Clock::new(&dir, Path::new("/"))
    } else {
        Err("it was not asked for".to_owned())
    };
    let environment = clock.as_ref().map(|clock| clock.environment(Path::to_owned)).unwrap_or_default();
    let member = cluster.member_at(&name, &database.url_through(wire.port()), environment);
    Target { member, wire, clock, busy: Mutex::default() }
}

/// Runs one future to its end, wherever that is called from.
pub(super) fn blocking<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(future)
        };
        scope.spawn(run).join().expect("a future comes to its end")
    })
}
