//! The data directory of a server that nobody has used. A process makes one of each brand, which takes seconds, and each of its
//! servers begins with a copy.

use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::OnceLock;

use super::brand::Brand;
use super::server::{prepare, watched};

/// Makes the data in the directory `$1` with the words of `$2`. When the test process ends, however it ends, it deletes the directory.
const WATCHER: &str = r#"
exec 2>/dev/null
if $2 </dev/null >"$1/log" 2>&1; then
    # It may hold the server's identity, and each copy makes one of its own.
    rm -f "$1/data/auto.cnf"
    echo made
    read -r
else
    echo $(tail -40 "$1/log")
fi
rm -rf --one-file-system "$1"
"#;

/// Data of a server, and the pipe whose end deletes it.
struct Pristine {
    data: PathBuf,
    _until: ChildStdin,
}

/// The data of a server of the brand that has never been started.
///
/// # Panics
/// If it cannot be made.
pub(super) fn data(brand: Brand) -> PathBuf {
    static MADE: [OnceLock<Pristine>; 2] = [OnceLock::new(), OnceLock::new()];
    MADE[brand as usize].get_or_init(|| make(brand)).data.clone()
}

fn make(brand: Brand) -> Pristine {
    let home = brand.home();
    let directory = home.servers.join(format!("carillon-{}-{}-new", brand.name().to_lowercase(), std::process::id()));
    prepare(&home, &directory, &[]);
    let data = directory.join("data");
    let install = brand.installation(&home, &home.inside(&directory), &home.inside(&data));
    let (_, until, _) = watched(WATCHER, &directory, &install, &[]);
    Pristine { data, _until: until }
}
