//! `job edit`: a definition in the editor, put back unless somebody else was faster.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;

use super::save::{definition_of, object, tell};
use super::{NamedArgs, path};
use crate::client::{Call, Client};
use crate::document::Format;
use crate::failure::CommandFailure;
use crate::out::Out;

/// The editor of those who have named none.
const EDITOR: &str = "vi";

/// Arguments of `job edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Which job.
    #[command(flatten)]
    pub job: NamedArgs,
    /// How the definition is written in the editor
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
}

/// `carillon job edit`
pub fn edit(args: &EditArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let (NamedArgs { name, place }, format) = (&args.job, args.format);
    let client = Client::new(&place.server)?;
    let read = client.call(Call::get(path(name, "")).with("namespace", &place.namespace))?.body;
    let generation = read["generation"].clone();
    let definition = definition_of(read.clone())?;
    let before = format.write(&Value::Object(definition))?;
    let file = draft(name, format, &before)?;
    let after = edited(&file)?;
    if after == before {
        discard(&file);
        return tell(&read, "is as it was", place, out);
    }
    let kept = |failure: CommandFailure| CommandFailure {
        sentence: format!(
            "{}\nyour text is kept in {}: mend it, then `carillon job update {name} --file {}`",
            failure.sentence,
            file.display(),
            file.display()
        ),
        ..failure
    };
    let shown = file.display().to_string();
    let job = format.read(&after, &shown, "a job").and_then(|job| object(job, &shown)).map_err(kept)?;
    let call = Call::put(path(name, "")).with("namespace", &place.namespace).if_match(&generation);
    let reply = client.call(call.body(Value::Object(job))).map_err(kept)?;
    discard(&file);
    tell(&reply.body, "is updated", place, out)
}

/// A file that only its owner can read: a definition may tell more than others should know.
fn draft(name: &str, format: Format, text: &str) -> Result<PathBuf, CommandFailure> {
    let ending = format.ending();
    let file = std::env::temp_dir().join(format!("carillon-{name}-{}.{ending}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    made.and_then(|mut made| made.write_all(text.as_bytes())).map_err(|error| {
        CommandFailure::failed(format!(
            "{} cannot be written: {error}; set TMPDIR to another directory",
            file.display()
        ))
    })?;
    Ok(file)
}

/// The text that the editor leaves.
fn edited(file: &Path) -> Result<String, CommandFailure> {
    let named = |variable| std::env::var(variable).ok().filter(|text| !text.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| EDITOR.into());
    // As git does it: the variable may hold arguments too.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file).status();
    let failed = |why: String| {
        discard(file);
        CommandFailure::failed(format!("the editor {editor:?} {why}; set EDITOR to another one. Nothing is changed"))
    };
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(failed(format!("ended with {status}"))),
        Err(error) => return Err(failed(format!("cannot be started: {error}"))),
    }
    std::fs::read_to_string(file).map_err(|error| failed(format!("left a file that cannot be read: {error}")))
}

fn discard(file: &Path) {
    // One that is gone already is as good.
    let _ = std::fs::remove_file(file);
}
