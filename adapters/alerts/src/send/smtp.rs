//! Mail over SMTP, on a connection of its own.
//!
//! The steps are taken one by one, because the outcome depends on the step that failed. Up to the final dot the server has
//! nothing; between the dot and its answer it may have the mail. A receiver that is refused does not hinder the others.

use std::net::IpAddr;
use std::time::Duration;

use carillon_domain::alert::RefusedReceiver;
use carillon_domain::time::Timestamp;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::envelope::{Envelope, envelope};
use crate::render::{Mail, one_line, shortened};
use crate::{AlertsConfig, MailConfig, Outcome};

/// The most characters of a server's answer that a sentence shows.
const SAID: usize = 200;

pub(super) struct MailClient {
    config: MailConfig,
    tls: TlsParameters,
    connect_timeout: Duration,
    timeout: Duration,
}

impl MailClient {
    pub fn new(mail: &MailConfig, alerts: &AlertsConfig, authorities: &[CertificateDer<'_>]) -> Result<Self, String> {
        let mut tls = TlsParameters::builder(mail.server.host.clone());
        if !authorities.is_empty() {
            tls = tls.certificate_store(CertificateStore::None);
        }
        for authority in authorities {
            let authority = Certificate::from_der(authority.to_vec());
            tls = tls.add_root_certificate(authority.map_err(|error| format!("mail.smtp: {}", reason(&error)))?);
        }
        let tls = tls.build().map_err(|error| format!("mail.smtp: TLS cannot be set up: {}", reason(&error)))?;
        Ok(Self { config: mail.clone(), tls, connect_timeout: alerts.connect_timeout, timeout: alerts.timeout })
    }

    pub async fn send(&self, mail: &Mail, at: Timestamp) -> Outcome {
        let envelope = match envelope(mail, &self.config.from, at) {
            Ok(envelope) => envelope,
            Err(words) => return Outcome::for_good(format!("{words}.")),
        };
        let mut connection = match self.in_time("connect", self.connect()).await {
            Ok(connection) => connection,
            Err(refusal) => return refusal,
        };
        if let Err(refusal) = self.in_time("let the node in", self.log_in(&mut connection)).await {
            return refusal;
        }
        let refused = match self.in_time("take the receivers", self.offer(&mut connection, &envelope, &mail.to)).await {
            Ok(refused) => refused,
            Err(refusal) => return refusal,
        };
        // From here on an error may hide that the server took it.
        let server = self.server();
        match timeout(self.timeout, connection.message(&envelope.bytes)).await {
            Ok(Ok(_)) => {
                let _parted = timeout(Duration::from_secs(1), connection.quit()).await;
                let words = accepted(&server, &mail.to, &refused);
                if refused.is_empty() { Outcome::delivered(words) } else { Outcome::partly(words, refused) }
            }
            Ok(Err(error)) if error.status().is_some() => refusal(&error, format!("{server} refused the mail")),
            Ok(Err(error)) => Outcome::unknown(format!(
                "{server} gave no answer to the mail ({}); it may have it. It is tried again.",
                reason(&error)
            )),
            Err(_) => Outcome::unknown(format!(
                "{server} gave no answer to the mail within {} s; it may have it. It is tried again.",
                self.timeout.as_secs_f32()
            )),
        }
    }

    fn server(&self) -> String {
        format!("The mail server {}:{}", self.config.server.host, self.config.server.port)
    }

    async fn in_time<T>(&self, what: &str, step: impl Future<Output = Result<T, Outcome>>) -> Result<T, Outcome> {
        timeout(self.timeout, step).await.unwrap_or_else(|_| {
            let (server, within) = (self.server(), self.timeout.as_secs_f32());
            Err(Outcome::unreached(format!("{server} did not {what} within {within} s. It is tried again.")))
        })
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Outcome> {
        let server = &self.config.server;
        let implicit = server.implicit_tls.then(|| self.tls.clone());
        let address = (server.host.as_str(), server.port);
        let connected =
            AsyncSmtpConnection::connect_tokio1(address, Some(self.connect_timeout), &self.hello(), implicit, None)
                .await;
        let mut connection = connected.map_err(|error| {
            Outcome::unreached(format!(
                "{} could not be reached ({}). See whether mail.smtp is right and the server is up.",
                self.server(),
                reason(&error)
            ))
        })?;
        if server.implicit_tls {
            return Ok(connection);
        }
        if connection.can_starttls() {
            connection.starttls(self.tls.clone(), &self.hello()).await.map_err(|error| {
                Outcome::for_now(format!(
                    "{} offers STARTTLS, but TLS failed ({}). See whether its certificate is valid for this name, and issued \
                     by an authority that this node trusts (alerts.ca_file).",
                    self.server(),
                    reason(&error)
                ))
            })?;
        } else if !self.config.plaintext && !is_loopback(&server.host) {
            connection.abort().await;
            return Err(Outcome::for_now(format!(
                "{} offers no STARTTLS, so everybody on the way could read the mail. Nothing was sent. Use smtps://, or set \
                 mail.plaintext = true.",
                self.server()
            )));
        }
        Ok(connection)
    }

    async fn log_in(&self, connection: &mut AsyncSmtpConnection) -> Result<(), Outcome> {
        let Some(login) = &self.config.login else { return Ok(()) };
        let credentials = Credentials::new(login.user.clone(), login.password.clone());
        match connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await {
            Ok(_) => Ok(()),
            // A wrong password is put right in the configuration, so the mail is not given up for it.
            Err(error) => Err(Outcome::for_now(format!(
                "{} does not let the user {:?} in ({}). See mail.user and mail.password_file.",
                self.server(),
                login.user,
                reason(&error)
            ))),
        }
    }

    /// Names sender and receivers, until the server waits for the text. Answers those who are refused, each as `named` in the target.
    async fn offer(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
        named: &[String],
    ) -> Result<Vec<RefusedReceiver>, Outcome> {
        let server = self.server();
        let mut options = Vec::new();
        let info = connection.server_info();
        if envelope.to.iter().any(|to| !to.to_string().is_ascii()) {
            if !info.supports_feature(Extension::SmtpUtfEight) {
                return Err(Outcome::for_good(format!(
                    "{server} takes ASCII addresses only, and a receiver's is not. Change it in the route."
                )));
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        if info.supports_feature(Extension::EightBitMime) {
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        connection
            .command(MailFrom::new(Some(envelope.from.clone()), options))
            .await
            .map_err(|error| refusal(&error, format!("{server} refused the sender {} (mail.from)", envelope.from)))?;
        let (mut refused, mut last) = (Vec::new(), None);
        for (to, name) in envelope.to.iter().zip(named) {
            match connection.command(Rcpt::new(to.clone(), Vec::new())).await {
                Ok(_) => {}
                Err(error) if error.status().is_some() => {
                    let (to, permanent) = (name.clone(), error.is_permanent());
                    refused.push(RefusedReceiver { to, words: reason(&error), permanent });
                    last = Some(error);
                }
                Err(error) => return Err(refusal(&error, format!("{server} broke off"))),
            }
        }
        if let Some(error) = last.filter(|_| refused.len() == envelope.to.len()) {
            let words = format!("{server} refused every receiver: {} ({})", refused[0].to, reason(&error));
            connection.abort().await;
            return Err(if refused.iter().any(|refused| !refused.permanent) {
                Outcome::for_now(format!("{words}. It is tried again."))
            } else {
                Outcome::for_good(format!("{words}. See whether the address is right."))
            });
        }
        connection.command(Data).await.map_err(|error| refusal(&error, format!("{server} refused the mail")))?;
        Ok(refused)
    }

    fn hello(&self) -> ClientId {
        let name = one_line(&self.config.hello, 200);
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
        if is_name { ClientId::Domain(name) } else { ClientId::default() }
    }
}

/// Who got it, and who is tried again alone.
fn accepted(server: &str, to: &[String], refused: &[RefusedReceiver]) -> String {
    let to: Vec<&str> =
        to.iter().map(String::as_str).filter(|to| !refused.iter().any(|refused| refused.to == *to)).collect();
    let mut words = format!("{server} took it for {}.", shortened(&to.join(", "), SAID));
    if !refused.is_empty() {
        let each: Vec<String> = refused.iter().map(|refused| format!("{} ({})", refused.to, refused.words)).collect();
        let each = shortened(&each.join(", "), SAID);
        words.push_str(&format!(" It refused {each}: that is tried again by itself. See whether it is right."));
    }
    words
}

fn refusal(error: &Error, words: String) -> Outcome {
    let why = reason(error);
    if error.is_permanent() {
        Outcome::for_good(format!("{words} ({why})."))
    } else if error.is_transient() {
        Outcome::for_now(format!("{words} for now ({why}). It is tried again."))
    } else {
        Outcome::unreached(format!("{words} ({why}). It is tried again."))
    }
}

/// The innermost reason: the outer ones say that a network error is a network error.
fn reason(error: &Error) -> String {
    let (mut words, mut inner) = (error.to_string(), std::error::Error::source(error));
    while let Some(error) = inner {
        words = error.to_string();
        inner = error.source();
    }
    match error.status() {
        Some(status) => shortened(&one_line(&format!("{status} {words}"), 4_096), SAID),
        None => shortened(&one_line(&words, 4_096), SAID),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
