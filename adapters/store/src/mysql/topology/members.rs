//! The members of a group of Group Replication, as one of them sees them.

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mysql) struct Member {
    /// The server that was asked.
    pub is_me: bool,
    /// Such as ONLINE.
    pub state: String,
    /// PRIMARY, SECONDARY or nothing.
    pub role: String,
}

/// Which member was asked, its state and role, and how many of all can be reached.
#[derive(Debug, Default)]
pub(in crate::mysql) struct Members {
    reachable: usize,
    all: usize,
    state: Option<String>,
    role: Option<String>,
}

impl Members {
    /// From the rows of the list.
    pub fn of(rows: Vec<Member>) -> Self {
        let reachable = |state: &str| state == "ONLINE" || state == "RECOVERING";
        let mut this = Self { all: rows.len(), ..Self::default() };
        for Member { is_me, state, role } in rows {
            this.reachable += usize::from(reachable(&state));
            if is_me {
                (this.state, this.role) = (Some(state), Some(role));
            }
        }
        this
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all
    }

    /// Why this member takes no writes now, as the end of a sentence that begins with its name.
    pub fn why_no_writer(&self) -> Option<String> {
        let state = self.state.as_deref().unwrap_or("OFFLINE");
        if state != "ONLINE" {
            return Some(format!(
                "it is outside its group (its member state is {state}); join it again with START GROUP_REPLICATION"
            ));
        }
        if self.role.as_deref() == Some("SECONDARY") {
            return Some("it is a secondary of its group".to_owned());
        }
        let (reachable, all) = (self.reachable, self.all);
        (reachable * 2 <= all).then(|| format!("it reaches {reachable} of the {all} members of its group, no majority"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_writes_only_as_the_primary_of_a_majority() {
        let why = |rows: &[(bool, &str, &str)]| {
            let member = |(is_me, state, role): &(bool, &str, &str)| Member {
                is_me: *is_me,
                state: (*state).to_owned(),
                role: (*role).to_owned(),
            };
            Members::of(rows.iter().map(member).collect()).why_no_writer().unwrap_or_default()
        };
        let (online, lost) = ("ONLINE", "UNREACHABLE");
        assert_eq!(why(&[(true, online, "PRIMARY"), (false, online, "SECONDARY"), (false, lost, "SECONDARY")]), "");
        assert!(
            why(&[(true, online, "PRIMARY"), (false, lost, "SECONDARY"), (false, lost, "SECONDARY")])
                .contains("1 of the 3")
        );
        assert!(why(&[(true, online, "PRIMARY"), (false, lost, "SECONDARY")]).contains("no majority"));
        assert!(why(&[(true, online, "SECONDARY"), (false, online, "PRIMARY")]).contains("secondary"));
        assert!(why(&[(true, "OFFLINE", "")]).contains("outside its group"));
        assert!(why(&[]).contains("outside its group"));
    }
}
