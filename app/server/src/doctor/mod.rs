//! The findings of `carillon doctor`: all that a server depends on, each thing with a remedy.
//!
//! It reads the configuration as `serve` does. It changes nothing: it makes no file,
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

use carillon_alerts::Sender;

pub use self::finding::{Finding, Level};
use crate::serve::args::NodeArgs;
use carillon_node::config::Config;

/// Looks at all that a server with these arguments depends on.
pub async fn look(node: &NodeArgs) -> Vec<Finding> {
    let file = node.from.config.as_deref();
    let (config, faults) = match Config::read(file, std::env::vars_os(), &node.overrides()) {
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

/// Whether messages can be sent, as far as the files on this machine tell.
fn alerts(sender: Result<(), String>, has_mail: bool) -> Finding {
    match sender {
        Ok(()) if has_mail => Finding::ok("alerts", "messages can be made, mail too"),
        Ok(()) => Finding::ok("alerts", "all but mail can be sent; for mail set smtp and from in [mail]"),
        Err(sentence) => Finding::of_sentence("alerts", Level::Error, &sentence, "Correct [alerts] and [mail]."),
    }
}
