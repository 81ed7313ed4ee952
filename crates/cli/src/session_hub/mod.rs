//! The hub: the open sessions and the folders of this process, shared by all its front ends.
//!
//! A session is open once, however many clients watch it. The hub keeps the invariant that sessions
//! are opened, reopened and closed one after another, each under its own lock. Start reading at
//! [`SessionHub::request`].

mod checkout_sessions;
mod closed_session;
mod command_shell_steps;
mod fleet_sessions;
mod fleet_stream;
mod host_events;
mod open_session;
mod requests;
mod server_handover;
mod session_blobs;
mod session_tasks;
mod stored_sessions;

pub(crate) use open_session::OpenSession;

use crate::checkouts::Checkouts;
use crate::fleet_node::FleetNode;
use crate::setup::{LoadedProject, ProjectContext};
use crate::tenant_quota::TenantQuota;
use crate::terminal::output::ProjectNotes;
use crate::workspace_host::{LastTrustReview, WorkspaceHost, WorkspaceState};
use host_events::HostEvents;
use open_session::SessionPhase;
use session_blobs::ReadableBlobs;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_engine::{Engine, SessionHandle, SessionWatcher, UnattendedPolicy};
use windlass_project::{ConfigFlags, Dirs};
use windlass_protocol::display_text::workspace_name;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::HostStreamItem;
use windlass_protocol::{Fault, RequestError, SessionId};

/// Maximum number of open sessions, unless a server has another limit.
pub(crate) const MAX_OPEN_SESSIONS: usize = 64;
/// Age from which on a session may be closed to make room: until then, the client that opened it
/// may not watch it yet.
const MIN_AGE_TO_CLOSE: Duration = Duration::from_secs(60);
/// Maximum number of folders with a loaded config.
const MAX_WORKSPACES: usize = 16;

/// Time that running calls get to end when their session is closed. Ten seconds are left of those
/// that a service manager waits.
const CALLS_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of a hub.
pub(crate) struct HubOptions {
    /// Folders that clients may work in; `None` if there is one client, at this machine.
    pub(crate) roots: Option<Vec<PathBuf>>,
    /// Settings of the command line.
    pub(crate) flags: ConfigFlags,
    /// Agent of new sessions, if the user named one.
    pub(crate) agent: Option<String>,
    /// Treatment of questions while no user watches a session.
    pub(crate) unattended: UnattendedPolicy,
    /// Time after which an idle session without clients is closed.
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) max_open_sessions: usize,
    /// The places of open sessions, if other hubs share them.
    pub(crate) room: Option<Arc<Semaphore>>,
    /// The node of a fleet that this process is.
    pub(crate) fleet: Option<Arc<FleetNode>>,
    /// The limits of the tenant of a fleet.
    pub(crate) quota: Option<Arc<TenantQuota>>,
    /// The checkouts that sessions of a fleet work in.
    pub(crate) checkouts: Option<Arc<Checkouts>>,
}

/// The open sessions of a hub.
pub(crate) type OpenSessions = BTreeMap<SessionId, Arc<OpenSession>>;

/// The open sessions and the folders of this process.
pub(crate) struct SessionHub {
    /// The hub itself, for its tasks.
    own: Weak<SessionHub>,
    dirs: Dirs,
    context: ProjectContext,
    pub(crate) options: HubOptions,
    workspaces: tokio::sync::Mutex<HashMap<PathBuf, Arc<WorkspaceHost>>>,
    open: watch::Sender<OpenSessions>,
    /// The places of open sessions.
    room: Arc<Semaphore>,
    /// Held while a session is opened or closed.
    session_locks: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    events: Arc<HostEvents>,
    readable_blobs: Mutex<ReadableBlobs>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// True once no session may be opened any more.
    is_stopping: AtomicBool,
}

