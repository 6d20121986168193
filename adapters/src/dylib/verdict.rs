//! How a plugin's run ended: what the keeper saw of the process, and what the plugin said.

use nix::sys::signal::Signal;

use super::wire::Report;
use crate::executor::{Ended, Exit};

/// The run's exit, from that of its host process and the report that this left, if it did.
pub(super) fn judge(exit: Exit, report: Option<Report>) -> Exit {
    match (exit.how, report) {
        (Ended::Lost, _) => exit,
        (Ended::TimedOut | Ended::Cancelled, report) => {
            let said = report.map(|report| report.message).filter(|message| !message.is_empty());
            let reason = match (exit.reason, said) {
                (Some(reason), Some(said)) => Some(format!("{reason}; the plugin says: {said}")),
                (reason, said) => reason.or(said),
            };
            Exit { reason, ..exit }
        }
        (Ended::Succeeded | Ended::Failed, Some(report)) => {
            let (how, reason) = match (report.succeeded, report.message) {
                (true, _) => (Ended::Succeeded, None),
                (false, message) if message.is_empty() => {
                    (Ended::Failed, Some("the plugin failed and did not say why".to_owned()))
                }
                (false, message) => (Ended::Failed, Some(message)),
            };
            Exit { how, exit_code: Some(report.exit_code.into()), signal: None, reason, ..exit }
        }
        (Ended::Succeeded | Ended::Failed, None) => {
            let reason = match (&exit.reason, exit.signal, exit.exit_code) {
                // It could not even be started.
                (Some(reason), _, _) => reason.clone(),
                (None, Some(signal), _) => signal_sentence(signal),
                (None, None, code) => {
                    let code = code.unwrap_or_default();
                    format!("the plugin ended its process with exit code {code} instead of returning from its run")
                }
            };
            Exit { how: Ended::Failed, reason: Some(reason), ..exit }
        }
    }
}

/// What a signal that Carillon did not send tells of a plugin.
pub(super) fn signal_sentence(signal: i32) -> String {
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    match signal {
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGABRT | libc::SIGTRAP | libc::SIGSYS => {
            format!("the plugin crashed: {name}")
        }
        _ => format!("the plugin's process was ended by {name}, which the server did not send"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(how: Ended, exit_code: Option<i32>, signal: Option<i32>, reason: Option<&str>) -> Exit {
        let reason = reason.map(str::to_owned);
        Exit { how, exit_code, signal, reason, output: Vec::new(), output_truncated: false }
    }

    #[test]
    fn leaving_without_a_report_is_never_success() {
        let judged = judge(exit(Ended::Succeeded, Some(0), None, None), None);
        let reason = "the plugin ended its process with exit code 0 instead of returning from its run";
        assert_eq!(judged, exit(Ended::Failed, Some(0), None, Some(reason)));
        let judged = judge(exit(Ended::Failed, None, Some(libc::SIGBUS), None), None);
        assert_eq!(judged.reason.as_deref(), Some("the plugin crashed: SIGBUS"));
    }

    #[test]
    fn what_the_keeper_decided_stays() {
        let success = Report { succeeded: true, exit_code: 0, message: String::new() };
        for how in [Ended::Lost, Ended::Cancelled, Ended::TimedOut] {
            let ended = exit(how, Some(0), None, Some("because"));
            assert_eq!(judge(ended.clone(), Some(success.clone())), ended);
        }
        let judged = judge(exit(Ended::Cancelled, Some(1), None, Some("cancelled")), Some(Report::failed("ok".into())));
        assert_eq!(judged.reason.as_deref(), Some("cancelled; the plugin says: ok"));
    }
}
