//! A Galera cluster of the test's own: three MariaDB servers of this machine that replicate to each other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::brand::Brand;
use super::database::Database;
use super::network::Network;
use super::server::{INIT_OF_MEMBERS, Server, Surroundings, free_port};
use super::servers::blocking;
use crate::processes::has_ended;

/// How many members a cluster has: one may go.
pub const MEMBERS: usize = 3;

/// How long a member may take to have everything.
const PATIENCE: Duration = Duration::from_secs(120);

/// So often a member is started that ends while it joins: what it had received of the others may be half of it.
const TRIES: usize = 3;

/// A member that is no member: it has the files and the port of one, and knows of no cluster.
pub(super) const OUTSIDE: [&str; 2] = ["--wsrep-on=OFF", "--wsrep-provider=none"];

/// Where Debian's `galera-4` puts the provider.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// The variable with which a cluster is asked for. It takes a minute and the memory of three servers.
pub const ASKED_BY: &str = "CARILLON_GALERA";

/// A running cluster.
pub struct Galera {
    members: Vec<Server>,
    network: Option<Network>,
}

/// The ports of a member beside that for clients.
struct Ports {
    host: String,
    group: u16,
    state: u16,
    transfer: u16,
}

impl Galera {
    /// Why there is none here, as the end of a sentence; `None` where one can be started and was asked for.
    pub fn missing() -> Option<String> {
        if std::env::var_os(ASKED_BY).is_none() {
            return Some(format!("they take minutes; {ASKED_BY}=1 asks for them"));
        }
        Self::impossible()
    }

    /// The same, whether or not one was asked for.
    pub fn impossible() -> Option<String> {
        let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let absent = [
            (Path::new(PROVIDER).exists(), "galera-4"),
            (has("mariadbd"), "mariadb-server"),
            (has("rsync"), "rsync"),
            (has("lsof"), "lsof"),
        ];
        let absent: Vec<&str> = absent.into_iter().filter(|(there, _)| !there).map(|(_, package)| package).collect();
        (!absent.is_empty()).then(|| format!("there is no Galera here (apt-get install {})", absent.join(" ")))
    }

    /// Starts one, member after member.
    ///
    /// # Panics
    /// If one cannot be started.
    pub fn start() -> Self {
        Self::start_in(None, None, false)
    }

    /// The same with members that live in a network of their own, on disks of so many MiB, and whose clocks can be moved.
    ///
    /// # Panics
    /// If one cannot be started.
    pub fn start_in(network: Option<Network>, disk_mib: Option<u32>, clock: bool) -> Self {
        let ports: Vec<Ports> = (0..MEMBERS).map(|number| Ports::free(network.as_ref(), number)).collect();
        let everybody: Vec<String> = ports.iter().map(|ports| format!("{}:{}", ports.host, ports.group)).collect();
        let address = format!("gcomm://{}", everybody.join(","));
        let mut this = Self { members: Vec::new(), network };
        for (number, ports) in ports.iter().enumerate() {
            let mut options = ports.options(number, &address);
            if number == 0 {
                options.push("--wsrep-new-cluster".to_owned());
            }
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let place = this.network.as_ref().map(|network| network.place(number));
            let files: &[(&str, &str)] = if place.is_some() { &[("init.sql", INIT_OF_MEMBERS)] } else { &[] };
            let surroundings = Surroundings { files, disk_mib, clock, place };
            this.members.push(Server::start_in(Brand::MariaDb, surroundings, &options));
            this.wait_until_synced(number);
        }
        this
    }

