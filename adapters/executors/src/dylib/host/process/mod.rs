//! The host process: it loads one plugin, to inspect it or to run it.
//!
//! It knows nothing of the server but the paths of an image and of two pipes. A fault of the plugin ends this process only.

mod dying;
mod serve;
mod watch;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::dylib::catalog::Inspection;
use crate::dylib::library::Library;

/// The whole life of a host process. The hidden subcommand [`crate::dylib::SUBCOMMAND`] calls this, with the arguments after its name,
/// before the process has a second thread. `inspect IMAGE` prints the plugin's description. `serve IMAGE ORDERS WORDS BYTES` runs it
/// as often as the pipe ORDERS says, and reports on the pipe WORDS. It ends when ORDERS is closed, or when it holds more memory than
/// BYTES. Exit code 2 for other arguments.
pub fn host_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let number = |text: &OsStr| text.to_str()?.parse().ok();
    let done = match words.as_slice() {
        [mode, image] if *mode == "inspect" => inspect(Path::new(image)),
        [mode, image, orders, words, bytes] if *mode == "serve" && number(bytes).is_some() => {
            serve::serve(Path::new(image), Path::new(orders), Path::new(words), number(bytes).unwrap_or(u64::MAX))
        }
        _ => {
            eprintln!("carillon {} is started by the server, not by hand", crate::dylib::SUBCOMMAND);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("carillon {}: {sentence}", crate::dylib::SUBCOMMAND);
            ExitCode::FAILURE
        }
    }
}

fn inspect(image: &Path) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("the description cannot be printed: {error}");
    // A plugin that loops while being loaded must not outlive the server.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| cannot(error.into()))?;
    // The output of the plugin while it is loaded goes elsewhere.
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().map_err(cannot)?;
    nix::unistd::dup2_stdout(std::io::stderr()).map_err(|error| cannot(error.into()))?;
    dying::crash_plainly().map_err(|error| cannot(error.into()))?;
    let found = match Library::load(image).and_then(|library| library.description()) {
        Ok(description) => Inspection::Described(description),
        Err(reason) => Inspection::Refused(reason),
    };
    let text = serde_json::to_vec(&found).map_err(|error| cannot(error.into()))?;
    File::from(stdout).write_all(&text).map_err(cannot)?;
    leave(0)
}

/// Ends the process at once. Exit handlers of a plugin could crash or never end, so they do not run.
pub fn leave(exit_code: u8) -> ! {
    // SAFETY: always.
    unsafe { libc::_exit(exit_code.into()) }
}
