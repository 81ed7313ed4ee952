//! Implements `mcp serve`: offers this project's tools to other programs. Each connection is a
//! session and each call one of its calls, so log, rules, sandbox and undo work as everywhere else.

use crate::CliExit;
use crate::args::McpServeArgs;
use crate::setup::{EnginePurpose, LoadedProject};
use crate::terminal::output;
use crate::terminal::question_queue::CtrlC;
use anyhow::{Context, bail};
use async_trait::async_trait;
use secrecy::SecretString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_engine::{Engine, SessionHandle, SessionWatcher, UnattendedPolicy};
use windlass_mcp::serve::{
    HttpAccessControl, McpCallRequest, ToolHost, ToolHostSession, serve_http, serve_stdio,
};
use windlass_protocol::{
    BlobRef, CallOutcome, Event, Fact, LiveEvent, ModelToolDefinition, SessionOp,
};
use windlass_toolkit::CallFailure;

/// Maximum number of concurrent sessions; `open_session` fails beyond it.
const MAX_SESSIONS: usize = 64;
/// Time that `run_serve` gives open sessions to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum length of a token in characters; `MAX_TOKEN_FILE_BYTES` bounds the file that contains
/// it.
const MIN_TOKEN_CHARS: usize = 32;
const MAX_TOKEN_FILE_BYTES: u64 = 4096;

/// Serves until the client disconnects or the user stops it.
pub(crate) async fn run_serve(args: McpServeArgs) -> anyhow::Result<CliExit> {
    let mut setup = LoadedProject::load(args.mode_args.to_config_flags(None))?;
    // Tools of MCP servers are not served again, and all tools of this project are listed up front,
    // without a token budget.
    setup.config.servers.clear();
    setup.config.tools.budget = Some(u32::MAX);
    let access = match &args.token_file {
        Some(file) => Some(HttpAccessControl {
            token: read_or_create_token(file)?,
            allow_token_in_path: args.token_in_path,
        }),
        None => None,
    };
    let advice = "To allow it, the user who runs the server can add a rule to \"permission\" in the \
                  config.";
    let unattended = UnattendedPolicy::Deny { advice: advice.to_owned() };
    let engine = setup.build_tool_engine(EnginePurpose::Commands).await?;
    let engine = engine.with_unattended(unattended);
    let tools = served_tools(&engine, &args.tools).await?;
    let stop = CancellationToken::new();
    let host = Arc::new(McpServeToolHost {
        engine: Arc::new(engine),
        tools,
        session_slots: Arc::new(Semaphore::new(MAX_SESSIONS)),
        tasks: TaskTracker::new(),
        stop: stop.clone(),
    });
    let mut ctrl_c = CtrlC::new()?;
    let serving = serve_clients(Arc::clone(&host), args.http.zip(access), stop.clone());
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = ctrl_c.wait() => {
            stop.cancel();
            serving.await
        }
    };
    stop.cancel();
    host.tasks.close();
    // Sessions that do not end in time resume when they are opened again.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, host.tasks.wait()).await;
    result?;
    Ok(CliExit::Done)
}

#[allow(clippy::disallowed_types, reason = "opens the port that the user chose for clients")]
async fn serve_clients(
    host: Arc<McpServeToolHost>,
    http: Option<(u16, HttpAccessControl)>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let Some((port, access)) = http else {
        serve_stdio(host, (tokio::io::stdin(), tokio::io::stdout()), stop).await?;
        return Ok(());
    };
    let error_context = || format!("cannot listen on port {port} of 127.0.0.1");
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).with_context(error_context)?;
    let address = listener.local_addr().with_context(error_context)?;
    output::print_note(&format!(
        "serving at http://{address}/mcp; clients need the token from the token file"
    ));
    serve_http(host, listener, access, stop).await?;
    Ok(())
}

/// Returns the tools offered to clients: those that allow it (`Tool::is_served`), or only those in
/// `only`.
async fn served_tools(
    engine: &Engine,
    only: &[String],
) -> anyhow::Result<Vec<ModelToolDefinition>> {
    let mut tools = engine.served_tools().await;
    let is_known = |name: &String| tools.iter().any(|tool| tool.name == *name);
    if let Some(unknown) = only.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        bail!("unknown tool `{unknown}`; available: {}", names.join(", "));
    }
    tools.retain(|tool| only.is_empty() || only.contains(&tool.name));
    Ok(tools)
}

/// Reads the token from `file`; creates the file with a new token if it is missing.
fn read_or_create_token(file: &Path) -> anyhow::Result<SecretString> {
    let name = file.to_str().context("the path of the token file is not valid UTF-8")?;
    if !LoadedProject::path_exists(file) {
        use std::io::Write;
        let mut writer = LoadedProject::create_private_file(name)?;
        let token: String =
            LoadedProject::random_bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(writer, "{token}").with_context(|| format!("cannot write {name}"))?;
        return Ok(SecretString::from(token));
    }
    LoadedProject::check_private(file)?;
    let bytes = LoadedProject::read_file(name, MAX_TOKEN_FILE_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let token = text.trim();
    if token.len() < MIN_TOKEN_CHARS || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{name} contains no valid token: it must be one line of at least {MIN_TOKEN_CHARS} \
             letters and digits. Delete the file to create a new token"
        );
    }
    Ok(SecretString::from(token.to_owned()))
}

