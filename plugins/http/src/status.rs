//! Which statuses are success.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, de};

/// The statuses of success; never none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(Vec<RangeInclusive<u16>>);

impl Statuses {
    pub(crate) fn contain(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

impl Default for Statuses {
    fn default() -> Self {
        Self(vec![200..=299])
    }
}

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum One {
            Number(u16),
            Text(String),
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Some {
            One(One),
            List(Vec<One>),
        }
        let given = match Some::deserialize(deserializer)? {
            Some::One(one) => vec![one],
            Some::List(list) => list,
        };
        let ranges = given.into_iter().map(|one| match one {
            One::Number(status) => Ok(status..=status),
            One::Text(text) => parse(&text).ok_or_else(|| {
                de::Error::custom(format!("expect_status {text:?} is none of 204, \"2xx\" and \"200-204\""))
            }),
        });
        match ranges.collect::<Result<Vec<_>, _>>()? {
            ranges if ranges.is_empty() => Err(de::Error::custom("expect_status is empty, so nothing would succeed")),
            ranges => Ok(Self(ranges)),
        }
    }
}

/// `204`, `2xx` or `200-204`.
fn parse(text: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (100 <= first && first <= last && last <= 599).then_some(first..=last)
}

/// As users write them: `2xx, 404`.
impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, range) in self.0.iter().enumerate() {
            let (first, last) = (range.start(), range.end());
            f.write_str(if n == 0 { "" } else { ", " })?;
            match (first, last) {
                _ if first == last => write!(f, "{first}")?,
                _ if first % 100 == 0 && *last == first + 99 => write!(f, "{}xx", first / 100)?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_classes_and_ranges() {
        for (given, shown, success, failure) in [
            ("204", "204", 204, 205),
            (r#""2xx""#, "2xx", 299, 300),
            (r#""200-204""#, "200-204", 203, 205),
            (r#"["2xx", 404, "410-411"]"#, "2xx, 404, 410-411", 410, 403),
        ] {
            let statuses: Statuses = serde_json::from_str(given).unwrap();
            assert_eq!((statuses.to_string().as_str(), statuses.contain(success)), (shown, true));
            assert!(!statuses.contain(failure), "{given}");
        }
        for bad in [r#""6xx""#, r#""204-200""#, r#""99""#, r#""2x""#, "[]", r#"["x"]"#, "true"] {
            assert!(serde_json::from_str::<Statuses>(bad).is_err(), "{bad}");
        }
    }
}
