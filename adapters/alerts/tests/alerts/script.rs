//! Programs that the tests start, and an authority that vouches for servers on this machine.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use carillon_doubles::certificates::Issued;
use tempfile::NamedTempFile;

/// An authority in a file, and a certificate of it for `localhost` and 127.0.0.1.
pub struct Authority {
    /// The authority's certificate, in PEM.
    pub file: NamedTempFile,
    /// The server's.
    pub server: Issued,
}

impl Authority {
    pub fn new() -> Self {
        let authority = carillon_doubles::certificates::Authority::new("alerts");
        Self { file: file(authority.pem()), server: authority.server() }
    }

    /// The server's certificate and key in one file.
    pub fn server_file(&self) -> NamedTempFile {
        file(&(self.server.cert.clone() + &self.server.key))
    }
}

/// A file with this content; it goes with the value.
pub fn file(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

/// A program that tells in lines what it does; it ends with the test.
pub struct Script {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Script {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line. It waits for one.
    pub fn line(&mut self) -> String {
        self.lines.next().expect("the program has ended").unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A Python that has `module`; Debian's comes before others, because tests get modules from Debian's packages.
pub fn python_with(module: &str) -> Option<&'static str> {
    ["/usr/bin/python3", "python3"].into_iter().find(|python| {
        let tried = Command::new(python).args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// The file beside the tests, or in `docs`.
pub fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
