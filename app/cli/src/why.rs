//! `carillon why`: the sentence that tells why a due time ran, did not, or has not yet.

use carillon_domain::time::Timestamp;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::args::{PlaceArgs, job_name, time};
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::out::Out;
use super::run::sentence;
use super::shell::names;
use super::table::printable;

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The job
    #[arg(value_parser = job_name, add = ArgValueCompleter::new(names::jobs))]
    pub name: String,
    /// The due time (RFC 3339) [default: the latest that has passed]
    #[arg(value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `carillon why`
pub fn why(args: &WhyArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get(format!("/v1/jobs/{}/why", args.name))
        .with("namespace", &args.place.namespace)
        .with_some("at", args.at.map(|at| at.to_string()));
    let why = Client::new(&args.place.server)?.call(call)?.body;
    if args.place.server.json {
        return out.json(&why);
    }
    out.line(&printable(why["sentence"].as_str().unwrap_or_default()))?;
    if why["run"].is_object() {
        out.line(&sentence(&why["run"]))?;
    }
    match why["next_due_at"].as_str().and_then(Timestamp::parse_rfc3339) {
        Some(next) if args.at.is_none() => out.line(&format!("next due at {}", next.to_rfc3339_short())),
        _ => Ok(()),
    }
}
