//! The command line.
#![allow(missing_docs)]
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
#[derive(Debug, Parser)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(args::ServeArgs),
    Init(args::InitArgs),
}
pub mod args {
    use super::*;
    #[derive(Debug, Clone, clap::Args)]
    pub struct ServeArgs {
        #[arg(long)]
        pub config: Option<PathBuf>,
        #[arg(long)]
        pub store: Option<String>,
        #[arg(long)]
        pub bind: Option<String>,
        #[arg(long)]
        pub node_name: Option<String>,
        #[arg(long, value_enum, default_value_t=LogFormat::Text)]
        pub log_format: LogFormat,
    }
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub enum LogFormat {
        Text,
        Json,
    }
    #[derive(Debug, Clone, clap::Args)]
    pub struct InitArgs {
        #[arg(long)]
        pub config: Option<PathBuf>,
        #[arg(long)]
        pub store: Option<String>,
    }
}
pub fn main() -> std::process::ExitCode {
    match Cli::parse().command {
        Command::Serve(a) => crate::serve::serve(&a),
        Command::Init(a) => crate::serve::init(&a),
    }
}
