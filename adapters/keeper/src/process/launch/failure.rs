//! Failures between birth and exec of a child, and their sentences for users.

use std::ffi::CString;
use std::io;

use carillon_domain::run::Outcome;

use crate::exit::LEASE_OVER;
use crate::spawn_request::Spawn;

/// The step between fork and exec that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// Session, files, limits, signals.
    Setup = 1,
    /// Becoming the run's user.
    User,
    /// Entering the directory.
    Directory,
    /// The keeper died before the exec.
    Orphaned,
    /// The node's lease ran out.
    Lease,
    /// The program does not exist.
    NotFound,
    /// The program is there but may not be executed.
    Denied,
    /// Any other refusal of execve.
    Exec,
}

const STEPS: [Step; 8] =
    [Step::Setup, Step::User, Step::Directory, Step::Orphaned, Step::Lease, Step::NotFound, Step::Denied, Step::Exec];

/// A child writes this before it ends with [`LaunchFailure::EXIT_CODE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchFailure {
    /// The child.
    pub(crate) pid: i32,
    /// The step that failed.
    pub(crate) step: Step,
    /// errno at that moment.
    pub(crate) errno: i32,
}

impl LaunchFailure {
    /// The exit code of a child that never became its program (the shell's "not found").
    pub(crate) const EXIT_CODE: i32 = 127;
    /// Length of a failure on the pipe.
    pub(crate) const BYTES: usize = 12;

    /// As written to the pipe; allocates nothing.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_ne_bytes());
        bytes[4] = self.step as u8;
        bytes[8..].copy_from_slice(&self.errno.to_ne_bytes());
        bytes
    }

    /// As read from the pipe.
    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [a, b, c, d, step, _, _, _, e, f, g, h] = bytes;
        let step = STEPS.into_iter().find(|known| *known as u8 == step)?;
        Some(Self { pid: i32::from_ne_bytes([a, b, c, d]), step, errno: i32::from_ne_bytes([e, f, g, h]) })
    }
}

/// The names that the sentences need, kept while the run lives.
pub(crate) struct Names {
    program: CString,
    dir: CString,
}

impl Names {
    pub(crate) fn of(spawn: &Spawn) -> Self {
        Self { program: spawn.argv.first().cloned().unwrap_or_default(), dir: spawn.dir.clone() }
    }

    /// How the run ended, and a sentence for its reader.
    pub(crate) fn explain(&self, failure: LaunchFailure) -> (Outcome, String) {
        let program = self.program.to_string_lossy();
        let error = io::Error::from_raw_os_error(failure.errno);
        let sentence = match failure.step {
            Step::Lease => return (Outcome::Lost, LEASE_OVER.to_owned()),
            Step::Orphaned => return (Outcome::Lost, "the keeper died while the run was starting".to_owned()),
            Step::Setup => format!("could not be started: {error}"),
            Step::User => format!("could not switch to the run's user: {error}"),
            Step::Directory => format!("cannot enter the directory {:?}: {error}", self.dir.to_string_lossy()),
            Step::NotFound if program.contains('/') => {
                format!("no such program: {program:?} (or the interpreter that its first line names)")
            }
            Step::NotFound => format!("no such program: {program:?} is in no directory of the run's PATH"),
            Step::Denied => {
                format!("may not execute {program:?}: permission denied; check its mode and that of its directories")
            }
            Step::Exec if failure.errno == libc::ENOEXEC => {
                format!(
                    "cannot execute {program:?}: neither a binary for this machine nor a script that begins with #!"
                )
            }
            Step::Exec if failure.errno == libc::E2BIG => {
                "the command and its environment are longer than the system allows (128 KiB for one string)".to_owned()
            }
            Step::Exec => format!("cannot execute {program:?}: {error}"),
        };
        (Outcome::Failed, sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_pipe() {
        for step in STEPS {
            let failure = LaunchFailure { pid: 4_000_000, step, errno: 13 };
            assert_eq!(LaunchFailure::from_bytes(failure.to_bytes()), Some(failure));
        }
        assert_eq!(LaunchFailure::from_bytes([0; LaunchFailure::BYTES]), None);
    }
}
