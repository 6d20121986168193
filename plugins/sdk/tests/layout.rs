//! The header and the Rust types are the same ABI: compilers of C99 and of C++ take the header without a warning, and
//! find every field where Rust has it, with the type that Rust has.

use std::ffi::{c_char, c_void};
use std::io::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

use carillon_plugin::abi::{Descriptor, Env, RunFacts, RunResult};

/// A type of the ABI, by how C declares a pointer `p` to a constant of it.
trait InC {
    const POINTER: &'static str;
}

macro_rules! in_c {
    ($($rust:ty => $pointer:literal)*) => {
        $(impl InC for $rust { const POINTER: &'static str = $pointer; })*
    };
}

in_c! {
    u32 => "const uint32_t *p"
    i32 => "const int32_t *p"
    u64 => "const uint64_t *p"
    i64 => "const int64_t *p"
    *const c_char => "const char *const *p"
    *mut c_char => "char *const *p"
    *const Env => "const carillon_env *const *p"
    *mut c_void => "void *const *p"
    unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> i32 => "int32_t (*const *p)(void *, const char *, size_t)"
    unsafe extern "C" fn(*mut c_void) -> i32 => "int32_t (*const *p)(void *)"
    Option<unsafe extern "C" fn(*const RunFacts, *mut RunResult)> =>
        "void (*const *p)(const carillon_run *, carillon_result *)"
}

/// The type of what a function takes out of a struct: of a field.
const fn type_of<S, F: InC>(_: fn(S) -> F) -> &'static str {
    F::POINTER
}

/// Every struct and its size; the offset of each of its fields, with a line of C that compiles only if the field has the
/// type that Rust has.
macro_rules! layouts {
    ($($rust:ident is $c:ident { $($field:ident),* $(,)? })*) => {
        &[$(
            (concat!("sizeof(", stringify!($c), ")"), size_of::<$rust>(), None),
            $((
                concat!("offsetof(", stringify!($c), ", ", stringify!($field), ")"),
                offset_of!($rust, $field),
                Some((type_of(|it: $rust| it.$field), concat!("null_of(", stringify!($c), ")->", stringify!($field)))),
            ),)*
        )*]
    };
}

/// The measure in C and in Rust, and the type and the name of a field.
type Layout = (&'static str, usize, Option<(&'static str, &'static str)>);

const LAYOUTS: &[Layout] = layouts! {
    Env is carillon_env { name, value }
    RunFacts is carillon_run {
        struct_size, attempt, job_namespace, job, run_id, due_at_ms, deadline_ms, fencing_token, params_json, env,
        env_count, reserved, host, write, cancelled,
    }
    RunResult is carillon_result { struct_size, status, exit_code, message_capacity, message }
    Descriptor is carillon_plugin { abi_version, struct_size, name, version, params_schema, run }
};

/// For the compiler to look through; what is compiled from it is never run.
const NULL_OF: &str = "#define null_of(type) ((const type *)0)";

/// The layouts, as a program in the given language prints them.
fn layouts_by(compiler: &str, language: &[&str]) -> Vec<usize> {
    let prints: String =
        LAYOUTS.iter().map(|(what, ..)| format!("printf(\"%lu\\n\", (unsigned long){what});\n")).collect();
    let types = LAYOUTS.iter().filter_map(|(.., field)| *field);
    let types: String = types.map(|(pointer, field)| format!("{{ {pointer} = &{field}; (void)p; }}\n")).collect();
    let program = format!(
        "#include <carillon_plugin.h>\n#include <stdio.h>\n{NULL_OF}\nvoid types(void);\nvoid types(void) {{ {types} }}\n\
         int main(void) {{ {prints} return 0; }}\n"
    );
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layout-{compiler}"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new(compiler);
    command.args(["-pedantic", "-Wall", "-Wextra", "-Werror"]).args(language).args(["-", "-o"]).arg(&binary);
    let mut running = command.arg("-I").arg(include).stdin(Stdio::piped()).spawn().unwrap();
    running.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    assert!(running.wait().unwrap().success(), "{compiler} does not take the header");
    let printed = Command::new(binary).output().unwrap().stdout;
    String::from_utf8(printed).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn c_and_cpp_agree_with_rust() {
    for (compiler, language) in [("cc", ["-std=c99", "-x", "c"]), ("c++", ["-std=c++11", "-x", "c++"])] {
        let found = layouts_by(compiler, &language);
        assert_eq!(found.len(), LAYOUTS.len());
        for ((what, expected, _), found) in LAYOUTS.iter().zip(found) {
            assert_eq!(found, *expected, "{what} by {compiler}");
        }
    }
}

#[test]
fn the_constants_are_the_same() {
    use carillon_plugin::abi;
    let header = include_str!("../include/carillon_plugin.h");
    for line in [
        format!("#define CARILLON_ABI_VERSION {}u\n", abi::ABI_VERSION),
        format!("#define CARILLON_SUCCEEDED {}\n", abi::SUCCEEDED),
        format!("#define CARILLON_FAILED {}\n", abi::FAILED),
        format!("CARILLON_EXPORT const carillon_plugin *{}(uint32_t host_abi_version);\n", abi::INIT_SYMBOL),
        format!("its NUL included; at least {}. */\n", abi::MIN_MESSAGE_CAPACITY),
    ] {
        assert!(header.contains(&line), "the header does not say {line:?}");
    }
}