impl SessionHub {
    /// Creates a hub without folders. All its folders share the log of `context`.
    pub(crate) fn new(dirs: Dirs, context: ProjectContext, options: HubOptions) -> Arc<SessionHub> {
        Arc::new_cyclic(|own| SessionHub {
            own: own.clone(),
            dirs,
            context,
            room: options
                .room
                .clone()
                .unwrap_or_else(|| Arc::new(Semaphore::new(options.max_open_sessions))),
            options,
            workspaces: Default::default(),
            open: watch::Sender::default(),
            session_locks: Mutex::default(),
            events: Arc::new(HostEvents::new()),
            readable_blobs: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            is_stopping: AtomicBool::new(false),
        })
    }

    /// Loads the config of a folder that exists, unless it is loaded.
    pub(crate) async fn workspace(&self, root: &Path) -> Result<Arc<WorkspaceHost>, Fault> {
        let mut workspaces = self.workspaces.lock().await;
        if let Some(workspace) = workspaces.get(root) {
            return Ok(Arc::clone(workspace));
        }
        let is_project = |root: &&PathBuf| self.dirs.checkout_project(root).is_none();
        if workspaces.keys().filter(is_project).count() >= MAX_WORKSPACES {
            let message = format!("too many folders are open: {MAX_WORKSPACES}");
            return Err(Fault::Config { message });
        }
        let name = workspace_name(root);
        let events = Arc::clone(&self.events);
        let notes = ProjectNotes::new(move |text: String| {
            let text = text.strip_prefix("note: ").map(str::to_owned).unwrap_or(text);
            events.send(HostStreamItem::Notice { workspace: name.clone(), text });
        });
        let state = WorkspaceState::load_at(
            (self.dirs.clone(), root.to_owned()),
            self.options.flags.clone(),
            self.options.agent.clone(),
            Arc::<LastTrustReview>::default(),
            self.context.for_project(notes),
        );
        let state = state.map_err(|error| crate::workspace_host::to_fault(&error))?;
        let workspace = Arc::new(WorkspaceHost::new(Arc::new(state)));
        workspaces.insert(root.to_owned(), Arc::clone(&workspace));
        self.follow_servers(&workspace);
        Ok(workspace)
    }

    /// Returns the host of the folder that a request names, or of the first root.
    async fn named_workspace(
        &self,
        folder: Option<&str>,
    ) -> Result<Arc<WorkspaceHost>, RequestError> {
        let roots = self.options.roots.as_deref().unwrap_or_default();
        let not_found = || RequestError::NotFound {
            text: "this folder is not one that the server works in".to_owned(),
        };
        let root = match (folder, roots.first()) {
            (Some(folder), _) => {
                LoadedProject::real_folder(Path::new(folder)).ok_or_else(not_found)?
            }
            (None, Some(first)) => first.clone(),
            (None, None) => {
                // The only client works in the only folder.
                let workspaces = self.workspaces.lock().await;
                return workspaces.values().next().cloned().ok_or_else(not_found);
            }
        };
        if self.options.roots.is_some() && !roots.contains(&root) {
            return Err(not_found());
        }
        Ok(self.workspace(&root).await?)
    }

    /// Sends a notice to the clients that work in a folder, or to all if it is empty.
    pub(crate) fn send_notice(&self, workspace: String, text: String) {
        self.events.send(HostStreamItem::Notice { workspace, text });
    }

