//! Looking at a plugin, in a host process: loading one runs its code.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::image::Image;
use super::{Description, Host, Inspection};

/// The longest description that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Asks the plugin what it is. Blocks for as long as `host` says at most.
pub(crate) fn inspect(image: &Image, host: &Host) -> Result<Description, String> {
    let mut command = Command::new(&host.program);
    command.arg(crate::dylib::SUBCOMMAND).arg("inspect").arg(image.path());
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("the host process cannot be started: {error}"))?;
    let printed = read_to_end(&mut child, host);
    // A host that has ended keeps its status. One that has not, and all that is left of its group, ends now.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let status = child.wait().map_err(|error| format!("the host process cannot be waited for: {error}"))?;
    let printed = printed?;
    match serde_json::from_slice(&printed) {
        Ok(Inspection::Described(description)) => Ok(description),
        Ok(Inspection::Refused(reason)) => Err(reason),
        Err(_) => Err(match (status.signal(), status.code()) {
            (Some(signal), _) => format!("it could not be inspected: the plugin {}", signal_sentence(signal)),
            (None, code) => {
                let code = code.unwrap_or_default();
                format!("it could not be inspected: it ended the process with exit code {code} while being loaded")
            }
        }),
    }
}

fn read_to_end(child: &mut Child, host: &Host) -> Result<Vec<u8>, String> {
    let cannot = |error: io::Error| format!("the host process cannot be read: {error}");
    let Some(mut stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let deadline = Instant::now() + host.inspect_timeout;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    while bytes.len() <= MAX_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => {
                let limit = host.inspect_timeout;
                return Err(format!("it could not be inspected: loading it took longer than {limit:?}"));
            }
            Ok(_) => match stdout.read(&mut buffer).map_err(cannot)? {
                0 => return Ok(bytes),
                length => bytes.extend_from_slice(&buffer[..length]),
            },
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(cannot(error.into())),
        }
    }
    Err(format!("its name, version and params schema are together longer than {MAX_BYTES} bytes"))
}

/// The meaning of a signal that Carillon did not send, as the end of a sentence.
pub(crate) fn signal_sentence(signal: i32) -> String {
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
