//! The C ABI, version 1: `include/carillon_plugin.h` in Rust.
//!
//! The header says for each field who owns it, how long it lives and which thread may use it; a test
//! compares the layouts. Carillon itself uses these types too. A plugin written in Rust needs none of them: it implements
//! [`Plugin`](crate::Plugin) and calls [`export_plugin!`](crate::export_plugin).

use std::ffi::{c_char, c_void};

/// The version of the ABI described here.
pub const ABI_VERSION: u32 = 1;
/// The symbol of [`Init`].
pub const INIT_SYMBOL: &str = "carillon_plugin_init";
/// [`RunResult::status`] of a run that succeeded.
pub const SUCCEEDED: i32 = 0;
/// [`RunResult::status`] of a run that failed.
pub const FAILED: i32 = 1;
/// The least that [`RunResult::message_capacity`] may be, in bytes.
pub const MIN_MESSAGE_CAPACITY: u32 = 1024;

/// The one function that a plugin exports: `carillon_plugin_init`.
pub type Init = unsafe extern "C" fn(host_abi_version: u32) -> *const Descriptor;

/// `carillon_env`: a variable for the run.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Env {
    /// Name of the variable.
    pub name: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

/// `carillon_run`: the facts of one run.
#[repr(C)]
#[derive(Debug)]
pub struct RunFacts {
    /// Size of this struct as Carillon knows it, in bytes.
    pub struct_size: u32,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Namespace of the job.
    pub job_namespace: *const c_char,
    /// Name of the job.
    pub job: *const c_char,
    /// Unique among all runs.
    pub run_id: *const c_char,
    /// When the firing was due, in milliseconds since the Unix epoch.
    pub due_at_ms: i64,
    /// When the run will be stopped, in milliseconds since the Unix epoch; 0 for never.
    pub deadline_ms: i64,
    /// Grows with every start of the job.
    pub fencing_token: u64,
    /// The job's params as JSON text.
    pub params_json: *const c_char,
    /// `env_count` variables.
    pub env: *const Env,
    /// How many variables there are.
    pub env_count: u32,
    /// 0.
    pub reserved: u32,
    /// Handed to the callbacks.
    pub host: *mut c_void,
    /// Appends to the run's output; returns 0 or an errno value.
    pub write: unsafe extern "C" fn(host: *mut c_void, data: *const c_char, length: usize) -> i32,
    /// Not 0 once the run is to stop.
    pub cancelled: unsafe extern "C" fn(host: *mut c_void) -> i32,
}

/// `carillon_result`: how a run ended.
#[repr(C)]
#[derive(Debug)]
pub struct RunResult {
    /// Size of this struct as Carillon knows it, in bytes.
    pub struct_size: u32,
    /// [`SUCCEEDED`] or [`FAILED`].
    pub status: i32,
    /// 1 to 255, or 0.
    pub exit_code: i32,
    /// Bytes in `message`.
    pub message_capacity: u32,
    /// Carillon's buffer for a sentence that ends in a NUL.
    pub message: *mut c_char,
}

/// `carillon_plugin`: what the plugin is.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    /// [`ABI_VERSION`].
    pub abi_version: u32,
    /// Size of this struct as the plugin knows it, in bytes.
    pub struct_size: u32,
    /// The name in a job's `executor`.
    pub name: *const c_char,
    /// The plugin's own version.
    pub version: *const c_char,
    /// JSON Schema of the params, or null.
    pub params_schema: *const c_char,
    /// Executes one run.
    pub run: Option<unsafe extern "C" fn(run: *const RunFacts, result: *mut RunResult)>,
}

// SAFETY: a descriptor is constant and points only to constants; the header demands it.
unsafe impl Sync for Descriptor {}
