//! `carillon backup` and `carillon restore`: copies of the database that one server keeps in a file.
//!
//! They work on the file itself and need no server. A backup may be made beside one; a restore refuses to.

use std::path::{Path, PathBuf};

use carillon_store::sqlite;
use clap::Args;
use serde_json::json;

use carillon_cli::failure::CommandFailure;
use carillon_cli::out::Out;
use carillon_cli::progress::{Progress, megabytes};
use carillon_node::config::{Config, StoreUrl};
use carillon_server::serve::args::ConfigArgs;

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Where to put the copy
    pub file: PathBuf,
    /// Replace a file that stands there
    #[arg(long)]
    pub replace: bool,
    /// Which configuration.
    #[command(flatten)]
    pub from: ConfigArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A backup
    pub file: PathBuf,
    /// Which configuration.
    #[command(flatten)]
    pub from: ConfigArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// `carillon backup`
pub fn backup(args: &BackupArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let database = file_of(&args.from)?;
    let mut bar = Progress::of_bytes("copying");
    let made = sqlite::backup(&database, &args.file, args.replace, &mut |done, all| bar.tell(done, all));
    drop(bar);
    let made = made.map_err(|error| CommandFailure::failed(error.to_string()))?;
    if args.json {
        return out.json(&json!({"file": shown(&args.file), "bytes": made.bytes, "schema": made.version}));
    }
    let size = megabytes(made.bytes);
    out.line(&format!("{} is a whole copy of {}: {size}", shown(&args.file), shown(&database)))
}

/// `carillon restore`
pub fn restore(args: &RestoreArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let database = file_of(&args.from)?;
    let mut bar = Progress::of_bytes("copying");
    let done = sqlite::restore(&args.file, &database, &mut |done, all| bar.tell(done, all));
    drop(bar);
    let done = done.map_err(|error| CommandFailure::failed(error.to_string()))?;
    let (from, until) = (done.window.from_at.to_rfc3339_short(), done.window.until_at.to_rfc3339_short());
    if args.json {
        let window = json!({"from_at": from, "until_at": until});
        let kept = done.kept.as_deref().map(shown);
        return out.json(&json!({"store": shown(&database), "kept": kept, "loss_window": window}));
    }
    out.line(&format!("{} is restored from {}", shown(&database), shown(&args.file)))?;
    if let Some(kept) = &done.kept {
        out.line(&format!("the database of before is kept in {}", shown(kept)))?;
    }
    out.line(&format!("what was committed between {from} and {until} may be lost"))?;
    out.line("a server starts nothing on it until you have looked and run `carillon cluster accept`")
}

/// The file that `store.url` names.
fn file_of(from: &ConfigArgs) -> Result<PathBuf, CommandFailure> {
    let config = Config::load(from.config.as_deref(), std::env::vars_os(), &from.overrides());
    let config = config.map_err(|error| CommandFailure::usage(error.to_string()))?;
    match config.store.url {
        StoreUrl::Sqlite(file) => Ok(file),
        StoreUrl::MySql(_) => Err(CommandFailure::usage(format!(
            "{} is kept by a database server, which has tools for this: see docs/backup.md",
            config.store.url
        ))),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
