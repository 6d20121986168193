//! The exit of a plugin's run and its reason, from the plugin's own report or from the end of its process.

use std::sync::Arc;

use crate::dylib::catalog::inspection::signal_sentence;
use crate::dylib::frames::Report;
use crate::executor::{Exit, Outcome};
use carillon_domain::measured::Usage;
use carillon_keeper::LEASE_OVER;
use carillon_keeper::output::Output;

/// The reason why the server ended a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// A run in it did not stop.
    NotStopped,
    /// It is no longer needed and had no runs.
    Retired,
    /// It sent no messages any more, or an invalid one.
    Unheard,
}

/// How a host process ended.
#[derive(Debug)]
pub(crate) struct HostEnd {
    /// Name of the plugin.
    pub(crate) plugin: String,
    /// The exit, as the keeper saw it.
    pub(crate) exit: Exit,
    /// The run that it was in when it ended, if it could report that.
    pub(crate) culprit: Option<u64>,
    /// The memory limit that it went beyond, in bytes.
    pub(crate) beyond_bytes: Option<u64>,
    /// Why the server ended it, if it did.
    pub(crate) killed: Option<Killed>,
}

impl HostEnd {
    /// The cause, as the end of a sentence that begins with the plugin.
    pub(crate) fn why(&self) -> String {
        let Exit { exit_code, signal, reason, .. } = &self.exit;
        match (self.beyond_bytes, self.killed, signal, reason) {
            (Some(bytes), _, _, _) => format!("went beyond its memory limit of {}", size(bytes)),
            (None, Some(Killed::NotStopped), _, _) => "was ended, because another run in it did not stop".to_owned(),
            (None, Some(Killed::Unheard), _, _) => "closed or used handles that are not its own".to_owned(),
            (None, Some(Killed::Retired), _, _) => "had its process replaced".to_owned(),
            (None, None, Some(signal), _) => signal_sentence(*signal),
            // It could not even be started.
            (None, None, None, Some(reason)) => format!("has no process: {reason}"),
            (None, None, None, None) => {
                let code = exit_code.unwrap_or_default();
                format!("ended its process with exit code {code} instead of returning from its run")
            }
        }
    }

    /// The reason of a run that was in it.
    fn sentence(&self, key: u64, alone: bool) -> String {
        let (plugin, why) = (&self.plugin, self.why());
        match self.culprit {
            Some(culprit) if culprit == key => format!("plugin {plugin} {why}"),
            None if alone => format!("plugin {plugin} {why}"),
            Some(_) => {
                format!("the process of plugin {plugin} ended in the midst of this run, by another run: it {why}")
            }
            None => format!("the process of plugin {plugin} ended in the midst of this run and of others: it {why}"),
        }
    }
}

/// How a run came to its end.
pub(crate) enum RunEnd {
    /// The plugin returned, or was not called.
    Reported(Report, Output),
    /// Its process ended.
    HostEnded { key: u64, host: Arc<HostEnd>, alone: bool, output: Output },
    /// Its process ended before the plugin was called for it, so another host can take it.
    NotBegun(Arc<HostEnd>),
    /// It was never given to a host.
    NotStarted(NotStarted),
}

impl RunEnd {
    /// Whether the run continues in another process.
    pub(crate) fn goes_elsewhere(&self, stopped: Option<&Stopped>) -> bool {
        matches!(self, Self::NotBegun(host) if stopped.is_none() && host.exit.how != Outcome::Lost)
    }
}

/// A reason to stop a run: its outcome, and the beginning of a sentence.
pub(crate) type Stopped = (Outcome, String);

/// Why a run cannot begin, or there is no host for it: a sentence and an outcome. That is [`Outcome::Failed`] for a fault of the plugin,
/// and [`Outcome::Lost`] for one of the lease or the keeper.
pub(crate) type NotStarted = (Outcome, String);

/// The exit of a run of the plugin of that name.
pub(crate) fn judge(plugin: &str, end: RunEnd, stopped: Option<Stopped>) -> Exit {
    match end {
        RunEnd::Reported(Report::LeaseOver, output) => {
            exit(Outcome::Lost, (None, None), Some(LEASE_OVER.to_owned()), output)
        }
        RunEnd::Reported(Report::Returned { succeeded, exit_code, message, threads_left }, output) => {
            let left = threads_sentence(plugin, threads_left);
            let (how, because) = match stopped {
                Some((how, because)) => (how, Some(because)),
                None if succeeded && left.is_none() => (Outcome::Succeeded, None),
                None => (Outcome::Failed, None),
            };
            let said = match (message.is_empty(), &because) {
                (true, _) => None,
                (false, Some(_)) => Some(format!("the plugin says: {message}")),
                (false, None) => (!succeeded).then_some(message),
            };
            let mut reasons: Vec<String> = [because, said, left].into_iter().flatten().collect();
            if reasons.is_empty() && how == Outcome::Failed {
                reasons.push("the plugin failed and did not say why".to_owned());
            }
            let exit_code = if how == Outcome::Failed { exit_code.max(1) } else { exit_code };
            let reason = Some(reasons.join("; ")).filter(|reason| !reason.is_empty());
            exit(how, (Some(exit_code.into()), None), reason, output)
        }
        RunEnd::HostEnded { key, host, alone, output } => {
            let Exit { how, exit_code, signal, reason, .. } = &host.exit;
            let (how, reason) = match (how, stopped) {
                (Outcome::Lost, _) => (Outcome::Lost, reason.clone()),
                (_, Some((how, reason))) if host.killed == Some(Killed::NotStopped) => (how, Some(reason)),
                (_, Some((how, reason))) => (how, Some(format!("{reason}; {}", host.sentence(key, alone)))),
                (_, None) => (Outcome::Failed, Some(host.sentence(key, alone))),
            };
            exit(how, (*exit_code, *signal), reason, output)
        }
        // It was not to go to another host: it is to stop, or the node has lost its lease.
        RunEnd::NotBegun(host) => match stopped {
            Some((how, reason)) if host.exit.how != Outcome::Lost => Exit::without_process(how, reason),
            _ => Exit::without_process(Outcome::Lost, host.exit.reason.clone().unwrap_or_default()),
        },
        RunEnd::NotStarted((how, reason)) => Exit::without_process(how, reason),
    }
}

