//! A loaded plugin, and what it says of itself. Everything is checked that can be before it is believed.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::mem::{ManuallyDrop, offset_of, size_of};
use std::os::fd::AsRawFd;
use std::path::Path;

use carillon_plugin::abi::{ABI_VERSION, Descriptor, INIT_SYMBOL, Init, RunFacts, RunResult};
use libloading::os::unix;
use serde_json::{Value, json};

use crate::dylib::catalog::Description;
use crate::dylib::catalog::image;

/// `run` of a plugin.
type RunFunction = unsafe extern "C" fn(*const RunFacts, *mut RunResult);

/// A plugin in this process. It is never unloaded: threads that it started may still run.
pub(crate) struct Library {
    descriptor: &'static Descriptor,
    run: RunFunction,
    _code: ManuallyDrop<unix::Library>,
    /// Never closed: the loader takes a second library under the same path for the first one.
    _image: ManuallyDrop<File>,
}

/// A static binary has no loader of libraries, and the C library's answer would not say so.
fn refuse_in_a_static_binary() -> Result<(), String> {
    if cfg!(target_feature = "crt-static") {
        let remedy = "install the Debian package or the image, whose carillon loads plugins";
        return Err(format!("this carillon is a static binary, which loads no plugins; {remedy}"));
    }
    Ok(())
}

impl Library {
    /// Loads an image: constructors run, then the init function.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        refuse_in_a_static_binary()?;
        let image = ManuallyDrop::new(image::open(path)?);
        let path = format!("/proc/self/fd/{}", image.as_raw_fd());
        // SAFETY: this runs the plugin's constructors, which may do anything. A host process exists for that; in the server, the configuration trusts the plugin.
        let code = unsafe { unix::Library::open(Some(&path), unix::RTLD_NOW | unix::RTLD_LOCAL) }
            .map_err(|error| format!("it cannot be loaded: {}", without_path(&error.to_string(), &path)))?;
        let code = ManuallyDrop::new(code);
        // SAFETY: the ABI fixes the type of this symbol. The header says that the version is checked first.
        let init = unsafe { code.get::<Init>(INIT_SYMBOL) }
            .map_err(|_| format!("it is not a Carillon plugin: it does not export {INIT_SYMBOL}"))?;
        // SAFETY: the ABI lets us call this once, on the main thread.
        let descriptor = unsafe { init(ABI_VERSION) };
        // SAFETY: the result of the init function of a library that stays loaded.
        let (descriptor, run) = unsafe { check(descriptor) }?;
        Ok(Self { descriptor, run, _code: code, _image: image })
    }

    /// The plugin's own words, copied.
    pub(crate) fn description(&self) -> Result<Description, String> {
        let schema = if self.descriptor.params_schema.is_null() {
            json!({"type": "object"})
        } else {
            let text = text(self.descriptor.params_schema, "params_schema")?;
            serde_json::from_str::<Value>(text).map_err(|error| format!("its params schema is not JSON: {error}"))?
        };
        Ok(Description {
            name: text(self.descriptor.name, "name")?.to_owned(),
            version: text(self.descriptor.version, "version")?.to_owned(),
            abi_version: self.descriptor.abi_version,
            params_schema: schema,
        })
    }

    /// The function that executes a run.
    pub(crate) fn run(&self) -> RunFunction {
        self.run
    }
}

/// Believes a descriptor step by step: the version first, then the size, then the rest.
///
/// # Safety
/// `descriptor` must come from the init function of a library that is never unloaded.
unsafe fn check(descriptor: *const Descriptor) -> Result<(&'static Descriptor, RunFunction), String> {
    if descriptor.is_null() {
        return Err(format!("it says that it cannot work with ABI version {ABI_VERSION}, which this server speaks"));
    }
    if !descriptor.is_aligned() {
        return Err("its descriptor is not aligned as the ABI demands".to_owned());
    }
    const { assert!(offset_of!(Descriptor, abi_version) == 0 && offset_of!(Descriptor, struct_size) == 4) }
    // SAFETY: in every version of the ABI, a descriptor begins with these two numbers.
    let [abi_version, struct_size] = unsafe { descriptor.cast::<[u32; 2]>().read() };
    if abi_version != ABI_VERSION {
        return Err(format!(
            "it was built for ABI version {abi_version}, and this server speaks version {ABI_VERSION}"
        ));
    }
    if (struct_size as usize) < size_of::<Descriptor>() {
        let expected = size_of::<Descriptor>();
        return Err(format!("its descriptor has {struct_size} bytes, and ABI version {ABI_VERSION} has {expected}"));
    }
    // SAFETY: a descriptor of this version and at least this size, constant and there for ever.
    let descriptor = unsafe { &*descriptor };
    match descriptor.run {
        Some(run) => Ok((descriptor, run)),
        None => Err("its descriptor has no run function".to_owned()),
    }
}

fn text(pointer: *const c_char, field: &str) -> Result<&'static str, String> {
    if pointer.is_null() {
        return Err(format!("its descriptor has no {field}"));
    }
    // SAFETY: the ABI promises a constant string that ends in a NUL and is there for ever.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| format!("the {field} in its descriptor is not UTF-8"))
}

/// Removes the copy's path from the loader's message: users do not know it.
fn without_path<'a>(error: &'a str, path: &str) -> &'a str {
    error.strip_prefix(path).map_or(error, |rest| rest.trim_start_matches([':', ' ']))
}
