//! Arguments of the commands that are the server itself, and the part of the configuration that each one overrides.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use carillon_node::config::Overrides;

/// Where the configuration comes from, and which database it names.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The configuration [default: carillon.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The database: sqlite://FILE or mysql://USER:PASSWORD@HOST:PORT[,HOST:PORT]/NAME
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// A node and its configuration.
#[derive(Debug, Clone, Args)]
pub struct NodeArgs {
    /// Which configuration.
    #[command(flatten)]
    pub from: ConfigArgs,
    /// Where the HTTP API listens [default: 127.0.0.1:7650]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// The node's name [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
}

impl ConfigArgs {
    /// The parts that go before the environment and the file.
    pub fn overrides(&self) -> Overrides {
        Overrides { store_url: self.store.clone(), ..Overrides::default() }
    }
}

impl NodeArgs {
    /// The parts that go before the environment and the file.
    pub fn overrides(&self) -> Overrides {
        Overrides { bind: self.bind.clone(), node_name: self.node_name.clone(), ..self.from.overrides() }
    }
}

/// Arguments of `serve`; each one overrides `carillon.toml` and the environment.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Which configuration.
    #[command(flatten)]
    pub node: NodeArgs,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// Which configuration.
    #[command(flatten)]
    pub from: ConfigArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}
