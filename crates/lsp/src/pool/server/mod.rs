//! One language server at one project root: its start, health and shutdown.
//!
//! A server starts on demand in its own task, so that a waiting caller may give up. While it runs
//! it is monitored: a server that exits, uses too much memory or is idle is stopped, even without
//! a call. Everything stops with the last owner. Start reading at [`LspServer::connect`].

pub(crate) mod started_servers;

use crate::config::LspServerConfig;
use crate::documents::lsp_client::LspClient;
use crate::pool::context::PoolContext;
use crate::pool::server::started_servers::StartedServers;
use crate::pool::start::{LspStartError, ServerStartPlan};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::{ProcessHandle, WorkspaceAccess};
use windlass_toolkit::process_health::{ProcessHealth, ProcessHealthAction, ProcessHealthState};

/// Interval of the health and memory checks; health checks are more frequent if `LspTimeouts::idle`
/// is short.
const MONITOR_INTERVAL: Duration = Duration::from_secs(5);
/// Time for a server whose start failed to exit.
const FAILED_START_KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit for the logged stderr lines of a failed start.
const MAX_STDERR_LINES: usize = 40;
/// Limit for the whole shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// A language server at one project root, running or not.
pub(crate) struct LspServer {
    plan: ServerStartPlan,
    context: Arc<PoolContext>,
    started: Arc<StartedServers>,
    health: Mutex<ProcessHealth>,
    connection: Mutex<Option<Arc<LspClient>>>,
    /// Counts events, so that callers can wait for the next one.
    change_counter: watch::Sender<u64>,
    /// Time of the last use.
    last_used: Mutex<Instant>,
    /// Number of the current start; results of other starts are ignored.
    start_number: AtomicU64,
    /// Canceled when the server is closed for good; nothing starts after that.
    closing: CancellationToken,
    /// Cancels the start under way, for `suspend`.
    cancel_start: Mutex<CancellationToken>,
    tasks: Mutex<JoinSet<()>>,
}

/// Reports a start as failed when dropped, unless a result was reported before.
struct LspStartGuard {
    server: Weak<LspServer>,
    start_number: u64,
}

impl Drop for LspStartGuard {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            server.finish_start(
                self.start_number,
                Err(LspStartError::Failed("its start was canceled".into())),
            );
        }
    }
}

