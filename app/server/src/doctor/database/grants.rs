//! The rights of a user of MySQL or MariaDB, as `SHOW GRANTS` tells them.

use std::collections::BTreeSet;

/// The rights that a node needs in its database: the first four for its work, the last two to make and to migrate the schema.
pub(super) const NEEDED: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER"];

/// The needed rights that are not granted, and whether a role may grant them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub rights: Vec<&'static str>,
    pub has_role: bool,
}

/// Reads the lines of `SHOW GRANTS`.
pub(super) fn missing(lines: &[String], database: &str) -> Missing {
    let mut granted = BTreeSet::new();
    let mut has_role = false;
    for line in lines {
        let Some(rest) = line.strip_prefix("GRANT ") else { continue };
        let Some((rights, object)) = rest.split_once(" ON ") else {
            // Such as: GRANT `writers`@`%` TO `carillon`@`%`
            has_role = true;
            continue;
        };
        if covers(object, database) {
            granted.extend(rights.split(',').map(|right| right.trim().to_ascii_uppercase()));
        }
    }
    let all = granted.iter().any(|right| right.starts_with("ALL"));
    let rights = NEEDED.into_iter().filter(|right| !all && !granted.contains(*right)).collect();
    Missing { rights, has_role }
}

/// Whether a grant's object, such as `` `carillon\_%`.* TO ... ``, is of the database as a whole.
fn covers(object: &str, database: &str) -> bool {
    let Some((place, _)) = object.split_once(" TO ") else { return false };
    let Some(pattern) = place.trim().strip_suffix(".*") else { return false };
    if pattern == "*" {
        return true;
    }
    let plain = pattern.trim_matches('`').replace("``", "`");
    matches(&plain.chars().collect::<Vec<_>>(), &database.chars().collect::<Vec<_>>())
}

/// The patterns of LIKE: `%` is any text, `_` any character, and a backslash takes the next one as it is.
fn matches(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['%', rest @ ..], _) => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        (['\\', c, rest @ ..], [first, text @ ..]) => c == first && matches(rest, text),
        (['_', rest @ ..], [_, text @ ..]) => matches(rest, text),
        ([c, rest @ ..], [first, text @ ..]) => c == first && matches(rest, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str], database: &str) -> (Vec<&'static str>, bool) {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let Missing { rights, has_role } = missing(&lines, database);
        (rights, has_role)
    }

    #[test]
    fn rights_are_read_as_the_servers_show_them() {
        let usage = "GRANT USAGE ON *.* TO `carillon`@`%` IDENTIFIED BY PASSWORD '*AB'";
        let all = "GRANT ALL PRIVILEGES ON `carillon`.* TO `carillon`@`%`";
        let some = "GRANT SELECT, INSERT, UPDATE, DELETE ON `carillon`.* TO `carillon`@`%`";
        for (lines, database, expected, has_role) in [
            (vec![usage, all], "carillon", vec![], false),
            (vec![usage, all], "other", NEEDED.to_vec(), false),
            (vec!["GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"], "c", vec![], false),
            (vec![usage, some], "carillon", vec!["CREATE", "ALTER"], false),
            (vec![some, "GRANT CREATE, ALTER, `r` ON *.* TO `c`@`%`"], "carillon", vec![], false),
            (vec![usage, "GRANT `writers`@`%` TO `carillon`@`%`"], "carillon", NEEDED.to_vec(), true),
            (vec!["GRANT ALL PRIVILEGES ON `carillon\\_%`.* TO `c`@`%`"], "carillon_7", vec![], false),
            (vec!["GRANT ALL PRIVILEGES ON `carillon\\_%`.* TO `c`@`%`"], "carillonx7", NEEDED.to_vec(), false),
            (vec!["GRANT ALL PRIVILEGES ON `carillon_`.* TO `c`@`%`"], "carillonx", vec![], false),
            (vec!["GRANT SELECT ON `carillon`.`job` TO `c`@`%`"], "carillon", NEEDED.to_vec(), false),
            (vec!["SET DEFAULT ROLE `r` FOR `c`@`%`"], "carillon", NEEDED.to_vec(), false),
        ] {
            assert_eq!(of(&lines, database), (expected, has_role), "{lines:?}");
        }
    }
}
