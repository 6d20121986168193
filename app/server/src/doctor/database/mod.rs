//! The database that `store.url` names: can it be reached, and can a node keep its promises on it?

mod clock;
mod grants;
mod mysql;
mod sqlite;

use super::finding::Finding;
use carillon_node::config::{Config, StoreUrl};

/// The findings, and whether a server of an embedded database runs, where that can be known.
pub(super) struct Look {
    pub findings: Vec<Finding>,
    pub is_served: Option<bool>,
}

/// Looks at the database.
pub(super) async fn look(config: &Config) -> Look {
    match &config.store.url {
        StoreUrl::Sqlite(file) => {
            let mut look = sqlite::look(file);
            look.findings.push(clock::of_machine());
            look
        }
        StoreUrl::MySql(url) => Look { findings: mysql::look(url, config).await, is_served: None },
    }
}

/// The one finding where `store.url` itself is at fault.
pub(super) fn unknown() -> Look {
    let says = "it was not looked at, as store.url cannot be used";
    let finding = Finding::warning("database", says, "Correct store.url, and run `carillon doctor` again.");
    Look { findings: vec![finding], is_served: None }
}
