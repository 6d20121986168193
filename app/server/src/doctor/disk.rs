//! The free bytes and the free files of the disks that the server writes to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::finding::Finding;
use carillon_node::alerts::{disk, is_full};
use carillon_node::config::Config;

/// Free files below which a disk is nearly out of them.
const FEW_FILES: u64 = 1_000;

/// Looks at the disk of each directory that the server writes to.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let places: BTreeSet<PathBuf> =
        config.store.url.directory().into_iter().chain([config.node.data_dir.clone()]).collect();
    // One that is not there is told of as a directory.
    let facts = |place: PathBuf| disk(&place).map(|(bytes, free)| (files(&place), place, bytes, free));
    places.into_iter().filter_map(facts).map(|(files, place, bytes, free)| judge(&place, bytes, free, files)).collect()
}

/// The files that a disk can hold, and how many more; zeros where it sets no limit.
fn files(place: &Path) -> (u64, u64) {
    statvfs(place).map(|state| (state.files(), state.files_available())).unwrap_or_default()
}

fn judge(place: &Path, bytes: u64, free: u64, (files, free_files): (u64, u64)) -> Finding {
    const PART: &str = "disk";
    let shown = place.display();
    let says = format!("{} of {} are free at {shown}", human(free), human(bytes));
    let remedy = format!("Make room on the disk of {shown}, or let history.keep and audit.keep be shorter.");
    if is_full(false, bytes, free) {
        Finding::error(PART, format!("{says}: commits will fail soon"), remedy)
    } else if is_full(true, bytes, free) {
        Finding::warning(PART, says, remedy)
    } else if files > 0 && free_files < FEW_FILES {
        let says = format!("the disk of {shown} can take {free_files} more files");
        Finding::warning(PART, says, format!("Delete files on the disk of {shown} (df -i shows it)."))
    } else {
        Finding::ok(PART, says)
    }
}

/// Such as `3.2 GiB`.
fn human(bytes: u64) -> String {
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, next);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_disk_is_judged_as_alerts_judge_it() {
        let (mib, large) = (1 << 20, 1 << 40);
        for (bytes, free, files, expected) in [
            (large, large / 2, (0, 0), Level::Ok),
            (large, 99 * mib, (0, 0), Level::Error),
            (large, 150 * mib, (0, 0), Level::Warning),
            (large, 300 * mib, (1_000_000, 10), Level::Warning),
            (large, 300 * mib, (1_000_000, 10_000), Level::Ok),
            (40 * mib, mib, (0, 0), Level::Error),
        ] {
            let finding = judge(Path::new("/d"), bytes, free, files);
            assert_eq!(finding.level, expected, "{finding:?}");
        }
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, expected) in [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 << 40, "5.0 TiB")] {
            assert_eq!(human(bytes), expected);
        }
    }
}
