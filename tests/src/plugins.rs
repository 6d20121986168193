//! A place for a server with plugins: libraries are built or copied into its plugins directory, and its command line is
//! asked what became of them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::server::{LOG, Server, binary};

/// The folder of the repository that holds the plugins and the SDK.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")
}

/// A directory for one server, with a plugins directory that only its owner can write to.
pub struct Place(tempfile::TempDir);

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// With no plugin in it.
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        std::fs::create_dir(place.plugins()).expect("a plugins directory");
        set_mode(&place.plugins(), 0o755);
        place
    }

    /// Where the server runs.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where it looks for plugins.
    pub fn plugins(&self) -> PathBuf {
        self.path().join("plugins")
    }

    /// Drops in a plugin that cargo has built from this workspace: `noop` or `http`.
    pub fn drop_built(&self, package: &str, name: &str, mode: u32) -> PathBuf {
        let library = format!("libcarillon_{package}.so");
        let test = std::env::current_exe().expect("a test has a path");
        // Cargo leaves it beside the tests, and beside the binaries too if the plugin was asked for by name.
        let mut beside = test.ancestors().flat_map(|dir| [dir.join(&library), dir.join("deps").join(&library)]);
        let built = beside.find(|path| path.is_file()).expect("run `cargo build --workspace` first");
        let file = self.plugins().join(name);
        std::fs::copy(built, &file).expect("the plugin can be copied");
        set_mode(&file, mode);
        file
    }

    /// Compiles a plugin in C, warnings denied, and drops it in.
    pub fn drop_c(&self, name: &str, source: &str) -> PathBuf {
        let source_file = self.path().join(name).with_extension("c");
        std::fs::write(&source_file, source).expect("written");
        self.drop_c_file(name, &source_file)
    }

    /// As [`Place::drop_c`], from a file.
    pub fn drop_c_file(&self, name: &str, source: &Path) -> PathBuf {
        let file = self.plugins().join(name);
        compile(source, &file);
        file
    }

    /// The server's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join(LOG)).expect("the server has a log")
    }

    /// A command line, where the server keeps its token.
    pub fn carillon(&self, server: &Server, args: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.args(args).env("CARILLON_SERVER", server.url()).env_remove("CARILLON_TOKEN");
        command.current_dir(self.path()).stdin(Stdio::null()).output().expect("the binary can be started")
    }

    /// The output of a command that must succeed.
    pub fn out(&self, server: &Server, args: &[&str]) -> String {
        let output = self.carillon(server, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The run of a job that is run now and waited for, and the exit code of the waiting.
    pub fn run_now(&self, server: &Server, job: &str) -> (Option<i32>, Value) {
        let output = self.carillon(server, &["job", "run", job, "--wait", "--json"]);
        (output.status.code(), serde_json::from_slice(&output.stdout).expect("a run as JSON"))
    }
}

/// Compiles a plugin in C, warnings denied.
pub fn compile(source: &Path, file: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-O0", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]);
    cc.arg("-I").arg(sources().join("sdk/include")).arg("-o").arg(file).arg(source);
    assert!(cc.status().expect("cc").success(), "{} does not compile", source.display());
    set_mode(file, 0o755);
}

/// Sets the permissions of a file or directory.
pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode can be set");
}
