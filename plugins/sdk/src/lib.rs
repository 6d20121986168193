//! Write an executor for [Carillon](https://github.com/carillon-scheduler/carillon) as a dynamic library.
//!
//! Implement [`Plugin`], name it in [`export_plugin!`], build a `cdylib`, and drop the `.so` into the server's plugins
//! directory. Jobs then say `"executor": "<NAME>"`.
//!
//! ```
//! use std::io::Write;
//!
//! use carillon_plugin::{Failure, Plugin, Run, export_plugin};
//!
//! #[derive(Default)]
//! struct Greet;
//!
//! #[derive(serde::Deserialize)]
//! struct Params {
//!     whom: String,
//! }
//!
//! impl Plugin for Greet {
//!     const NAME: &'static str = "greet";
//!     const VERSION: &'static str = env!("CARGO_PKG_VERSION");
//!     const PARAMS_SCHEMA: &'static str = r#"{
//!         "type": "object",
//!         "properties": {"whom": {"type": "string"}},
//!         "required": ["whom"],
//!         "additionalProperties": false
//!     }"#;
//!     type Params = Params;
//!
//!     fn run(&self, params: Params, run: &Run<'_>) -> Result<(), Failure> {
//!         writeln!(run.output(), "Hello, {}! This is attempt {} of {}.", params.whom, run.attempt(), run.job())?;
//!         Ok(())
//!     }
//! }
//!
//! export_plugin!(Greet);
//! ```
//!
//! [`testing`] plays the server's part in a plugin's own tests.
//!
//! A panic in [`Plugin::run`] is a failed run with the panic's message. A segfault, `exit`, or a panic with `panic = "abort"` ends
//! the process. It fails every run of the plugin in that process, and nothing else, unless the plugin is trusted to run in the
//! server itself.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod abi;
#[doc(hidden)]
pub mod entry;
mod failure;
mod run;
pub mod testing;
mod time;

pub use failure::Failure;
pub use run::{Output, Run};

use serde::de::DeserializeOwned;

/// An executor: a kind of work that jobs can ask for.
///
/// The library's code makes a value of it by `Default`, once in a process, when the first run comes. It then serves many
/// runs, on several threads at a time. Threads that a run starts must end before it returns. A run that leaves a thread behind fails,
/// if it can be told which run it was.
pub trait Plugin: Default + Send + Sync + 'static {
    /// The name in a job's `executor`: 1 to 128 of `[A-Za-z0-9._-]`.
    const NAME: &'static str;

    /// The plugin's version, for people; usually `env!("CARGO_PKG_VERSION")`.
    const VERSION: &'static str;

    /// A JSON Schema of the params, by which the server refuses bad ones when a job is saved, naming each field.
    const PARAMS_SCHEMA: &'static str;

    /// The params of a job, as serde reads them.
    type Params: DeserializeOwned;

    /// Executes one run. Returning an error, or panicking, is a failed run. Ask [`Run::cancelled`] now and then, and
    /// return soon when it says so: what does not is killed, and its process with it.
    fn run(&self, params: Self::Params, run: &Run<'_>) -> Result<(), Failure>;
}

/// Exports a type that implements [`Plugin`] from this library. To be used once in a `cdylib`.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        const _: () = {
            const NAME: &str = <$plugin as $crate::Plugin>::NAME;
            const VERSION: &str = <$plugin as $crate::Plugin>::VERSION;
            const PARAMS_SCHEMA: &str = <$plugin as $crate::Plugin>::PARAMS_SCHEMA;
            static NAME_BYTES: [u8; NAME.len() + 1] = $crate::entry::with_nul(NAME);
            static VERSION_BYTES: [u8; VERSION.len() + 1] = $crate::entry::with_nul(VERSION);
            static SCHEMA_BYTES: [u8; PARAMS_SCHEMA.len() + 1] = $crate::entry::with_nul(PARAMS_SCHEMA);
            static INSTANCE: ::std::sync::LazyLock<$plugin> =
                ::std::sync::LazyLock::new(::std::default::Default::default);

            unsafe extern "C" fn run(run: *const $crate::abi::RunFacts, result: *mut $crate::abi::RunResult) {
                // SAFETY: Carillon calls this with the pointers that the ABI promises.
                unsafe { $crate::entry::run(|| &*INSTANCE, run, result) }
            }

            static DESCRIPTOR: $crate::abi::Descriptor = $crate::abi::Descriptor {
                abi_version: $crate::abi::ABI_VERSION,
                struct_size: ::std::mem::size_of::<$crate::abi::Descriptor>() as u32,
                name: NAME_BYTES.as_ptr().cast(),
                version: VERSION_BYTES.as_ptr().cast(),
                params_schema: SCHEMA_BYTES.as_ptr().cast(),
                run: ::std::option::Option::Some(run),
            };

            // SAFETY: no other function of a plugin has this name.
            #[unsafe(no_mangle)]
            extern "C" fn carillon_plugin_init(_host_abi_version: u32) -> *const $crate::abi::Descriptor {
                &raw const DESCRIPTOR
            }
        };
    };
}
