//! The requests of the protocol: which tools and resources there are, and what is done for each call.
//!
//! The client of the API blocks, so each call has a thread of its own and several may go on at once.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::surroundings::Surroundings;
use super::{resources, tools};
use crate::client::Client;

/// Said to the model before its first call.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// The protocol on one side, the API on the other.
#[derive(Clone)]
pub(super) struct Bridge {
    client: Arc<Client>,
    namespace: Arc<str>,
}

impl Bridge {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client: Arc::new(client), namespace: namespace.into() }
    }

    fn surroundings(&self, context: &RequestContext<RoleServer>) -> Surroundings {
        Surroundings {
            client: Arc::clone(&self.client),
            namespace: Arc::clone(&self.namespace),
            given_up: context.ct.clone(),
        }
    }
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let carillon = Implementation::new("carillon", env!("CARGO_PKG_VERSION")).with_title("Carillon");
        let namespace = format!("\nWhere no namespace is given, jobs are looked for in \"{}\".\n", self.namespace);
        ServerConfig::new(capabilities)
            .with_server_info(carillon)
            .with_instructions(format!("{INSTRUCTIONS}{namespace}"))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::TOOLS.iter().map(tools::Tool::shown).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::named(&request.name) else {
            let told = format!("there is no tool {:?}: tools/list names those that there are", request.name);
            return Err(ErrorData::invalid_params(told, None));
        };
        let surroundings = self.surroundings(&context);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let done = aside(move || tool.call(&surroundings, arguments)).await?;
        // A model can mend what it is told of, so a refusal is an answer of the tool and no fault of the protocol.
        Ok(match done {
            Ok(answer) => CallToolResult::structured(answer),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.sentence)]),
        }
        .into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let surroundings = self.surroundings(&context);
        let cursor = request.and_then(|request| request.cursor);
        aside(move || resources::page(&surroundings, cursor.as_deref())).await?
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let surroundings = self.surroundings(&context);
        let read = aside(move || resources::read(&surroundings, &request.uri)).await?;
        read.map(ReadResourceResponse::from)
    }
}

/// Does something that blocks where it keeps nobody waiting.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ErrorData> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ErrorData::internal_error(format!("carillon mcp failed within: {error}"), None))
}
