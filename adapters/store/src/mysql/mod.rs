//! MySQL and MariaDB: the statements of the cluster's protocol ([`crate::cluster`]), their connections, and the schema.

mod alerts;
mod client;
mod database;
mod encoding;
mod read;
mod schema;
mod write;

use std::sync::Arc;

use crate::cluster::ClusterStore;
use crate::mysql::client::address::Address;
pub use crate::mysql::client::connection::MySqlConnection;
pub use crate::mysql::client::error::{Denial, OpenError};
pub use crate::mysql::client::inspect::{ClockReading, InspectError, Inspection, inspect};
pub use crate::mysql::client::open::Options;
use crate::mysql::client::server::Server;
pub use crate::mysql::database::MySqlDatabase;
pub use crate::mysql::schema::SchemaState;

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
        let server = Arc::new(Server::at(&address, options.statement_timeout));
        let (driver, state) = server.connect_and_ask(&[]).await.map_err(unreachable)?;
        let mut conn = driver.conn;
        state.check(&address, &options)?;
        let partitions = schema::prepare(&mut conn, &address, &options).await?;
        let pools = state.pools(&server, &options);
        pools.heartbeats.warm().await.map_err(unreachable)?;
        conn.disconnect().await.map_err(unreachable)?;
        let Options { clock, held, .. } = options;
        Ok(Self::new(MySqlDatabase { pools }, clock, partitions, held))
    }
}
