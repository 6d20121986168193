//! When no job could start, whatever the nodes did: no server took writes, or a loss of commits was not accepted yet.

use super::liveness::Writable;
use super::watch::Window;

/// The stretches between two times, in microseconds since 1970. They may overlap.
pub fn outages(servers: &[Writable], windows: &[Window], from_us: i64, until_us: i64) -> Vec<(i64, i64)> {
    let mut writable: Vec<(i64, i64)> = servers.iter().flat_map(Writable::stretches).copied().collect();
    writable.sort_unstable();
    let (mut all, mut written_to) = (Vec::new(), from_us);
    for (from, until) in writable.into_iter().chain([(until_us, until_us)]) {
        if from > written_to {
            all.push((written_to, from));
        }
        written_to = written_to.max(until);
    }
    all.extend(windows.iter().map(|window| (window.noticed_us, window.accepted_us.unwrap_or(until_us))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_cannot_start_without_a_writer_or_while_a_loss_is_not_accepted() {
        let writable = |stretches: &[(i64, i64)]| {
            let mut all = Writable::default();
            for (from, until) in stretches {
                all.note(from * 1_000_000, until * 1_000_000);
                all.note_refusal();
            }
            all
        };
        let servers = [writable(&[(0, 10), (30, 40)]), writable(&[(8, 20), (50, 60)])];
        let window = |noticed: i64, accepted: Option<i64>| Window {
            noticed_us: noticed * 1_000_000,
            accepted_us: accepted.map(|at| at * 1_000_000),
            node: "a".to_owned(),
            is_open: accepted.is_none(),
        };
        let windows = [window(32, Some(35)), window(70, None)];
        let in_seconds = |servers: &[Writable], windows: &[Window]| {
            let found = outages(servers, windows, -2_000_000, 80_000_000);
            found.into_iter().map(|(from, until)| (from / 1_000_000, until / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(in_seconds(&servers, &windows), [(-2, 0), (20, 30), (40, 50), (60, 80), (32, 35), (70, 80)]);
        assert_eq!(in_seconds(&[], &[]), [(-2, 80)]);
    }
}