    /// The network of its members, where they have one.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Starts a member whose process has ended, and waits until it has everything that the others have.
    ///
    /// # Errors
    /// Says how the last try ended.
    pub fn join(&self, number: usize) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let member = &self.members[number];
            let started = member.try_start(&[], PATIENCE);
            match started.and_then(|()| self.synced_within(number, PATIENCE)) {
                Ok(()) => return Ok(()),
                Err(why) => last = why,
            }
            member.kill();
        }
        Err(format!("member {number} does not join: {last}"))
    }

    /// How far a member came whose process has ended: the number of its last commit in the order of the cluster.
    fn position(&self, number: usize) -> Option<i64> {
        let said = self.members[number].run_alone(&["--wsrep-recover"]);
        // "WSREP: Recovered position: UUID:SEQNO", perhaps with more behind a comma.
        let (_, position) = said.lines().find_map(|line| line.split_once("Recovered position: "))?;
        let number = position.split(':').nth(1)?;
        number.split(|c: char| !c.is_ascii_digit() && c != '-').next()?.parse().ok()
    }

    /// The member that came furthest; the processes of all have ended.
    ///
    /// # Errors
    /// Where none says how far it came.
    pub fn most_advanced(&self) -> Result<usize, String> {
        let positions = (0..self.members.len()).filter_map(|number| Some((self.position(number)?, number)));
        positions.max().map(|(_, number)| number).ok_or_else(|| "no member says how far it came".to_owned())
    }

    /// Makes the cluster anew from the state of one member; the processes of all have ended. The others join it with
    /// [`Galera::join`].
    ///
    /// # Errors
    /// Says what did not come.
    pub fn bootstrap(&self, number: usize) -> Result<(), String> {
        let member = &self.members[number];
        // The others take its whole state, whatever they have.
        for (other, server) in self.members.iter().enumerate() {
            let state = server.data().join("grastate.dat");
            if other == number {
                let text = std::fs::read_to_string(&state).map_err(|error| format!("{}: {error}", state.display()))?;
                let safe = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
                std::fs::write(&state, safe).map_err(|error| format!("{}: {error}", state.display()))?;
            } else {
                let _none = std::fs::remove_file(&state);
            }
        }
        member.try_start(&["--wsrep-new-cluster"], PATIENCE)?;
        self.synced_within(number, PATIENCE)
    }

    /// Its members.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// Waits until a member has everything that the others have.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_until_synced(&self, number: usize) {
        self.synced_within(number, PATIENCE).unwrap_or_else(|why| panic!("{why}"));
    }

    /// The same; an error where it takes too long.
    ///
    /// # Errors
    /// Says how it stands then.
    pub fn synced_within(&self, number: usize, patience: Duration) -> Result<(), String> {
        let member = &self.members[number];
        let begun = Instant::now();
        let synced = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            loop {
                let now = runtime.block_on(status(member));
                if now.as_deref() == Some("Synced Primary") {
                    return Ok(());
                }
                if begun.elapsed() > patience {
                    return Err(format!("member {number} is {now:?} after {patience:?}: {}", member.log_end()));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        };
        std::thread::scope(|scope| scope.spawn(synced).join().expect("the member is asked"))
    }

    /// The same, and all members whose processes run are in one cluster. One that was away does not know at first that the others went on
    /// without it.
    ///
    /// # Errors
    /// Says how it stands then.
    pub fn is_back_within(&self, number: usize, patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            self.synced_within(number, patience)?;
            let running = self.members.iter().filter(|member| !has_ended(member.pid()));
            let sizes: Vec<Option<u64>> = running.map(|member| blocking(size(member))).collect();
            if sizes.iter().all(|size| *size == Some(sizes.len() as u64)) {
                return Ok(());
            }
            if begun.elapsed() > patience {
                return Err(format!("member {number} is not counted by the others after {patience:?}: {sizes:?}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A new empty database of all members.
    pub async fn database(&self) -> Database {
        let database = self.members[0].database().await;
        // DDL is applied everywhere in one order, so whoever has this has the database.
        for member in &self.members {
            let mut conn = member.root().await;
            conn.query_drop("SET SESSION wsrep_sync_wait = 15").await.expect("a setting");
            let sql = format!("SHOW DATABASES LIKE '{}'", database.name);
            let found: Option<String> = conn.query_first(sql).await.expect("the member answers");
            assert_eq!(found.as_deref(), Some(&*database.name));
        }
        database
    }

    /// The address of a database with these members, in this order.
    pub fn url(&self, database: &Database, members: &[usize]) -> String {
        database.url_of(members.iter().map(|number| &self.members[*number]))
    }
}

impl Drop for Galera {
    /// The last to go is the one that made it.
    fn drop(&mut self) {
        while self.members.pop().is_some() {}
    }
}

impl Ports {
    fn free(network: Option<&Network>, number: usize) -> Self {
        let host = network.map_or("127.0.0.1", |network| &network.place(number).address).to_owned();
        Self { host, group: free_port(), state: free_port(), transfer: free_port() }
    }

    fn options(&self, number: usize, address: &str) -> Vec<String> {
        let Self { host, group, state, transfer } = self;
        let provider: PathBuf = PROVIDER.into();
        vec![
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={}", provider.display()),
            "--wsrep-cluster-name=carillon-tests".to_owned(),
            format!("--wsrep-cluster-address={address}"),
            format!("--wsrep-node-name=member-{number}"),
            format!("--wsrep-node-address={host}"),
            format!("--wsrep-sst-receive-address={host}:{transfer}"),
            "--wsrep-sst-method=rsync".to_owned(),
            format!(
                "--wsrep-provider-options=base_host={host};base_port={group};gmcast.listen_addr=tcp://{host}:{group};\
                 ist.recv_addr={host}:{state};gcache.size=64M"
            ),
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
        ]
    }
}

/// How many members there are, as one of them counts.
async fn size(member: &Server) -> Option<u64> {
    let sql = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_cluster_size'";
    let asking = async { member.try_root().await.ok()?.query_first::<String, _>(sql).await.ok()? };
    tokio::time::timeout(Duration::from_secs(5), asking).await.ok()??.parse().ok()
}

/// How a member stands with its cluster: its own state, and that of its part of the cluster.
async fn status(member: &Server) -> Option<String> {
    let asking = async {
        let mut conn = member.try_root().await.ok()?;
        let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state_comment', 'wsrep_cluster_status')";
        let pairs = conn.query::<(String, String), _>(sql).await.ok()?;
        let of = |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        Some(format!("{} {}", of("wsrep_local_state_comment")?, of("wsrep_cluster_status")?))
    };
    tokio::time::timeout(Duration::from_secs(5), asking).await.ok()?
}
