//! Runs code queries: selects servers, sends requests and handles empty answers.
//!
//! Start reading at [`run_query`].

pub(crate) mod code_query;
pub(crate) mod locations;
pub(crate) mod symbol_name_ranking;
mod symbols;

use crate::connection::LspRequestError;
use crate::documents::MAX_DOCUMENT_BYTES;
use crate::documents::file_watch;
use crate::documents::lsp_client::LspClient;
use crate::pool::ServerPool;
use crate::pool::server::LspServer;
use crate::positions::{LineIndex, LspPosition, PositionEncoding};
use crate::query::code_query::{CodeQuery, CodeQueryAnswer, PositionQuery};
use crate::query::locations::{LocationOrder, RawLocation, ResolvedLocations};
use crate::query::symbol_name_ranking::nearby_names;
use serde_json::{Value, json};
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::display_text::truncate_chars;
use windlass_sandbox::{CallWorkspace, OpenedPath};
use windlass_toolkit::{CallContext, CallFailure};

/// Wait for the start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait for a busy server before it can answer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of retries, `RETRY_DELAY` apart, at a server that has just opened the file.
const MAX_RETRIES: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Limit for the names tried next to an empty position.
const MAX_NEARBY_NAMES: usize = 3;

/// Runs a query until it is answered or `cx.cancel` fires.
pub(crate) async fn run_query(
    pool: &ServerPool,
    cx: &CallContext<'_>,
    query: CodeQuery,
) -> Result<CodeQueryAnswer, CallFailure> {
    let runner = QueryRunner { pool, cx };
    let run = async {
        match query {
            CodeQuery::Position { query, path, line, character } => {
                runner.query_position(query, &path, (line, character)).await
            }
            CodeQuery::DocumentSymbols { path } => runner.document_symbols(&path).await,
            CodeQuery::WorkspaceSymbols { path, query } => {
                runner.workspace_symbols(path.as_deref(), &query).await
            }
        }
    };
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(CallFailure::new("canceled before there was an answer")),
        answer = run => answer,
    }
}

struct QueryRunner<'a> {
    pool: &'a ServerPool,
    cx: &'a CallContext<'a>,
}

/// A running server and the file it is queried about.
struct QueryTarget {
    server: Arc<LspServer>,
    connection: Arc<LspClient>,
    path: String,
    text: LineIndex,
    retry: RetryAllowance,
}

/// Retries left for a server whose answer is empty.
struct RetryAllowance {
    /// Retries because the server has just opened the file.
    retries_left: u32,
    /// Allows one wait for a busy server.
    may_wait_for_idle: bool,
}

