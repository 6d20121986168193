//! Directories, the database file, and the token: are they there, may the server write them, may others read them?

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::finding::{Finding, Level};
use carillon_node::config::{Config, Role, StoreUrl};
use carillon_node::http::{TOKEN_FILE, has_token_file};

/// How a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Found { is_dir: bool, mode: u32, is_writable: bool },
}

/// Looks at all of them.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let mut findings = vec![directory("node.data_dir", &config.node.data_dir, state_of(&config.node.data_dir))];
    if let Some(of_store) = config.store.url.directory() {
        // Mostly they are the same one.
        if of_store != config.node.data_dir {
            findings.push(directory("store.url", &of_store, state_of(&of_store)));
        }
    }
    if let StoreUrl::Sqlite(file) = &config.store.url {
        findings.extend(database_file(file, state_of(file)));
    }
    let admins = config.http.tokens.iter().filter(|token| token.role == Role::Admin).count();
    findings.push(match config.http.tokens.len() {
        0 => {
            token_file(&config.node.data_dir, has_token_file(&config.node.data_dir).map_err(|error| error.to_string()))
        }
        all => tokens(all, admins),
    });
    findings
}

/// The permissions of a file; `None` if it is not there.
pub(super) fn mode_of(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|file| file.mode())
}

fn state_of(path: &PathBuf) -> State {
    match std::fs::metadata(path) {
        Ok(file) => State::Found {
            is_dir: file.is_dir(),
            mode: file.mode(),
            is_writable: access(path, AccessFlags::W_OK).is_ok(),
        },
        Err(_) => State::Missing,
    }
}

fn directory(setting: &str, path: &Path, state: State) -> Finding {
    const PART: &str = "directory";
    let shown = path.display();
    match state {
        State::Missing => Finding::error(
            PART,
            format!("{shown} does not exist, or may not be looked at ({setting} names it)"),
            format!("mkdir -p {shown}, let it belong to the server's user, or change {setting}."),
        ),
        State::Found { is_dir: false, .. } => Finding::error(
            PART,
            format!("{shown} is not a directory ({setting} names it)"),
            format!("Name a directory in {setting}."),
        ),
        State::Found { is_writable: false, .. } => Finding::error(
            PART,
            format!("{shown} cannot be written by this user ({setting} names it)"),
            format!("chown it to the server's user, run this as that user, or change {setting}."),
        ),
        // Everybody may write to /tmp, where the sticky bit keeps each to his own.
        State::Found { mode, .. } if mode & 0o002 != 0 && mode & 0o1000 == 0 => Finding::warning(
            PART,
            format!("everybody may write to {shown}, which {setting} names (its mode is {:04o})", mode & 0o7777),
            format!("chmod o-w {shown}."),
        ),
        State::Found { .. } => Finding::ok(PART, format!("{shown} can be written ({setting} names it)")),
    }
}

fn database_file(path: &Path, state: State) -> Option<Finding> {
    const PART: &str = "database file";
    let shown = path.display();
    match state {
        State::Missing | State::Found { is_dir: true, .. } => None,
        State::Found { is_writable: false, .. } => Some(Finding::error(
            PART,
            format!("{shown} cannot be written by this user"),
            "chown it to the server's user, or run this as that user.",
        )),
        State::Found { mode, .. } if mode & 0o077 != 0 => Some(Finding::warning(
            PART,
            format!("{shown} holds the secrets of jobs, and others may read it (its mode is {:04o})", mode & 0o777),
            format!("chmod 600 {shown}."),
        )),
        State::Found { .. } => Some(Finding::ok(PART, format!("{shown} is the server's alone"))),
    }
}

fn token_file(directory: &Path, found: Result<bool, String>) -> Finding {
    match found {
        Ok(true) => {
            Finding::ok("tokens", format!("the admin token in {} can be trusted", directory.join(TOKEN_FILE).display()))
        }
        Ok(false) => {
            let file = directory.join(TOKEN_FILE);
            let says = format!("none is configured: the first start makes an admin token in {}", file.display());
            Finding::ok("tokens", says)
        }
        Err(sentence) => {
            let otherwise = "Let the server's user own the file and its directory, or configure http.tokens.";
            Finding::of_sentence("tokens", Level::Error, &sentence, otherwise)
        }
    }
}

fn tokens(all: usize, admins: usize) -> Finding {
    match admins {
        0 => Finding::warning(
            "tokens",
            format!("{all} are configured and none is an admin's: nobody can add or change a job"),
            "Give one entry of http.tokens the role \"admin\".",
        ),
        _ => Finding::ok("tokens", format!("{all} are configured, {admins} with the role admin")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn found(is_dir: bool, mode: u32, is_writable: bool) -> State {
        State::Found { is_dir, mode, is_writable }
    }

    #[test]
    fn a_directory_is_there_and_the_servers() {
        for (state, level, remedy) in [
            (found(true, 0o700, true), Level::Ok, ""),
            (found(true, 0o1777, true), Level::Ok, ""),
            (found(true, 0o777, true), Level::Warning, "chmod o-w /d."),
            (found(true, 0o700, false), Level::Error, "change node.data_dir."),
            (found(false, 0o600, true), Level::Error, "Name a directory"),
            (State::Missing, Level::Error, "mkdir -p /d"),
        ] {
            let finding = directory("node.data_dir", Path::new("/d"), state);
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.remedy.unwrap_or_default().contains(remedy), "{remedy}");
        }
    }

    #[test]
    fn a_database_file_is_the_servers_alone() {
        let level = |state| database_file(Path::new("/d/c.db"), state).map(|finding| finding.level);
        for (state, expected) in [
            (State::Missing, None),
            (found(true, 0o700, true), None),
            (found(false, 0o600, true), Some(Level::Ok)),
            (found(false, 0o640, true), Some(Level::Warning)),
            (found(false, 0o600, false), Some(Level::Error)),
        ] {
            assert_eq!(level(state), expected, "{state:?}");
        }
    }

    #[test]
    fn somebody_can_be_an_admin() {
        let of_file = |found: Result<bool, &str>| token_file(Path::new("/d"), found.map_err(str::to_owned)).level;
        for (level, expected) in [
            (of_file(Ok(true)), Level::Ok),
            (of_file(Ok(false)), Level::Ok),
            (of_file(Err("it is bad; correct it")), Level::Error),
            (tokens(2, 1).level, Level::Ok),
            (tokens(2, 0).level, Level::Warning),
        ] {
            assert_eq!(level, expected);
        }
    }
}
