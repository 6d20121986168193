//! `carillon man`: a page for each command.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::failure::CommandFailure;
use crate::out::Out;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Where to write the pages; made if it is not there
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

/// Writes the pages of a definition: `carillon.1`, `carillon-job.1`, `carillon-job-add.1` and so on.
pub fn man(args: &ManArgs, definition: Command, out: &mut Out) -> Result<(), CommandFailure> {
    let directory = &args.directory;
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(definition, directory));
    written.map_err(|error| {
        let shown = directory.display();
        CommandFailure::failed(format!("the pages cannot be written to {shown}: {error}; name another directory"))
    })?;
    let first = directory.join("carillon.1");
    let first = if first.is_absolute() { first } else { Path::new(".").join(first) };
    out.line(&format!("the pages are in {}; read one: man {}", directory.display(), first.display()))
}
