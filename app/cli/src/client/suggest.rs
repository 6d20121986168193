//! A job or a route of a similar name, for those who mistyped one.

use serde_json::Value;

use super::{Call, Client};

/// How many names are looked through.
const MOST: &str = "1000";
/// From how much alike two names are taken for one, of 1.
const ALIKE: f64 = 0.8;

/// The job or the route that may have been meant by a call of one that is not there.
pub(super) fn meant(client: &Client, call: &Call<'_>) -> Option<String> {
    let (name, list) = match (call.path.strip_prefix("/v1/jobs/"), call.path.strip_prefix("/v1/alerts/")) {
        (Some(name), _) => {
            let namespace = call.query.iter().find(|(key, _)| *key == "namespace").map(|(_, value)| value.clone());
            (name, Call::get("/v1/jobs").with_some("namespace", namespace).with("limit", MOST))
        }
        (None, Some(name)) => (name, Call::get("/v1/alerts")),
        (None, None) => return None,
    };
    let found = client.call(list).ok()?.take_items();
    let names = found.iter().filter_map(|item: &Value| item["name"].as_str());
    nearest(name.split('/').next()?, names).map(str::to_owned)
}

fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = names.map(|other| (strsim::jaro_winkler(name, other), other)).filter(|(how, _)| *how >= ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_meant() {
        let names = ["nightly-backup", "nightly-report", "hello", "rotate-logs"];
        for (typed, expected) in [
            ("nigthly-backup", Some("nightly-backup")),
            ("nightly-reprt", Some("nightly-report")),
            ("helo", Some("hello")),
            ("hello-world", Some("hello")),
            ("rotate", Some("rotate-logs")),
            ("x", None),
            ("certificate", None),
        ] {
            assert_eq!(nearest(typed, names.into_iter()), expected, "{typed}");
        }
    }
}
