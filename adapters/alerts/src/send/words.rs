//! Answers of receivers as sentences. Of an address they show scheme and host only: the rest is a secret.

use std::time::{Duration, SystemTime};

use carillon_domain::{duration, time::Timestamp};
use url::Url;

use crate::outcome::{MAX_HOLD, Outcome};
use crate::render::{one_line, shortened};

/// The most characters of an answer's body that a sentence shows.
const SAID: usize = 200;

/// Scheme, host and port.
pub(super) fn origin(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// An answer of an HTTP server.
pub(super) struct Reply<'a> {
    pub status: u16,
    /// The header `Location`.
    pub location: Option<&'a str>,
    /// The header `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// The beginning of the body.
    pub body: &'a str,
}

/// The outcome that follows from a reply to a POST to `url`.
pub(super) fn answer(url: &Url, reply: &Reply<'_>, now: Timestamp) -> Outcome {
    let (origin, status) = (origin(url), reply.status);
    let said = said(url, reply.body);
    match status {
        200..=299 => Outcome::delivered(format!("{origin} took it ({status}).")),
        300..=399 => {
            let to = reply.location.and_then(|to| url.join(to).ok());
            let to = match &to {
                Some(to) if self::origin(to) == origin => "another path of itself".to_owned(),
                Some(to) => self::origin(to),
                None => "an address that it does not name".to_owned(),
            };
            Outcome::for_good(format!(
                "{origin} answers {status} and points to {to}. Redirects are not followed: give the receiver's final address."
            ))
        }
        408 | 425 | 429 | 500..=599 => {
            let hold = reply.retry_after.and_then(|text| hold(text, now));
            let wait = hold.map(|hold| format!(" and asks to wait {}", duration::spoken(hold))).unwrap_or_default();
            let what = match status {
                429 => format!("{origin} takes no more messages for now ({status}){wait}.{said} It is tried again."),
                408 | 425 => format!("{origin} did not take it in time ({status}){wait}.{said} It is tried again."),
                _ => format!("{origin} failed ({status}){wait}.{said} It is tried again."),
            };
            Outcome::for_now(what).hold(hold)
        }
        401 | 403 | 407 => Outcome::for_good(format!(
            "{origin} does not let it in ({status}).{said} See whether its address, with the token in it, is still the right one."
        )),
        404 | 410 => Outcome::for_good(format!(
            "{origin} does not know the address ({status}).{said} See whether the webhook was removed there, and give the new one."
        )),
        _ => Outcome::for_good(format!("{origin} refused it ({status}).{said} See what it expects.")),
    }
}

/// ` It says: "..."`, or nothing. A receiver may quote the address, so each part of that is hidden.
fn said(url: &Url, body: &str) -> String {
    let mut text = one_line(body, 4_096);
    let parts = [url.as_str(), url.path(), url.query().unwrap_or(""), url.password().unwrap_or(""), url.username()];
    let segments = url.path().split('/').filter(|part| part.len() >= 6);
    for part in parts.into_iter().chain(segments).filter(|part| part.len() > 1) {
        text = text.replace(part, "...");
    }
    if text.is_empty() { String::new() } else { format!(" It says: {:?}.", shortened(&text, SAID)) }
}

/// RFC 9110: seconds, or a date.
fn hold(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let hold = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            let ms = date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis();
            Timestamp::from_ms(i64::try_from(ms).ok()?).since(now)
        }
    };
    (!hold.is_zero()).then(|| hold.min(MAX_HOLD))
}

#[cfg(test)]
mod tests {
    use carillon_domain::alert::Answer;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_764_000_000);

    fn url() -> Url {
        Url::parse("https://bot:hunter2@hooks.example.org:8443/services/T0/B0/sEcReTsEcReT?key=alsosecret").unwrap()
    }

    fn of(status: u16, body: &str) -> Outcome {
        answer(&url(), &Reply { status, location: None, retry_after: None, body }, NOW)
    }

    #[test]
    fn answers_are_sentences_that_say_what_to_do() {
        let words = |status| of(status, "").words().to_owned();
        assert_eq!(of(204, ""), Outcome::delivered("https://hooks.example.org:8443 took it (204)."));
        assert_eq!(words(500), "https://hooks.example.org:8443 failed (500). It is tried again.");
        for (status, permanent) in
            [(301, true), (400, true), (401, true), (404, true), (408, false), (410, true), (429, false), (503, false)]
        {
            let words = of(status, "").words().to_owned();
            assert_eq!(of(status, "").answer, Answer::Refused { words, permanent }, "{status}");
        }
    }

    #[test]
    fn no_part_of_the_address_but_its_host_is_shown() {
        let echo = "no hook at https://bot:hunter2@hooks.example.org:8443/services/T0/B0/sEcReTsEcReT?key=alsosecret: \
                    /services/T0/B0/sEcReTsEcReT, sEcReTsEcReT, key=alsosecret, hunter2";
        for status in [302, 400, 403, 404, 429, 500] {
            let answer = of(status, echo);
            for secret in ["hunter2", "sEcReT", "alsosecret", "services"] {
                assert!(!answer.words().contains(secret), "{status}: {}", answer.words());
            }
        }
        let to = Some("https://elsewhere.example.org/sEcReT");
        let moved = answer(&url(), &Reply { status: 302, location: to, retry_after: None, body: "" }, NOW);
        assert!(moved.words().contains("https://elsewhere.example.org. Redirects"), "{moved:?}");
        let to = Some("/sEcReT");
        let moved = answer(&url(), &Reply { status: 302, location: to, retry_after: None, body: "" }, NOW);
        assert!(moved.words().contains("another path of itself"), "{moved:?}");
    }

    #[test]
    fn a_receiver_may_ask_to_wait() {
        for (text, seconds) in [
            ("30", Some(30)),
            (" 7 ", Some(7)),
            ("0", None),
            ("-1", None),
            ("soon", None),
            ("99999999", Some(3_600)),
            ("99999999999999999999999", None),
            ("Mon, 24 Nov 2025 16:01:40 GMT", Some(100)),
            ("Mon, 24 Nov 2025 15:01:40 GMT", None),
        ] {
            assert_eq!(hold(text, NOW), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
