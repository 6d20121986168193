//! `carillon copy`: a whole store from one database into another.

use carillon_store::copy::{Copied, Place, Progress, copy};
use clap::Args;
use serde_json::json;
use tokio::runtime::Builder;

use carillon_cli::failure::CommandFailure;
use carillon_cli::out::{Out, note};
use carillon_cli::progress::Progress as Bar;
use carillon_cli::table::{Table, printable};
use carillon_node::config::StoreUrl;

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The store that is read, such as sqlite:///var/lib/carillon.db; its nodes must be stopped
    #[arg(long, value_name = "URL", env = "CARILLON_COPY_FROM", hide_env_values = true)]
    pub from: String,
    /// The empty database that becomes the same, such as mysql://user:password@host:3306/carillon
    #[arg(long, value_name = "URL", env = "CARILLON_COPY_TO", hide_env_values = true)]
    pub to: String,
    /// Answer in JSON, one table a line
    #[arg(long)]
    pub json: bool,
}

/// Copies, shows how far it is, and then the tables with their digests.
pub fn run(args: &CopyArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let (from, to) = (place("--from", &args.from)?, place("--to", &args.to)?);
    let runtime = super::runtime(Builder::new_multi_thread())?;
    let mut bar = Bar::of_items("copying");
    let mut tell = |Progress { table, done, all, checks }: Progress| {
        if checks {
            bar.clear();
            note(&format!("{table}: {done} rows are the same"));
        } else {
            bar.tell_of(table, done, all);
        }
    };
    let copied = runtime.block_on(copy(&from, &to, &mut tell));
    drop(bar);
    let copied = copied.map_err(|error| CommandFailure::failed(printable(&error.to_string())))?;
    if args.json {
        return copied.iter().try_for_each(|table| {
            out.json(&json!({"table": table.table, "rows": table.digest.rows, "sha256": table.digest.to_string()}))
        });
    }
    out.bytes(table_of(&copied).as_bytes())?;
    out.bytes(b"Both sides are the same. Point store.url of each node at the copy, and do not start nodes on the source again.\n")
}

fn place(option: &str, url: &str) -> Result<Place, CommandFailure> {
    match url.parse::<StoreUrl>() {
        Ok(StoreUrl::Sqlite(path)) => Ok(Place::Sqlite(path)),
        Ok(StoreUrl::MySql(url)) => Ok(Place::MySql(url.whole().to_owned())),
        Err(error) => Err(CommandFailure::usage(format!("{option}: {error}"))),
    }
}

fn table_of(copied: &[Copied]) -> String {
    let mut table = Table::new(["TABLE", "ROWS", "SHA-256"]);
    for one in copied {
        table.row([one.table.to_owned(), one.digest.rows.to_string(), one.digest.to_string()]);
    }
    table.text()
}
