//! The fields of params that an executor's JSON Schema names, as far as a form can have them.

use serde_json::Value;

/// A field of params that is one text, number, choice or yes and no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlatField {
    pub name: String,
    pub kind: Kind,
    /// The description of the schema.
    pub note: String,
    pub required: bool,
}

/// The kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    Choice(Vec<String>),
}

/// The flat fields of a schema. What is not flat is written as JSON.
pub(super) fn flat_fields(schema: Option<&Value>) -> Vec<FlatField> {
    let Some(schema) = schema else { return Vec::new() };
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let flat = properties.filter_map(|(name, property)| {
        let note = property["description"].as_str().unwrap_or_default().to_owned();
        Some(FlatField { name: name.clone(), kind: kind(property)?, note, required: required(name) })
    });
    let mut fields: Vec<_> = flat.collect();
    // The first that people look for come first; the schema's own order is that of names.
    fields.sort_by_key(|field| (!field.required, field.name != "command", field.name.clone()));
    fields
}

fn kind(property: &Value) -> Option<Kind> {
    if let Some(choices) = property["enum"].as_array() {
        let words: Option<Vec<String>> = choices
            .iter()
            .filter(|choice| !choice.is_null())
            .map(|choice| choice.as_str().map(str::to_owned))
            .collect();
        return words.map(Kind::Choice);
    }
    let types: Vec<&str> = match &property["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).filter(|one| *one != "null").collect(),
        _ => return None,
    };
    match types.as_slice() {
        ["string"] => Some(Kind::Text),
        ["number" | "integer"] => Some(Kind::Number),
        ["boolean"] => Some(Kind::Flag),
        _ => None,
    }
}

impl FlatField {
    /// The text of a value in the form; `None` for a value that this field cannot hold, such as a secret.
    pub fn text(&self, value: &Value) -> Option<String> {
        match (&self.kind, value) {
            // A browser changes lone carriage returns, and sends nothing for an empty text.
            (Kind::Text, Value::String(text)) => {
                Some(text.clone()).filter(|text| !text.is_empty() && !text.contains('\r'))
            }
            (Kind::Choice(words), Value::String(word)) => words.contains(word).then(|| word.clone()),
            (Kind::Number, Value::Number(number)) => Some(number.to_string()),
            (Kind::Flag, Value::Bool(flag)) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// The value of a text. One that is no such value stays text, and the executor says the fault.
    pub fn value(&self, text: &str) -> Value {
        let text_value = || Value::String(text.replace("\r\n", "\n"));
        match self.kind {
            Kind::Text | Kind::Choice(_) => text_value(),
            Kind::Number => match serde_json::from_str(text.trim()) {
                Ok(Value::Number(number)) => Value::Number(number),
                _ => text_value(),
            },
            Kind::Flag => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => text_value(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_flat_fields_become_fields_of_a_form() {
        let schema = json!({"required": ["url"], "properties": {
            "url": {"type": "string"}, "tries": {"type": ["integer", "null"], "description": "how often"},
            "method": {"enum": ["GET", "POST"]}, "follow": {"type": "boolean"},
            "headers": {"type": "object"}, "either": {"type": ["string", "number"]}, "odd": {"enum": [1, 2]}, "any": {},
        }});
        let fields = flat_fields(Some(&schema));
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["url", "follow", "method", "tries"]);
        assert!(fields[0].required && fields[3].note == "how often");
        for (nth, value) in [(0, json!("x\ny")), (1, json!(false)), (2, json!("POST")), (3, json!(3))] {
            let text = fields[nth].text(&value).unwrap();
            assert_eq!(fields[nth].value(&text.replace('\n', "\r\n")), value);
        }
        for (nth, value) in
            [(0, json!({"secret": true})), (0, json!("")), (0, json!("a\rb")), (2, json!("PUT")), (3, json!("3"))]
        {
            assert_eq!(fields[nth].text(&value), None, "{value}");
        }
        assert_eq!(fields[3].value("many"), json!("many"), "the executor refuses it");
        assert!(flat_fields(None).is_empty());
    }
}
