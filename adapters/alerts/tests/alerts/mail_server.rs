//! A real mail server in Python, and one that breaks off.

use carillon_alerts::{AlertsConfig, MailConfig, Sender};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::script::{Authority, Script, python_with, repository};

/// aiosmtpd, Debian's `python3-aiosmtpd`.
pub struct MailServer {
    pub port: u16,
    pub authority: Authority,
    script: Script,
    _certificate: tempfile::NamedTempFile,
}

impl MailServer {
    /// `None`, said loudly, where there is no aiosmtpd.
    pub fn start(kind: &str, login: Option<&str>) -> Option<Self> {
        let Some(python) = python_with("aiosmtpd") else {
            super::skip("mail to a real server: there is no aiosmtpd (apt-get install python3-aiosmtpd)");
            return None;
        };
        let authority = Authority::new();
        let certificate = authority.server_file();
        let program = repository("adapters/alerts/tests/alerts/mail_server.py");
        let mut arguments = vec![program.to_str().unwrap(), kind, certificate.path().to_str().unwrap()];
        arguments.extend(login);
        let mut script = Script::start(python, &arguments);
        let port = script.line().parse().unwrap();
        Some(Self { port, authority, script, _certificate: certificate })
    }

    /// A sender that trusts the server's authority.
    pub fn sender(&self, url: &str, set: impl FnOnce(&mut MailConfig)) -> Sender {
        let url = url.replace("PORT", &self.port.to_string());
        let mut mail = MailConfig::new(&url, "Carillon <carillon@example.org>", "node-1.example.org").unwrap();
        set(&mut mail);
        let alerts = AlertsConfig { ca_file: Some(self.authority.file.path().to_owned()), ..AlertsConfig::default() };
        Sender::new(&alerts, Some(&mail)).unwrap()
    }

    /// The next mail that it took. It waits for one.
    pub fn mail(&mut self) -> Value {
        serde_json::from_str(&self.script.line()).unwrap()
    }
}

/// Where a server breaks off.
#[derive(Clone, Copy, PartialEq)]
pub enum Breaks {
    /// It says nothing at all.
    BeforeTheGreeting,
    /// It closes the connection instead of taking a sender.
    AtTheSender,
    /// It reads the whole mail and closes the connection.
    AfterTheDot,
    /// It reads the whole mail and says nothing.
    HangsAfterTheDot,
}

/// A server that breaks off; its port.
pub async fn breaking(breaks: Breaks) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        if breaks == Breaks::BeforeTheGreeting {
            return std::future::pending().await;
        }
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 breaking\r\n").await.unwrap();
        let (mut line, mut in_data) = (String::new(), false);
        while {
            line.clear();
            stream.read_line(&mut line).await.is_ok_and(|read| read > 0)
        } {
            match line.trim_end() {
                "." if in_data && breaks == Breaks::HangsAfterTheDot => return std::future::pending().await,
                "." if in_data => return,
                _ if in_data => continue,
                "DATA" => in_data = true,
                text if text.starts_with("MAIL") && breaks == Breaks::AtTheSender => return,
                _ => {}
            }
            let reply: &[u8] = if in_data { b"354 go on\r\n" } else { b"250 OK\r\n" };
            stream.write_all(reply).await.unwrap();
        }
    });
    port
}
