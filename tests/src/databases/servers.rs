//! The servers of one database: one, or the members of a cluster.

use std::future::Future;
use std::slice;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::database::Database;
use super::galera::{Galera, OUTSIDE};
use super::group::Group;
use super::network::Network;
use super::replicated::Replicated;
use super::server::Server;
use crate::processes::has_ended;

/// How long a server may take to answer that was started.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one question may take.
const ASK: Duration = Duration::from_secs(1);

/// The servers of one database.
pub enum Servers {
    /// A server of its own.
    One(Box<Server>),
    /// A Galera cluster.
    Galera(Galera),
    /// A group of Group Replication with a single primary.
    Group(Group),
    /// A source and its asynchronous replica.
    Replicated(Box<Replicated>),
}

impl Servers {
    /// All of them.
    pub fn members(&self) -> &[Server] {
        match self {
            Servers::One(server) => slice::from_ref(server),
            Servers::Galera(galera) => galera.members(),
            Servers::Group(group) => group.members(),
            Servers::Replicated(pair) => pair.servers(),
        }
    }

    /// Their network; why they have none.
    ///
    /// # Errors
    /// Where they are reached at 127.0.0.1.
    pub fn network(&self) -> Result<&Network, String> {
        let network = match self {
            Servers::One(_) | Servers::Replicated(_) => None,
            Servers::Galera(galera) => galera.network(),
            Servers::Group(group) => group.network(),
        };
        network.ok_or_else(|| "the members have no network of their own: only root can make one".to_owned())
    }

    /// A new empty database of all of them.
    pub async fn database(&self) -> Database {
        match self {
            Servers::One(server) => server.database().await,
            Servers::Galera(galera) => galera.database().await,
            Servers::Group(group) => group.database().await,
            Servers::Replicated(pair) => pair.source().database().await,
        }
    }

    /// The process of a member is started, unless it runs.
    fn runs(&self, number: usize) -> Result<(), String> {
        let member = &self.members()[number];
        if has_ended(member.pid()) { member.try_start(&[], PATIENCE) } else { Ok(()) }
    }

    /// A member whose process has ended is started and joins the others again.
    ///
    /// # Errors
    /// Says how it stands where that takes too long.
    pub fn start_again(&self, number: usize) -> Result<(), String> {
        match self {
            Servers::One(server) => server.try_start(&[], PATIENCE),
            Servers::Galera(galera) => galera.join(number),
            Servers::Group(group) => {
                self.runs(number)?;
                blocking(group.join(number))
            }
            Servers::Replicated(pair) => pair.start_again(number),
        }
    }

    /// A member whose process runs is with the others again.
    ///
    /// # Errors
    /// Says how it stands where that takes too long.
    pub fn is_back(&self, number: usize) -> Result<(), String> {
        match self {
            Servers::One(_) => Ok(()),
            Servers::Galera(galera) => galera.is_back_within(number, PATIENCE),
            Servers::Group(group) => blocking(group.join(number)),
            Servers::Replicated(pair) => pair.mend(),
        }
    }

    /// The member that has everything that any of them has; the processes of all have ended.
    ///
    /// # Errors
    /// Where none has everything, or one cannot be asked.
    pub fn most_advanced(&self) -> Result<usize, String> {
        match self {
            Servers::One(_) => Ok(0),
            Servers::Replicated(pair) => Ok(pair.source_number()),
            Servers::Galera(galera) => galera.most_advanced(),
            Servers::Group(group) => {
                (0..group.members().len()).try_for_each(|number| self.runs(number))?;
                blocking(group.most_advanced())
            }
        }
    }

    /// The cluster is made anew from the state of one member; no other is in it. The others join it with [`Servers::start_again`], those that are
    /// ahead of it with [`Servers::join_anew`].
    ///
    /// # Errors
    /// Says what did not come.
    pub fn bootstrap(&self, number: usize) -> Result<(), String> {
        match self {
            Servers::One(_) | Servers::Replicated(_) => Err("these servers are no cluster".to_owned()),
            Servers::Galera(galera) => galera.bootstrap(number),
            Servers::Group(group) => {
                self.runs(number)?;
                blocking(group.bootstrap(number))
            }
        }
    }

    /// A member whose process has ended takes the whole state of another one, whatever it had itself, and joins the others.
    ///
    /// # Errors
    /// Says what did not come.
    pub fn join_anew(&self, number: usize, donor: usize) -> Result<(), String> {
        if let Servers::Group(group) = self {
            group.members()[number].try_start(&[], PATIENCE)?;
            blocking(group.clone_from(number, donor))?;
            group.members()[number].kill();
        }
        self.start_again(number)
    }

    /// A member whose process has ended is started and knows nothing of the others: it takes writes of its own.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn start_outside(&self, number: usize) -> Result<(), String> {
        let options: &[&str] = if matches!(self, Servers::Galera(_)) { &OUTSIDE } else { &[] };
        self.members()[number].try_start(options, PATIENCE)
    }

    /// Whether a member takes writes of the whole cluster now.
    pub async fn takes_writes(&self, number: usize) -> bool {
        let member = &self.members()[number];
        let asking = async { self.asks_for_writer(&mut member.try_root().await.ok()?).await };
        tokio::time::timeout(ASK, asking).await.ok().flatten() == Some(true)
    }

    /// The same on a connection that stands.
    pub async fn asks_for_writer(&self, conn: &mut Conn) -> Option<bool> {
        conn.query_first::<u8, _>(self.question_for_writer()).await.ok()?.map(|yes| yes == 1)
    }

    /// The statement that a member answers with 1 if it takes writes of the whole cluster.
    pub fn question_for_writer(&self) -> &'static str {
        match self {
            Servers::One(_) | Servers::Replicated(_) => "SELECT @@GLOBAL.read_only = 0",
            Servers::Galera(_) => GALERA_WRITER,
            Servers::Group(_) => GROUP_WRITER,
        }
    }
}

const GALERA_WRITER: &str = "SELECT @@GLOBAL.read_only = 0 AND @@GLOBAL.wsrep_on = 1 AND COUNT(*) = 3 \
                             FROM information_schema.global_status \
                             WHERE (variable_name = 'wsrep_ready' AND variable_value = 'ON') \
                             OR (variable_name = 'wsrep_cluster_status' AND variable_value = 'Primary') \
                             OR (variable_name = 'wsrep_local_state_comment' AND variable_value = 'Synced')";

const GROUP_WRITER: &str = "SELECT @@GLOBAL.read_only = 0 AND \
                            COALESCE(SUM(MEMBER_ID = @@GLOBAL.server_uuid AND MEMBER_STATE = 'ONLINE' \
                            AND MEMBER_ROLE = 'PRIMARY'), 0) = 1 \
                            AND SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')) * 2 > COUNT(*) \
                            FROM performance_schema.replication_group_members";

/// Runs one future to its end, wherever that is called from.
pub fn blocking<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(future)
        };
        scope.spawn(run).join().expect("a future comes to its end")
    })
}
