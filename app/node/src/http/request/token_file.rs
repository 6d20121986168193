//! `carillon.token`: the admin token that is made where none is configured.
//!
//! It is written once, to a file that only its owner can read. A link moves it into place, and fails if there is one already. So two
//! servers that start at once have the same token, and a crash leaves no half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::config::Config;
use crate::http::request::access::Tokens;

/// The name of the file in `node.data_dir`.
pub const TOKEN_FILE: &str = "carillon.token";

const RANDOM_BYTES: usize = 32;
const SHORTEST: usize = 32;
const LONGEST: usize = 256;

/// Why there is no token to start with.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file, or its directory, cannot be read or written.
    #[error("the token file {path}: {error}")]
    Io {
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The file is there and cannot be trusted.
    #[error("the token file {path} {reason}; correct it, or remove it and a new token is made")]
    Untrusted {
        /// Which file.
        path: String,
        /// Why.
        reason: &'static str,
    },
}

impl Tokens {
    /// The configured tokens, or the one of [`TOKEN_FILE`], which is made where it is missing.
    ///
    /// # Errors
    /// [`TokenFileError`] when the file cannot be made, or is one that others could have read or written.
    pub fn of_server(config: &Config) -> Result<Self, TokenFileError> {
        if !config.http.tokens.is_empty() {
            return Ok(Self::configured(&config.http.tokens));
        }
        Ok(Self::one_admin(&token_in(&config.node.data_dir)?))
    }
}

/// Whether the token file of a directory is there, and can be trusted. Nothing is made.
///
/// # Errors
/// [`TokenFileError`], as at a start.
pub fn has_token_file(dir: &Path) -> Result<bool, TokenFileError> {
    Ok(trusted(&dir.join(TOKEN_FILE))?.is_some())
}

fn token_in(dir: &Path) -> Result<String, TokenFileError> {
    let path = dir.join(TOKEN_FILE);
    let failed = |error| TokenFileError::Io { path: path.display().to_string(), error };
    if let Some(token) = trusted(&path)? {
        return Ok(token);
    }
    create(dir, &path).map_err(failed)?;
    trusted(&path)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

/// The token of a file; `None` if there is no file.
fn trusted(path: &Path) -> Result<Option<String>, TokenFileError> {
    let shown = || path.display().to_string();
    match read(path) {
        Ok(read) => read.map(Some).map_err(|reason| TokenFileError::Untrusted { path: shown(), reason }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TokenFileError::Io { path: shown(), error }),
    }
}

/// The token, or why the file is not to be trusted.
fn read(path: &Path) -> io::Result<Result<String, &'static str>> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(Err("is a symbolic link")),
        other => other?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Err("is not a regular file"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Ok(Err("can be read or written by others (its mode must be 0600)"));
    }
    if metadata.uid() != std::fs::metadata("/proc/self")?.uid() {
        return Ok(Err("belongs to another user"));
    }
    let mut text = String::new();
    if file.take(LONGEST as u64 + 2).read_to_string(&mut text).is_err() {
        return Ok(Err("holds no text"));
    }
    let token = text.trim();
    let sane = (SHORTEST..=LONGEST).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    Ok(if sane { Ok(token.to_owned()) } else { Err("holds no token (32 to 256 printable characters)") })
}

fn create(dir: &Path, path: &Path) -> io::Result<()> {
    let mut random = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = dir.join(format!(".{TOKEN_FILE}.{}.{}", std::process::id(), &token[..8]));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_token_is_made_once_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let token = token_in(dir.path()).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(fs::metadata(dir.path().join(TOKEN_FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(token_in(dir.path()).unwrap(), token, "it is used again");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        assert_ne!(token_in(tempfile::tempdir().unwrap().path()).unwrap(), token);
    }

    #[test]
    fn servers_that_start_at_once_agree() {
        let dir = tempfile::tempdir().unwrap();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = dir.path().to_owned();
                std::thread::spawn(move || token_in(&path).unwrap())
            })
            .collect();
        let tokens: std::collections::BTreeSet<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(tokens.len(), 1);
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        let token = "0123456789abcdef0123456789abcdef";
        for (content, mode, reason) in [
            (token, 0o644, "read or written by others"),
            (token, 0o620, "read or written by others"),
            ("", 0o600, "holds no token"),
            ("short", 0o600, "holds no token"),
            ("0123456789abcdef 0123456789abcdef", 0o600, "holds no token"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(TOKEN_FILE);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = token_in(dir.path()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("elsewhere"), token).unwrap();
        symlink(dir.path().join("elsewhere"), dir.path().join(TOKEN_FILE)).unwrap();
        assert!(token_in(dir.path()).unwrap_err().to_string().contains("symbolic link"));
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(TOKEN_FILE)).unwrap();
        assert!(token_in(dir.path()).is_err());
        assert!(token_in(Path::new("/nonexistent")).unwrap_err().to_string().contains("/nonexistent/carillon.token"));
    }
}
