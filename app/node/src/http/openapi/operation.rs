//! One call of the API as data: how it is addressed, who may make it, what performs it, and every answer that it may give.

use std::pin::Pin;

use warp::reply::Response;

use super::parameter::Parameter;
use crate::config::Role;
use crate::http::problem::HttpResult;
use crate::http::request::caller::Call;
use crate::http::state::ApiState;

/// An answer in the making.
pub(in crate::http) type Answering = Pin<Box<dyn Future<Output = HttpResult> + Send>>;

/// The function that performs a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Handler {
    /// For callers with a token of this role or a higher one.
    Admitted(Role, fn(Call) -> Answering),
    /// For anybody.
    Open(fn(&ApiState) -> Response),
}

/// A call of the API.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Operation {
    pub method: &'static str,
    /// The path; `{...}` stands for one segment.
    pub path: &'static str,
    /// The name by which generated clients call it.
    pub id: &'static str,
    pub handler: Handler,
    pub summary: &'static str,
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

const fn call(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    handler: Handler,
    summary: &'static str,
) -> Operation {
    Operation { method, path, id, handler, summary, parameters: &[], body: None, answers: &[], problems: &[] }
}

/// A call that needs no token and only reads.
pub(super) const fn open(
    path: &'static str,
    id: &'static str,
    handler: fn(&ApiState) -> Response,
    summary: &'static str,
) -> Operation {
    call("GET", path, id, Handler::Open(handler), summary)
}

/// A call that reads, and needs the role viewer. Whatever answers GET answers HEAD.
pub(super) const fn get(path: &'static str, id: &'static str, handler: Handler, summary: &'static str) -> Operation {
    call("GET", path, id, handler, summary)
}

/// A call that does something.
pub(super) const fn post(path: &'static str, id: &'static str, handler: Handler, summary: &'static str) -> Operation {
    call("POST", path, id, handler, summary)
}

/// A call that replaces.
pub(super) const fn put(path: &'static str, id: &'static str, handler: Handler, summary: &'static str) -> Operation {
    call("PUT", path, id, handler, summary)
}

/// A call that deletes.
pub(super) const fn delete(path: &'static str, id: &'static str, handler: Handler, summary: &'static str) -> Operation {
    call("DELETE", path, id, handler, summary)
}

impl Operation {
    /// Needs a higher role.
    pub const fn needs(self, role: Role) -> Self {
        match self.handler {
            Handler::Admitted(_, handler) => Self { handler: Handler::Admitted(role, handler), ..self },
            Handler::Open(_) => self,
        }
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

    /// The lowest role; `None` where no token is needed.
    pub const fn role(&self) -> Option<Role> {
        match self.handler {
            Handler::Admitted(role, _) => Some(role),
            Handler::Open(_) => None,
        }
    }

    /// Every status of a problem that it may answer, in order.
    pub fn all_problems(&self) -> Vec<u16> {
        let mut all = self.problems.to_vec();
        if self.role().is_some() {
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
