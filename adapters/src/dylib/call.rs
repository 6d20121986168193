//! One call of a plugin's `run`, with all that the ABI promises it.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use carillon_plugin::abi::{FAILED, MIN_MESSAGE_CAPACITY, RunResult, SUCCEEDED};

use super::facts::{Callbacks, Strings};
use super::library::Library;
use super::wire::{Facts, MESSAGE_CAPACITY, Report};

const _: () = assert!(MESSAGE_CAPACITY >= MIN_MESSAGE_CAPACITY as usize);

thread_local! {
    /// The run that this thread is in; 0 for none. Without a destructor, so that the handler of a signal may look.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The run that the calling thread is in; 0 for none, and in threads that a plugin started.
pub(super) fn current() -> u64 {
    CURRENT.get()
}

/// What a plugin's callbacks reach, behind `host`.
pub(super) struct Port<'a> {
    /// Set once the run is to stop.
    pub(super) stop: &'a AtomicBool,
    /// Takes output whole, or answers an errno value.
    pub(super) write: &'a (dyn Fn(&[u8]) -> Result<(), i32> + Sync),
}

/// Calls the plugin on this thread and returns when it does.
pub(super) fn call(library: &Library, key: u64, facts: Facts, port: &Port<'_>) -> Report {
    let strings = match Strings::new(facts) {
        Ok(strings) => strings,
        Err(sentence) => return Report::failed(sentence),
    };
    let mut message = vec![0_u8; MESSAGE_CAPACITY];
    let mut result = RunResult {
        struct_size: size_of::<RunResult>() as u32,
        status: FAILED,
        exit_code: 0,
        message_capacity: MESSAGE_CAPACITY as u32,
        message: message.as_mut_ptr().cast(),
    };
    let variables = strings.variables();
    let host = std::ptr::from_ref(port).cast_mut().cast();
    let facts = strings.for_plugin(&variables, &Callbacks { host, write, cancelled });
    let run = library.run();
    CURRENT.set(key);
    // SAFETY: a plugin's run function, with all that the ABI promises it.
    unsafe { run(&raw const facts, &raw mut result) };
    CURRENT.set(0);
    let length = message.iter().position(|byte| *byte == 0).unwrap_or(message.len());
    let message = String::from_utf8_lossy(&message[..length]).into_owned();
    let succeeded = result.status == SUCCEEDED;
    let exit_code = if succeeded { 0 } else { u8::try_from(result.exit_code).unwrap_or(1).max(1) };
    Report::Returned { succeeded, exit_code, message }
}

/// `carillon_run.write`.
unsafe extern "C" fn write(host: *mut c_void, data: *const c_char, length: usize) -> i32 {
    if length == 0 {
        return 0;
    }
    if data.is_null() || host.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the ABI has the plugin hand over `host` as it got it, during the run only, and promise `length` bytes for
    // the call.
    let (port, bytes) = unsafe { (&*host.cast::<Port<'_>>(), std::slice::from_raw_parts(data.cast::<u8>(), length)) };
    (port.write)(bytes).err().unwrap_or(0)
}

/// `carillon_run.cancelled`.
unsafe extern "C" fn cancelled(host: *mut c_void) -> i32 {
    // SAFETY: as above; null is no port.
    let port = unsafe { host.cast::<Port<'_>>().as_ref() };
    port.is_none_or(|port| port.stop.load(Ordering::Relaxed)).into()
}
