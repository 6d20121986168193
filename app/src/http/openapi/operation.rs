//! One call of the API as data: how it is addressed, who may make it, and every answer that it may give.

use crate::config::Role;

use super::parameter::Parameter;

/// A call of the API.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Operation {
    pub method: &'static str,
    /// The path; `{...}` stands for one segment.
    pub path: &'static str,
    /// The name by which generated clients call it.
    pub id: &'static str,
    pub summary: &'static str,
    /// The lowest role; `None` where no token is needed.
    pub role: Option<Role>,
    /// Parameters of the query and headers.
    pub parameters: &'static [Parameter],
    pub body: Option<Body>,
    pub answers: &'static [Answer],
    /// The statuses of its problems, beside those that follow from the rest.
    pub problems: &'static [u16],
}

/// The JSON body of a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Body {
    /// The name of its schema.
    pub schema: &'static str,
    pub required: bool,
}

/// A successful answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Answer {
    pub status: u16,
    /// The media types that it may have; none if it has no body.
    pub media_types: &'static [&'static str],
    /// The name of the schema of a JSON answer.
    pub schema: Option<&'static str>,
}

pub(in crate::http) const JSON: &str = "application/json";

/// A JSON answer.
pub(super) const fn json(status: u16, schema: &'static str) -> Answer {
    Answer { status, media_types: &[JSON], schema: Some(schema) }
}

/// An answer of any of these types.
pub(super) const fn of_type(status: u16, media_types: &'static [&'static str]) -> Answer {
    Answer { status, media_types, schema: None }
}

const fn call(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    let role = Some(Role::Viewer);
    Operation { method, path, id, summary, role, parameters: &[], body: None, answers: &[], problems: &[] }
}

/// A call that reads, and needs the role viewer. Whatever answers GET answers HEAD.
pub(super) const fn get(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    call("GET", path, id, summary)
}

/// A call that does something.
pub(super) const fn post(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    call("POST", path, id, summary)
}

/// A call that replaces.
pub(super) const fn put(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    call("PUT", path, id, summary)
}

/// A call that deletes.
pub(super) const fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    call("DELETE", path, id, summary)
}

impl Operation {
    /// Needs a higher role.
    pub const fn role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// Needs no token.
    pub const fn open(self) -> Self {
        Self { role: None, ..self }
    }

    pub const fn takes(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    pub const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, required: true }), ..self }
    }

    /// A body that may be left out.
    pub const fn optional_body(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, required: false }), ..self }
    }

    pub const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { answers, ..self }
    }

    pub const fn problems(self, problems: &'static [u16]) -> Self {
        Self { problems, ..self }
    }

    /// Every status of a problem that it may answer, in order.
    pub fn all_problems(&self) -> Vec<u16> {
        let mut all = self.problems.to_vec();
        if self.role.is_some() {
            all.extend([400, 401, 403, 503]);
        }
        if self.path.contains('{') {
            all.push(404);
        }
        if self.body.is_some() {
            all.extend([408, 413, 415]);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
