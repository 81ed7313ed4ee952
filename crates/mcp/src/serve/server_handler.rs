//! The server handler of a client: lists the tools and returns the results of calls.

use super::{McpCallRequest, ToolHost, ToolHostSession};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, mpsc};
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::{Attachment, CallOutcome, ModelToolDefinition};
use windlass_toolkit::CallFailure;
use windlass_toolkit::truncate_output::strip_controls;

/// Limits the calls of all clients that wait or run at the same time.
const MAX_CONCURRENT_CALLS: usize = 64;
/// Further files of a result are left out.
const MAX_RESULT_FILES: usize = 16;
/// Bounds the progress messages that wait for a slow client.
const PROGRESS_QUEUE_LENGTH: usize = 16;
/// Limits client-supplied names in messages.
const MAX_SHOWN_NAME_CHARS: usize = 64;

/// The `instructions` that a client receives besides the tools.
const SERVER_INSTRUCTIONS: &str = "Tools for one project. Calls that its owner's permission \
                                   rules do not allow are denied. Read a file before you change \
                                   it.";

/// The session (`ToolHostSession`) of a connection, once it has made a call.
type SessionSlot = Mutex<Option<Arc<dyn ToolHostSession>>>;

/// The clients of a `ToolHost`.
#[derive(Clone)]
pub(super) struct McpServerHandlerFactory {
    host: Arc<dyn ToolHost>,
    /// The session of clients whose requests are self-contained (`2026-07-28`), so they have no
    /// connection.
    shared_session: Arc<SessionSlot>,
    call_permits: Arc<Semaphore>,
}

impl McpServerHandlerFactory {
    pub(super) fn new(tool_host: Arc<dyn ToolHost>) -> McpServerHandlerFactory {
        McpServerHandlerFactory {
            host: tool_host,
            shared_session: Arc::default(),
            call_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CALLS)),
        }
    }

    /// Creates the handler for one more client.
    pub(super) fn new_session(&self) -> McpServerHandler {
        McpServerHandler { sessions: self.clone(), own_session: SessionSlot::default() }
    }
}

/// The `ServerHandler` of one client.
pub(super) struct McpServerHandler {
    sessions: McpServerHandlerFactory,
    own_session: SessionSlot,
}

impl ServerHandler for McpServerHandler {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(SERVER_INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.sessions.host.tools().iter().map(to_mcp_tool).collect();
        let list = ListToolsResult::with_all_items(tools);
        Ok(ListToolsResult { ttl_ms: Some(0), cache_scope: Some(CacheScope::Private), ..list })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.sessions.host.tools().iter().find(|tool| tool.name == name).map(to_mcp_tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_permit) = self.sessions.call_permits.try_acquire() else {
            let text = "too many concurrent calls; wait for some to finish, then call again";
            return Err(ErrorData::new(ErrorCode(-32000), text, None));
        };
        if !self.sessions.host.tools().iter().any(|tool| tool.name == request.name) {
            let name = truncate_chars(&strip_controls(&request.name), MAX_SHOWN_NAME_CHARS);
            return Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None));
        }
        let has_own_session = context.protocol_version() < Some(ProtocolVersion::V_2026_07_28);
        let slot = if has_own_session { &self.own_session } else { &*self.sessions.shared_session };
        let session = match self.session_for_call(slot, &context).await {
            Ok(session) => session,
            Err(failure) => return Ok(error_result(failure.text).into()),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let (progress, mut messages) = mpsc::channel(PROGRESS_QUEUE_LENGTH);
        let tool = request.name.into_owned();
        let cancel = context.ct.clone();
        let mut call = session.call_tool(McpCallRequest { tool, arguments, progress, cancel });
        let token = context.meta.get_progress_token();
        let mut count = 0.0;
        let outcome = loop {
            let text = tokio::select! {
                biased;
                outcome = &mut call => break outcome,
                Some(text) = messages.recv() => text,
            };
            let Some(token) = token.clone() else { continue };
            count += 1.0;
            let notification =
                ProgressNotificationParam::new(token, count).with_message(strip_controls(&text));
            // A client that misses progress still gets the result.
            let _ = context.peer.notify_progress(notification).await;
        };
        drop(call);
        let Some(outcome) = outcome else {
            let mut slot = slot.lock().await;
            slot.take_if(|other| Arc::ptr_eq(other, &session));
            let text = "the session of this connection has ended; call again to start a new one";
            return Ok(error_result(text.to_owned()).into());
        };
        Ok(call_result(&*session, outcome).await.into())
    }
}

impl McpServerHandler {
    /// Returns the session for a call; opens one if there is none.
    async fn session_for_call(
        &self,
        slot: &SessionSlot,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn ToolHostSession>, CallFailure> {
        let mut slot = slot.lock().await;
        if let Some(session) = &*slot {
            return Ok(Arc::clone(session));
        }
        let name = context.client_info().map(|client| client.name).unwrap_or_default();
        let session = self
            .sessions
            .host
            .open_session(&truncate_chars(&strip_controls(&name), MAX_SHOWN_NAME_CHARS))
            .await?;
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }
}

/// Converts a `ModelToolDefinition` for `tools/list`.
fn to_mcp_tool(tool: &ModelToolDefinition) -> Tool {
    let schema = tool.schema.as_object().cloned().unwrap_or_default();
    Tool::new(tool.name.clone(), tool.description.clone(), schema)
}

fn error_result(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Converts an `Outcome` for the client.
async fn call_result(session: &dyn ToolHostSession, outcome: CallOutcome) -> CallToolResult {
    let output = match outcome {
        CallOutcome::Completed { output } => output,
        CallOutcome::Failed { text }
        | CallOutcome::Denied { text }
        | CallOutcome::Interrupted { text } => {
            return error_result(text);
        }
        CallOutcome::ResultUnknown => {
            let text = "The result of this call is unknown. Check before you repeat it.";
            return error_result(text.to_owned());
        }
    };
    let mut content = Vec::new();
    if !output.text.is_empty() || output.attachments.is_empty() {
        content.push(ContentBlock::text(output.text));
    }
    for file in output.attachments.iter().take(MAX_RESULT_FILES) {
        content.push(match session.get_blob(&file.blob).await {
            Some(bytes) => file_content(file, &bytes),
            None => {
                ContentBlock::text(format!("[{} is no longer stored]", strip_controls(&file.name)))
            }
        });
    }
    CallToolResult::success(content)
}

fn file_content(file: &Attachment, bytes: &[u8]) -> ContentBlock {
    let encoded = STANDARD.encode(bytes);
    match file.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(encoded, file.mime_type.clone()),
        Some("audio") => ContentBlock::audio(encoded, file.mime_type.clone()),
        Some(_) | None => ContentBlock::resource(ResourceContents::BlobResourceContents {
            uri: format!("windlass:blob/{}", file.blob.as_str()),
            mime_type: Some(file.mime_type.clone()),
            blob: encoded,
            meta: None,
        }),
    }
}
