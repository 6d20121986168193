//! Finding plugins: every `*.so` of a directory is either a plugin or refused with a reason.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carillon_domain::name::check_job_name;
use nix::dir::Dir;

use super::image::Image;
use super::inspection;
use super::schema::Schema;
use super::trust;
use super::wire::Description;

/// The longest reason of a refusal, in bytes; what is longer is cut.
const MAX_REASON_BYTES: usize = 1000;
/// Executors that plugins cannot replace.
const RESERVED: [&str; 1] = ["shell"];

/// How plugins are hosted.
#[derive(Debug, Clone)]
pub struct Host {
    /// The program that calls [`super::host_main`] for the subcommand [`super::SUBCOMMAND`]; usually /proc/self/exe.
    pub program: PathBuf,
    /// How long a plugin may take to load and say what it is.
    pub inspect_timeout: Duration,
}

impl Host {
    /// With ten seconds for an inspection.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), inspect_timeout: Duration::from_secs(10) }
    }
}

/// A plugin that may be used: its private copy, and what it says of itself.
#[derive(Debug)]
pub struct Plugin {
    pub(super) file: PathBuf,
    pub(super) image: Image,
    pub(super) description: Description,
    pub(super) schema: Schema,
    pub(super) host: Host,
}

impl Plugin {
    /// Where it was found. The file may have changed since; what runs is a copy.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What it says of itself.
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

/// Looks at every `*.so` in `directory`, in the order of their names. A missing directory holds no plugins; one that
/// cannot be trusted is the only refusal. Of two plugins with one name the second is refused. Blocks: a host process for
/// each file.
pub fn discover(directory: &Path, host: &Host) -> Vec<Result<Plugin, Refused>> {
    let refused = |reason| vec![Err(Refused { file: directory.to_owned(), reason })];
    let opened = match trust::open_directory(directory) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Vec::new(),
        Err(reason) => return refused(reason),
    };
    let listed = Dir::from_fd(opened).and_then(|mut opened| Ok((names(&mut opened)?, opened)));
    let (names, opened) = match listed {
        Ok(listed) => listed,
        Err(error) => return refused(format!("it cannot be listed: {error}")),
    };
    let mut taken: BTreeMap<String, PathBuf> = BTreeMap::new();
    let look = |name: PathBuf| {
        let file = directory.join(&name);
        let plugin = look_at(&opened, name.as_os_str(), &file, host)?;
        let name = plugin.description.name.clone();
        if let Some(first) = taken.get(&name) {
            let reason = format!("its name {name:?} is already taken by {}", first.display());
            return Err(Refused { file, reason });
        }
        taken.insert(name, file);
        Ok(plugin)
    };
    names.into_iter().map(look).collect()
}

/// Looks at one file, wherever it is, as [`discover`] does. Blocks.
pub fn inspect(file: &Path, host: &Host) -> Result<Plugin, Refused> {
    let refused = |reason: String| Refused { file: file.to_owned(), reason };
    let Some(name) = file.file_name() else { return Err(refused("it is not a file".to_owned())) };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match trust::open_directory(directory).map_err(refused)? {
        Some(opened) => look_at(&opened, name, file, host),
        None => Err(refused("it does not exist".to_owned())),
    }
}

fn look_at(directory: impl AsFd, name: &OsStr, file: &Path, host: &Host) -> Result<Plugin, Refused> {
    let look = || {
        let image = Image::copy(trust::open_file(directory, name, file)?)?;
        let description = inspection::inspect(&image, host)?;
        let name = &description.name;
        check_job_name(name).map_err(|error| format!("its name {name:?} cannot be an executor's: {error}"))?;
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("its name {name:?} is that of a built-in executor"));
        }
        let schema = Schema::new(&description.params_schema)?;
        Ok(Plugin { file: file.to_owned(), image, description, schema, host: host.clone() })
    };
    look().map_err(|mut reason: String| {
        // It may quote a plugin, which may say anything.
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        Refused { file: file.to_owned(), reason }
    })
}

/// The names that end in `.so`, sorted.
fn names(directory: &mut Dir) -> nix::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
        if name.extension() == Some(OsStr::new("so")) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
