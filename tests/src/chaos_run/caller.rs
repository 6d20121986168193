//! Calls that may fail: the node is dead, frozen, or without its database.

use std::sync::Arc;
use std::time::Duration;

use carillon_checker::plan::Act;
use serde_json::Value;

use crate::chaos::{Field, now_us};
use crate::server::Server;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// One who calls whichever node there is.
pub struct Caller<'a> {
    field: &'a Field,
    agent: ureq::Agent,
}

impl<'a> Caller<'a> {
    /// One who calls the nodes of a field.
    pub fn of(field: &'a Field) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build();
        Self { field, agent: config.into() }
    }

    /// A call of the `n`-th node, if that runs; its answer, if one came.
    pub fn call(&self, n: usize, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let server: Arc<Server> = self.field.nodes[n % self.field.nodes.len()].member.server()?;
        let token = std::fs::read_to_string(server.dir().join("carillon.token")).ok()?;
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", server.url()))
            .header("Authorization", format!("Bearer {}", token.trim()));
        if method != "GET" {
            request = request.header("Content-Type", "application/json");
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut response = self.agent.run(request.body(body).ok()?).ok()?;
        let text = response.body_mut().with_config().limit(64 << 20).read_to_string().ok()?;
        Some((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// A call that is an act of a person; what is told of it.
    pub fn act(&self, n: usize, method: &str, path: &str, body: &Value, act: Act) -> (Act, Value) {
        let asked_us = now();
        let answer = self.call(n, method, path, Some(body));
        let answered_us = answer.is_some().then(now);
        let (status, said) = answer.unwrap_or((0, Value::Null));
        (Act { asked_us, answered_us, status: status.into(), ..act }, said)
    }

    /// All pages of a listing, from whichever node answers; `None` where none does.
    pub fn all(&self, path: &str) -> Option<Vec<Value>> {
        (0..self.field.nodes.len()).find_map(|n| self.pages(n, path))
    }

    fn pages(&self, n: usize, path: &str) -> Option<Vec<Value>> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) = self.call(n, "GET", &format!("{path}limit=1000{cursor}"), None)?;
            items.extend((status == 200).then(|| page["items"].as_array().cloned()).flatten()?);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Some(items),
            }
        }
    }
}

/// The machine's clock, as the checker counts.
pub fn now() -> i64 {
    i64::try_from(now_us()).unwrap_or(i64::MAX)
}
