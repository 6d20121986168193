//! The differences between the servers: where they live, how an empty one is made and how it is started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Gid, Uid, geteuid};

/// A server that speaks MySQL's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brand {
    /// Debian's, of the machine.
    MariaDb,
    /// Debian unstable's, in a chroot that `mysql-chroot` makes.
    MySql,
}

/// Where a server of a brand can live.
pub(super) struct Home {
    /// The root of its chroot.
    root: Option<PathBuf>,
    /// Where each server has a directory, seen from outside of the chroot.
    pub servers: PathBuf,
    /// Who it runs as, where it is root that starts it.
    pub account: Option<(Uid, Gid)>,
}

impl Home {
    /// A path as the server sees it.
    pub fn inside(&self, path: &Path) -> PathBuf {
        let root = self.root.as_deref();
        root.and_then(|root| path.strip_prefix(root).ok()).map_or(path.to_owned(), |path| Path::new("/").join(path))
    }

    /// Where the files of the server begin.
    pub fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// A program of the brand, with what comes before it.
    fn program(&self, name: &str, environment: &[String]) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.root.iter().flat_map(|root| ["chroot".to_owned(), root.display().to_string()]));
        if !environment.is_empty() {
            words.push("/usr/bin/env".to_owned());
            words.extend(environment.iter().cloned());
        }
        words.extend([name.to_owned(), "--no-defaults".to_owned()]);
        words.extend(self.account.map(|_| "--user=mysql".to_owned()));
        words
    }
}

impl Brand {
    /// Its name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Brand::MariaDb => "MariaDB",
            Brand::MySql => "MySQL",
        }
    }

    /// Options of a server that does not measure itself. The tests read none of its figures, and they take a tenth of its time.
    pub(super) fn without_instruments(self) -> &'static [&'static str] {
        match self {
            Brand::MariaDb => &[],
            Brand::MySql => &["--performance-schema-instrument=%=OFF", "--performance-schema-digests-size=0"],
        }
    }

    /// Where its servers live on this machine. Where they cannot, says loudly that nothing of this process is tested and
    /// ends it: as a failure if `CI=true`, unless nothing can be done about it.
    pub(super) fn home(self) -> Home {
        match self {
            Brand::MariaDb => {
                let runs = |name| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
                if !runs("mariadbd") || !runs("mariadb-install-db") {
                    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
                    self.skip("it is not installed (apt-get install mariadb-server)", i32::from(ci));
                }
                let account = geteuid().is_root().then(|| account(Path::new("/")));
                Home { root: None, servers: std::env::temp_dir(), account }
            }
            Brand::MySql => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/mysql-chroot");
                let made = Command::new(script).output().expect("bash starts");
                let said = String::from_utf8_lossy(&made.stderr);
                match made.status.code() {
                    Some(0) => {}
                    Some(77) => self.skip(said.trim(), 0),
                    code => panic!("{script} failed ({code:?}): {said}"),
                }
                let root = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
                Home { servers: root.join("srv"), account: Some(account(&root)), root: Some(root) }
            }
        }
    }

    fn skip(self, why: &str, status: i32) -> ! {
        let program = std::env::args().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
        crate::skipped::tell(&format!("all of {program}, as there is no {}: {why}", self.name()));
        std::process::exit(status);
    }

    /// The words that make an empty server in a directory.
    pub(super) fn installation(self, home: &Home, inside: &Path, data: &Path) -> String {
        let (program, how) = match self {
            Brand::MariaDb => ("mariadb-install-db", "--skip-test-db --auth-root-authentication-method=normal"),
            Brand::MySql => ("/usr/sbin/mysqld", "--initialize-insecure"),
        };
        let program = home.program(program, &[]).join(" ");
        format!("{program} {how} --datadir={} --tmpdir={}/tmp", data.display(), inside.display())
    }

    /// The words that start a server in an environment (`NAME=value`), without its options.
    pub(super) fn start(self, home: &Home, environment: &[String]) -> Vec<String> {
        match self {
            Brand::MariaDb => home.program("mariadbd", environment),
            Brand::MySql => {
                let mut words = home.program("/usr/sbin/mysqld", environment);
                words.extend(["--mysqlx=OFF", "--sync-binlog=1"].map(str::to_owned));
                words
            }
        }
    }
}

/// The account `mysql` of a system.
fn account(root: &Path) -> (Uid, Gid) {
    let accounts = fs::read_to_string(root.join("etc/passwd")).expect("accounts");
    let fields = accounts.lines().find_map(|line| line.strip_prefix("mysql:")).expect("the account mysql");
    let numbers: Vec<u32> = fields.split(':').filter_map(|field| field.parse().ok()).collect();
    (Uid::from_raw(numbers[0]), Gid::from_raw(numbers[1]))
}