impl LspServer {
    pub(crate) fn new(
        config: Arc<LspServerConfig>,
        root: String,
        workspace_access: WorkspaceAccess,
        context: &Arc<PoolContext>,
        started: &Arc<StartedServers>,
    ) -> Arc<LspServer> {
        Arc::new(LspServer {
            health: Mutex::new(ProcessHealth::new(&config.name).with_changes(&context.changes)),
            plan: ServerStartPlan { config, root, workspace_access },
            context: Arc::clone(context),
            started: Arc::clone(started),
            connection: Mutex::new(None),
            change_counter: watch::Sender::new(0),
            last_used: Mutex::new(Instant::now()),
            start_number: AtomicU64::new(0),
            closing: CancellationToken::new(),
            cancel_start: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    pub(crate) fn config(&self) -> &LspServerConfig {
        &self.plan.config
    }

    /// Returns the project root relative to the workspace, whose root is `.`.
    pub(crate) fn root(&self) -> &str {
        &self.plan.root
    }

    /// Returns the `ProcessHealthState` of the server.
    pub(crate) fn state(&self) -> ProcessHealthState {
        self.detect_lost_connection();
        lock(&self.health).state().clone()
    }

    /// Returns true in the states `Starting` and `Ready`.
    pub(crate) fn is_running_or_starting(&self) -> bool {
        matches!(
            lock(&self.health).state(),
            ProcessHealthState::Starting | ProcessHealthState::Ready { .. }
        )
    }

    /// Returns the time of the last use.
    pub(crate) fn last_used(&self) -> Instant {
        *lock(&self.last_used)
    }

    /// Returns the connection if the server is ready. Never waits.
    pub(crate) fn ready_connection(&self) -> Option<Arc<LspClient>> {
        self.mark_used();
        self.detect_lost_connection();
        lock(&self.connection).clone()
    }

    /// Starts the server if needed, without waiting.
    pub(crate) fn start_in_background(self: &Arc<Self>) {
        self.mark_used();
        self.detect_lost_connection();
        if self.closing.is_cancelled() || self.missing_program_text().is_some() {
            return;
        }
        let action = lock(&self.health).next_action(self.context.elapsed());
        if action == ProcessHealthAction::Start {
            self.spawn_start();
        }
    }

    /// Returns a working connection, starting the server if needed. The error is a sentence for the
    /// model.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Result<Arc<LspClient>, String> {
        self.connect_within(limit, ProcessHealth::next_action).await
    }

    /// Like `connect`, for a call whose connection was lost under way. Restarts the server only if
    /// the lost connection had been stable.
    pub(crate) async fn reconnect(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Result<Arc<LspClient>, String> {
        self.connect_within(limit, ProcessHealth::next_action_after_loss).await
    }

    async fn connect_within(
        self: &Arc<Self>,
        limit: Duration,
        next_action: fn(&mut ProcessHealth, Duration) -> ProcessHealthAction,
    ) -> Result<Arc<LspClient>, String> {
        match tokio::time::timeout(limit, self.wait_for_connection(next_action)).await {
            Ok(connection) => connection,
            Err(_) => {
                let name = &self.config().name;
                Err(format!("{name} is still starting; try again later, or use grep meanwhile"))
            }
        }
    }

    async fn wait_for_connection(
        self: &Arc<Self>,
        next_action: fn(&mut ProcessHealth, Duration) -> ProcessHealthAction,
    ) -> Result<Arc<LspClient>, String> {
        let mut changes = self.change_counter.subscribe();
        let mut started = false;
        loop {
            changes.mark_unchanged();
            self.mark_used();
            self.detect_lost_connection();
            if self.closing.is_cancelled() {
                return Err(format!("{} was stopped", self.config().name));
            }
            if let Some(message) = self.missing_program_text() {
                return Err(message);
            }
            let action = next_action(&mut lock(&self.health), self.context.elapsed());
            match action {
                ProcessHealthAction::Proceed => {
                    let connection = lock(&self.connection).clone();
                    if let Some(connection) = connection {
                        return Ok(connection);
                    }
                    let reason = "the connection was closed".to_owned();
                    lock(&self.health).mark_lost(self.context.elapsed(), reason);
                }
                ProcessHealthAction::Fail(message) => return Err(message),
                // A call does not repeat its own failed start.
                ProcessHealthAction::Start if started => {
                    let reason = "it exited right after it started".to_owned();
                    lock(&self.health).mark_failed(self.context.elapsed(), reason);
                }
                ProcessHealthAction::Start => {
                    started = true;
                    self.spawn_start();
                    let _ = changes.changed().await;
                }
                ProcessHealthAction::Wait => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// Explains to the model that the program is missing; `None` if it is installed.
    pub(crate) fn missing_program_text(&self) -> Option<String> {
        let is_installed = self.context.find_program(&self.plan.config, &self.plan.root).is_some();
        (!is_installed).then(|| self.plan.config.not_installed_text())
    }

    fn mark_used(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    fn notify_waiters(&self) {
        self.change_counter.send_modify(|count| *count += 1);
    }

    /// Records the loss of a connection that has closed meanwhile.
    fn detect_lost_connection(&self) {
        let mut connection = lock(&self.connection);
        let reason = connection.as_ref().and_then(|connection| connection.close_reason());
        if let Some(reason) = reason {
            *connection = None;
            lock(&self.health).mark_lost(self.context.elapsed(), reason);
        }
    }

    /// Starts the server in its own task.
    fn spawn_start(self: &Arc<Self>) {
        self.started.add(self);
        let number = self.start_number.fetch_add(1, Ordering::Relaxed) + 1;
        let server = Arc::downgrade(self);
        let plan = self.plan.clone();
        let context = Arc::clone(&self.context);
        let stop = self.closing.child_token();
        *lock(&self.cancel_start) = stop.clone();
        self.spawn_task(async move {
            // The start must not keep its own server alive.
            let guard = LspStartGuard { server: Weak::clone(&server), start_number: number };
            let mut process = None;
            let limit = context.timeouts.start;
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => Err(LspStartError::Failed("it was stopped".into())),
                result = tokio::time::timeout(limit, plan.start_and_initialize(&context, &mut process)) => {
                    result.unwrap_or_else(|_| Err(LspStartError::timed_out(limit)))
                }
            };
            let failed = result.is_err();
            if let Some(server) = server.upgrade() {
                server.finish_start(number, result);
            }
            drop(guard);
            if failed && let Some(process) = process {
                let stderr = process.stderr_tail();
                let lines = stderr.lines().take(MAX_STDERR_LINES);
                lines.for_each(|line| context.log.log_line(&plan.config.name, line));
                process.terminate(FAILED_START_KILL_TIMEOUT).await;
            }
        });
    }

    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Records the result of a start. Ignores starts whose number is not `start_number`.
    fn finish_start(self: &Arc<Self>, number: u64, result: Result<LspClient, LspStartError>) {
        let exchanged = self.start_number.compare_exchange(
            number,
            number + 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if exchanged.is_err() {
            return;
        }
        match result {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *lock(&self.connection) = Some(Arc::clone(&connection));
                lock(&self.health).mark_started(self.context.elapsed());
                self.mark_used();
                self.spawn_task(monitor_server(
                    Arc::downgrade(self),
                    connection,
                    Arc::clone(&self.context),
                ));
            }
            Err(LspStartError::NotInstalled) => {
                self.context.mark_missing(&self.plan.config, &self.plan.root);
                lock(&self.health).reset();
            }
            Err(LspStartError::Failed(reason)) => {
                self.context.log.log_line(&self.config().name, &format!("not started: {reason}"));
                lock(&self.health).mark_failed(self.context.elapsed(), reason);
            }
        }
        self.notify_waiters();
    }

    /// Removes the connection if it is still this one.
    fn detach_connection(
        &self,
        expected: &Arc<LspClient>,
        update: impl FnOnce(&mut ProcessHealth),
    ) -> bool {
        let mut connection = lock(&self.connection);
        let is_expected =
            connection.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, expected));
        if is_expected {
            *connection = None;
            update(&mut lock(&self.health));
        }
        is_expected
    }

    /// Stops the server until its next use.
    pub(crate) fn suspend(self: &Arc<Self>) {
        // Invalidates a start under way.
        self.start_number.fetch_add(1, Ordering::Relaxed);
        lock(&self.cancel_start).cancel();
        let connection = lock(&self.connection).take();
        lock(&self.health).reset();
        self.notify_waiters();
        if let Some(connection) = connection {
            self.spawn_task(async move { connection.shut_down().await });
        }
    }

    /// Stops the server for good. No process of it runs when this returns.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let connection = lock(&self.connection).take();
        lock(&self.health).reset();
        self.notify_waiters();
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let shutdown = async {
            if let Some(connection) = connection {
                connection.shut_down().await;
            }
            while tasks.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown).await;
    }
}

/// Monitors a running server: exit, memory and idle time.
async fn monitor_server(
    server: Weak<LspServer>,
    connection: Arc<LspClient>,
    context: Arc<PoolContext>,
) {
    let interval = MONITOR_INTERVAL.min(context.timeouts.idle / 2).max(Duration::from_millis(20));
    let mut last_check = Instant::now();
    loop {
        tokio::select! {
            () = connection.wait_until_closed() => {}
            () = tokio::time::sleep(interval) => {}
        }
        connection.log_stderr();
        let exceeded = match (connection.process(), last_check.elapsed() >= MONITOR_INTERVAL) {
            (Some(process), true) => {
                last_check = Instant::now();
                let Some(server) = server.upgrade() else { return };
                let max_megabytes = server.config().memory;
                drop(server);
                (process_memory(process).await >> 20 > max_megabytes).then_some(max_megabytes)
            }
            (Some(_), false) | (None, _) => None,
        };
        let Some(server) = server.upgrade() else { return };
        let is_idle = server.last_used().elapsed() >= context.timeouts.idle
            && !connection.has_pending_requests();
        let is_stopped = if connection.close_reason().is_some() {
            server.detect_lost_connection();
            true
        } else if let Some(max_megabytes) = exceeded {
            let reason = format!("it used more than {max_megabytes} MB of memory");
            let is_stopped = server.detach_connection(&connection, |health| {
                health.mark_failed(context.elapsed(), reason.clone())
            });
            connection.close(&reason);
            is_stopped
        } else if is_idle {
            server.detach_connection(&connection, ProcessHealth::reset)
        } else {
            false
        };
        if is_stopped {
            server.notify_waiters();
            drop(server);
            connection.shut_down().await;
            return;
        }
    }
}

/// Returns the memory of a process and its descendants. Adding it up takes a while, so it runs on a
/// blocking thread.
async fn process_memory(process: &Arc<ProcessHandle>) -> u64 {
    let process = Arc::clone(process);
    tokio::task::spawn_blocking(move || process.memory_bytes()).await.unwrap_or_default()
}
