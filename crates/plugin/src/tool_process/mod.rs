//! The process of a custom tool program: started on first use, kept running, and restarted if its
//! file changed or it exited.
//!
//! There is one process per sandbox that its tools are called in, so that a read-only call is never
//! answered by a process that can change something. Start reading at [`ToolProcess::call_tool`].

mod tool_call;

use crate::json_lines::{JsonLinesPeer, PeerError};
use crate::program_limits::{DeclaredHostPolicy, ProgramLimits};
use crate::program_messages::{ProgramMessage, ToolReply};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use windlass_protocol::{HookPoint, PermissionMode, SessionId};
use windlass_sandbox::{HostAllowlist, ProcessSandboxAccess, ProcessSpec, WorkspaceAccess};
use windlass_toolkit::process_health::{ProcessHealth, ProcessHealthAction};
use windlass_toolkit::{CallContext, CallFailure, ProcessLauncher};

/// Time for a program to start and answer `describe`.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for a program to answer `describe`: an interpreter that is read from a cold disk takes seconds.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a process to exit before it is killed.
const KILL_GRACE: Duration = Duration::from_millis(300);
/// Time that an unanswered abandoned call may delay the next call.
const ABANDONED_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The command line of a program and the digest of its files, returned by `ProgramSource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// Identifies the relevant file contents: a different digest means a different program.
    pub digest: String,
}

/// The source of a program's files.
pub trait ProgramSource: Send + Sync {
    /// Returns a value, based on sizes and times, that changes when the files may have changed.
    /// Called before each call, so it must be fast.
    fn change_stamp(&self) -> String;

    /// Inspects the files and returns what to start, or the reason why it must not start. Called
    /// before each start. Blocks.
    fn resolve_launch(&self) -> Result<LaunchSpec, String>;
}

/// The access of one process of a `ToolProcess`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ToolSandbox {
    pub(crate) workspace_access: WorkspaceAccess,
    pub(crate) network: ToolNetworkAccess,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolNetworkAccess {
    /// No hosts.
    None,
    /// The hosts that commands may reach.
    Default,
    /// The listed hosts.
    Hosts(Vec<String>),
}

impl ToolSandbox {
    /// The most restrictive sandbox: read-only, without network.
    pub(crate) const READ_ONLY: ToolSandbox =
        ToolSandbox { workspace_access: WorkspaceAccess::Read, network: ToolNetworkAccess::None };
}

/// A program whose tools can be called.
pub struct ToolProcess {
    name: String,
    launcher: ProcessLauncher,
    source: Arc<dyn ProgramSource>,
    limits: ProgramLimits,
    started_at: Instant,
    slots: Mutex<BTreeMap<ToolSandbox, Arc<ProcessSlot>>>,
}

/// The slot for the process of one `ToolSandbox`.
struct ProcessSlot {
    /// Serializes calls with `CallConcurrency::Serial`.
    call_lock: tokio::sync::Mutex<()>,
    state: tokio::sync::Mutex<ProcessSlotState>,
}

struct ProcessSlotState {
    health: ProcessHealth,
    process: Option<RunningToolProcess>,
    /// The `change_stamp` of the files at the last start.
    last_stamp: Option<String>,
}

struct RunningToolProcess {
    peer: Arc<JsonLinesPeer>,
    launch: LaunchSpec,
    stamp: String,
    /// The program's answer to `describe`.
    description: Value,
}

/// A call to a tool of a program.
pub(crate) struct ToolCallRequest<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: Value,
    pub(crate) sandbox: ToolSandbox,
    pub(crate) timeout: Option<Duration>,
    /// `Parallel` if other calls may run at the same time.
    pub(crate) concurrency: CallConcurrency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallConcurrency {
    Serial,
    Parallel,
}

impl ToolProcess {
    /// Creates a program with the name that prefixes its tools. Starts nothing.
    pub fn new(
        name: &str,
        launcher: &ProcessLauncher,
        source: Arc<dyn ProgramSource>,
        limits: ProgramLimits,
    ) -> Arc<ToolProcess> {
        Arc::new(ToolProcess {
            name: name.to_owned(),
            launcher: launcher.clone(),
            source,
            limits,
            started_at: Instant::now(),
            slots: Mutex::default(),
        })
    }

    /// Returns the name that prefixes its tools.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn limits(&self) -> &ProgramLimits {
        &self.limits
    }

    /// Returns the program's answer to `describe`. The program runs in a read-only sandbox for
    /// this.
    pub async fn describe(&self) -> Result<Value, CallFailure> {
        let slot = self.slot_for(&ToolSandbox::READ_ONLY);
        self.ensure_running(&slot, &ToolSandbox::READ_ONLY, self.launcher.mode())
            .await
            .map(|(_, description)| description)
    }

    /// Calls a tool of the program.
    pub(crate) async fn call_tool(
        &self,
        request: ToolCallRequest<'_>,
        cx: &CallContext<'_>,
    ) -> Result<ToolReply, CallFailure> {
        let mode = cx.world.mode();
        let workspace_access =
            request.sandbox.workspace_access.min(self.limits.max_access).in_mode(mode);
        let sandbox = ToolSandbox { workspace_access, network: request.sandbox.network.clone() };
        let slot = self.slot_for(&sandbox);
        let call_guard = match request.concurrency {
            CallConcurrency::Serial => Some(slot.call_lock.lock().await),
            CallConcurrency::Parallel => None,
        };
        let (mut peer, _) = self.ensure_running(&slot, &sandbox, mode).await?;
        if !matches!(timeout(ABANDONED_CALL_TIMEOUT, peer.wait_for_abandoned()).await, Ok(Ok(()))) {
            self.end_process(&slot, &peer, "it did not stop a canceled call").await;
            (peer, _) = self.ensure_running(&slot, &sandbox, mode).await?;
        }
        let earlier_attempts = peer.process().host_attempts(0).len();
        let result = self.run_call(&slot, &peer, request, cx).await;
        peer.log_stderr(&self.name);
        for attempt in peer.process().host_attempts(earlier_attempts) {
            cx.caller.report_host(attempt.host, attempt.refusal);
        }
        drop(call_guard);
        result
    }

    /// Sends the program's hooks at a point what they are about, and returns the line with the
    /// answer. The program runs in a read-only sandbox for this.
    pub(crate) async fn run_hook(
        &self,
        (session, mode): (SessionId, PermissionMode),
        point: HookPoint,
        payload: Value,
        time_limit: Duration,
    ) -> Result<Vec<u8>, CallFailure> {
        let slot = self.slot_for(&ToolSandbox::READ_ONLY);
        let (peer, _) = self.ensure_running(&slot, &ToolSandbox::READ_ONLY, mode).await?;
        let request = json!({"method": "hook", "point": point, "matter": payload});
        let answer = async {
            let mut exchange = peer.request(request).await?;
            let mut reads = 0;
            loop {
                let line = exchange.next_line().await?;
                if !matches!(ProgramMessage::parse(&line), Ok(ProgramMessage::ReadSession)) {
                    exchange.finish();
                    return Ok(line);
                }
                reads += 1;
                exchange.send_more(self.session_answer(session, reads).await).await?;
            }
        };
        let answer = timeout(time_limit, answer).await;
        peer.log_stderr(&self.name);
        let reason = match answer {
            Ok(Ok(line)) => return Ok(line),
            Ok(Err(PeerError(error))) => error,
            Err(_) => {
                let seconds = time_limit.as_secs();
                format!("it did not answer within {seconds} s{}", stderr_suffix(&peer))
            }
        };
        self.end_process(&slot, &peer, &reason).await;
        Err(CallFailure::new(reason))
    }

    /// Ends a process that must not be used again.
    async fn end_process(&self, slot: &ProcessSlot, peer: &JsonLinesPeer, reason: &str) {
        peer.process().terminate(KILL_GRACE).await;
        let mut state = slot.state.lock().await;
        let is_same = |running: &RunningToolProcess| std::ptr::eq(Arc::as_ptr(&running.peer), peer);
        if state.process.as_ref().is_some_and(is_same) {
            state.process = None;
            state.health.mark_lost(self.started_at.elapsed(), reason.to_owned());
        }
    }

    fn slot_for(&self, sandbox: &ToolSandbox) -> Arc<ProcessSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(sandbox.clone()).or_insert_with(|| {
            let health = ProcessHealth::new(&self.name);
            let state = ProcessSlotState { health, process: None, last_stamp: None };
            Arc::new(ProcessSlot {
                call_lock: tokio::sync::Mutex::default(),
                state: tokio::sync::Mutex::new(state),
            })
        });
        Arc::clone(slot)
    }

    /// Returns the process of a sandbox; starts it if it is not running or its files changed.
    async fn ensure_running(
        &self,
        slot: &ProcessSlot,
        sandbox: &ToolSandbox,
        mode: PermissionMode,
    ) -> Result<(Arc<JsonLinesPeer>, Value), CallFailure> {
        let mut state = slot.state.lock().await;
        let stamp = self.source.change_stamp();
        if let Some(running) = state.process.take_if(|running| running.peer.is_over()) {
            let reason =
                running.peer.process().exit_summary().unwrap_or_else(|| "it was stopped".into());
            state.health.mark_lost(self.started_at.elapsed(), reason);
        }
        if let Some(mut running) = state.process.take() {
            if running.stamp == stamp {
                let found = (Arc::clone(&running.peer), running.description.clone());
                state.process = Some(running);
                return Ok(found);
            }
            // If the launch differs or fails to resolve, the old process is never called again.
            state.health.mark_lost(self.started_at.elapsed(), "its file has changed".into());
            match self.resolve_launch().await {
                Ok(launch) if launch == running.launch => {
                    running.stamp = stamp;
                    let found = (Arc::clone(&running.peer), running.description.clone());
                    state.process = Some(running);
                    state.health.reset();
                    let _ = state.health.next_action(self.started_at.elapsed());
                    state.health.mark_started(self.started_at.elapsed());
                    return Ok(found);
                }
                Ok(_) => running.peer.process().terminate(KILL_GRACE).await,
                Err(error) => {
                    running.peer.process().terminate(KILL_GRACE).await;
                    return Err(CallFailure::new(error));
                }
            }
        }
        if state.last_stamp.as_ref() != Some(&stamp) {
            state.health.reset();
        }
        match state.health.next_action(self.started_at.elapsed()) {
            // `Wait` means start here: a start under way would hold the `state` lock, so its caller
            // was dropped.
            ProcessHealthAction::Proceed
            | ProcessHealthAction::Start
            | ProcessHealthAction::Wait => {}
            ProcessHealthAction::Fail(text) => return Err(CallFailure::new(text)),
        }
        state.last_stamp = Some(stamp.clone());
        let started = timeout(START_TIMEOUT, self.start_process(sandbox, mode, stamp)).await;
        let started = started.unwrap_or_else(|_| {
            Err(CallFailure::new(format!(
                "{} did not start within {} s",
                self.name,
                START_TIMEOUT.as_secs()
            )))
        });
        match started {
            Ok(running) => {
                state.health.mark_started(self.started_at.elapsed());
                let found = (Arc::clone(&running.peer), running.description.clone());
                state.process = Some(running);
                Ok(found)
            }
            Err(failure) => {
                state.health.mark_failed(self.started_at.elapsed(), failure.text.clone());
                Err(failure)
            }
        }
    }

    /// Starts a process and sends it `describe`.
    async fn start_process(
        &self,
        sandbox: &ToolSandbox,
        mode: PermissionMode,
        stamp: String,
    ) -> Result<RunningToolProcess, CallFailure> {
        let launch = self.resolve_launch().await.map_err(CallFailure::new)?;
        let process = ProcessSpec {
            name: format!("tool/{}", self.name),
            program: launch.program.clone(),
            arguments: launch.arguments.clone(),
            folder: self.limits.folder.clone(),
            env: self.limits.env.clone(),
            sandbox_access: ProcessSandboxAccess {
                workspace: sandbox.workspace_access,
                writable_folders: self.limits.writable_dirs.clone(),
                hosts: self.allowed_hosts(&sandbox.network)?,
                sandbox_mode: None,
            },
        };
        let process_io = self.launcher.in_mode(mode).launch(process).await?;
        let peer = JsonLinesPeer::new(process_io);
        let folder = self.limits.folder.display().to_string();
        let request = json!({"method": "describe", "windlass": 1, "folder": folder});
        let line = match timeout(DESCRIBE_TIMEOUT, peer.request_line(request)).await {
            Ok(Ok(line)) => line,
            Ok(Err(PeerError(error))) => {
                peer.process().terminate(KILL_GRACE).await;
                return Err(CallFailure::new(error));
            }
            Err(_) => {
                let stderr = stderr_suffix(&peer);
                peer.process().terminate(KILL_GRACE).await;
                return Err(CallFailure::new(format!(
                    "{} did not answer `describe` within {} s{stderr}",
                    self.name,
                    DESCRIBE_TIMEOUT.as_secs()
                )));
            }
        };
        peer.log_stderr(&self.name);
        let description = crate::program_messages::parse_description(&line);
        match description {
            Ok(description) => {
                Ok(RunningToolProcess { peer: Arc::new(peer), launch, stamp, description })
            }
            Err(error) => {
                peer.process().terminate(KILL_GRACE).await;
                Err(CallFailure::new(format!("{} {error}", self.name)))
            }
        }
    }

    async fn resolve_launch(&self) -> Result<LaunchSpec, String> {
        let source = Arc::clone(&self.source);
        let result = tokio::task::spawn_blocking(move || source.resolve_launch()).await;
        result.unwrap_or_else(|_| Err("its file could not be read".to_owned()))
    }

    fn allowed_hosts(&self, network: &ToolNetworkAccess) -> Result<HostAllowlist, CallFailure> {
        match (network, &self.limits.host_allowance) {
            (ToolNetworkAccess::None, _) => Ok(HostAllowlist::none()),
            (ToolNetworkAccess::Default, _)
            | (
                ToolNetworkAccess::Hosts(_),
                DeclaredHostPolicy::Default | DeclaredHostPolicy::Approved(_),
            ) => Ok(self.limits.hosts.clone()),
            (ToolNetworkAccess::Hosts(declared), DeclaredHostPolicy::Own) => {
                HostAllowlist::parse(declared)
                    .map_err(|error| CallFailure::new(format!("{}: {error}", self.name)))
            }
        }
    }
}

/// Returns the end of the program's stderr, as a suffix for an error message.
fn stderr_suffix(peer: &JsonLinesPeer) -> String {
    let stderr = peer.process().stderr_tail();
    if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") }
}
