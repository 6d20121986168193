//! Messages are sent, and answers become sentences.

mod address;
mod envelope;
mod http;
mod signature;
mod smtp;
mod trust;
mod words;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use carillon_domain::time::Timestamp;

pub use self::address::{Policy, Reach, reach};
pub(crate) use self::envelope::check_sender;
pub use self::signature::{SIGNATURE_HEADER, signature};

use self::http::HttpClient;
use self::smtp::MailClient;
use crate::render::{Mail, Post};
use crate::{AlertsConfig, MailConfig, Outcome};

/// Looks up the addresses of a host and port. Tests have one of their own.
pub type Resolve = Arc<dyn Fn(String, u16) -> Resolving + Send + Sync>;
/// A look-up that is going on.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Sends messages. A node has one; it is cheap to share, and each call stands for itself.
pub struct Sender {
    http: HttpClient,
    mail: Option<MailClient>,
}

impl Sender {
    /// A sender with the system's look-up of names.
    ///
    /// # Errors
    /// A sentence about the configuration: authorities that cannot be read.
    pub fn new(alerts: &AlertsConfig, mail: Option<&MailConfig>) -> Result<Self, String> {
        let resolve: Resolve = Arc::new(|host, port| {
            Box::pin(async move { Ok(tokio::net::lookup_host((host.as_str(), port)).await?.collect()) })
        });
        Self::with_resolver(alerts, mail, resolve)
    }

    /// A sender with another look-up of names for HTTP.
    ///
    /// # Errors
    /// As [`Sender::new`].
    pub fn with_resolver(alerts: &AlertsConfig, mail: Option<&MailConfig>, resolve: Resolve) -> Result<Self, String> {
        let authorities = trust::authorities(alerts.ca_file.as_deref())?;
        let http = HttpClient::new(alerts, trust::client(&authorities)?, resolve);
        let mail = mail.map(|mail| MailClient::new(mail, alerts, &authorities)).transpose()?;
        Ok(Self { http, mail })
    }

    /// Sends an HTTP POST. `now` is the time of the signature. It ends within `timeout`, whatever the receiver does.
    pub async fn post(&self, post: &Post, now: Timestamp) -> Outcome {
        self.http.post(post, now).await
    }

    /// Sends a mail that was made at `at`. It ends within four times `timeout`: a mail takes several questions.
    pub async fn mail(&self, mail: &Mail, at: Timestamp) -> Outcome {
        match &self.mail {
            Some(client) => client.send(mail, at).await,
            None => Outcome::for_now(
                "This node knows no mail server: set mail.smtp and mail.from in its configuration, and restart it.",
            ),
        }
    }
}
