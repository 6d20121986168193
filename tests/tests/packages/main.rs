//! How Carillon is installed: packages, service manager, container. Packing itself takes minutes, and is done where it is asked for.

mod installed;
mod manager;
mod parts;
mod process_one;

use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository").to_owned()
}
