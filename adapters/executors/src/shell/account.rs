//! As whom a run runs. Numbers, home and groups come from the system's name services.

use nix::unistd::{Gid, Uid, User, getgrouplist};

use carillon_keeper::UserIds;

/// A user, as far as a run cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) home: String,
    /// The ids to switch to; `None` for the server's own user.
    pub(super) switch: Option<UserIds>,
}

/// Who may be switched to.
#[derive(Debug, Clone)]
pub(super) struct Accounts {
    own: Account,
    own_uid: Uid,
    allowed: Vec<String>,
}

impl Accounts {
    /// Looks up the server's own user. One without an entry (a container's arbitrary number) is called by its number and
    /// lives in `/`.
    pub(super) fn new(allowed: Vec<String>) -> Self {
        let own_uid = nix::unistd::geteuid();
        let own = match User::from_uid(own_uid) {
            Ok(Some(user)) => account(&user, None),
            Ok(None) | Err(_) => Account { name: own_uid.to_string(), home: "/".to_owned(), switch: None },
        };
        Self { own, own_uid, allowed }
    }

    /// The server's own user.
    pub(super) fn own(&self) -> Account {
        self.own.clone()
    }

    /// The account of `name`, or why a run may not be its. Looked up each time, because groups change.
    pub(super) fn allowed(&self, name: &str) -> Result<Account, String> {
        if name == self.own.name {
            return Ok(self.own());
        }
        if !self.allowed.iter().any(|allowed| allowed == name) {
            return Err(format!(
                "must be the server's own user ({:?}) or one that [shell] allow_users names, not {name:?}",
                self.own.name
            ));
        }
        let user = match User::from_name(name) {
            Ok(Some(user)) => user,
            Ok(None) => return Err(format!("names {name:?}, but this machine has no such user")),
            Err(error) => return Err(format!("names {name:?}, who could not be looked up: {error}")),
        };
        if user.uid == self.own_uid {
            return Ok(account(&user, None));
        }
        if !self.own_uid.is_root() {
            return Err(format!("names {name:?}, but only a server that runs as root may switch users"));
        }
        let groups = std::ffi::CString::new(name)
            .map_err(|error| error.to_string())
            .and_then(|name| getgrouplist(&name, user.gid).map_err(|error| error.to_string()))
            .map_err(|error| format!("names {name:?}, whose groups could not be looked up: {error}"))?;
        let groups = groups.into_iter().map(Gid::as_raw).collect();
        Ok(account(&user, Some(UserIds { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups })))
    }
}

fn account(user: &User, switch: Option<UserIds>) -> Account {
    let home = user.dir.to_string_lossy().into_owned();
    let home = if home.starts_with('/') { home } else { "/".to_owned() };
    Account { name: user.name.clone(), home, switch }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_oneself_and_who_is_allowed() {
        let accounts = Accounts::new(vec!["no-such-user-here".to_owned()]);
        assert_eq!(accounts.allowed(&accounts.own().name), Ok(accounts.own()));
        assert!(accounts.allowed("daemon").unwrap_err().contains("allow_users"));
        assert!(accounts.allowed("no-such-user-here").unwrap_err().contains("no such user"));
    }
}
