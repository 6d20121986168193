//! The field that the faults act on.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use serde_json::Value;

use super::class::{Class, Reach};
use super::dice::Dice;
use super::kind::Kind;
use super::outcome::last_for;
use super::timing::Timing;
use super::ways::Ways;
use super::wire::{Choice, Wires};
use crate::cluster::{Cluster, Member};
use crate::databases::{
    Clock, Database, Galera, Group, MEMBERS, Network, Replicated, Server, Servers, Surroundings, blocking,
};

/// The parts of a field.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Of the database.
    pub kind: Kind,
    /// `store.topology` of the nodes, where they name one.
    pub topology: Option<&'static str>,
    /// Of the nodes to the members of a cluster.
    pub ways: Ways,
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
    /// Its only ways to the database: one to each server, or one to a balancer.
    pub wires: Wires,
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

/// The nodes, the database servers, their disks, the clocks.
pub struct Field {
    /// The nodes.
    pub nodes: Vec<Target>,
    /// The member that balancers lead to.
    pub choice: Option<Choice>,
    /// The database of the nodes, reached past their wires.
    pub database: Database,
    /// Of the database.
    pub kind: Kind,
    /// The database servers.
    pub servers: Servers,
    /// Where the nodes keep their files.
    pub cluster: Cluster,
    /// How long the nodes may be without the database, or without CPU.
    pub timing: Timing,
    /// The database of the table that probes write to.
    pub probe: Database,
    complaints: Mutex<Vec<String>>,
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
        let servers = servers(plan);
        let (database, probe) = blocking(async { (servers.database().await, servers.database().await) });
        blocking(async {
            probe.run(&[PROBE]).await;
            if plan.kind == Kind::Group {
                database.root().await.query_drop(GRANT).await.expect("a right is granted");
            }
        });
        let store = plan.topology.map(|topology| format!("topology = \"{topology}\"\n")).unwrap_or_default();
        let cluster = Cluster::new(&database.url(), &plan.config).with_store(&store);
        let choice = plan.ways.have_balancers().then(|| Choice::among(&servers));
        let wires = |number| plan.ways.wires(number, &servers, choice.as_ref());
        let nodes = (1..=plan.nodes).map(|n| target(plan, &cluster, &database, wires(n), n)).collect();
        let timing = Timing::of(&plan.config, plan.kind);
        Self {
            nodes,
            choice,
            database,
            kind: plan.kind,
            servers,
            cluster,
            timing,
            probe,
            complaints: Mutex::default(),
            of_database: Mutex::default(),
            alone: RwLock::default(),
        }
    }

    /// The one server, or the first member.
    pub fn server(&self) -> &Server {
        &self.servers.members()[0]
    }

    /// The member that the nodes write through, or one of those; `None` where no node says so and none takes writes.
    pub fn writer(&self) -> Option<usize> {
        if !self.kind.has_several_servers() {
            return Some(0);
        }
        let members = self.servers.members();
        let used: Vec<u64> = match self.servers_of_nodes() {
            Some(servers) => {
                let of = |member: &Server| servers.iter().filter(|server| is_at(server, member)).count() as u64;
                members.iter().map(of).collect()
            }
            None => members.iter().map(connections_of_nodes).collect(),
        };
        let fit = |number: &usize| blocking(self.servers.takes_writes(*number));
        let most = (0..members.len()).max_by_key(|number| used[*number]).filter(|number| used[*number] > 0);
        most.filter(fit).or_else(|| (0..members.len()).find(fit))
    }

    /// A server that knows what nodes have written.
    pub(super) fn member_to_ask(&self) -> &Server {
        &self.servers.members()[self.writer().unwrap_or(0)]
    }

    /// The names of the servers that nodes write through, as each node that answers tells; `None` where none does.
    pub fn servers_of_nodes(&self) -> Option<Vec<String>> {
        let servers: Vec<String> = self.nodes.iter().filter_map(|node| self.server_of(node)).collect();
        (!servers.is_empty()).then_some(servers)
    }

    /// The name of the server that a node writes through, as it tells.
    pub(super) fn server_of(&self, node: &Target) -> Option<String> {
        let (status, said) = node.member.server()?.try_get("/v1/cluster", ASK)?;
        let cluster: Value = serde_json::from_str(&said).ok().filter(|_| status == 200)?;
        cluster["database"]["identity"].as_str().map(str::to_owned)
    }

    /// The member that a fault hits: more often the one that nodes write through. A replica serves nobody, so it is spared.
    pub(super) fn hit(&self, dice: &mut Dice) -> usize {
        if let Servers::Replicated(pair) = &self.servers {
            return pair.source_number();
        }
        let any = usize::try_from(dice.roll() % self.servers.members().len() as u64).expect("an index");
        let aims_at_writer = dice.between(0, 2) > 0;
        self.writer().filter(|_| aims_at_writer).unwrap_or(any)
    }

    /// The words for a member in what was seen.
    pub(super) fn role(&self, number: usize) -> String {
        match self.writer() {
            _ if !self.kind.has_several_servers() => "the server".to_owned(),
            Some(writer) if writer == number => format!("member {number}, which nodes write through,"),
            _ => format!("member {number}"),
        }
    }

    /// Waits until a member is with the others again that was not to be reached.
    pub(super) fn is_back(&self, number: usize) -> Result<(), String> {
        if self.kind.is_cluster() {
            // At first it does not know that the others went on without it.
            last_for(Duration::from_secs(1));
        }
        self.servers.is_back(number)
    }

    /// Notes what must not be, beside what the checker finds.
    pub(super) fn complain(&self, what: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// All that was noted.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether no fault is under way that is to be alone.
    pub fn is_shared(&self) -> bool {
        self.alone.try_read().is_ok()
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
        let suits = |target: &&Target| class != Class::BalancerRotates || target.wires.has_balancer();
        let suited: Vec<&Target> = self.nodes.iter().filter(suits).collect();
        let among = if suited.is_empty() { self.nodes.iter().collect() } else { suited };
        let first = usize::try_from(dice.roll() % among.len() as u64).expect("an index");
        let mut order = (0..among.len()).map(|n| among[(first + n) % among.len()]);
        let free = order.find_map(|target| Some((target, target.busy.try_lock().ok()?)));
        let (target, busy) = free.unwrap_or_else(|| {
            let target = among[first];
            (target, target.busy.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Hold::Node(target, (with_others, busy))
    }
}

/// Enough for an empty server, its logs, and what a day of chaos writes.
const DISK_MIB: u32 = 1_536;

/// How long one question to a node may take.
const ASK: Duration = Duration::from_secs(3);

/// The table of probes.
const PROBE: &str = "CREATE TABLE IF NOT EXISTS probe (id INT AUTO_INCREMENT PRIMARY KEY, text LONGTEXT)";

/// The right to see the state of a group.
const GRANT: &str = "GRANT SELECT ON performance_schema.replication_group_members TO carillon@'%'";

/// The others wait so many seconds for a member that does not answer; servers come with 5, which a short lease does not outlast.
const EXPEL_AFTER: u32 = 5;

fn servers(plan: &Plan) -> Servers {
    let (disk_mib, clock) = (plan.small_disk.then_some(DISK_MIB), plan.clocks);
    match plan.kind {
        Kind::One(brand) => {
            let surroundings = Surroundings { disk_mib, clock, ..Surroundings::default() };
            Servers::One(Box::new(Server::start_in(brand, surroundings, &[])))
        }
        Kind::Replicated(brand) => Servers::Replicated(Box::new(Replicated::start_in(brand, disk_mib, clock))),
        Kind::Galera | Kind::GaleraMultiWriter => {
            if let Some(why) = Galera::impossible() {
                panic!("{why}");
            }
            Servers::Galera(Galera::start_in(Network::new(MEMBERS).ok(), disk_mib, clock))
        }
        Kind::Group => {
            let expel = if plan.config.contains("[session]") { 0 } else { EXPEL_AFTER };
            Servers::Group(blocking(Group::start_in((MEMBERS, expel), Network::new(MEMBERS).ok(), disk_mib, clock)))
        }
    }
}

/// How many connections nodes have to a server.
fn connections_of_nodes(server: &Server) -> u64 {
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'carillon'";
    let asking = async { server.try_root().await.ok()?.query_first::<u64, _>(sql).await.ok()? };
    blocking(async { tokio::time::timeout(ASK, asking).await.ok().flatten() }).unwrap_or(0)
}

/// Whether the name that a server has for itself is that of a member.
pub(super) fn is_at(server: &str, member: &Server) -> bool {
    let port = format!(":{}", member.port());
    server.split(' ').next().is_some_and(|place| place.ends_with(&port))
}

fn target(plan: &Plan, cluster: &Cluster, database: &Database, wires: Wires, number: usize) -> Target {
    let name = format!("node-{number}");
    let dir = cluster.dir().join(format!("{name}.clock"));
    let clock = if plan.clocks {
        std::fs::create_dir_all(&dir).expect("a directory for a clock");
        Clock::new(&dir, Path::new("/"))
    } else {
        Err("it was not asked for".to_owned())
    };
    let environment = clock.as_ref().map(|clock| clock.environment(Path::to_owned)).unwrap_or_default();
    let mut ports = wires.ports();
    if plan.kind == Kind::GaleraMultiWriter {
        let first = (number - 1) % ports.len();
        ports.rotate_left(first);
    }
    let member = cluster.member_at(&name, &database.url_through_all(&ports), environment);
    Target { member, wires, clock, busy: Mutex::default() }
}
