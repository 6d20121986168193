//! Where a route sends its notices.

use std::time::Duration;

/// A receiver. One notice makes one delivery for each target of its route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An HTTP POST of the notice as JSON.
    Webhook {
        /// The address; http or https.
        url: String,
        /// The key of the signature; without one, the call is not signed.
        secret: Option<String>,
    },
    /// An incoming webhook of Slack.
    Slack {
        /// The address that Slack gave. Who knows it may post.
        url: String,
    },
    /// An incoming webhook of Mattermost.
    Mattermost {
        /// The address that Mattermost gave. Who knows it may post.
        url: String,
    },
    /// An incoming webhook of Microsoft Teams.
    Teams {
        /// The address that Teams gave. Who knows it may post.
        url: String,
    },
    /// Mail through the server of `[mail]`.
    Mail {
        /// The addresses of the receivers; at least one.
        to: Vec<String>,
    },
    /// A command on the node that sends. The notice is its standard input as JSON, and its environment.
    Command {
        /// The command line, for `/bin/sh -c`.
        command: String,
        /// A command that takes longer is killed, and the delivery is tried again.
        timeout: Duration,
    },
}

impl Target {
    /// The names of all kinds, as they stand under `type`.
    pub const KINDS: [&'static str; 6] = ["webhook", "slack", "mattermost", "teams", "mail", "command"];
    /// The timeout of a command if the user gives none.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    /// The longest timeout of a command.
    pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);
    /// The most receivers of one mail.
    pub const MOST_RECEIVERS: usize = 50;
    /// The most bytes of an address, a secret or a command.
    pub const MOST_BYTES: usize = 4_096;

    /// The name of its kind, as it stands under `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Target::Webhook { .. } => "webhook",
            Target::Slack { .. } => "slack",
            Target::Mattermost { .. } => "mattermost",
            Target::Teams { .. } => "teams",
            Target::Mail { .. } => "mail",
            Target::Command { .. } => "command",
        }
    }

    /// The address that it calls, if it is one.
    pub fn url(&self) -> Option<&str> {
        match self {
            Target::Webhook { url, .. }
            | Target::Slack { url }
            | Target::Mattermost { url }
            | Target::Teams { url } => Some(url),
            Target::Mail { .. } | Target::Command { .. } => None,
        }
    }

    /// The receiver whose capacity the target uses: the host and port of its address, `mail` or `command`. Deliveries of one host
    /// share its limit.
    pub fn host(&self) -> &str {
        self.url().map_or(self.kind(), |url| host_of(url).unwrap_or(url))
    }

    /// Whether it can be used.
    ///
    /// # Errors
    /// The name of the faulty field and a sentence about it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        match self {
            Target::Webhook { url, secret } => {
                check_url(url).map_err(|fault| ("url", fault))?;
                secret.as_deref().map_or(Ok(()), |secret| check_text(secret, "key")).map_err(|fault| ("secret", fault))
            }
            Target::Slack { url } | Target::Mattermost { url } | Target::Teams { url } => {
                check_url(url).map_err(|fault| ("url", fault))
            }
            Target::Mail { to } => check_receivers(to).map_err(|fault| ("to", fault)),
            Target::Command { command, timeout } => {
                check_text(command, "command").map_err(|fault| ("command", fault))?;
                if timeout.is_zero() || *timeout > Self::LONGEST_TIMEOUT {
                    return Err(("timeout", "it must be longer than 0s and at most 5m".into()));
                }
                Ok(())
            }
        }
    }
}

/// Whether a text is an address that can be called.
///
/// # Errors
/// A sentence for the sender.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    check_text(url, "URL")?;
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    match host_of(url) {
        Some(host) if plain && !host.is_empty() => Ok(()),
        _ => Err("it must be a URL that begins with https:// or http:// and holds no blanks and only ASCII".into()),
    }
}

/// The host of an address, with its port; without user and password.
fn host_of(url: &str) -> Option<&str> {
    let rest = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit('@').next()
}

fn check_text(text: &str, noun: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("it is empty: a {noun} is expected"));
    }
    if text.contains('\0') {
        return Err(format!("the {noun} holds a NUL character"));
    }
    if text.len() > Target::MOST_BYTES {
        return Err(format!("the {noun} is {} bytes long: at most {} are allowed", text.len(), Target::MOST_BYTES));
    }
    Ok(())
}

fn check_receivers(to: &[String]) -> Result<(), String> {
    if to.is_empty() {
        return Err("it is empty: at least one mail address is expected".into());
    }
    if to.len() > Target::MOST_RECEIVERS {
        return Err(format!("there are {} addresses: at most {} are allowed", to.len(), Target::MOST_RECEIVERS));
    }
    match to.iter().find(|address| !is_mail_address(address)) {
        Some(bad) => {
            Err(format!("{} is not a mail address such as ops@example.org, or a local user", crate::name::quoted(bad)))
        }
        None => Ok(()),
    }
}

/// Whether a text may stand in a header and be handed to a mail server. A name without `@` is a local user, as cron takes it.
fn is_mail_address(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>,;:\"()[]\\".contains(c);
    let mut parts = text.split('@');
    let (user, host, more) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    text.len() <= 254 && !text.contains(odd) && !user.is_empty() && host != Some("") && more.is_none()
}
