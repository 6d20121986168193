//! cgroup v2: with it the keeper ends everything that a run has started, in one step.

use std::path::{Display, Path};

use carillon_keeper::{CgroupPlace, cgroup_places};

use super::finding::Finding;

const PART: &str = "cgroups";

/// Looks at the cgroup of this process.
pub(super) fn look() -> Finding {
    judge(cgroup_places())
}

fn judge(places: Result<Vec<CgroupPlace>, String>) -> Finding {
    const SEARCHED: &str = "children that hide from their process group are searched for in /proc";
    let places = match places {
        Ok(places) => places,
        Err(sentence) => return Finding::warning(PART, sentence, "Mount /proc where the server runs."),
    };
    let Some(first) = places.first() else {
        return Finding::warning(
            PART,
            format!("no cgroup v2 hierarchy is mounted: {SEARCHED}"),
            "Start the system with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup.",
        );
    };
    match places.iter().find(|place| place.is_delegated) {
        None => Finding::warning(
            PART,
            format!("{} is not delegated to this user: {SEARCHED}", shown(&first.directory)),
            "Set Delegate=yes in the server's unit; to look as the unit would, run this under systemd-run -p Delegate=yes.",
        ),
        Some(place) if place.has_kill == Some(false) => Finding::warning(
            PART,
            format!("the kernel cannot kill a cgroup as a whole: {SEARCHED}"),
            "Upgrade the kernel to Linux 5.14 or newer.",
        ),
        Some(place) => Finding::ok(PART, format!("runs get cgroups of their own in {}", shown(&place.directory))),
    }
}

/// Without the slash at its end that joining nothing leaves.
fn shown(directory: &Path) -> Display<'_> {
    directory.components().as_path().display()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn runs_get_cgroups_where_they_may() {
        let place =
            |is_delegated, has_kill| CgroupPlace { directory: "/sys/fs/cgroup/x".into(), is_delegated, has_kill };
        for (places, level, remedy) in [
            (Ok(vec![place(true, Some(true))]), Level::Ok, ""),
            (Ok(vec![place(true, None)]), Level::Ok, ""),
            (Ok(vec![place(false, Some(true)), place(true, Some(true))]), Level::Ok, ""),
            (Ok(vec![place(true, Some(false))]), Level::Warning, "5.14"),
            (Ok(vec![place(false, Some(true))]), Level::Warning, "Delegate=yes"),
            (Ok(vec![]), Level::Warning, "cgroup2"),
            (Err("no".to_owned()), Level::Warning, "/proc"),
        ] {
            let finding = judge(places);
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.remedy.unwrap_or_default().contains(remedy), "{remedy}");
        }
    }
}