/// The `ToolHost` of `mcp serve`: opens a session for each client.
struct McpServeToolHost {
    engine: Arc<Engine>,
    tools: Vec<ModelToolDefinition>,
    session_slots: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[async_trait]
impl ToolHost for McpServeToolHost {
    fn tools(&self) -> &[ModelToolDefinition] {
        &self.tools
    }

    async fn open_session(&self, client: &str) -> Result<Arc<dyn ToolHostSession>, CallFailure> {
        let Ok(session_slot) = Arc::clone(&self.session_slots).try_acquire_owned() else {
            let text = format!(
                "too many sessions: {MAX_SESSIONS} are already open. Close one, then call again"
            );
            return Err(CallFailure::new(text));
        };
        let created = self.engine.start_default_session().await;
        let (handle, watcher) = created.map_err(|fault| CallFailure::new(fault.to_string()))?;
        let client = if client.is_empty() { "a client" } else { client };
        handle.send(SessionOp::RenameSession { title: format!("Tools for {client}") }).await;
        let (calls, call_receiver) = mpsc::channel(1);
        let worker = McpSessionWorker {
            handle,
            watcher,
            stop: self.stop.clone(),
            _session_slot: session_slot,
        };
        self.tasks.spawn(worker.run(call_receiver));
        Ok(Arc::new(McpClientSession { calls, engine: Arc::clone(&self.engine) }))
    }
}

/// The server's handle of a client connection; queues calls for its `McpSessionWorker`.
struct McpClientSession {
    calls: mpsc::Sender<QueuedMcpCall>,
    engine: Arc<Engine>,
}

/// A call with the channel for its `Outcome`.
type QueuedMcpCall = (McpCallRequest, oneshot::Sender<CallOutcome>);

#[async_trait]
impl ToolHostSession for McpClientSession {
    async fn call_tool(&self, request: McpCallRequest) -> Option<CallOutcome> {
        let (reply, outcome) = oneshot::channel();
        self.calls.send((request, reply)).await.ok()?;
        outcome.await.ok()
    }

    async fn get_blob(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        self.engine.get_blob(blob).await.ok()
    }
}

/// Runs the calls of one session, one at a time. It ends when the `McpClientSession` is dropped with
/// its connection.
struct McpSessionWorker {
    handle: SessionHandle,
    watcher: SessionWatcher,
    stop: CancellationToken,
    _session_slot: OwnedSemaphorePermit,
}

impl McpSessionWorker {
    async fn run(mut self, mut calls: mpsc::Receiver<QueuedMcpCall>) {
        loop {
            let call = tokio::select! {
                call = calls.recv() => call,
                () = self.stop.cancelled() => None,
            };
            let Some((request, reply)) = call else { break };
            if self.run_call(request, reply).await.is_none() {
                break;
            }
        }
        if let Err(fault) = self.handle.close().await {
            output::print_note(&format!("note: a session failed to close: {fault}"));
        }
    }

    /// Runs a call to its end. Returns `None` if the session has stopped.
    async fn run_call(
        &mut self,
        request: McpCallRequest,
        mut reply: oneshot::Sender<CallOutcome>,
    ) -> Option<()> {
        let McpCallRequest { tool, arguments, progress, cancel } = request;
        if cancel.is_cancelled() || reply.is_closed() {
            return Some(());
        }
        let op = SessionOp::CallTool { tool, arguments };
        if let Err(error) = self.handle.queue_op(op, None).await.await.ok()? {
            let _ = reply.send(CallOutcome::Failed { text: error.to_string() });
            return Some(());
        }
        let (mut outcome, mut is_interrupted) = (None, false);
        loop {
            let event = tokio::select! {
                event = self.watcher.next() => event.ok()??,
                () = wait_until_unwanted((&cancel, &self.stop), &mut reply), if !is_interrupted => {
                    is_interrupted = true;
                    self.handle.send(SessionOp::Interrupt { turn: None }).await;
                    continue;
                }
            };
            match &*event {
                Event::Live(live) => {
                    if let LiveEvent::CallProgress { text, .. } = &live.event {
                        // `try_send`: a slow client misses some progress messages.
                        let _ = progress.try_send(text.clone());
                    }
                }
                Event::Fact(record) => {
                    if let Fact::CallSettled { outcome: settled, .. } = &record.fact {
                        outcome = Some(settled.clone());
                    }
                    if let Fact::TurnEnded { .. } = &record.fact {
                        break;
                    }
                }
            }
        }
        if let Some(outcome) = outcome {
            // If the client has disconnected, the `Outcome` is still in the log.
            let _ = reply.send(outcome);
        }
        Some(())
    }
}

/// Resolves when the `Outcome` of a call is no longer needed: canceled, shutting down, or the
/// client gone.
async fn wait_until_unwanted(
    (cancel, stop): (&CancellationToken, &CancellationToken),
    reply: &mut oneshot::Sender<CallOutcome>,
) {
    tokio::select! {
        () = cancel.cancelled() => {}
        () = stop.cancelled() => {}
        () = reply.closed() => {}
    }
}