impl QueryRunner<'_> {
    /// Opens a file at the first of its servers that supports the operation.
    async fn open_target(
        &self,
        path: &str,
        operation: QueryOperation,
    ) -> Result<QueryTarget, CallFailure> {
        let path = self.cx.world.workspace().resolve_inside(path)?;
        let text = self.read_text(&path).await?;
        let mut unsupported = Vec::new();
        let servers = self.pool.servers_for(&self.cx.world, &path);
        if servers.is_empty() {
            let message = self.pool.no_server_text(&self.cx.world, &path);
            return Err(CallFailure::new(message.unwrap_or_default()));
        }
        for server in servers {
            let connection = self.connect(&server).await?;
            if connection.supports(operation.method) {
                let retries_left = if connection.documents().document_text(&path).is_some() {
                    0
                } else {
                    MAX_RETRIES
                };
                self.sync_document(&connection, &path, &text);
                let retry = RetryAllowance { retries_left, may_wait_for_idle: true };
                return Ok(QueryTarget { server, connection, path, text, retry });
            }
            unsupported.push(server.config().name.clone());
        }
        let QueryOperation { name, fallback_hint, .. } = operation;
        let verb = if unsupported.len() == 1 { "does" } else { "do" };
        Err(CallFailure::new(format!(
            "{} {verb} not support {name}; {fallback_hint}",
            unsupported.join(" and ")
        )))
    }

    fn sync_document(&self, connection: &Arc<LspClient>, path: &str, text: &LineIndex) {
        let workspace = self.pool.workspace();
        file_watch::sync_open_documents(workspace, &self.cx.world, connection);
        file_watch::start_walk(workspace, self.pool.background_tasks(), connection);
        let send = |(method, params)| connection.notify(method, params);
        let stat = workspace.stat(path);
        connection.documents().set_text(&send, (path, text.text()), stat);
    }

    async fn connect(&self, server: &Arc<LspServer>) -> Result<Arc<LspClient>, CallFailure> {
        if let Some(connection) = server.ready_connection() {
            return Ok(connection);
        }
        self.cx.caller.report_progress(format!("{} is starting", server.config().name));
        server.connect(START_TIMEOUT).await.map_err(CallFailure::new)
    }

    async fn read_text(&self, path: &str) -> Result<LineIndex, CallFailure> {
        let path = path.to_owned();
        self.cx
            .run_blocking(move |granted| {
                let OpenedPath::File(file) = granted.read(&path)? else {
                    return Err(CallFailure::new(format!(
                        "{path} is a folder; give the path of a file"
                    )));
                };
                let mut bytes = Vec::new();
                let max_bytes = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
                let result = file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes);
                if let Err(error) = result {
                    return Err(CallFailure::new(format!("{path} could not be read: {error}")));
                }
                if bytes.len() > MAX_DOCUMENT_BYTES {
                    let message = format!("{path} is too large for language servers; use grep");
                    return Err(CallFailure::new(message));
                }
                let text = file_watch::decode_utf8(bytes);
                let message =
                    || format!("{path} is not UTF-8 text, which language servers require");
                Ok(LineIndex::new(text.ok_or_else(|| CallFailure::new(message()))?))
            })
            .await
    }

    /// Sends a request, once more if the connection is lost meanwhile.
    async fn send_request(
        &self,
        target: &mut QueryTarget,
        request: &LspRequest,
    ) -> Result<Value, CallFailure> {
        let limit = self.pool.timeouts().answer;
        let name = target.server.config().name.clone();
        for may_retry in [true, false] {
            match target.connection.request(request.method, request.params.clone(), limit).await {
                Ok(answer) => return Ok(answer),
                Err(LspRequestError::ConnectionLost(_)) if may_retry => {
                    let connection = target.server.reconnect(START_TIMEOUT).await;
                    target.connection = connection.map_err(CallFailure::new)?;
                    self.sync_document(&target.connection, &target.path, &target.text);
                }
                Err(error) => return Err(CallFailure::new(describe_error(&name, error, limit))),
            }
        }
        Err(CallFailure::new(format!("{name} exited twice; use grep")))
    }

    /// Queries a position, and then names next to it if the answer is empty.
    async fn query_position(
        &self,
        query: PositionQuery,
        path: &str,
        (line, character): (u32, u32),
    ) -> Result<CodeQueryAnswer, CallFailure> {
        let operation = QueryOperation {
            name: query.name(),
            method: query.method(),
            fallback_hint: query.fallback_hint(),
        };
        let mut target = self.open_target(path, operation).await?;
        let encoding = target.connection.encoding();
        let Some(position) = target.text.to_lsp_position(line, character, encoding) else {
            let lines = target.text.line_count();
            return Err(CallFailure::new(format!(
                "{path} has {lines} lines; line {line} does not exist. Lines are numbered from \
                 1, as read shows them"
            )));
        };
        let mut answer = self.query_exact_position(query, &mut target, position).await?;
        while answer.is_none()
            && self.wait_for_retry(&mut target.retry, &target.server, &target.connection).await
        {
            answer = self.query_exact_position(query, &mut target, position).await?;
        }
        let mut notes = Vec::new();
        if answer.is_none() {
            let line_text = target.text.line(line - 1).to_owned();
            for (start, name) in
                nearby_names(&line_text, character).into_iter().take(MAX_NEARBY_NAMES)
            {
                let position =
                    target.text.to_lsp_position(line, start, encoding).unwrap_or(position);
                answer = self.query_exact_position(query, &mut target, position).await?;
                if answer.is_some() {
                    notes.push(format!(
                        "nothing at {line}:{character}; showing `{name}` at {line}:{start}"
                    ));
                    break;
                }
            }
        }
        let answer = match answer {
            None => self.empty_answer(&target, query.name()),
            Some(PositionAnswer::Prose(prose)) => {
                CodeQueryAnswer { prose, ..CodeQueryAnswer::default() }
            }
            Some(PositionAnswer::Locations(raws)) => {
                self.resolve_locations(encoding, LocationOrder::Sorted, raws).await?
            }
        };
        let notes = notes.into_iter().chain(answer.notes).collect();
        Ok(CodeQueryAnswer { notes, ..answer })
    }

    /// Queries one exact position; returns `None` if the answer is empty.
    async fn query_exact_position(
        &self,
        query: PositionQuery,
        target: &mut QueryTarget,
        position: LspPosition,
    ) -> Result<Option<PositionAnswer>, CallFailure> {
        let mut params = json!({
            "textDocument": {"uri": target.connection.documents().uri(&target.path)},
            "position": position.to_json(),
        });
        if let (PositionQuery::References, Some(params)) = (query, params.as_object_mut()) {
            params.insert("context".into(), json!({"includeDeclaration": true}));
        }
        let answer =
            self.send_request(target, &LspRequest { method: query.method(), params }).await?;
        let raws = match query {
            PositionQuery::Hover => {
                let prose = locations::parse_hover(&answer);
                return Ok((!prose.is_empty()).then_some(PositionAnswer::Prose(prose)));
            }
            PositionQuery::Definition
            | PositionQuery::References
            | PositionQuery::Implementation => locations::parse_locations(&answer),
            PositionQuery::CallHierarchy => locations::parse_call_hierarchy(&answer),
            PositionQuery::IncomingCalls | PositionQuery::OutgoingCalls => {
                let Some(item) = answer.get(0) else { return Ok(None) };
                let params = json!({"item": item});
                let incoming = query == PositionQuery::IncomingCalls;
                let method = match incoming {
                    true => "callHierarchy/incomingCalls",
                    false => "callHierarchy/outgoingCalls",
                };
                let answer = self.send_request(target, &LspRequest { method, params }).await?;
                if incoming {
                    locations::parse_incoming_calls(&answer)
                } else {
                    locations::parse_outgoing_calls(&answer)
                }
            }
        };
        Ok((!raws.is_empty()).then_some(PositionAnswer::Locations(raws)))
    }

    /// Waits until a retry makes sense: until a busy server is idle, or for `RETRY_DELAY` if it has
    /// just opened the file. Returns false if there is no reason to retry.
    async fn wait_for_retry(
        &self,
        retry: &mut RetryAllowance,
        server: &LspServer,
        connection: &LspClient,
    ) -> bool {
        if let Some(busy) = connection.busy_text() {
            self.cx.caller.report_progress(format!("{}: {busy}", server.config().name));
            return std::mem::take(&mut retry.may_wait_for_idle)
                && connection.wait_until_idle(BUSY_TIMEOUT).await;
        }
        let Some(remaining) = retry.retries_left.checked_sub(1) else { return false };
        retry.retries_left = remaining;
        tokio::time::sleep(RETRY_DELAY).await;
        true
    }

    fn empty_answer(&self, target: &QueryTarget, name: &str) -> CodeQueryAnswer {
        let server = &target.server.config().name;
        let note = match target.connection.busy_text() {
            Some(busy) => format!("{server} is still busy ({busy}); try again later"),
            None => format!("{server} found no {name} result there"),
        };
        CodeQueryAnswer { notes: vec![note], ..CodeQueryAnswer::default() }
    }

    async fn resolve_locations(
        &self,
        encoding: PositionEncoding,
        order: LocationOrder,
        raws: Vec<RawLocation>,
    ) -> Result<CodeQueryAnswer, CallFailure> {
        let root = self.pool.workspace().root().to_owned();
        let resolve = move |granted: &CallWorkspace| {
            Ok(locations::resolve_locations(granted, &root, encoding, order, &raws))
        };
        Ok(locations_answer(self.cx.run_blocking(resolve).await?))
    }
}

