//! The HTTP client of the exporter: the one that the command line has. It blocks, on the exporter's own thread.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// The longest answer that is read; a collector answers a few bytes.
const MOST_ANSWER: u64 = 64 << 10;

/// Calls the collector.
#[derive(Debug)]
pub(super) struct Client(ureq::Agent);

impl Client {
    /// A client whose calls take so long at the most.
    pub fn new(timeout: Duration) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout));
        Self(agent.max_redirects(0).build().into())
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let (parts, mut body) = self.0.run(Request::from_parts(parts, body.as_ref()))?.into_parts();
        let body = body.with_config().limit(MOST_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }
}
