//! JSON as strangers send it: parsed strictly, before anything looks at its meaning.
//!
//! `serde_json` alone keeps the last of two equal keys, so a proxy might check another value than the one that is stored. Its depth limit
//! has no sentence. Both are refused here, with their place in the text.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep arrays and objects may stand in each other.
pub const MAX_DEPTH: usize = 64;

/// The text is not JSON, or not JSON that is accepted; a sentence for the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body is not usable JSON: {0}")]
pub struct BadJson(String);

/// Parses a whole text: no duplicate keys, no depth beyond [`MAX_DEPTH`], no NUL characters, only finite numbers.
///
/// # Errors
/// [`BadJson`] names the fault, its line and its column.
pub fn parse_json(text: &[u8]) -> Result<Value, BadJson> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer).map_err(|error| BadJson(error.to_string()))?;
    deserializer.end().map_err(|error| BadJson(error.to_string()))?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        match self.depth + 1 {
            depth if depth > MAX_DEPTH => {
                Err(E::custom(format_args!("arrays and objects stand in each other more than {MAX_DEPTH} deep")))
            }
            depth => Ok(Self { depth }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        if value.contains('\0') {
            return Err(E::custom("a string holds a NUL character, which no program can be given"));
        }
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key.contains('\0') {
                return Err(A::Error::custom("a key holds a NUL character"));
            }
            if object.contains_key(&key) {
                let shown: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!("the key {shown:?} stands twice in one object")));
            }
            let value = entries.next_value_seed(inner)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_json_is_what_serde_json_makes_of_it() {
        let text =
            r#"{"a": [1, -2, 3.5, true, null, "x\u00e9\ud83d\ude00"], "b": {"c": {}}, "d": 18446744073709551615}"#;
        assert_eq!(parse_json(text.as_bytes()), Ok(serde_json::from_str::<Value>(text).unwrap()));
    }

    #[test]
    fn hostile_json_is_refused_with_a_reason() {
        let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(parse_json(deep(MAX_DEPTH).as_bytes()).is_ok());
        for (text, reason) in [
            (deep(MAX_DEPTH + 1), "more than 64 deep"),
            (deep(100_000), "more than 64 deep"),
            ("[".repeat(1_000_000), "more than 64 deep"),
            (r#"{"a":1,"a":2}"#.into(), "the key \"a\" stands twice in one object at line 1"),
            (r#"{"a":{"b":1,"b":1}}"#.into(), "the key \"b\" stands twice"),
            (r#"{"a":1,"\u0061":2}"#.into(), "the key \"a\" stands twice"),
            ("1e999".into(), "number out of range"),
            (r#""\ud800""#.into(), "hex escape"),
            (r#""\ud800\u0041""#.into(), "surrogate"),
            (r#""\udc00x""#.into(), "surrogate"),
            (r#""a\u0000b""#.into(), "NUL"),
            (r#"{"a\u0000":1}"#.into(), "NUL"),
            ("".into(), "EOF"),
            ("{} {}".into(), "trailing characters"),
            ("{'a':1}".into(), "key must be a string"),
            ("[1,]".into(), "trailing comma"),
            ("NaN".into(), "expected"),
            ("\u{feff}{}".into(), "expected value"),
        ] {
            let error = parse_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error:?} lacks {reason:?}");
            assert!(error.starts_with("the body is not usable JSON: "));
        }
        assert!(parse_json(b"\"\xff\xfe\"").is_err());
    }
}