/// An operation: its name for the model, its LSP method and an alternative.
#[derive(Clone, Copy)]
struct QueryOperation {
    name: &'static str,
    method: &'static str,
    fallback_hint: &'static str,
}

struct LspRequest {
    method: &'static str,
    params: Value,
}

/// Answer of a server to a position query.
enum PositionAnswer {
    Prose(String),
    Locations(Vec<RawLocation>),
}

fn describe_error(name: &str, error: LspRequestError, limit: Duration) -> String {
    match error {
        LspRequestError::ServerError { message, .. } => {
            format!("{name} could not answer: {}", truncate_chars(message.trim(), 300))
        }
        LspRequestError::TimedOut => {
            format!("{name} did not answer within {} s. Try again, or use grep", limit.as_secs())
        }
        LspRequestError::ConnectionLost(reason) => {
            format!("{name} stopped ({reason}). Try again, or use grep")
        }
    }
}

fn locations_answer(locations: ResolvedLocations) -> CodeQueryAnswer {
    let mut notes = Vec::new();
    if locations.omitted > 0 {
        notes.push(format!("and {} more; narrow the query", locations.omitted));
    }
    match locations.hidden {
        0 => {}
        1 => notes.push("1 result was omitted because its file may not be read".to_owned()),
        hidden => {
            notes.push(format!("{hidden} results were omitted because their files may not be read"))
        }
    }
    CodeQueryAnswer { locations: locations.shown, prose: String::new(), notes }
}
