//! The certificate of the API: can the files be used together, and until when?

use std::path::Path;
use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_store::{Clock, SystemClock};

use super::finding::{Finding, Level};
use carillon_node::alerts::ENDS_SOON;
use carillon_node::config::HttpConfig;
use carillon_node::http::TlsLook;

/// Reads the files, where TLS is configured.
pub(super) fn look(config: &HttpConfig) -> Vec<Finding> {
    let Some(files) = &config.tls else { return vec![without(config)] };
    let look = TlsLook::at(files);
    judge(&files.cert, look.valid, look.fault.map(|fault| fault.to_string()), SystemClock.now())
}

fn without(config: &HttpConfig) -> Finding {
    let why = if config.plaintext {
        "http.plaintext is set: a proxy in front speaks TLS"
    } else {
        "the API is for this machine"
    };
    Finding::ok("certificate", format!("none is configured; {why}"))
}

fn judge(cert: &Path, valid: Option<(Timestamp, Timestamp)>, fault: Option<String>, now: Timestamp) -> Vec<Finding> {
    const PART: &str = "certificate";
    let shown = cert.display();
    let mut findings = Vec::new();
    if let Some((from, until)) = valid {
        let (begins, ends) = (from.to_rfc3339_short(), until.to_rfc3339_short());
        let renew = format!("Renew {shown}; a running server takes the new file by itself.");
        findings.push(if until <= now {
            Finding::error(PART, format!("{shown} expired at {ends}: clients refuse it"), renew)
        } else if from > now {
            let remedy = "Look at this machine's clock with timedatectl, or have the certificate issued anew.";
            Finding::error(PART, format!("{shown} is not valid before {begins}"), remedy)
        } else if until.since(now) < ENDS_SOON {
            Finding::warning(PART, format!("{shown} expires at {ends}, in {} days", days(until.since(now))), renew)
        } else {
            Finding::ok(PART, format!("{shown} is good until {ends}"))
        });
    }
    if let Some(sentence) = fault {
        let otherwise = "Name a certificate and its key in http.tls that openssl can read.";
        findings.push(Finding::of_sentence("TLS files", Level::Error, &sentence, otherwise));
    }
    findings
}

fn days(left: Duration) -> u64 {
    left.as_secs() / 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_judged_by_its_dates_and_files() {
        let now = Timestamp::from_secs(1_800_000_000);
        let valid = |from_days: i64, until_days: i64| {
            let at = |days: i64| Timestamp::from_secs(1_800_000_000 + days * 86_400);
            Some((at(from_days), at(until_days)))
        };
        for (valid, fault, expected) in [
            (valid(-1, 90), None, vec![Level::Ok]),
            (valid(-1, 13), None, vec![Level::Warning]),
            (valid(-90, 0), None, vec![Level::Error]),
            (valid(1, 90), None, vec![Level::Error]),
            (
                valid(-90, -1),
                Some("http.tls.key is encrypted; write it in the clear"),
                vec![Level::Error, Level::Error],
            ),
            (None, Some("http.tls.cert = x is not PEM"), vec![Level::Error]),
        ] {
            let findings = judge(Path::new("c.pem"), valid, fault.map(str::to_owned), now);
            assert_eq!(findings.iter().map(|finding| finding.level).collect::<Vec<_>>(), expected, "{findings:?}");
        }
    }
}
