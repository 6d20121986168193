//! The header and the Rust types are the same ABI: compilers of C99 and of C++ take the header without a warning, and
//! find every field where Rust has it.

use std::io::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

use carillon_plugin::abi::{Descriptor, Env, RunFacts, RunResult};

/// The size of what a function takes out of a struct: of a field.
const fn size_of_field<S, F>(_: fn(S) -> F) -> usize {
    size_of::<F>()
}

/// Every struct, its size, and the offset and size of each of its fields.
macro_rules! layouts {
    ($($rust:ident is $c:ident { $($field:ident),* $(,)? })*) => {
        &[$(
            (concat!("sizeof(", stringify!($c), ")"), size_of::<$rust>()),
            $(
                (concat!("offsetof(", stringify!($c), ", ", stringify!($field), ")"), offset_of!($rust, $field)),
                (
                    concat!("sizeof(null_of(", stringify!($c), ")->", stringify!($field), ")"),
                    size_of_field(|it: $rust| it.$field),
                ),
            )*
        )*]
    };
}

const LAYOUTS: &[(&str, usize)] = layouts! {
    Env is carillon_env { name, value }
    RunFacts is carillon_run {
        struct_size, attempt, job_namespace, job, run_id, due_at_ms, deadline_ms, fencing_token, params_json, env,
        env_count, reserved, host, write, cancelled,
    }
    RunResult is carillon_result { struct_size, status, exit_code, message_capacity, message }
    Descriptor is carillon_plugin { abi_version, struct_size, name, version, params_schema, run }
};

/// A pointer for `sizeof` to look through, and nobody else.
const NULL_OF: &str = "#define null_of(type) ((const type *)0)";

/// What a program in the given language prints of the layouts.
fn layouts_by(compiler: &str, language: &[&str]) -> Vec<usize> {
    let prints: String =
        LAYOUTS.iter().map(|(what, _)| format!("printf(\"%lu\\n\", (unsigned long){what});\n")).collect();
    let program = format!(
        "#include <carillon_plugin.h>\n#include <stdio.h>\n{NULL_OF}\nint main(void) {{ {prints} return 0; }}\n"
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
        for ((what, expected), found) in LAYOUTS.iter().zip(found) {
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
