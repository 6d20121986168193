//! Arguments that several commands share, and the form of each.
//!
//! Faults that can be found without a server are found here, so that clap names the argument and answers exit code 2.

use std::path::PathBuf;

use carillon_domain::duration;
use carillon_domain::id::RunId;
use carillon_domain::name::{check_job_name, check_namespace};
use carillon_domain::time::Timestamp;
use clap::{Args, Subcommand};

use super::watch::WatchArgs;

/// Where `serve` listens unless it is told otherwise.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:7650";

/// Arguments of `cluster`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ClusterArgs {
    /// The command; without one the cluster is shown.
    #[command(subcommand)]
    pub command: Option<ClusterCommand>,
    /// Again and again.
    #[command(flatten)]
    pub watch: WatchArgs,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The commands on a cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Go on although the database lost commits. Firings that may have started in them are recorded as lost, unless their job says
    /// on_lost = rerun
    Accept {
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Which server a client command talks to, and how it answers. The token comes from CARILLON_TOKEN, or from the file
/// `carillon.token` in the working directory, where `serve` writes it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The server to talk to; its token is read from CARILLON_TOKEN, or else from ./carillon.token
    #[arg(long, value_name = "URL", env = "CARILLON_SERVER", default_value = DEFAULT_SERVER)]
    pub server: String,
    /// Certificates (PEM) to trust instead of the well-known authorities
    #[arg(long, value_name = "FILE", env = "CARILLON_CA")]
    pub ca: Option<PathBuf>,
    /// A certificate (PEM) to show to the server; it may stand for the token
    #[arg(long, value_name = "FILE", env = "CARILLON_CERT", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The private key (PEM) of --cert
    #[arg(long, value_name = "FILE", env = "CARILLON_KEY", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Answer in JSON; listings with one object a line
    #[arg(long)]
    pub json: bool,
}

/// A server and a namespace.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The namespace of the jobs
    #[arg(long, short, value_name = "NS", default_value = "default", value_parser = namespace)]
    pub namespace: String,
}

/// A server and one namespace or all of them.
#[derive(Debug, Clone, Args)]
pub struct PlacesArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The namespace of the jobs; `*` for all
    #[arg(long, short, value_name = "NS", default_value = "default", value_parser = namespaces)]
    pub namespace: String,
}

/// A job's name.
pub fn job_name(text: &str) -> Result<String, String> {
    check_job_name(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// A namespace.
pub fn namespace(text: &str) -> Result<String, String> {
    check_namespace(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// A namespace, or `*` for all.
pub fn namespaces(text: &str) -> Result<String, String> {
    if text == "*" { Ok(text.into()) } else { namespace(text) }
}

/// A run's id, in its one spelling.
pub fn run_id(text: &str) -> Result<String, String> {
    text.parse::<RunId>().map(|id| id.to_string()).map_err(|error| error.to_string())
}

/// A duration, kept as it was written.
pub fn duration_text(text: &str) -> Result<String, String> {
    duration::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// An RFC 3339 time.
pub fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text)
        .ok_or_else(|| "it is not an RFC 3339 time of the years 1970 to 9999, such as 2027-01-01T00:00:00Z".to_owned())
}

/// `KEY=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it is not KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_sign() {
        assert_eq!(pair("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(pair("A="), Ok(("A".into(), String::new())));
        assert!(pair("=b").is_err() && pair("A").is_err());
    }
}
