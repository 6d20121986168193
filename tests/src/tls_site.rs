//! A server's directory with certificates: its own, of an authority that its clients know, and those of two clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use carillon_doubles::certificates::{Authority, Issued};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::fixture::directory;
use crate::server::Server;

/// The admin's token.
const TOKEN: &str = "open-sesame";

/// A directory for a server that speaks TLS.
pub struct TlsSite {
    dir: TempDir,
    /// Issues the server's certificates.
    pub authority: Authority,
    /// Issues the clients' certificates.
    pub clients: Authority,
}

impl TlsSite {
    /// Certificates for a server, a client `known` that may read, and a client `unknown` of the same authority. The file
    /// `carillon.token` has an admin's token.
    pub fn new() -> Self {
        let site = Self { dir: directory(), authority: Authority::new("servers"), clients: Authority::new("clients") };
        let (known, unknown) = (site.clients.client("known"), site.clients.client("unknown"));
        site.write("authority.pem", site.authority.pem());
        site.write("clients.pem", site.clients.pem());
        site.write("carillon.token", TOKEN);
        site.put("server", &site.authority.server());
        site.put("known", &known);
        site.put("unknown", &unknown);
        let tokens = format!(
            "tokens = [{{name = \"admin\", role = \"admin\", sha256 = \"{}\"}}, {{name = \"known\", role = \"viewer\", certificate = \"{}\"}}]",
            hex(TOKEN.as_bytes()),
            hex(&known.der)
        );
        let tls = "tls = {cert = \"server.pem\", key = \"server.key\", client_ca = \"clients.pem\"}";
        site.write("carillon.toml", &format!("[http]\n{tokens}\n{tls}\n"));
        site
    }

    /// Starts the server.
    pub fn start(&self) -> Server {
        Server::start(self.path(), &[])
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Puts a certificate and its key in place, as `NAME.pem` and `NAME.key`, by a rename each.
    pub fn put(&self, name: &str, issued: &Issued) {
        for (end, text) in [("key", &issued.key), ("pem", &issued.cert)] {
            self.write("new", text);
            std::fs::rename(self.file("new"), self.file(&format!("{name}.{end}"))).expect("a file can be renamed");
        }
    }

    /// Writes a file that only its owner can read.
    pub fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(self.file(name), text).expect("a file can be written");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.file(name), mode).expect("a mode can be set");
    }

    /// curl, which trusts the server's authority: what it said.
    pub fn curl(&self, words: &[&str]) -> Output {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "20", "--cacert", "authority.pem"]).args(words).current_dir(self.path());
        curl.output().expect("curl is installed")
    }

    /// As [`TlsSite::curl`], with the admin's token; the version of HTTP, the status and the body.
    pub fn call(&self, words: &[&str]) -> (String, u16, Value) {
        let bearer = format!("Authorization: Bearer {TOKEN}");
        self.answer(&[&["-H", &bearer], words].concat())
    }

    /// As [`TlsSite::call`], without a token.
    pub fn answer(&self, words: &[&str]) -> (String, u16, Value) {
        let output = self.curl(&[words, &["-w", "\n%{http_version} %{http_code}"]].concat());
        assert!(output.status.success(), "curl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, told) = text.rsplit_once('\n').expect("curl tells version and status");
        let (version, status) = told.split_once(' ').expect("curl tells version and status");
        (version.into(), status.parse().expect("a status"), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// openssl as a client of a server: whether the handshake was made, and all that it said.
    pub fn openssl(&self, server: &Server, words: &[&str]) -> (bool, String) {
        let address = server.url().trim_start_matches("https://");
        let mut openssl = Command::new("openssl");
        openssl.args(["s_client", "-connect", address, "-CAfile", "authority.pem", "-verify_return_error"]).args(words);
        let output = openssl.current_dir(self.path()).stdin(std::process::Stdio::null()).output();
        let output = output.expect("openssl is installed");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Default for TlsSite {
    fn default() -> Self {
        Self::new()
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
