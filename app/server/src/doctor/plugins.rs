//! The plugins directory: who may write to it, and which of its files a server loads.

use std::collections::BTreeSet;

use carillon_executors::dylib::{Change, Folder, Host};

use super::finding::Finding;
use carillon_node::config::PluginsConfig;

const PART: &str = "plugins";

/// A file of the directory, or the directory itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Plugin { name: String, version: String },
    Refused { file: String, reason: String, is_directory: bool },
}

/// Looks at the directory as a server does: each file is loaded by a process of its own.
pub(super) fn look(config: &PluginsConfig) -> Vec<Finding> {
    let changes = Folder::new(&config.dir, Host::new("/proc/self/exe")).look();
    let seen: Vec<Seen> = changes
        .into_iter()
        .filter_map(|change| match change {
            Change::Found(plugin) => {
                let described = plugin.description();
                Some(Seen::Plugin { name: described.name.clone(), version: described.version.clone() })
            }
            Change::Refused(refused) => Some(Seen::Refused {
                is_directory: refused.file == config.dir,
                file: refused.file.display().to_string(),
                reason: refused.reason,
            }),
            Change::Gone(_) => None,
        })
        .collect();
    judge(&config.dir.display().to_string(), &seen, &config.in_process)
}

fn judge(directory: &str, seen: &[Seen], in_process: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for one in seen {
        match one {
            Seen::Plugin { name, version } => {
                names.insert(name.as_str());
                findings.push(Finding::ok(PART, format!("{name} {version} can be loaded")));
            }
            Seen::Refused { reason, is_directory: true, .. } => {
                let remedy = format!(
                    "Let root or the server's user alone own {directory} and the way to it, or change plugins.dir."
                );
                findings.push(Finding::error(PART, format!("the directory is refused: {reason}"), remedy));
            }
            Seen::Refused { file, reason, is_directory: false } => {
                let remedy = format!(
                    "Replace the file or take it away; `carillon plugin inspect {file}` tells when it is good."
                );
                findings.push(Finding::warning(PART, format!("{file} is refused: {reason}"), remedy));
            }
        }
    }
    for name in in_process.iter().filter(|name| !names.contains(name.as_str())) {
        let says = format!("plugins.in_process names {name:?}, and {directory} has no such plugin");
        findings.push(Finding::warning(
            PART,
            says,
            format!("Put the plugin into {directory}, or correct plugins.in_process."),
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(PART, format!("there are none in {directory}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_file_is_a_warning_and_the_directory_an_error() {
        let noop = Seen::Plugin { name: "noop".into(), version: "0.1.0".into() };
        let refused = |is_directory| Seen::Refused { file: "p/a.so".into(), reason: "no".into(), is_directory };
        let named = ["noop".to_owned()];
        for (seen, in_process, expected) in [
            (vec![], &[][..], vec![Level::Ok]),
            (vec![noop.clone()], &named, vec![Level::Ok]),
            (vec![], &named, vec![Level::Warning]),
            (vec![noop, refused(false)], &named, vec![Level::Ok, Level::Warning]),
            (vec![refused(true)], &[], vec![Level::Error]),
        ] {
            let findings = judge("p", &seen, in_process);
            assert_eq!(findings.iter().map(|finding| finding.level).collect::<Vec<_>>(), expected, "{findings:?}");
        }
    }
}
