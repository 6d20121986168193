//! `[mail]` and `[alerts]`: how people are told, and where messages may go.

use std::path::PathBuf;
use std::time::Duration;

use carillon_alerts::{AlertsConfig, Login, MailConfig, SmtpUrl};

use super::section::{Root, Section};
use super::{NodeConfig, path, secs};

/// The largest file of a password.
const MOST_PASSWORD: u64 = 4_096;

/// `[mail]`; `None` where it is not given, and mail cannot be sent.
pub(super) fn mail(root: &mut Root, node: &NodeConfig) -> Option<MailConfig> {
    let mut section = root.section("mail");
    let smtp = section.secret_text("smtp", |text| SmtpUrl::parse(text).map(|_| text.to_owned()));
    let from = section.text("from", |text| Ok(text.to_owned()));
    let user = section.text("user", |text| Ok(text.to_owned()));
    let password_file = section.text("password_file", path);
    let plaintext = section.flag("plaintext", false);
    let (smtp, from) = match (smtp, from) {
        (Some(smtp), Some(from)) => (smtp, from),
        (None, None) => return None,
        (Some(_), None) => {
            section.fault("from", "it is needed beside smtp, such as \"carillon@example.org\"");
            return None;
        }
        (None, Some(_)) => {
            section.fault("smtp", "it is needed beside from, such as \"smtp://mail.example.org:587\"");
            return None;
        }
    };
    let config = match MailConfig::new(&smtp, &from, &node.name) {
        Ok(config) => config,
        Err(sentence) => {
            section.sentence(sentence);
            return None;
        }
    };
    let login = login(&mut section, config.login.clone(), user, password_file);
    Some(MailConfig { login, plaintext, ..config })
}

/// The user of the mail server: from the URL, or from two keys of their own.
fn login(
    section: &mut Section<'_>,
    of_url: Option<Login>,
    user: Option<String>,
    file: Option<PathBuf>,
) -> Option<Login> {
    match (of_url, user, file) {
        (login, None, None) => login,
        (Some(_), _, _) => {
            section.fault("user", "smtp names a user already: give the user in one place");
            None
        }
        (None, Some(user), Some(file)) => match password(&file) {
            Ok(password) => Some(Login { user, password }),
            Err(sentence) => {
                section.fault("password_file", &format!("{} {sentence}", file.display()));
                None
            }
        },
        (None, _, _) => {
            section.fault("user", "user and password_file belong together: give both or none");
            None
        }
    }
}

fn password(file: &std::path::Path) -> Result<String, String> {
    let length = std::fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?.len();
    if length > MOST_PASSWORD {
        return Err(format!("is longer than {MOST_PASSWORD} bytes, which no password is"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("is empty".into()),
        password => Ok(password.to_owned()),
    }
}

/// `[alerts]`.
pub(super) fn alerts(root: &mut Root) -> AlertsConfig {
    let mut section = root.section("alerts");
    let preset = AlertsConfig::default();
    let mut limits = preset.limits;
    limits.in_all = section.integer("at_once", u32::try_from(limits.in_all).unwrap_or(32), 2..=1_000) as usize;
    AlertsConfig {
        private_addresses: section.flag("private_addresses", preset.private_addresses),
        plain_http: section.flag("plain_http", preset.plain_http),
        ca_file: section.text("ca_file", path),
        connect_timeout: section.duration(
            "connect_timeout",
            preset.connect_timeout,
            Duration::from_millis(100)..=secs(60),
        ),
        timeout: section.duration("timeout", preset.timeout, Duration::from_millis(100)..=secs(60)),
        limits,
    }
}
