//! What a client hears: the list of tools, and what became of its calls.

use super::{House, Visit, Wanted};
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
use windlass_protocol::text::beginning;
use windlass_protocol::{Attachment, Outcome, ToolSummary};
use windlass_toolkit::Failure;
use windlass_toolkit::bound::plain;

/// How many calls wait or run at the same time, of all clients together.
const CALLS: usize = 64;
/// How many files of one call a client is given.
const FILES: usize = 16;
/// How much of what a call says of itself waits for a client that is slow to hear it.
const PROGRESS: usize = 16;
/// How much of a name that a client gave is said.
const NAME: usize = 64;

/// What clients find to do beside the tools.
const INSTRUCTIONS: &str = "Tools that work in one project, under its owner's rules: what those \
    rules do not allow is refused. Read a file before you change it.";

/// A connection's session, once there was a call.
type Place = Mutex<Option<Arc<dyn Visit>>>;

/// All clients of a house.
#[derive(Clone)]
pub(super) struct Guests {
    house: Arc<dyn House>,
    /// Where those work who say everything anew in each request, and so are in no connection.
    common: Arc<Place>,
    room: Arc<Semaphore>,
}

impl Guests {
    pub(super) fn new(house: Arc<dyn House>) -> Guests {
        Guests { house, common: Arc::default(), room: Arc::new(Semaphore::new(CALLS)) }
    }

    /// One more.
    pub(super) fn guest(&self) -> Guest {
        Guest { all: self.clone(), own: Place::default() }
    }
}

/// A client.
pub(super) struct Guest {
    all: Guests,
    own: Place,
}

impl ServerHandler for Guest {
    fn get_info(&self) -> ServerConfig {
        let ours = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(ours)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.all.house.tools().iter().map(told).collect();
        let list = ListToolsResult::with_all_items(tools);
        Ok(ListToolsResult { ttl_ms: Some(0), cache_scope: Some(CacheScope::Private), ..list })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.all.house.tools().iter().find(|tool| tool.name == name).map(told)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.all.room.try_acquire() else {
            let text = "too many calls at once; wait for some of them, then call again";
            return Err(ErrorData::new(ErrorCode(-32000), text, None));
        };
        if !self.all.house.tools().iter().any(|tool| tool.name == request.name) {
            let name = beginning(&plain(&request.name), NAME);
            return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None));
        }
        let alone = context.protocol_version() < Some(ProtocolVersion::V_2026_07_28);
        let place = if alone { &self.own } else { &*self.all.common };
        let visit = match self.enter(place, &context).await {
            Ok(visit) => visit,
            Err(failure) => return Ok(refused(failure.text).into()),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let (progress, mut said) = mpsc::channel(PROGRESS);
        let (tool, cancel) = (request.name.into_owned(), context.ct.clone());
        let mut call = visit.call(Wanted { tool, arguments, progress, cancel });
        let token = context.meta.get_progress_token();
        let mut count = 0.0;
        let outcome = loop {
            let text = tokio::select! {
                biased;
                outcome = &mut call => break outcome,
                Some(text) = said.recv() => text,
            };
            let Some(token) = token.clone() else { continue };
            count += 1.0;
            let told = ProgressNotificationParam::new(token, count).with_message(plain(&text));
            // Who does not hear it learns the end of it.
            let _ = context.peer.notify_progress(told).await;
        };
        drop(call);
        let Some(outcome) = outcome else {
            let mut place = place.lock().await;
            place.take_if(|other| Arc::ptr_eq(other, &visit));
            let text = "the session of this connection has ended; call again for a new one";
            return Ok(refused(text.to_owned()).into());
        };
        Ok(result(&*visit, outcome).await.into())
    }
}

impl Guest {
    /// The session that a call is made in: the one there is, or a new one.
    async fn enter(
        &self,
        place: &Place,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn Visit>, Failure> {
        let mut place = place.lock().await;
        if let Some(visit) = &*place {
            return Ok(Arc::clone(visit));
        }
        let name = context.client_info().map(|client| client.name).unwrap_or_default();
        let visit = self.all.house.visit(&beginning(&plain(&name), NAME)).await?;
        *place = Some(Arc::clone(&visit));
        Ok(visit)
    }
}

/// A tool as a client is told it.
fn told(tool: &ToolSummary) -> Tool {
    let schema = tool.schema.as_object().cloned().unwrap_or_default();
    Tool::new(tool.name.clone(), tool.description.clone(), schema)
}

fn refused(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// What became of a call, as a client hears it.
async fn result(visit: &dyn Visit, outcome: Outcome) -> CallToolResult {
    let output = match outcome {
        Outcome::Completed { output } => output,
        Outcome::Failed { text } | Outcome::Denied { text } | Outcome::Interrupted { text } => {
            return refused(text);
        }
        Outcome::Unknown => {
            let text = "It is not known what became of this call. Look before you repeat it.";
            return refused(text.to_owned());
        }
    };
    let mut content = Vec::new();
    if !output.text.is_empty() || output.attachments.is_empty() {
        content.push(ContentBlock::text(output.text));
    }
    for file in output.attachments.iter().take(FILES) {
        content.push(match visit.blob(&file.blob).await {
            Some(bytes) => shown(file, &bytes),
            None => ContentBlock::text(format!("[{} is no longer there]", plain(&file.name))),
        });
    }
    CallToolResult::success(content)
}

fn shown(file: &Attachment, bytes: &[u8]) -> ContentBlock {
    let encoded = STANDARD.encode(bytes);
    match file.mime.split('/').next() {
        Some("image") => ContentBlock::image(encoded, file.mime.clone()),
        Some("audio") => ContentBlock::audio(encoded, file.mime.clone()),
        Some(_) | None => ContentBlock::resource(ResourceContents::BlobResourceContents {
            uri: format!("windlass:blob/{}", file.blob.as_str()),
            mime_type: Some(file.mime.clone()),
            blob: encoded,
            meta: None,
        }),
    }
}