    /// Returns the notices so far.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.events.notices()
    }

    /// Returns true if clients may see sessions of this folder.
    fn is_visible(&self, workspace: &str) -> bool {
        let workspace = workspace_name(self.dirs.project_of(Path::new(workspace)));
        let is_root = |root: &PathBuf| workspace_name(root) == workspace;
        self.options.roots.as_ref().is_none_or(|roots| roots.iter().any(is_root))
    }

    /// Returns an open session.
    pub(crate) fn open_session(&self, session: SessionId) -> Option<Arc<OpenSession>> {
        self.open.borrow().get(&session).cloned()
    }

    /// Returns a receiver of the open sessions that reports changes.
    pub(crate) fn subscribe_to_open_sessions(&self) -> watch::Receiver<OpenSessions> {
        self.open.subscribe()
    }

    /// Runs a task until it ends or the hub shuts down.
    pub(crate) fn spawn_until_stopped(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move { stop.run_until_cancelled(task).await });
    }

    /// Returns the session that may be closed and has been idle for the longest time, and since when.
    pub(crate) fn longest_idle(&self) -> Option<(Instant, SessionId)> {
        let closable = self.closable_sessions().into_iter();
        closable.map(|open| (*lock(&open.idle_since), open.session)).min()
    }

    /// Returns the number of open sessions.
    pub(crate) fn open_count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Returns the number of sessions that may be closed to make room.
    pub(crate) fn closable_count(&self) -> usize {
        self.closable_sessions().len()
    }

    /// Returns the sessions that may be closed to make room.
    fn closable_sessions(&self) -> Vec<Arc<OpenSession>> {
        let may_close = |open: &Arc<OpenSession>| {
            open.is_idle() && open.opened_at.elapsed() >= MIN_AGE_TO_CLOSE
        };
        self.open_sessions().into_iter().filter(may_close).collect()
    }

    fn open_sessions(&self) -> Vec<Arc<OpenSession>> {
        self.open.borrow().values().cloned().collect()
    }

    /// Returns the lock that is held while the session is opened or closed.
    fn session_lock(&self, session: SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = lock(&self.session_locks);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(&session).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(session, Arc::downgrade(&lock));
        lock
    }

    /// Reserves the place of another open session. If there is none, closes the session that has
    /// been idle for the longest time.
    async fn reserve_room(&self) -> Result<OwnedSemaphorePermit, RequestError> {
        loop {
            if self.is_stopping.load(Ordering::SeqCst) {
                let text = "the server is stopping".to_owned();
                return Err(RequestError::Unavailable { text });
            }
            let quota = self.options.quota.as_ref();
            let tenant_limit =
                quota.and_then(|quota| quota.session_limit_reached(self.open_count()));
            if tenant_limit.is_none()
                && let Ok(room) = Arc::clone(&self.room).try_acquire_owned()
            {
                return Ok(room);
            }
            let idle = self.closable_sessions().into_iter();
            let Some(idle) = idle.min_by_key(|open| *lock(&open.idle_since)) else {
                let text = match tenant_limit {
                    Some(limit) => format!(
                        "the tenant has {limit} sessions open, which is its limit. Close one first"
                    ),
                    None => {
                        let limit = self.options.max_open_sessions;
                        format!("too many sessions are open: {limit}. Close one first")
                    }
                };
                return Err(RequestError::TooMany { text, retry_after_ms: 10_000 });
            };
            self.close_if_idle(idle.session).await;
        }
    }

    /// Adds a session that was just opened.
    fn insert(
        &self,
        workspace: Arc<WorkspaceHost>,
        (handle, watcher): (SessionHandle, SessionWatcher),
        room: OwnedSemaphorePermit,
    ) -> Arc<OpenSession> {
        let is_in_fleet = self.options.fleet.is_some();
        let open = Arc::new(OpenSession::new(workspace, handle, room, is_in_fleet));
        self.open.send_modify(|all| drop(all.insert(open.session, Arc::clone(&open))));
        self.follow_session(&open, watcher);
        open
    }

    /// Closes a session, if it is open. A turn under way resumes when it is opened again.
    pub(crate) async fn close_session(&self, session: SessionId) {
        self.close_after_calls(session, self.calls_timeout()).await;
    }

    /// Returns the time that running calls get to end.
    fn calls_timeout(&self) -> Duration {
        // A user at the terminal does not wait for a command when the terminal UI ends.
        match self.options.roots {
            Some(_) => CALLS_TIMEOUT,
            None => Duration::ZERO,
        }
    }

    /// Closes a session when its running calls have ended, or when `limit` has passed.
    async fn close_after_calls(&self, session: SessionId, limit: Duration) {
        let lock = self.session_lock(session);
        let _closing = lock.lock().await;
        self.close_locked(session, None, limit).await;
    }

    /// Closes an idle session without clients.
    pub(crate) async fn close_if_idle(&self, session: SessionId) {
        let lock = self.session_lock(session);
        let _closing = lock.lock().await;
        if self.open_session(session).is_some_and(|open| open.is_idle()) {
            self.close_locked(session, None, Duration::ZERO).await;
        }
    }

    async fn close_locked(&self, session: SessionId, fault: Option<Fault>, limit: Duration) {
        let Some(open) = self.open_session(session) else { return };
        if let Some(handle) = open.handle() {
            open.phase.send_replace(SessionPhase::Suspended);
            // The log records how the session ended.
            let _ = handle.close_after_calls(limit).await;
        }
        self.remove(&open, fault);
    }

    /// Removes a session whose loop has ended.
    fn remove(&self, open: &OpenSession, fault: Option<Fault>) {
        self.open.send_modify(|all| {
            // It may have been opened again.
            if all.get(&open.session).is_some_and(|current| std::ptr::eq(&**current, open)) {
                all.remove(&open.session);
            }
        });
        open.end(fault);
        self.forget_checkout(open);
        self.events.send(HostStreamItem::SessionClosed { session: open.session });
    }

    /// Opens a session again with another engine.
    async fn reopen(&self, open: &Arc<OpenSession>, engine: &Engine) -> Result<(), Fault> {
        let lock = self.session_lock(open.session);
        let _reopening = lock.lock().await;
        let Some(handle) = open.handle() else { return Ok(()) };
        open.phase.send_replace(SessionPhase::Suspended);
        let _ = handle.close().await;
        if handle.activity().borrow().head == 0 {
            // Nothing of it is stored.
            let message = "the config of the folder changed before the first prompt. Start the \
                           session again";
            self.remove(open, Some(Fault::Refused { message: message.to_owned() }));
            return Ok(());
        }
        self.resume_suspended(open, engine).await
    }

    /// Opens a suspended session again, under its lock.
    async fn resume_suspended(
        &self,
        open: &Arc<OpenSession>,
        engine: &Engine,
    ) -> Result<(), Fault> {
        match engine.open(open.session).await {
            Ok((handle, watcher)) => {
                self.follow_telemetry(watcher);
                open.phase.send_replace(SessionPhase::Running(handle));
                Ok(())
            }
            Err(fault) => {
                self.remove(open, Some(fault.clone()));
                Err(fault)
            }
        }
    }

    /// Returns an engine as this hub uses it.
    fn with_policy(&self, engine: &Engine) -> Engine {
        let mut engine = engine.with_unattended(self.options.unattended.clone());
        if let Some(quota) = &self.options.quota {
            engine = engine.with_shared_quota(Arc::<TenantQuota>::clone(quota));
        }
        match self.checkout_saver() {
            Some(before_release) => engine.with_before_release(before_release),
            None => engine,
        }
    }

    /// Closes all sessions, within a time limit, and ends all tasks. Sessions that do not end in
    /// time resume when they are opened again.
    pub(crate) async fn shut_down(&self, limit: Duration) {
        self.shut_down_after_calls(self.calls_timeout(), limit).await;
    }

    /// Like [`SessionHub::shut_down`], without waiting for calls that are running.
    pub(crate) async fn shut_down_at_once(&self, limit: Duration) {
        self.shut_down_after_calls(Duration::ZERO, limit).await;
    }

    async fn shut_down_after_calls(&self, calls_timeout: Duration, limit: Duration) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + limit;
        let closing = async {
            let closing =
                |open: Arc<OpenSession>| self.close_after_calls(open.session, calls_timeout);
            futures_util::future::join_all(self.open_sessions().into_iter().map(closing)).await;
        };
        let _ = tokio::time::timeout_at(deadline, closing).await;
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout_at(deadline, self.tasks.wait()).await;
    }
}
