//! Fields that differ, before and after.

use maud::{Markup, html};
use serde_json::Value;

use carillon_json::ChangedField;

/// The sides that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    /// A state that is gone.
    Before,
    /// A state that is new.
    After,
    /// A state that changed.
    Both,
}

/// A field a line. Signs stand before the values, so that colour is not alone.
pub(crate) fn table(fields: &[ChangedField], sides: Sides) -> Markup {
    html! {
        dl.diff {
            @for field in fields {
                dt { code { (field.path) } }
                dd {
                    @if sides != Sides::After { (side("del", "−", &field.before)) }
                    @if sides != Sides::Before { (side("ins", "+", &field.after)) }
                }
            }
        }
    }
}

fn side(class: &str, sign: &str, value: &Value) -> Markup {
    html! {
        div class=(class) {
            span aria-hidden="true" { (sign) " " }
            @if class == "del" { del { (shown(value)) } } @else { ins { (shown(value)) } }
        }
    }
}

/// A value as people read it: text as it is, nothing as words.
fn shown(value: &Value) -> Markup {
    match value {
        Value::Null => html! { span.muted { "not set" } },
        Value::String(text) if text.is_empty() => html! { span.muted { "empty" } },
        Value::String(text) => html! { code { (text) } },
        other => html! { code { (other) } },
    }
}
