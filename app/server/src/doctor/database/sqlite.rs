//! An embedded database: its file, its schema, who serves it, and the disk that must keep its commits.

use std::path::Path;

use carillon_store::sqlite::{Inspection, OpenError, directory_of, inspect};
use nix::sys::statfs::{self, FsType, statfs};

use super::super::finding::{Finding, Level};
use super::Look;

/// The kind of a disk, as far as commits depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    Lasting,
    InMemory,
    Network,
}

/// Looks at the file.
pub(super) fn look(file: &Path) -> Look {
    let found = inspect(file);
    let is_served = found.as_ref().ok().map(|found| found.as_ref().is_some_and(|found| found.held_by.is_some()));
    let mut findings = judge(file, found);
    let directory = directory_of(file);
    // One that is not there is told of as a directory.
    findings.extend(statfs(directory).ok().map(|state| durability(directory, disk_of(state.filesystem_type()))));
    Look { findings, is_served }
}

fn disk_of(kind: FsType) -> Disk {
    /// CIFS and SMB 2, which the library does not name.
    const SMB: [FsType; 2] = [FsType(0xFF53_4D42), FsType(0xFE53_4D42)];
    match kind {
        statfs::TMPFS_MAGIC => Disk::InMemory,
        statfs::NFS_SUPER_MAGIC | statfs::SMB_SUPER_MAGIC => Disk::Network,
        kind if SMB.contains(&kind) => Disk::Network,
        _ => Disk::Lasting,
    }
}

fn judge(file: &Path, found: Result<Option<Inspection>, OpenError>) -> Vec<Finding> {
    let shown = file.display();
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => {
            return vec![Finding::ok(
                "database",
                format!("sqlite://{shown} is not there yet: `carillon serve` makes it"),
            )];
        }
        Err(error) => {
            let otherwise = "Let the server's user read and write the file, or name another in store.url.";
            return vec![Finding::of_sentence("database", Level::Error, &error.to_string(), otherwise)];
        }
    };
    let Inspection { found, known, held_by } = found;
    let served = held_by.map_or_else(|| "no server runs on it".to_owned(), |by| format!("a server runs on it ({by})"));
    let schema = match found {
        0 => Finding::ok("schema", "there is none yet: `carillon serve` makes it"),
        found if found < known => {
            let says = format!(
                "version {found}: `carillon serve` brings it to {known}, and an older Carillon cannot use it then"
            );
            Finding::warning(
                "schema",
                says,
                format!("Copy {shown} while no server runs, before you start this version."),
            )
        }
        found if found == known => Finding::ok("schema", format!("version {found}, the newest")),
        found => Finding::error(
            "schema",
            format!("version {found} is of a newer Carillon; this one knows up to {known}"),
            "Use the newer Carillon, or a backup from before the upgrade.",
        ),
    };
    vec![Finding::ok("database", format!("sqlite://{shown} can be read; {served}")), schema]
}

fn durability(directory: &Path, disk: Disk) -> Finding {
    const PART: &str = "durability";
    let shown = directory.display();
    match disk {
        Disk::Lasting => Finding::ok(PART, format!("each commit is on the disk of {shown} before it is acknowledged")),
        Disk::InMemory => Finding::warning(
            PART,
            format!("{shown} is in memory: a reboot takes all jobs away"),
            "Name a file on a disk in store.url.",
        ),
        Disk::Network => Finding::error(
            PART,
            format!("{shown} is on a network disk, where SQLite's log and locks do not work"),
            "Name a file on a disk of this machine in store.url.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_judged_by_its_schema() {
        let file = |found, held_by: Option<&str>| Inspection { found, known: 7, held_by: held_by.map(str::to_owned) };
        for (found, expected, word) in [
            (Ok(None), vec![Level::Ok], "not there yet"),
            (Ok(Some(file(7, None))), vec![Level::Ok, Level::Ok], "no server"),
            (Ok(Some(file(7, Some("pid 9")))), vec![Level::Ok, Level::Ok], "pid 9"),
            (Ok(Some(file(0, None))), vec![Level::Ok, Level::Ok], "can be read"),
            (Ok(Some(file(6, None))), vec![Level::Ok, Level::Warning], "can be read"),
            (Ok(Some(file(8, None))), vec![Level::Ok, Level::Error], "can be read"),
            (Err(OpenError::NotADatabase("c.db".into())), vec![Level::Error], "not an SQLite database"),
        ] {
            let findings = judge(Path::new("c.db"), found);
            let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
            assert_eq!(levels, expected, "{findings:?}");
            assert!(findings[0].says.contains(word), "{findings:?}");
        }
    }

    #[test]
    fn a_disk_keeps_what_it_acknowledged() {
        for (kind, level) in [
            (statfs::EXT4_SUPER_MAGIC, Level::Ok),
            (statfs::TMPFS_MAGIC, Level::Warning),
            (statfs::NFS_SUPER_MAGIC, Level::Error),
            (FsType(0xFF53_4D42), Level::Error),
        ] {
            assert_eq!(durability(Path::new("/d"), disk_of(kind)).level, level, "{kind:?}");
        }
    }
}
