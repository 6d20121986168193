//! The form that narrows a list. Its state stands in the address; without the script its button sends it.

use maud::{Markup, html};

use crate::page::visit::Visit;

/// A form over one list.
pub(crate) struct Search<'a> {
    /// Where the list is.
    pub path: &'a str,
    /// The parameter of the search field, and what it finds.
    pub text: (&'a str, &'a str),
    /// The fields behind the namespace.
    pub fields: Markup,
    /// The parameters that narrow the list: while one is given there is a way back to all.
    pub narrowing: &'a [&'a str],
    /// The parameters that stay as they are.
    pub keeps: &'a [&'a str],
}

impl Search<'_> {
    /// The form. Somebody who sees one namespace only is not asked for it.
    pub fn form(&self, visit: &Visit) -> Markup {
        let (key, finds) = self.text;
        let many = visit.caller.namespaces().is_none_or(|names| names.len() > 1);
        html! {
            form.filters role="search" method="get" action=(visit.links.to(self.path)) data-filter {
                input #q type="search" name=(key) value=[visit.params.get(key)] placeholder=(finds) aria-label=(finds) maxlength="128" data-keep;
                @if many { (field(visit, "namespace", "namespace", "Namespace")) }
                (self.fields)
                @for key in self.keeps { @if let Some(value) = visit.params.get(key) { input type="hidden" name=(key) value=(value); } }
                button { "Filter" }
                @if is_narrowed(visit, self.narrowing) { a href=(visit.links.to(self.path)) { "Clear" } }
            }
        }
    }
}

/// A field of such a form.
pub(crate) fn field(visit: &Visit, key: &str, placeholder: &str, label: &str) -> Markup {
    html! {
        input type="text" name=(key) value=[visit.params.get(key)] placeholder=(placeholder) aria-label=(label) maxlength="300" data-keep;
    }
}

/// Whether the list is narrowed by one of these parameters.
pub(crate) fn is_narrowed(visit: &Visit, by: &[&str]) -> bool {
    by.iter().any(|key| visit.params.get(key).is_some())
}
