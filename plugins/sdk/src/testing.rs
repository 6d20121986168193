//! Carillon's part played in a plugin's own tests: no server, no library to load.
//!
//! ```
//! use std::io::Write;
//!
//! use carillon_plugin::testing::Trial;
//! use carillon_plugin::{Failure, Plugin, Run};
//!
//! #[derive(Default)]
//! struct Greet;
//!
//! impl Plugin for Greet {
//!     const NAME: &'static str = "greet";
//!     const VERSION: &'static str = "0.1.0";
//!     const PARAMS_SCHEMA: &'static str = r#"{"type": "array"}"#;
//!     type Params = Vec<String>;
//!
//!     fn run(&self, whom: Vec<String>, run: &Run<'_>) -> Result<(), Failure> {
//!         Ok(writeln!(run.output(), "Hello, {}!", whom.join(" and "))?)
//!     }
//! }
//!
//! let trial = Trial::new();
//! assert_eq!(trial.run(&Greet, r#"["Ada", "Grace"]"#), Ok(()));
//! assert_eq!(trial.output(), "Hello, Ada and Grace!\n");
//! ```

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::{FAILED, MIN_MESSAGE_CAPACITY, RunFacts, RunResult, SUCCEEDED};
use crate::{Failure, Plugin, entry};

/// Stands in for Carillon: hands out the facts of runs, takes their output and tells them to stop.
///
/// The facts are those of a second attempt, in the run `trial-run` of the job `default/trial`. It was due at
/// 2027-01-15T08:00:00.123Z. The fencing token is 7, and there is no deadline and no variable.
#[derive(Debug, Default)]
pub struct Trial {
    output: Mutex<Vec<u8>>,
    stop: AtomicBool,
}

impl Trial {
    /// With no output yet, and nothing told to stop.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the plugin with these params, as JSON text, and tells how the run ended; a panic is a failure. The params are
    /// *not* checked against the plugin's schema, as that is the server's part.
    pub fn run<P: Plugin>(&self, plugin: &P, params: &str) -> Result<(), Failure> {
        let Ok(params) = CString::new(params) else { return Err(Failure::new("the params hold a NUL character")) };
        let mut message = vec![0_u8; MIN_MESSAGE_CAPACITY as usize];
        let mut result = RunResult {
            struct_size: size_of::<RunResult>() as u32,
            status: FAILED,
            exit_code: 0,
            message_capacity: MIN_MESSAGE_CAPACITY,
            message: message.as_mut_ptr().cast(),
        };
        let facts = self.facts(&params);
        // SAFETY: all is there for the call, as the ABI has it.
        unsafe { entry::run(|| plugin, &raw const facts, &raw mut result) };
        if result.status == SUCCEEDED {
            return Ok(());
        }
        let message = CStr::from_bytes_until_nul(&message).unwrap_or_default().to_string_lossy();
        Err(Failure::new(message).with_exit_code(u8::try_from(result.exit_code).unwrap_or(1)))
    }

    /// The text that was written to [`Run::output`](crate::Run::output) so far; bytes that are not UTF-8 are replaced.
    pub fn output(&self) -> String {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Tells this trial's runs to stop, from now on.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn facts(&self, params: &CStr) -> RunFacts {
        RunFacts {
            struct_size: size_of::<RunFacts>() as u32,
            attempt: 2,
            job_namespace: c"default".as_ptr(),
            job: c"trial".as_ptr(),
            run_id: c"trial-run".as_ptr(),
            due_at_ms: 1_800_000_000_123,
            deadline_ms: 0,
            fencing_token: 7,
            params_json: params.as_ptr(),
            env: std::ptr::null(),
            env_count: 0,
            reserved: 0,
            host: (&raw const *self).cast_mut().cast(),
            write,
            cancelled,
        }
    }
}

/// # Safety
/// `host` must be what [`Trial::facts`] put there, and the trial must live.
unsafe fn trial<'a>(host: *mut c_void) -> &'a Trial {
    // SAFETY: promised by the caller.
    unsafe { &*host.cast::<Trial>() }
}

unsafe extern "C" fn write(host: *mut c_void, data: *const c_char, length: usize) -> i32 {
    if length > 0 {
        // SAFETY: the plugin hands over the pointer of the facts, and bytes that are there for the call.
        let (trial, bytes) = unsafe { (trial(host), std::slice::from_raw_parts(data.cast::<u8>(), length)) };
        trial.output.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }
    0
}

unsafe extern "C" fn cancelled(host: *mut c_void) -> i32 {
    // SAFETY: the plugin hands over the pointer of the facts.
    unsafe { trial(host) }.stop.load(Ordering::Relaxed).into()
}
