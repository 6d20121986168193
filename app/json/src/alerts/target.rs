//! Targets. Whoever knows an address may post to it, so a reader sees its host only, and never a key.
//!
//! A route that is read, changed and put back comes with what was shown. Then the stored address and key stay.

use carillon_domain::alert::Target;
use carillon_domain::duration;
use serde_json::{Value, json};

use crate::Fields;

/// In place of a key.
const KEY: &str = "secret";
/// In place of everything behind the host of an address.
const REST: &str = "(secret)";

/// A target without its secrets.
pub(super) fn target_json(target: &Target) -> Value {
    let kind = target.kind();
    match target {
        Target::Webhook { url, secret } => {
            json!({"type": kind, "url": shown_url(url), "secret": secret.as_ref().map(|_| KEY)})
        }
        Target::Slack { url } | Target::Mattermost { url } | Target::Teams { url } => {
            json!({"type": kind, "url": shown_url(url)})
        }
        Target::Mail { to } => json!({"type": kind, "to": to}),
        Target::Command { command, timeout } => {
            json!({"type": kind, "command": command, "timeout": duration::format(*timeout)})
        }
    }
}

/// Scheme and host of an address; the rest is a secret.
fn shown_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if rest == host { url.to_owned() } else { format!("{scheme}://{host}/{REST}") }
}

/// Reads a target. `place` is where it stands; `stored` are the targets of the stored route.
pub(super) fn target_of(mut fields: Fields, place: usize, stored: &[Target]) -> Option<Target> {
    let kind = fields.required_text("type")?;
    let Some(kind) = Target::KINDS.into_iter().find(|known| *known == kind) else {
        fields.fault("type", format!("it must be one of {}", Target::KINDS.join(", ")));
        return None;
    };
    let target = match kind {
        "mail" => Target::Mail { to: fields.texts("to").unwrap_or_default() },
        "command" => Target::Command {
            command: fields.required_text("command").unwrap_or_default(),
            timeout: timeout(&mut fields),
        },
        _ => called(&mut fields, kind, place, stored)?,
    };
    fields.refuse_rest();
    Some(target)
}

fn timeout(fields: &mut Fields) -> std::time::Duration {
    let most = Target::LONGEST_TIMEOUT;
    fields.duration("timeout", std::time::Duration::from_millis(1)..=most).unwrap_or(Target::DEFAULT_TIMEOUT)
}

/// A target with an address.
fn called(fields: &mut Fields, kind: &str, place: usize, stored: &[Target]) -> Option<Target> {
    let url = fields.required_text("url");
    let key = if kind == "webhook" { fields.text("secret") } else { None };
    let mut url = url?;
    // The one at the same place, or else the first that looks so: targets may have been moved.
    let looks_so = |target: &&Target| {
        target.kind() == kind && target.url().is_some_and(|stored| stored == url || shown_url(stored) == url)
    };
    let before = stored.get(place).filter(looks_so).or_else(|| stored.iter().find(looks_so));
    if url.ends_with(&format!("/{REST}")) {
        match before.and_then(Target::url) {
            Some(stored) => url = stored.to_owned(),
            None => fields.fault("url", "its secret part is not given and none is stored here: write the whole URL"),
        }
    }
    let secret = match (key, before) {
        (Some(key), Some(Target::Webhook { secret: Some(stored), .. })) if key == KEY => Some(stored.clone()),
        (Some(key), _) if key == KEY => {
            fields.fault("secret", "the key is not given and none is stored here: write the key itself");
            None
        }
        (key, _) => key,
    };
    Some(match kind {
        "slack" => Target::Slack { url },
        "mattermost" => Target::Mattermost { url },
        "teams" => Target::Teams { url },
        _ => Target::Webhook { url, secret },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_an_address_is_shown() {
        for (url, shown) in [
            ("https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/(secret)"),
            ("http://ops:hush@10.0.0.5:8065?key=1", "http://10.0.0.5:8065/(secret)"),
            ("http://ops:hush@10.0.0.5:8065", "http://10.0.0.5:8065/(secret)"),
            ("https://example.org", "https://example.org"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
