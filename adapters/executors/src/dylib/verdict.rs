//! How a plugin's run ended, in words: what the plugin said, and what became of the process that it was in.

use nix::sys::signal::Signal;

use super::slots::End;
use super::wire::Report;
use crate::executor::{Ended, Exit};
use carillon_keeper::output::Output;

/// Why the server ended a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    /// A run in it did not stop.
    NotStopped,
    /// It is not needed any more; nothing ran in it.
    Retired,
    /// It says nothing any more, or nonsense.
    Unheard,
}

/// How a host process ended.
#[derive(Debug)]
pub(super) struct HostEnd {
    /// Name of the plugin.
    pub(super) plugin: String,
    /// What the keeper saw.
    pub(super) exit: Exit,
    /// The run in the midst of which it ended, as far as it could tell.
    pub(super) culprit: Option<u64>,
    /// The memory limit that it went beyond, in bytes.
    pub(super) beyond_bytes: Option<u64>,
    /// Why the server ended it, if it did.
    pub(super) killed: Option<Killed>,
}

impl HostEnd {
    /// Why it ended, as the end of a sentence that begins with the plugin.
    pub(super) fn why(&self) -> String {
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

    /// Of a run that was in it.
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

/// Why a run was to stop: how it will have ended, and the beginning of a sentence.
pub(super) type Stopped = (Ended, String);

/// Why a run cannot begin, or there is no host for it: a sentence, and whether it is for the plugin's own fault
/// ([`Ended::Failed`]) or for the lease or the keeper ([`Ended::Lost`]).
pub(super) type NotStarted = (Ended, String);

/// The exit of a run of the plugin of that name.
pub(super) fn judge(plugin: &str, end: End, stopped: Option<Stopped>) -> Exit {
    match end {
        End::Reported(Report::LeaseOver, output) => {
            let reason = "the node did not renew its lease in time".to_owned();
            exit(Ended::Lost, (None, None), Some(reason), output)
        }
        End::Reported(Report::Returned { succeeded, exit_code, message, threads_left }, output) => {
            let left = threads_sentence(plugin, threads_left);
            let (how, because) = match stopped {
                Some((how, because)) => (how, Some(because)),
                None if succeeded && left.is_none() => (Ended::Succeeded, None),
                None => (Ended::Failed, None),
            };
            let said = match (message.is_empty(), &because) {
                (true, _) => None,
                (false, Some(_)) => Some(format!("the plugin says: {message}")),
                (false, None) => (!succeeded).then_some(message),
            };
            let mut reasons: Vec<String> = [because, said, left].into_iter().flatten().collect();
            if reasons.is_empty() && how == Ended::Failed {
                reasons.push("the plugin failed and did not say why".to_owned());
            }
            let exit_code = if how == Ended::Failed { exit_code.max(1) } else { exit_code };
            let reason = Some(reasons.join("; ")).filter(|reason| !reason.is_empty());
            exit(how, (Some(exit_code.into()), None), reason, output)
        }
        End::HostEnded { key, host, alone, output } => {
            let Exit { how, exit_code, signal, reason, .. } = &host.exit;
            let (how, reason) = match (how, stopped) {
                (Ended::Lost, _) => (Ended::Lost, reason.clone()),
                (_, Some((how, reason))) if host.killed == Some(Killed::NotStopped) => (how, Some(reason)),
                (_, Some((how, reason))) => (how, Some(format!("{reason}; {}", host.sentence(key, alone)))),
                (_, None) => (Ended::Failed, Some(host.sentence(key, alone))),
            };
            exit(how, (*exit_code, *signal), reason, output)
        }
        // It was not to go to another host: it is to stop, or the node has lost its lease.
        End::NotBegun(host) => match stopped {
            Some((how, reason)) if host.exit.how != Ended::Lost => Exit::without_process(how, reason),
            _ => Exit::without_process(Ended::Lost, host.exit.reason.clone().unwrap_or_default()),
        },
        End::NotStarted((how, reason)) => Exit::without_process(how, reason),
    }
}

/// Of a run that left so many threads behind; `None` if there are none.
fn threads_sentence(plugin: &str, threads: u32) -> Option<String> {
    match threads {
        0 => None,
        1 => Some(format!("plugin {plugin} left a thread behind")),
        _ => Some(format!("plugin {plugin} left {threads} threads behind")),
    }
}

fn exit(how: Ended, (exit_code, signal): (Option<i32>, Option<i32>), reason: Option<String>, output: Output) -> Exit {
    let (output, output_truncated) = output.finish();
    Exit { how, exit_code, signal, reason, output, output_truncated }
}

/// What a signal that Carillon did not send tells of a plugin, as the end of a sentence.
pub(super) fn signal_sentence(signal: i32) -> String {
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    match signal {
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGABRT | libc::SIGTRAP | libc::SIGSYS => {
            format!("crashed: {name}")
        }
        libc::SIGKILL => format!(
            "had its process ended by {name}, which the server did not send; the machine may be short of memory"
        ),
        _ => format!("had its process ended by {name}, which the server did not send"),
    }
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
    use std::sync::Arc;

    use super::*;

    fn host(exit_code: Option<i32>, signal: Option<i32>) -> HostEnd {
        let exit = Exit { exit_code, signal, reason: None, ..Exit::without_process(Ended::Failed, "") };
        HostEnd { plugin: "p".into(), exit, culprit: None, beyond_bytes: None, killed: None }
    }

    /// How the run 1 ends with its host.
    fn judged(host: HostEnd, alone: bool, stopped: Option<Stopped>) -> (Ended, String) {
        let end = End::HostEnded { key: 1, host: Arc::new(host), alone, output: Output::default() };
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
            assert_eq!(judged(host, alone, None), (Ended::Failed, sentence.to_owned()));
        }
    }

    #[test]
    fn what_was_decided_before_stays() {
        let cancelled = || Some((Ended::Cancelled, "cancelled".to_owned()));
        let killed = HostEnd { killed: Some(Killed::NotStopped), ..host(None, Some(libc::SIGKILL)) };
        assert_eq!(judged(killed, false, cancelled()), (Ended::Cancelled, "cancelled".to_owned()));
        let crash = judged(host(None, Some(libc::SIGBUS)), true, cancelled());
        assert_eq!(crash, (Ended::Cancelled, "cancelled; plugin p crashed: SIGBUS".to_owned()));
        let lost = Exit::without_process(Ended::Lost, "the keeper died");
        let lost = HostEnd { exit: lost, ..host(None, None) };
        assert_eq!(judged(lost, true, cancelled()), (Ended::Lost, "the keeper died".to_owned()));
    }

    #[test]
    fn what_the_plugin_says_comes_after_why_it_was_stopped() {
        let failed = |message: &str| End::Reported(Report::failed(message.to_owned()), Output::default());
        let cancelled = Some((Ended::Cancelled, "cancelled".to_owned()));
        assert_eq!(judge("p", failed("half"), cancelled).reason.as_deref(), Some("cancelled; the plugin says: half"));
        let exit = judge("p", failed(""), None);
        let reason = exit.reason.as_deref();
        assert_eq!((exit.how, reason), (Ended::Failed, Some("the plugin failed and did not say why")));
    }

    #[test]
    fn a_thread_that_is_left_behind_fails_the_run() {
        let returned = |succeeded: bool, message: &str, threads_left| {
            let (exit_code, message) = (u8::from(!succeeded), message.to_owned());
            End::Reported(Report::Returned { succeeded, exit_code, message, threads_left }, Output::default())
        };
        let cancelled = Some((Ended::Cancelled, "cancelled".to_owned()));
        for (end, stopped, how, sentence) in [
            (returned(true, "", 1), None, Ended::Failed, "plugin p left a thread behind"),
            (returned(true, "fine", 3), None, Ended::Failed, "plugin p left 3 threads behind"),
            (returned(false, "no luck", 1), None, Ended::Failed, "no luck; plugin p left a thread behind"),
            (returned(true, "", 1), cancelled, Ended::Cancelled, "cancelled; plugin p left a thread behind"),
        ] {
            let exit = judge("p", end, stopped);
            assert_eq!((exit.how, exit.reason.as_deref()), (how, Some(sentence)));
            assert_eq!(exit.exit_code == Some(0), how == Ended::Cancelled);
        }
    }
}
