//! What the server and a host process tell each other, as JSON.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::image::path_of;

/// The longest report that is read, in bytes: the longest message, every byte of it escaped, and then some.
const MAX_REPORT_BYTES: u64 = 64 << 10;

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// What a job's `executor` says.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// Version of the ABI that it was built for.
    pub abi_version: u32,
    /// JSON Schema of a job's params.
    pub params_schema: Value,
}

/// What an inspection finds, printed by the host.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Inspection {
    Described(Description),
    /// It cannot be used, and why.
    Refused(String),
}

/// The facts of a run, on the host's stdin. No `Debug`: `params` and `env` may hold secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) namespace: String,
    pub(super) job: String,
    pub(super) run_id: String,
    pub(super) attempt: u32,
    pub(super) due_at_ms: i64,
    /// 0 for none.
    pub(super) deadline_ms: i64,
    pub(super) fencing_token: u64,
    pub(super) params: Value,
    pub(super) env: Vec<(String, String)>,
}

/// How the plugin's `run` returned, or why it was not called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) succeeded: bool,
    /// 0 if and only if it succeeded.
    pub(super) exit_code: u8,
    pub(super) message: String,
}

impl Report {
    /// Of a run that failed before the plugin had a say.
    pub(super) fn failed(message: String) -> Self {
        Self { succeeded: false, exit_code: 1, message }
    }

    /// Puts it where the server will read it. To be called once.
    pub(super) fn write(&self, file: &File) -> std::io::Result<()> {
        file.write_all_at(&serde_json::to_vec(self)?, 0)
    }
}

/// Where a host leaves its [`Report`]: a file in memory, apart from the output, so that nothing that a plugin prints can
/// be taken for it.
pub(super) struct ReportFile(File);

impl ReportFile {
    /// An empty one.
    pub(super) fn new() -> Result<Self, String> {
        let file = memfd_create(c"carillon-report", MFdFlags::MFD_CLOEXEC);
        file.map(|file| Self(file.into())).map_err(|error| format!("a file in memory cannot be made: {error}"))
    }

    /// Where the host finds it.
    pub(super) fn path(&self) -> PathBuf {
        path_of(&self.0)
    }

    /// The report, if the host came so far as to write one.
    pub(super) fn read(mut self) -> Option<Report> {
        let mut bytes = Vec::new();
        (&mut self.0).take(MAX_REPORT_BYTES).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}
