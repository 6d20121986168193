//! The catalog: files of the plugins directory, each checked and either offered or refused with a reason.

pub(crate) mod folder;
pub(crate) mod image;
pub(crate) mod inspection;
mod schema;
mod trust;

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use carillon_domain::name::check_job_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::image::Image;
use self::schema::Schema;

/// The longest reason of a refusal, in bytes; what is longer is cut.
const MAX_REASON_BYTES: usize = 1000;
/// Executors that plugins cannot replace.
const RESERVED: [&str; 1] = ["shell"];

/// How plugins are hosted.
#[derive(Debug, Clone)]
pub struct Host {
    /// The program that calls [`crate::dylib::host_main`] for the subcommand [`crate::dylib::SUBCOMMAND`]; usually /proc/self/exe.
    pub program: PathBuf,
    /// How long a plugin may take to load and say what it is.
    pub inspect_timeout: Duration,
    /// How much memory a host of the plugin may hold, in bytes.
    pub memory_bytes: u64,
}

impl Host {
    /// With ten seconds for an inspection, and [`crate::dylib::MEMORY_BYTES`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            inspect_timeout: Duration::from_secs(10),
            memory_bytes: crate::dylib::MEMORY_BYTES,
        }
    }
}

/// A plugin's own description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The name in a job's `executor`.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// Version of the ABI that it was built for.
    pub abi_version: u32,
    /// JSON Schema of a job's params.
    pub params_schema: Value,
}

/// The findings of an inspection, printed by the host.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Inspection {
    Described(Description),
    /// It cannot be used, and why.
    Refused(String),
}

/// A plugin that may be used: its private copy, and what it says of itself.
#[derive(Debug)]
pub struct Plugin {
    pub(crate) file: PathBuf,
    pub(crate) image: Image,
    pub(crate) description: Description,
    pub(crate) schema: Schema,
    pub(crate) host: Host,
    /// Whether it was told that the plugin leaves threads behind.
    pub(crate) left_threads: AtomicBool,
}

impl Plugin {
    /// Where it was found. The file may have changed since; what runs is a copy.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its own description.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

/// A file or directory that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The file; the directory, if that is at fault.
    pub file: PathBuf,
    /// A sentence for people.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is refused: {}", self.file.display(), self.reason)
    }
}

impl std::error::Error for Refused {}

/// Looks at one file, wherever it is, as [`crate::dylib::Folder`] does. Blocks.
pub fn inspect(file: &Path, host: &Host) -> Result<Plugin, Refused> {
    let refused = |reason: String| Refused { file: file.to_owned(), reason };
    let Some(name) = file.file_name() else { return Err(refused("it is not a file".to_owned())) };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match trust::open_directory(directory).map_err(refused)? {
        Some(opened) => look_at(&opened, name, file, host),
        None => Err(refused("it does not exist".to_owned())),
    }
}

/// Looks at a file of a directory that was opened by [`trust::open_directory`]; `file` is its path, for people. Blocks: a
/// host process loads it.
pub(crate) fn look_at(directory: impl AsFd, name: &OsStr, file: &Path, host: &Host) -> Result<Plugin, Refused> {
    let look = || {
        let image = Image::copy(trust::open_file(directory, name, file)?)?;
        let description = inspection::inspect(&image, host)?;
        let name = &description.name;
        check_job_name(name).map_err(|error| format!("its name {name:?} cannot be an executor's: {error}"))?;
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("its name {name:?} is that of a built-in executor"));
        }
        let schema = Schema::new(&description.params_schema)?;
        Ok(Plugin {
            file: file.to_owned(),
            image,
            description,
            schema,
            host: host.clone(),
            left_threads: AtomicBool::new(false),
        })
    };
    look().map_err(|mut reason: String| {
        // It may quote a plugin, which may say anything.
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        Refused { file: file.to_owned(), reason }
    })
}
