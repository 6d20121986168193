//! How a plugin's run ended, in words: what the plugin said, and what became of the process that it was in.

use nix::sys::signal::Signal;

use super::slots::End;
use super::wire::Report;
use crate::executor::{Ended, Exit};
use crate::keeper::output::Output;

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

/// The run's exit.
pub(super) fn judge(end: End, stopped: Option<Stopped>) -> Exit {
    match end {
        End::Reported(Report::LeaseOver, output) => {
            let reason = "the node did not renew its lease in time".to_owned();
            exit(Ended::Lost, (None, None), Some(reason), output)
        }
        End::Reported(Report::Returned { succeeded, exit_code, message }, output) => {
            let said = Some(message).filter(|message| !message.is_empty());
            let (how, reason) = match (stopped, succeeded, said) {
                (Some((how, reason)), _, Some(said)) => (how, Some(format!("{reason}; the plugin says: {said}"))),
                (Some((how, reason)), _, None) => (how, Some(reason)),
                (None, true, _) => (Ended::Succeeded, None),
                (None, false, said) => {
                    (Ended::Failed, Some(said.unwrap_or_else(|| "the plugin failed and did not say why".to_owned())))
                }
            };
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
        let exit = judge(end, stopped);
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
        assert_eq!(judge(failed("half"), cancelled).reason.as_deref(), Some("cancelled; the plugin says: half"));
        let exit = judge(failed(""), None);
        let reason = exit.reason.as_deref();
        assert_eq!((exit.how, reason), (Ended::Failed, Some("the plugin failed and did not say why")));
    }
}
