//! One run of a plugin.

use std::ffi::{CString, c_char, c_void};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use carillon_plugin::abi::{Env, FAILED, MIN_MESSAGE_CAPACITY, RunFacts, RunResult, SUCCEEDED};
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::library::Library;
use crate::dylib::wire::{Facts, Report};

/// Bytes for a plugin's message.
const MESSAGE_CAPACITY: usize = 4096;
const _: () = assert!(MESSAGE_CAPACITY >= MIN_MESSAGE_CAPACITY as usize);

/// Set once the run is to stop.
static STOP: AtomicBool = AtomicBool::new(false);

/// Runs the plugin, leaves the report and ends the process. Returns only if the report cannot be left.
pub(super) fn run(image: &Path, report: &Path) -> Result<(), String> {
    let file = OpenOptions::new().write(true).open(report);
    let file = file.map_err(|error| format!("the file for the report cannot be opened: {error}"))?;
    let report = execute(image).unwrap_or_else(Report::failed);
    finish(&file, &report)
}

fn finish(file: &File, report: &Report) -> Result<(), String> {
    // SAFETY: flushes all streams. What a plugin's printf has buffered would be lost without it.
    unsafe { libc::fflush(ptr::null_mut()) };
    report.write(file).map_err(|error| format!("the report cannot be written: {error}"))?;
    super::leave(report.exit_code)
}

fn execute(image: &Path) -> Result<Report, String> {
    set_signals().map_err(|error| format!("signals cannot be set up: {error}"))?;
    let facts: Facts = serde_json::from_reader(std::io::stdin().lock())
        .map_err(|error| format!("the facts of the run cannot be read: {error}"))?;
    let facts = Strings::new(facts)?;
    let library = Library::load(image)?;
    let run = library.run()?;
    let mut message = vec![0_u8; MESSAGE_CAPACITY];
    let mut result = RunResult {
        struct_size: size_of::<RunResult>() as u32,
        status: FAILED,
        exit_code: 0,
        message_capacity: MESSAGE_CAPACITY as u32,
        message: message.as_mut_ptr().cast(),
    };
    let variables = facts.variables();
    let facts = facts.for_plugin(&variables);
    // SAFETY: a plugin's run function, with all that the ABI promises it.
    unsafe { run(&raw const facts, &raw mut result) };
    let length = message.iter().position(|byte| *byte == 0).unwrap_or(message.len());
    let message = String::from_utf8_lossy(&message[..length]).into_owned();
    let succeeded = result.status == SUCCEEDED;
    let exit_code = if succeeded { 0 } else { u8::try_from(result.exit_code).unwrap_or(1).max(1) };
    Ok(Report { succeeded, exit_code, message })
}

/// SIGTERM asks the run to stop, and interrupts what waits. Crashes are to look like crashes: Rust's own handlers, which
/// explain an overflow of the stack, would turn a SIGSEGV into a SIGABRT.
fn set_signals() -> nix::Result<()> {
    let ask = SigAction::new(SigHandler::Handler(on_term), SaFlags::empty(), SigSet::empty());
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for (signal, action) in [(Signal::SIGTERM, &ask), (Signal::SIGSEGV, &default), (Signal::SIGBUS, &default)] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(signal, action) }?;
    }
    Ok(())
}

extern "C" fn on_term(_signal: i32) {
    STOP.store(true, Ordering::Relaxed);
}

/// The facts with their strings as C wants them.
struct Strings {
    facts: Facts,
    namespace: CString,
    job: CString,
    run_id: CString,
    params: CString,
    env: Vec<(CString, CString)>,
}

impl Strings {
    fn new(facts: Facts) -> Result<Self, String> {
        let string = |text: &str, what: &str| CString::new(text).map_err(|_| format!("{what} holds a NUL character"));
        let variable = |(name, value): &(String, String)| {
            let what = format!("the variable {name:?}");
            Ok::<_, String>((string(name, &what)?, string(value, &what)?))
        };
        Ok(Self {
            namespace: string(&facts.namespace, "the namespace")?,
            job: string(&facts.job, "the job's name")?,
            run_id: string(&facts.run_id, "the run's id")?,
            params: string(&facts.params.to_string(), "params")?,
            env: facts.env.iter().map(variable).collect::<Result<_, _>>()?,
            facts,
        })
    }

    fn variables(&self) -> Vec<Env> {
        self.env.iter().map(|(name, value)| Env { name: name.as_ptr(), value: value.as_ptr() }).collect()
    }

    /// Valid while `self` and `variables` are.
    fn for_plugin(&self, variables: &[Env]) -> RunFacts {
        RunFacts {
            struct_size: size_of::<RunFacts>() as u32,
            attempt: self.facts.attempt,
            job_namespace: self.namespace.as_ptr(),
            job: self.job.as_ptr(),
            run_id: self.run_id.as_ptr(),
            due_at_ms: self.facts.due_at_ms,
            deadline_ms: self.facts.deadline_ms,
            fencing_token: self.facts.fencing_token,
            params_json: self.params.as_ptr(),
            env: if variables.is_empty() { ptr::null() } else { variables.as_ptr() },
            env_count: u32::try_from(variables.len()).unwrap_or(u32::MAX),
            reserved: 0,
            host: ptr::null_mut(),
            write,
            cancelled,
        }
    }
}

/// `carillon_run.write`: to stdout, whole.
unsafe extern "C" fn write(_host: *mut c_void, data: *const c_char, length: usize) -> i32 {
    if length == 0 {
        return 0;
    }
    if data.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the ABI has the plugin promise `length` bytes there for the call.
    let mut rest = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    while !rest.is_empty() {
        // SAFETY: the bytes are those of a slice.
        match Errno::result(unsafe { libc::write(libc::STDOUT_FILENO, rest.as_ptr().cast(), rest.len()) }) {
            Ok(written) => rest = &rest[written.unsigned_abs()..],
            Err(Errno::EINTR) => {}
            Err(error) => return error as i32,
        }
    }
    0
}

/// `carillon_run.cancelled`.
unsafe extern "C" fn cancelled(_host: *mut c_void) -> i32 {
    STOP.load(Ordering::Relaxed).into()
}
