//! A group of Group Replication of the test's own: MySQL servers of this machine, of which one is the primary.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::brand::Brand;
use super::database::Database;
use super::network::Network;
use super::server::{INIT_OF_MEMBERS, Server, Surroundings, free_port};

/// How long a member may take to join.
const PATIENCE: Duration = Duration::from_secs(120);

/// A member that the others have expelled may take so long to notice that. Some take a minute; then it is told to leave and to join.
const NOTICES_WITHIN: Duration = Duration::from_secs(10);

/// The name that the members share.
const NAME: &str = "c0000000-0000-4000-8000-000000000001";

/// The variable with which a group of three is asked for. It takes minutes and the memory of three servers.
const ASKED_BY: &str = "CARILLON_GROUP";

/// A running group.
pub struct Group {
    members: Vec<Server>,
    network: Option<Network>,
}

impl Group {
    /// Starts one, member after member; the first is the primary.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start(members: usize) -> Self {
        Self::start_expelling_after(members, 0).await
    }

    /// The same; the others wait so many seconds for a member that does not answer. Servers come with 5.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_expelling_after(members: usize, seconds: u32) -> Self {
        Self::start_in((members, seconds), None, None, false).await
    }

    /// The same with members that live in a network of their own, on disks of so many MiB, and whose clocks can be moved.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_in(
        (members, seconds): (usize, u32),
        network: Option<Network>,
        disk_mib: Option<u32>,
        clock: bool,
    ) -> Self {
        let host = |number| network.as_ref().map_or("127.0.0.1", |network| &network.place(number).address);
        let hosts: Vec<String> = (0..members).map(|number| host(number).to_owned()).collect();
        let seeds: Vec<String> = hosts.iter().map(|host| format!("{host}:{}", free_port())).collect();
        let mut this = Self { members: Vec::new(), network };
        for (number, own) in seeds.iter().enumerate() {
            let options = options(number, &hosts[number], own, &seeds.join(","), seconds);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let place = this.network.as_ref().map(|network| network.place(number));
            let surroundings = Surroundings { files: &[("init.sql", INIT_OF_MEMBERS)], disk_mib, clock, place };
            this.members.push(Server::start_in(Brand::MySql, surroundings, &options));
            this.join_first(number, number == 0).await;
        }
        this
    }

    /// The network of its members, where they have one.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Why tests of three members do not run, as the end of a sentence; `None` where they were asked for.
    pub fn not_asked_for() -> Option<String> {
        std::env::var_os(ASKED_BY).is_none().then(|| format!("they take minutes; {ASKED_BY}=1 asks for them"))
    }

    /// Its members.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// A new member joins the group, or makes it.
    async fn join_first(&self, number: usize, makes_it: bool) {
        let member = &self.members[number];
        // A member has nothing that the group has not.
        let statements = [
            "RESET BINARY LOGS AND GTIDS",
            "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'",
        ];
        run(member, &statements).await.unwrap_or_else(|why| panic!("{why}\n{}", member.log()));
        let joined = if makes_it { self.bootstrap(number).await } else { self.join(number).await };
        joined.unwrap_or_else(|why| panic!("{why}"));
    }

    /// A member whose process runs joins the group. The others may still know an earlier process of it.
    ///
    /// # Errors
    /// Says how it stands when it has taken too long.
    pub async fn join(&self, number: usize) -> Result<(), String> {
        let (member, begun) = (&self.members[number], Instant::now());
        let mut said = String::new();
        while begun.elapsed() < PATIENCE {
            match state(member).await.as_deref() {
                Some("ONLINE") if !self.is_missed_by_others(number).await => return Ok(()),
                Some("RECOVERING") => {}
                // It may not know yet that the others have expelled it.
                Some("ONLINE") if begun.elapsed() < NOTICES_WITHIN => {}
                // A join that is refused takes a minute.
                _ if self.others_know(number).await => {}
                found => {
                    // One that was expelled has to leave first.
                    let is_expelled = matches!(found, Some("ERROR" | "ONLINE"));
                    let stop: &[&str] = if is_expelled { &["STOP GROUP_REPLICATION"] } else { &[] };
                    let started = run(member, &[stop, &["START GROUP_REPLICATION"]].concat()).await;
                    said = started.err().unwrap_or(said);
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let state = state(member).await;
        Err(format!("member {number} does not join, it is {state:?} ({said}): {}", member.log_end()))
    }

    /// Whether a member that is in the group does not count this one among those that are.
    async fn is_missed_by_others(&self, number: usize) -> bool {
        let sql = format!(
            "SELECT SUM(MEMBER_ID = @@GLOBAL.server_uuid AND MEMBER_STATE = 'ONLINE') = 1 AND \
             SUM(MEMBER_PORT = {} AND MEMBER_STATE = 'ONLINE') = 0 FROM performance_schema.replication_group_members",
            self.members[number].port()
        );
        self.another_says(number, &sql).await
    }

    /// Whether a member that is in the group still counts an earlier process of this one among its members.
    async fn others_know(&self, number: usize) -> bool {
        let sql = format!(
            "SELECT SUM(MEMBER_ID = @@GLOBAL.server_uuid AND MEMBER_STATE = 'ONLINE') = 1 AND SUM(MEMBER_PORT = {}) > 0 \
             FROM performance_schema.replication_group_members",
            self.members[number].port()
        );
        self.another_says(number, &sql).await
    }

    /// Whether one of the other members answers with 1.
    async fn another_says(&self, number: usize, sql: &str) -> bool {
        for other in (0..self.members.len()).filter(|other| *other != number) {
            let asking = async { self.members[other].try_root().await.ok()?.query_first::<u8, _>(sql).await.ok()? };
            if tokio::time::timeout(Duration::from_secs(1), asking).await.ok().flatten() == Some(1) {
                return true;
            }
        }
        false
    }

    /// Makes the group anew from a member whose process runs. The others join it with [`Group::join`].
    ///
    /// # Errors
    /// Says what the member refused.
    pub async fn bootstrap(&self, number: usize) -> Result<(), String> {
        let statements = [
            "SET GLOBAL group_replication_bootstrap_group = ON",
            "START GROUP_REPLICATION",
            "SET GLOBAL group_replication_bootstrap_group = OFF",
        ];
        run(&self.members[number], &statements).await?;
        self.join(number).await
    }

    /// A member whose process runs outside of the group takes the whole state of another one, whatever it has, as people would do with one that
    /// is ahead of its group. Its process has to be started again then.
    ///
    /// # Errors
    /// Says what the member refused.
    pub async fn clone_from(&self, number: usize, donor: usize) -> Result<(), String> {
        let (member, donor) = (&self.members[number], &self.members[donor]);
        let (host, port) = (donor.host(), donor.port());
        run(member, &[&format!("SET GLOBAL clone_valid_donor_list = '{host}:{port}'")]).await?;
        let cloned = run(member, &[&format!("CLONE INSTANCE FROM 'root'@'{host}':{port} IDENTIFIED BY ''")]).await;
        match cloned {
            // It has everything and would like to be started by whoever watches it.
            Err(why) if why.contains("3707") || why.contains("closed") || why.contains("end of file") => Ok(()),
            other => other,
        }
    }

    /// The member that has everything that any of them has; their processes run, and need not be in the group.
    ///
    /// # Errors
    /// Where one does not answer, or none has everything.
    pub async fn most_advanced(&self) -> Result<usize, String> {
        let mut sets = Vec::new();
        for member in &self.members {
            let mut conn = member.try_root().await.map_err(|error| error.to_string())?;
            let set: Option<String> =
                conn.query_first("SELECT @@GLOBAL.gtid_executed").await.map_err(|error| error.to_string())?;
            sets.push(set.unwrap_or_default().replace('\n', ""));
        }
        for (number, own) in sets.iter().enumerate() {
            let mut conn = self.members[number].try_root().await.map_err(|error| error.to_string())?;
            let has_all = sets.iter().map(|other| format!("GTID_SUBSET('{other}', '{own}')")).collect::<Vec<_>>();
            let sql = format!("SELECT {}", has_all.join(" AND "));
            if conn.query_first::<u8, _>(sql).await.map_err(|error| error.to_string())? == Some(1) {
                return Ok(number);
            }
        }
        Err(format!("no member has everything: {}", sets.join("; ")))
    }

    /// Gives the role of the primary to a member.
    ///
    /// # Errors
    /// Says what the member refused.
    pub async fn make_primary(&self, number: usize) -> Result<(), String> {
        run(&self.members[number], &["SELECT group_replication_set_as_primary(@@GLOBAL.server_uuid)"]).await
    }

    /// A new empty database of all members.
    pub async fn database(&self) -> Database {
        self.members[0].database().await
    }

    /// The address of a database with these members, in this order.
    pub fn url(&self, database: &Database, members: &[usize]) -> String {
        database.url_of(members.iter().map(|number| &self.members[*number]))
    }
}

fn options(number: usize, host: &str, own: &str, seeds: &str, expel: u32) -> Vec<String> {
    vec![
        format!("--server-id={}", number + 1),
        "--log-bin=binlog".to_owned(),
        "--gtid-mode=ON".to_owned(),
        "--enforce-gtid-consistency=ON".to_owned(),
        format!("--report-host={host}"),
        "--plugin-load-add=group_replication.so".to_owned(),
        "--plugin-load-add=mysql_clone.so".to_owned(),
        format!("--loose-group-replication-group-name={NAME}"),
        format!("--loose-group-replication-local-address={own}"),
        format!("--loose-group-replication-group-seeds={seeds}"),
        "--loose-group-replication-start-on-boot=OFF".to_owned(),
        "--loose-group-replication-recovery-get-public-key=ON".to_owned(),
        format!("--loose-group-replication-member-expel-timeout={expel}"),
    ]
}

/// Runs statements as root, one after another.
async fn run(member: &Server, statements: &[&str]) -> Result<(), String> {
    let mut conn = member.try_root().await.map_err(|error| error.to_string())?;
    for statement in statements {
        conn.query_drop(*statement).await.map_err(|error| format!("{statement}: {error}"))?;
    }
    Ok(())
}

/// How a member stands with its group.
async fn state(member: &Server) -> Option<String> {
    let sql =
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@GLOBAL.server_uuid";
    let asking = async { member.try_root().await.ok()?.query_first::<String, _>(sql).await.ok()? };
    tokio::time::timeout(Duration::from_secs(5), asking).await.ok()?
}
