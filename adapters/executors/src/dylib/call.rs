//! One call of a plugin's `run`, with all that the ABI promises it.
//!
//! The `host` of a plugin is a number, not an address. A thread that wrongly uses it after its run reaches nothing, and
//! never another run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use carillon_plugin::abi::{FAILED, MIN_MESSAGE_CAPACITY, RunResult, SUCCEEDED};

use crate::dylib::abi_input::{AbiInput, Callbacks};
use crate::dylib::frames::{MESSAGE_CAPACITY, Report};
use crate::dylib::library::Library;

const _: () = assert!(MESSAGE_CAPACITY >= MIN_MESSAGE_CAPACITY as usize);

thread_local! {
    /// The run that this thread is in; 0 for none. Without a destructor, so that the handler of a signal may look.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The run that the calling thread is in; 0 for none, and in threads that a plugin started.
pub(crate) fn current() -> u64 {
    CURRENT.get()
}

/// The target of a plugin's callbacks during a run.
pub(crate) struct Port {
    /// Set once the run is to stop.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) write: Write,
}

/// Takes output whole, or answers an errno value.
type Write = Box<dyn Fn(&[u8]) -> Result<(), i32> + Send + Sync>;

/// The ports of all runs that go on in this process, whatever their plugin.
static PORTS: RwLock<BTreeMap<usize, Arc<Port>>> = RwLock::new(BTreeMap::new());

/// The port behind a `host`; `None` when its run is over.
fn port(host: *mut c_void) -> Option<Arc<Port>> {
    PORTS.read().unwrap_or_else(PoisonError::into_inner).get(&host.addr()).cloned()
}

/// A port that can be reached as long as this lives.
struct Open(usize);

impl Open {
    fn new(port: Port) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        PORTS.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(port));
        Self(number)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        PORTS.write().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Calls the plugin on this thread and returns when it does.
pub(crate) fn call(library: &Library, key: u64, facts: &AbiInput, port: Port) -> Report {
    let mut message = [0_u8; MESSAGE_CAPACITY];
    let mut result = RunResult {
        struct_size: size_of::<RunResult>() as u32,
        status: FAILED,
        exit_code: 0,
        message_capacity: MESSAGE_CAPACITY as u32,
        message: message.as_mut_ptr().cast(),
    };
    let variables = facts.variables();
    let open = Open::new(port);
    let host = std::ptr::without_provenance_mut(open.0);
    let facts = facts.for_plugin(&variables, &Callbacks { host, write, cancelled });
    let run = library.run();
    CURRENT.set(key);
    // SAFETY: a plugin's run function, with all that the ABI promises it.
    unsafe { run(&raw const facts, &raw mut result) };
    CURRENT.set(0);
    drop(open);
    let length = message.iter().position(|byte| *byte == 0).unwrap_or(message.len());
    let message = String::from_utf8_lossy(&message[..length]).into_owned();
    let succeeded = result.status == SUCCEEDED;
    let exit_code = if succeeded { 0 } else { u8::try_from(result.exit_code).unwrap_or(1).max(1) };
    Report::Returned { succeeded, exit_code, message, threads_left: 0 }
}

/// `carillon_run.write`.
unsafe extern "C" fn write(host: *mut c_void, data: *const c_char, length: usize) -> i32 {
    if length == 0 {
        return 0;
    }
    if data.is_null() {
        return libc::EINVAL;
    }
    let Some(port) = port(host) else { return libc::EBADF };
    // SAFETY: the ABI has the plugin promise `length` bytes for the call.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    (port.write)(bytes).err().unwrap_or(0)
}

/// `carillon_run.cancelled`.
unsafe extern "C" fn cancelled(host: *mut c_void) -> i32 {
    // A run that is over was to stop long ago.
    port(host).is_none_or(|port| port.stop.load(Ordering::Relaxed)).into()
}
