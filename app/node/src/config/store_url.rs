//! Which database `store.url` names.
//!
//! A relative SQLite path counts from the working directory, as any path on a command line does; `node.data_dir` has no
//! part in it. The URL may hold a password and is therefore never part of an error, and never printed whole.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use carillon_store::mysql;
use carillon_store::sqlite::directory_of;

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file of the embedded database.
    Sqlite(PathBuf),
    /// A MySQL or MariaDB server that the nodes of a cluster share.
    MySql(MySqlUrl),
}

/// The address of a MySQL or MariaDB database, password included; printed without it.
#[derive(Clone, PartialEq, Eq)]
pub struct MySqlUrl {
    whole: String,
    place: String,
}

impl MySqlUrl {
    /// The whole address, for the driver.
    pub fn whole(&self) -> &str {
        &self.whole
    }
}

impl StoreUrl {
    /// The directory of an embedded database.
    pub fn directory(&self) -> Option<PathBuf> {
        let StoreUrl::Sqlite(file) = self else { return None };
        Some(directory_of(file).to_owned())
    }
}

impl fmt::Debug for MySqlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mysql://{}", self.place)
    }
}

impl Default for StoreUrl {
    fn default() -> Self {
        Self::Sqlite("carillon.db".into())
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            StoreUrl::MySql(url) => write!(f, "mysql://{}", url.place),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed are sqlite://PATH, such as sqlite://carillon.db or sqlite:///var/lib/carillon.db, \
                               and mysql://USER:PASSWORD@HOST:PORT[,HOST:PORT]/DATABASE";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("it is not a URL; {ALLOWED}"))?;
        match scheme {
            "sqlite" if rest.is_empty() || rest.ends_with('/') => Err(format!("it names no file; {ALLOWED}")),
            "sqlite" if rest.contains(['?', '#', '\0']) => Err(format!("a path holds no '?', '#' or NUL; {ALLOWED}")),
            "sqlite" if rest.contains(":memory:") => {
                Err(format!("a database in memory would forget every job at the end; {ALLOWED}"))
            }
            "sqlite" => Ok(Self::Sqlite(rest.into())),
            "mysql" => {
                let place = mysql::place_of(text).map_err(|error| error.to_string())?;
                Ok(Self::MySql(MySqlUrl { whole: text.to_owned(), place }))
            }
            _ => Err(format!("its scheme is not known; {ALLOWED}")),
        }
    }
}
