//! A group of Group Replication of the test's own: MySQL servers of this machine, of which one is the primary.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::brand::Brand;
use super::database::Database;
use super::server::{Server, free_port};

/// How long a member may take to join.
const PATIENCE: Duration = Duration::from_secs(120);

/// The name that the members share.
const NAME: &str = "c0000000-0000-4000-8000-000000000001";

/// A running group.
pub struct Group {
    members: Vec<Server>,
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
        let ports: Vec<u16> = (0..members).map(|_| free_port()).collect();
        let seeds: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let mut this = Self { members: Vec::new() };
        for (number, own) in seeds.iter().enumerate() {
            let options = options(number, own, &seeds.join(","), seconds);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            this.members.push(Server::start(Brand::MySql, &options));
            this.join(number, number == 0).await;
        }
        this
    }

    /// Its members.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// A member joins the group, or makes it.
    async fn join(&self, number: usize, makes_it: bool) {
        let member = &self.members[number];
        let mut conn = member.root().await;
        // A member has nothing that the group has not.
        let mut statements = vec!["RESET BINARY LOGS AND GTIDS"];
        let recovery = "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'";
        statements.push(recovery);
        if makes_it {
            statements.push("SET GLOBAL group_replication_bootstrap_group = ON");
        }
        statements.extend(["START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF"]);
        for statement in statements {
            conn.query_drop(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}\n{}", member.log()));
        }
        let begun = Instant::now();
        while state(member).await.as_deref() != Some("ONLINE") {
            assert!(begun.elapsed() < PATIENCE, "member {number} does not join: {}", member.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A new empty database of all members.
    pub async fn database(&self) -> Database {
        self.members[0].database().await
    }

    /// The address of a database with these members, in this order.
    pub fn url(&self, database: &Database, members: &[usize]) -> String {
        let hosts: Vec<String> =
            members.iter().map(|number| format!("127.0.0.1:{}", self.members[*number].port())).collect();
        database.url().replace(&format!("127.0.0.1:{}", database.port()), &hosts.join(","))
    }
}

fn options(number: usize, own: &str, seeds: &str, expel: u32) -> Vec<String> {
    vec![
        format!("--server-id={}", number + 1),
        "--log-bin=binlog".to_owned(),
        "--gtid-mode=ON".to_owned(),
        "--enforce-gtid-consistency=ON".to_owned(),
        "--report-host=127.0.0.1".to_owned(),
        "--plugin-load-add=group_replication.so".to_owned(),
        format!("--loose-group-replication-group-name={NAME}"),
        format!("--loose-group-replication-local-address={own}"),
        format!("--loose-group-replication-group-seeds={seeds}"),
        "--loose-group-replication-start-on-boot=OFF".to_owned(),
        "--loose-group-replication-recovery-get-public-key=ON".to_owned(),
        format!("--loose-group-replication-member-expel-timeout={expel}"),
    ]
}

/// How a member stands with its group.
async fn state(member: &Server) -> Option<String> {
    let sql =
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@GLOBAL.server_uuid";
    member.try_root().await.ok()?.query_first::<String, _>(sql).await.ok()?
}
