//! A Galera cluster of the test's own: three MariaDB servers of this machine that replicate to each other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::brand::Brand;
use super::database::Database;
use super::server::{Server, free_port};

/// How many members a cluster has: one may go.
const MEMBERS: usize = 3;

/// How long a member may take to have everything.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where Debian's `galera-4` puts the provider.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// The variable with which a cluster is asked for. It takes a minute and the memory of three servers.
pub const ASKED_BY: &str = "CARILLON_GALERA";

/// A running cluster.
pub struct Galera {
    members: Vec<Server>,
}

/// The ports of a member beside that for clients.
struct Ports {
    group: u16,
    state: u16,
    transfer: u16,
}

impl Galera {
    /// Why there is none here, as the end of a sentence; `None` where one can be started and was asked for.
    pub fn missing() -> Option<String> {
        let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if std::env::var_os(ASKED_BY).is_none() {
            return Some(format!("they take minutes; {ASKED_BY}=1 asks for them"));
        }
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
        let ports: Vec<Ports> = (0..MEMBERS).map(|_| Ports::free()).collect();
        let everybody: Vec<String> = ports.iter().map(|ports| format!("127.0.0.1:{}", ports.group)).collect();
        let address = format!("gcomm://{}", everybody.join(","));
        let mut this = Self { members: Vec::new() };
        for (number, ports) in ports.iter().enumerate() {
            let mut options = ports.options(number, &address);
            if number == 0 {
                options.push("--wsrep-new-cluster".to_owned());
            }
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            this.members.push(Server::start(Brand::MariaDb, &options));
            this.wait_until_synced(number);
        }
        this
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
        let member = &self.members[number];
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                while runtime.block_on(status(member)).as_deref() != Some("Synced") {
                    assert!(begun.elapsed() < PATIENCE, "member {number} is not synced: {}", member.log());
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
        });
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
        let hosts: Vec<String> =
            members.iter().map(|number| format!("127.0.0.1:{}", self.members[*number].port())).collect();
        database.url().replace(&format!("127.0.0.1:{}", database.port()), &hosts.join(","))
    }
}

impl Drop for Galera {
    /// The last to go is the one that made it.
    fn drop(&mut self) {
        while self.members.pop().is_some() {}
    }
}

impl Ports {
    fn free() -> Self {
        Self { group: free_port(), state: free_port(), transfer: free_port() }
    }

    fn options(&self, number: usize, address: &str) -> Vec<String> {
        let Self { group, state, transfer } = self;
        let provider: PathBuf = PROVIDER.into();
        vec![
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={}", provider.display()),
            "--wsrep-cluster-name=carillon-tests".to_owned(),
            format!("--wsrep-cluster-address={address}"),
            format!("--wsrep-node-name=member-{number}"),
            "--wsrep-node-address=127.0.0.1".to_owned(),
            format!("--wsrep-sst-receive-address=127.0.0.1:{transfer}"),
            "--wsrep-sst-method=rsync".to_owned(),
            format!(
                "--wsrep-provider-options=base_host=127.0.0.1;base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};\
                 ist.recv_addr=127.0.0.1:{state};gcache.size=64M"
            ),
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
        ]
    }
}

/// How a member stands with its cluster.
async fn status(member: &Server) -> Option<String> {
    let mut conn = member.try_root().await.ok()?;
    let sql = "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'";
    conn.query_first::<(String, String), _>(sql).await.ok()?.map(|(_, state)| state)
}
