//! Lost updates: the generation of a definition as entity tag, `If-Match` and `If-None-Match` (RFC 9110 section 13).

use warp::http::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};

use crate::http::problem::Problem;

/// When a write applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Condition {
    /// Always.
    None,
    /// `If-None-Match: *`: there is no such job yet.
    Absent,
    /// `If-Match: *`: there is one.
    Present,
    /// `If-Match: "3"`: it is at that generation.
    Generation(u64),
}

impl Condition {
    /// The condition of a request.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        match (single(headers, &IF_MATCH)?, single(headers, &IF_NONE_MATCH)?) {
            (None, None) => Ok(Condition::None),
            (Some("*"), None) => Ok(Condition::Present),
            (Some(tag), None) => generation(tag).map(Condition::Generation).ok_or_else(|| {
                Problem::bad("If-Match must be * or one generation between double quotes, such as \"3\", as ETag was")
            }),
            (None, Some("*")) => Ok(Condition::Absent),
            (None, Some(_)) => Err(Problem::bad("If-None-Match can only be * on a write")),
            (Some(_), Some(_)) => Err(Problem::bad("If-Match and If-None-Match contradict each other")),
        }
    }
}

/// The entity tag of a generation.
pub(in crate::http) fn etag(generation: u64) -> String {
    format!("\"{generation}\"")
}

fn generation(tag: &str) -> Option<u64> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value.trim())),
        _ => Err(Problem::bad(format!("the header {name} is not one plain value"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warp::http::HeaderValue;

    fn of(given: &[(HeaderName, &str)]) -> Option<Condition> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        Condition::of(&headers).ok()
    }

    #[test]
    fn conditions_are_read_strictly() {
        assert_eq!(of(&[]), Some(Condition::None));
        assert_eq!(of(&[(IF_MATCH, "\"3\"")]), Some(Condition::Generation(3)));
        assert_eq!(of(&[(IF_MATCH, "*")]), Some(Condition::Present));
        assert_eq!(of(&[(IF_NONE_MATCH, "*")]), Some(Condition::Absent));
        for bad in
            ["", "3", "\"\"", "\"x\"", "W/\"3\"", "\"3\", \"4\"", "\"-1\"", "\"+1\"", "\"99999999999999999999\"", "\"3"]
        {
            assert_eq!(of(&[(IF_MATCH, bad)]), None, "{bad}");
        }
        assert_eq!(of(&[(IF_MATCH, "\"3\""), (IF_MATCH, "\"3\"")]), None);
        assert_eq!(of(&[(IF_NONE_MATCH, "\"3\"")]), None);
        assert_eq!(of(&[(IF_MATCH, "*"), (IF_NONE_MATCH, "*")]), None);
    }
}