/// The sentence about the threads that a run left behind; `None` if there are none.
fn threads_sentence(plugin: &str, threads: u32) -> Option<String> {
    match threads {
        0 => None,
        1 => Some(format!("plugin {plugin} left a thread behind")),
        _ => Some(format!("plugin {plugin} left {threads} threads behind")),
    }
}

fn exit(how: Outcome, (exit_code, signal): (Option<i32>, Option<i32>), reason: Option<String>, output: Output) -> Exit {
    let (output, output_truncated) = output.finish();
    // One host runs many, so nobody can tell what one of them used.
    Exit { how, exit_code, signal, reason, output, output_truncated, usage: Usage::default() }
}

/// A size as people write it.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes % (1 << 30) == 0 => format!("{} GiB", bytes >> 30),
        bytes => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(exit_code: Option<i32>, signal: Option<i32>) -> HostEnd {
        let exit = Exit { exit_code, signal, reason: None, ..Exit::without_process(Outcome::Failed, "") };
        HostEnd { plugin: "p".into(), exit, culprit: None, beyond_bytes: None, killed: None }
    }

    /// How the run 1 ends with its host.
    fn judged(host: HostEnd, alone: bool, stopped: Option<Stopped>) -> (Outcome, String) {
        let end = RunEnd::HostEnded { key: 1, host: Arc::new(host), alone, output: Output::default() };
        let exit = judge("p", end, stopped);
        (exit.how, exit.reason.unwrap())
    }

    #[test]
    fn a_host_that_ends_fails_its_runs_and_blames_whom_it_can() {
        let crash = || host(None, Some(libc::SIGSEGV));
        let memory = HostEnd { beyond_bytes: Some(1 << 30), ..host(Some(1), None) };
        for (host, alone, sentence) in [
            (crash(), true, "plugin p crashed: SIGSEGV"),
            (
                crash(),
                false,
                "the process of plugin p ended in the midst of this run and of others: it crashed: SIGSEGV",
            ),
            (HostEnd { culprit: Some(1), ..crash() }, false, "plugin p crashed: SIGSEGV"),
            (
                HostEnd { culprit: Some(2), ..crash() },
                false,
                "the process of plugin p ended in the midst of this run, by another run: it crashed: SIGSEGV",
            ),
            (
                host(Some(0), None),
                true,
                "plugin p ended its process with exit code 0 instead of returning from its run",
            ),
            (memory, true, "plugin p went beyond its memory limit of 1 GiB"),
        ] {
            assert_eq!(judged(host, alone, None), (Outcome::Failed, sentence.to_owned()));
        }
    }

    #[test]
    fn what_was_decided_before_stays() {
        let cancelled = || Some((Outcome::Cancelled, "cancelled".to_owned()));
        let killed = HostEnd { killed: Some(Killed::NotStopped), ..host(None, Some(libc::SIGKILL)) };
        assert_eq!(judged(killed, false, cancelled()), (Outcome::Cancelled, "cancelled".to_owned()));
        let crash = judged(host(None, Some(libc::SIGBUS)), true, cancelled());
        assert_eq!(crash, (Outcome::Cancelled, "cancelled; plugin p crashed: SIGBUS".to_owned()));
        let lost = Exit::without_process(Outcome::Lost, "the keeper died");
        let lost = HostEnd { exit: lost, ..host(None, None) };
        assert_eq!(judged(lost, true, cancelled()), (Outcome::Lost, "the keeper died".to_owned()));
    }

    #[test]
    fn what_the_plugin_says_comes_after_why_it_was_stopped() {
        let failed = |message: &str| RunEnd::Reported(Report::failed(message.to_owned()), Output::default());
        let cancelled = Some((Outcome::Cancelled, "cancelled".to_owned()));
        assert_eq!(judge("p", failed("half"), cancelled).reason.as_deref(), Some("cancelled; the plugin says: half"));
        let exit = judge("p", failed(""), None);
        let reason = exit.reason.as_deref();
        assert_eq!((exit.how, reason), (Outcome::Failed, Some("the plugin failed and did not say why")));
    }

    #[test]
    fn a_thread_that_is_left_behind_fails_the_run() {
        let returned = |succeeded: bool, message: &str, threads_left| {
            let (exit_code, message) = (u8::from(!succeeded), message.to_owned());
            RunEnd::Reported(Report::Returned { succeeded, exit_code, message, threads_left }, Output::default())
        };
        let cancelled = Some((Outcome::Cancelled, "cancelled".to_owned()));
        for (end, stopped, how, sentence) in [
            (returned(true, "", 1), None, Outcome::Failed, "plugin p left a thread behind"),
            (returned(true, "fine", 3), None, Outcome::Failed, "plugin p left 3 threads behind"),
            (returned(false, "no luck", 1), None, Outcome::Failed, "no luck; plugin p left a thread behind"),
            (returned(true, "", 1), cancelled, Outcome::Cancelled, "cancelled; plugin p left a thread behind"),
        ] {
            let exit = judge("p", end, stopped);
            assert_eq!((exit.how, exit.reason.as_deref()), (how, Some(sentence)));
            assert_eq!(exit.exit_code == Some(0), how == Outcome::Cancelled);
        }
    }
}
