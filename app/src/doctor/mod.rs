//! `carillon doctor`: what `serve` would find here, each thing with a remedy.
//!
//! It reads the configuration as `serve` does and looks at all that a server depends on. It changes nothing: it makes no file,
//! no table and no cgroup, so it may be run beside a server. Each module looks at one group of things. There the facts are
//! gathered by one function, and judged by pure ones.

mod cgroups;
mod configuration;
mod database;
mod disk;
mod files;
mod finding;
mod plugins;
mod port;
mod tls;

use std::process::ExitCode;

use carillon_alerts::Sender;

use self::finding::{Finding, Level};
use crate::cli::args::DoctorArgs;
use crate::cli::failure::CommandFailure;
use crate::cli::out::{Out, note};
use crate::cli::table::printable;
use crate::config::Config;

/// Looks, and tells. Exit code 1 if there is an error; warnings leave it at 0.
pub fn doctor(args: &DoctorArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CommandFailure::failed(format!("no runtime can be had: {error}; try again")))?;
    let findings = runtime.block_on(look(args));
    for finding in &findings {
        match args.json {
            true => out.json(&finding.json())?,
            // Words of a plugin or of a database may be in it.
            false => finding.text().lines().try_for_each(|line| out.line(&printable(line)))?,
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if !args.json {
        out.flush()?;
        note(&format!("{} checked: {}, {}", findings.len(), counted(errors, "error"), counted(warnings, "warning")));
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn look(args: &DoctorArgs) -> Vec<Finding> {
    let file = args.node.from.config.as_deref();
    let (config, faults) = match Config::read(file, std::env::vars_os(), &args.node.overrides()) {
        Ok(read) => read,
        Err(error) => return vec![configuration::unreadable(&error.to_string())],
    };
    let has_fault = |section| faults.iter().any(|fault| configuration::is_of(fault, section));
    let mut findings = configuration::look(file, &config, &faults);
    findings.extend(files::look(&config));
    let of_database = if has_fault("store") { database::unknown() } else { database::look(&config).await };
    findings.extend(of_database.findings);
    findings.push(cgroups::look());
    findings.push(port::look(config.http.bind, of_database.is_served));
    findings.extend(tls::look(&config.http));
    findings.extend(plugins::look(&config.plugins));
    findings.extend(disk::look(&config));
    findings.push(alerts(Sender::new(&config.alerts, config.mail.as_ref()).map(drop), config.mail.is_some()));
    findings
}

/// Such as `1 error` or `2 errors`.
fn counted(count: usize, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// Whether messages can be sent, as far as the files on this machine tell.
fn alerts(sender: Result<(), String>, has_mail: bool) -> Finding {
    match sender {
        Ok(()) if has_mail => Finding::ok("alerts", "messages can be made, mail too"),
        Ok(()) => Finding::ok("alerts", "all but mail can be sent; for mail set smtp and from in [mail]"),
        Err(sentence) => Finding::of_sentence("alerts", Level::Error, &sentence, "Correct [alerts] and [mail]."),
    }
}
