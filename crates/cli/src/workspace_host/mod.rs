//! The host of one folder: its config, the engines built from it, and changes of both while sessions
//! run.
//!
//! [`WorkspaceState`] never changes; when the config changes, [`WorkspaceHost`] replaces it. Start
//! reading at [`WorkspaceState::answer_request`].

mod attachments;
mod config_changes;
mod login;
mod model_discovery;
mod picker_lists;
mod report;
mod settings;
mod status;
mod status_line;
mod workspace_state;

pub(crate) use config_changes::{ConfigChange, ConfigChangeResult, SessionUpdate};
pub(crate) use settings::{FAVORITE_MODELS, save_tui_setting};
pub(crate) use status_line::run_status_line;
pub(crate) use workspace_state::{LastTrustReview, WorkspaceState, to_fault};

use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Mutex, RwLock, RwLockReadGuard, watch};
use windlass_protocol::Fault;

/// The config and the engines of one folder, as they are now.
pub(crate) struct WorkspaceHost {
    state: watch::Sender<Arc<WorkspaceState>>,
    /// Held while the config changes, so that changes come one after another.
    changes: Mutex<()>,
    /// Locked for writing while a new state takes effect in the open sessions.
    in_use: RwLock<()>,
}

impl WorkspaceHost {
    pub(crate) fn new(state: Arc<WorkspaceState>) -> WorkspaceHost {
        let (state, changes, in_use) =
            (watch::Sender::new(state), Mutex::default(), RwLock::default());
        WorkspaceHost { state, changes, in_use }
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> Arc<WorkspaceState> {
        Arc::clone(&self.state.borrow())
    }

    /// Keeps the state from being replaced. A session is opened under this guard, until a change of
    /// the state can find it: otherwise it would keep an engine of the state before.
    pub(crate) async fn keep_state(&self) -> RwLockReadGuard<'_, ()> {
        self.in_use.read().await
    }

    /// Returns a receiver of later states.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<WorkspaceState>> {
        self.state.subscribe()
    }

    /// Returns the folder, as sessions record it.
    pub(crate) fn name(&self) -> String {
        self.state.borrow().setup.workspace_name()
    }

    /// Returns true if this is the host of the folder, as sessions record it.
    pub(crate) fn is_host_of(&self, workspace: &str) -> bool {
        let state = self.state.borrow();
        state.setup.workspace_name() == workspace || state.setup.root == Path::new(workspace)
    }

    /// Makes a change of the config, and passes the result to `apply` before the next change
    /// begins.
    pub(crate) async fn change<T>(
        &self,
        change: ConfigChange,
        apply: impl AsyncFnOnce(ConfigChangeResult) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let _changing = self.changes.lock().await;
        let (state, result) = config_changes::make_change(self.state(), change).await?;
        let _replacing = self.in_use.write().await;
        self.state.send_replace(state);
        apply(result).await
    }
}
