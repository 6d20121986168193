//! The plugins directory: its new, replaced and removed files.
//!
//! The first look takes every file. Later ones take a file when two looks in a row have found it the same. So a file that is being written
//! is left alone. A file counts as changed when the system says that anything about it has.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};

use super::trust;
use super::{Host, Plugin, Refused, look_at};

/// The findings of a look.
#[derive(Debug)]
pub enum Change {
    /// A plugin to use from now on, in place of the one of its name, if there is one.
    Found(Plugin),
    /// The plugin of this name is not there any more.
    Gone(String),
    /// A file, or the directory, is not used, and why. Completion once for as long as it stays the same.
    Refused(Refused),
}

/// A plugins directory, and what is known of it.
pub struct Folder {
    path: PathBuf,
    host: Host,
    files: BTreeMap<OsString, FileState>,
    /// The fault of the directory itself.
    fault: Option<String>,
    looked: bool,
}

/// A file that was seen.
struct FileState {
    identity: Identity,
    /// Whether what is there now was looked into.
    settled: bool,
    /// Name of the plugin that is in use from here, maybe an earlier version.
    plugin: Option<String>,
}

/// If it is the same, the file is: device, inode, size, mode, owner, times of the last change of data and of anything.
type Identity = (u64, u64, i64, u32, u32, [i64; 4]);

impl Folder {
    /// Nothing is looked at yet.
    pub fn new(path: impl Into<PathBuf>, host: Host) -> Self {
        Self { path: path.into(), host, files: BTreeMap::new(), fault: None, looked: false }
    }

    /// Looks at every `*.so`, in the order of their names. A missing directory holds no plugins; one that cannot be
    /// trusted is refused, and what was found in it before stays in use. Of two plugins with one name the one found first
    /// stays. Blocks: a host process for each file that is new.
    pub fn look(&mut self) -> Vec<Change> {
        let listed = match trust::open_directory(&self.path) {
            Ok(Some(opened)) => list(opened).map(Some),
            Ok(None) => Ok(None),
            Err(reason) => Err(reason),
        };
        let (names, directory) = match listed {
            Ok(Some((names, directory))) => (names, Some(directory)),
            Ok(None) => (BTreeSet::new(), None),
            Err(reason) => return self.refuse(reason),
        };
        self.fault = None;
        let mut changes = self.forget_all_but(&names);
        for name in names {
            if let Some(directory) = &directory {
                self.look_at(directory, &name, &mut changes);
            }
        }
        self.looked = true;
        changes
    }

    fn refuse(&mut self, reason: String) -> Vec<Change> {
        if self.fault.as_ref() == Some(&reason) {
            return Vec::new();
        }
        self.fault = Some(reason.clone());
        vec![Change::Refused(Refused { file: self.path.clone(), reason })]
    }

    fn forget_all_but(&mut self, names: &BTreeSet<OsString>) -> Vec<Change> {
        let mut gone = Vec::new();
        self.files.retain(|name, known| {
            let stays = names.contains(name);
            gone.extend(known.plugin.take_if(|_| !stays).map(Change::Gone));
            stays
        });
        if !gone.is_empty() {
            // A name is free again, so files that were refused for it are checked again.
            self.files.values_mut().filter(|known| known.plugin.is_none()).for_each(|known| known.settled = false);
        }
        gone
    }

    fn look_at(&mut self, directory: &Dir, name: &OsStr, changes: &mut Vec<Change>) {
        // A file that is gone again was never there.
        let Ok(stat) = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return };
        let identity = identity(&stat);
        let same = self.files.get(name).is_some_and(|known| known.identity == identity);
        let new = || FileState { identity, settled: false, plugin: None };
        let known = self.files.entry(name.to_owned()).or_insert_with(new);
        known.identity = identity;
        known.settled &= same;
        if known.settled || (self.looked && !same) {
            return;
        }
        known.settled = true;
        let before = known.plugin.take();
        let file = self.path.join(name);
        match look_at(directory.as_fd(), name, &file, &self.host).and_then(|plugin| self.unless_taken(plugin)) {
            Ok(plugin) => {
                let called = plugin.description.name.clone();
                changes.extend(before.filter(|before| *before != called).map(Change::Gone));
                self.now_used(name, Some(called));
                changes.push(Change::Found(plugin));
            }
            Err(mut refused) => {
                if before.is_some() {
                    refused.reason += "; what was loaded from it before stays in use";
                }
                self.now_used(name, before);
                changes.push(Change::Refused(refused));
            }
        }
    }

    fn unless_taken(&self, plugin: Plugin) -> Result<Plugin, Refused> {
        let called = &plugin.description.name;
        match self.files.iter().find(|(_, known)| known.plugin.as_ref() == Some(called)) {
            None => Ok(plugin),
            Some((first, _)) => {
                let reason = format!("its name {called:?} is already taken by {}", self.path.join(first).display());
                Err(Refused { file: plugin.file, reason })
            }
        }
    }

    fn now_used(&mut self, name: &OsStr, plugin: Option<String>) {
        if let Some(known) = self.files.get_mut(name) {
            known.plugin = plugin;
        }
    }
}

/// The names that end in `.so`.
fn list(directory: OwnedFd) -> Result<(BTreeSet<OsString>, Dir), String> {
    let cannot = |error: nix::errno::Errno| format!("it cannot be listed: {error}");
    let mut directory = Dir::from_fd(directory).map_err(cannot)?;
    let mut names = BTreeSet::new();
    for entry in directory.iter() {
        let entry = entry.map_err(cannot)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if Path::new(name).extension() == Some(OsStr::new("so")) {
            names.insert(name.to_owned());
        }
    }
    Ok((names, directory))
}

fn identity(stat: &FileStat) -> Identity {
    let times = [stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec];
    (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode, stat.st_uid, times)
}
