//! MySQL and MariaDB: the statements of the cluster's protocol ([`crate::cluster`]), their connections, and the schema.

mod alerts;
mod client;
pub(crate) mod copy;
mod database;
mod encoding;
mod read;
mod schema;
mod topology;
mod write;

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use crate::cluster::ClusterStore;
use crate::mysql::client::address::Address;
use crate::mysql::client::agreement::{OTHERS, beside};
pub use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error;
pub use crate::mysql::client::error::{Denial, OpenError};
pub use crate::mysql::client::inspect::{ClockReading, InspectError, Inspection, inspect};
pub use crate::mysql::client::open::Options;
use crate::mysql::client::server::Server;
pub use crate::mysql::database::MySqlDatabase;
pub use crate::mysql::schema::SchemaState;
pub use crate::mysql::topology::Topology;
use crate::mysql::topology::{Answers, reads_everything};
use crate::{Store, TimingReport};

/// Jobs, runs and sessions in a MySQL or MariaDB database that other nodes use too.
pub type MySqlStore = ClusterStore<MySqlDatabase>;

/// Host, port and database of an address, without user and password.
///
/// # Errors
/// [`OpenError::BadUrl`] says what is wrong with it; it shows no password.
pub fn place_of(url: &str) -> Result<String, OpenError> {
    Address::of(url).map(|address| address.place)
}

impl MySqlStore {
    /// Opens the database at `mysql://user:password@host:port,host2:port/database`, makes or migrates its schema, and opens the
    /// connection for heartbeats before any other. Of several servers the first that takes writes is used, until it takes none any more.
    ///
    /// `?ssl-mode=` is `disabled`, `preferred` (the default), `required`, `verify_ca` or `verify_identity`, as with MySQL's
    /// clients; the last two need `ssl-ca=FILE`, the authority's certificates in PEM. `?socket=PATH` goes without TLS.
    ///
    /// # Errors
    /// [`OpenError`], each a sentence for the person who started the server.
    pub async fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        let address = Address::of(url)?;
        let unreachable = |error: mysql_async::Error| address.unreachable(&error);
        let server = Arc::new(Server::at(&address, options.topology, options.statement_timeout));
        let (driver, answers) = server.connect_and_ask(&[]).await.map_err(unreachable)?;
        let (mut conn, first) = (driver.conn, driver.identity);
        answers.check(&address)?;
        if let Some(setting) = reads_everything(answers.engine()) {
            let refused = |error| unreachable(error::refused_setting(setting, error));
            conn.query_drop(setting).await.map_err(refused)?;
        }
        let partitions = schema::prepare(&mut conn, &address, &options).await?;
        let others = schema::servers_of_sessions(&mut conn).await.map_err(unreachable)?;
        server.follow(&first, &others).await.map_err(|why| address.unfit(why))?;
        let timing = choose_timing(&mut conn, &address, &answers, &options).await?;
        let pools = answers.pools(&server, &options, &timing.chosen.timing);
        server.keep_timing(timing);
        pools.heartbeats.warm().await.map_err(unreachable)?;
        refuse_rotation(&server, &address, options.topology)?;
        conn.disconnect().await.map_err(unreachable)?;
        let Options { clock, held, .. } = options;
        Ok(Self::new(MySqlDatabase { pools, server }, clock, partitions, held))
    }

    /// The store for everything that asks no more than [`Store`]. Its code is compiled with this crate, beside the crates above.
    pub fn shared(self) -> Arc<dyn Store> {
        Arc::new(self)
    }

    /// The session timing that was chosen when the database was opened: the given one, or the default for its servers.
    pub fn timing(&self) -> Option<TimingReport> {
        self.database().server.timing_report()
    }
}

/// The session timing beside that of the other nodes. The limits of the servers that do not fit are told.
async fn choose_timing(
    conn: &mut Conn,
    address: &Address,
    answers: &Answers,
    options: &Options,
) -> Result<TimingReport, OpenError> {
    // An older binary knows no terms.
    let rows: Vec<Row> = match options.knows_up_to {
        Some(_) => Vec::new(),
        None => conn.query(OTHERS).await.map_err(|error| address.unreachable(&error))?,
    };
    let report = beside(rows, answers, options.timing).map_err(|why| address.unfit(why))?;
    let TimingReport { chosen, misfits } = &report;
    misfits.iter().for_each(|sentence| tracing::warn!(place = address.place, "{sentence}"));
    let (lease, expire) = (chosen.timing.self_kill_after, chosen.timing.expire_after);
    tracing::info!(?lease, ?expire, source = %chosen.source, "session timing");
    Ok(report)
}

/// Two connections to one name that lead to two servers: something in front of the servers gives each connection another one.
fn refuse_rotation(server: &Server, address: &Address, topology: Topology) -> Result<(), OpenError> {
    let changed = server.report().is_some_and(|report| report.changes > 0);
    if address.hosts.len() > 1 || topology.allows_several_writers() || !changed {
        return Ok(());
    }
    Err(address.unfit(
        "each connection to it leads to another server: let the balancer lead all of them to one, or name the servers themselves in \
         store.url, with commas between them",
    ))
}
