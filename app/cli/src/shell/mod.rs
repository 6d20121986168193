//! Completions for shells, and man pages: both made from the definitions of the arguments, so neither can be old.

mod man;
pub mod names;

pub use man::{ManArgs, man};

use clap::{Args, Command, ValueEnum};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};

use super::failure::CommandFailure;
use super::out::Out;

/// A shell sets it to its own name when it asks for the ends of a word.
const VARIABLE: &str = "CARILLON_COMPLETE";

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "In ~/.bashrc: source <(carillon completions bash). In ~/.zshrc: source <(carillon completions zsh). In \
                        ~/.config/fish/config.fish: carillon completions fish | source"
)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash 4.4 or newer.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

/// `carillon completions`: a script that asks this program each time.
pub fn completions(args: &CompletionsArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    let name = "carillon";
    shell
        .write_registration(VARIABLE, name, name, name, &mut script)
        .map_err(|error| CommandFailure::failed(format!("the script cannot be made: {error}")))?;
    out.bytes(&script)
}

/// Answers a shell that asks for the ends of a word, and ends the process then.
pub fn answer(definition: impl Fn() -> Command) {
    CompleteEnv::with_factory(definition).var(VARIABLE).complete();
}
