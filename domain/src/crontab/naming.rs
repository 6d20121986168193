//! The names of imported jobs.
//!
//! A name is `STEM-PROGRAM-HASH`. The stem comes from the file's name, and the program from the command (see
//! [`super::program`]). The hash is seven hexadecimal digits over the user, the command and its standard input.
//!
//! So a name depends only on the file's name and the command of its own line. Edits of the schedule, of variables or of
//! other lines keep it, as do a move of the line and a second import. Every name has a hash: one that got it only on a
//! collision would change when another line is added.
//!
//! Lines with the same command get `.2`, `.3`... in their order in the file.

use std::collections::BTreeMap;

use super::program::program;

const LONGEST_STEM: usize = 48;
const LONGEST_PROGRAM: usize = 40;

/// The start of the names of a file's jobs: the file's name in at most 48 characters, or `crontab` if none remain.
/// Characters outside `[A-Za-z0-9._-]` are replaced, a whole run of them by one `-`.
pub fn stem(file: &str) -> String {
    slug(file, LONGEST_STEM).unwrap_or_else(|| "crontab".into())
}

/// Generates the names of one file's jobs, in the order of its lines.
pub(super) struct Names {
    stem: String,
    given: BTreeMap<String, u32>,
}

impl Names {
    pub(super) fn new(file: &str) -> Self {
        Self { stem: stem(file), given: BTreeMap::new() }
    }

    /// The name of the next job that runs `command` as `user` with `stdin`. Blanks at the end do not count.
    pub(super) fn next(&mut self, user: Option<&str>, command: &str, stdin: Option<&str>) -> String {
        let command = command.trim_end_matches([' ', '\t']);
        let program = program(command).and_then(|p| slug(&p, LONGEST_PROGRAM)).unwrap_or_else(|| "job".into());
        let hash = fnv1a(&[user.unwrap_or_default(), command, stdin.unwrap_or_default()]);
        let name = format!("{}-{program}-{:07x}", self.stem, (hash ^ (hash >> 28) ^ (hash >> 56)) & 0xfff_ffff);
        let count = self.given.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { name } else { format!("{name}.{count}") }
    }
}

/// `text` in the alphabet of names; `None` if no character remains.
fn slug(text: &str, longest: usize) -> Option<String> {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' => out.push(c),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
        if out.len() > longest {
            break;
        }
    }
    out.truncate(longest);
    let out = out.trim_matches(['-', '.']);
    (!out.is_empty()).then(|| out.to_owned())
}

/// FNV-1a with 64 bits over the lengths and the bytes of the parts. It is written out here because names must never
/// change, and the hashes of the standard library may.
fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.bytes()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::check_job_name;
    use proptest::prelude::*;

    #[test]
    fn stems_are_the_file_name_in_the_alphabet_of_names() {
        for (file, expected) in [
            ("mdadm", "mdadm"),
            ("my jobs.cron", "my-jobs.cron"),
            ("my & their jobs", "my-their-jobs"),
            ("a/../b", "a-..-b"),
            ("..", "crontab"),
            ("", "crontab"),
            ("-", "crontab"),
            ("\u{e9}\u{e9}t\u{e9}", "t"),
        ] {
            assert_eq!(stem(file), expected);
        }
    }

    #[test]
    fn these_names_never_change() {
        let mut names = Names::new("munin");
        assert_eq!(names.next(None, "backup", None), "munin-backup-6d0f23b");
        assert_eq!(names.next(Some("root"), "backup", None), "munin-backup-87a049c");
        assert_eq!(names.next(None, "backup ", None), "munin-backup-6d0f23b.2");
        assert_eq!(names.next(None, "backup", Some("x\n")), "munin-backup-243c885");
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_unique(
            file in "\\PC{0,80}",
            commands in proptest::collection::vec("[ab/ ;$(]{0,4}|\\PC*", 0..12),
        ) {
            let mut names = Names::new(&file);
            let mut seen = std::collections::BTreeSet::new();
            for command in &commands {
                let name = names.next(None, command, None);
                prop_assert_eq!(check_job_name(&name), Ok(()));
                prop_assert!(seen.insert(name));
            }
        }
    }
}
