//! The process around a project: the receiver of its notes, its approvals, and the log of sessions.
//! They stay the same when the config of the project is loaded again.

use crate::terminal::output::ProjectNotes;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::OnceCell;
use windlass_permission::SharedApprovals;
use windlass_storage::{Log, SqliteLog, StorageError};

/// The parts of a process that do not depend on the config of its project. A clone shares the same
/// log and approvals.
#[derive(Clone, Default)]
pub(crate) struct ProjectContext {
    /// Receives messages for the user about the project.
    pub(crate) notes: ProjectNotes,
    /// The permanent approvals, which all policies share: one that is revoked while an engine is
    /// built ends there, too.
    pub(crate) approvals: SharedApprovals,
    /// The log of sessions, opened on first use: reading the config needs none.
    log: Arc<OnceCell<Arc<dyn Log>>>,
    /// API keys that take the place of those of the user.
    pub(crate) provider_keys: Arc<ProviderKeys>,
}

/// API keys by provider.
pub(crate) type ProviderKeys = BTreeMap<String, SecretString>;

impl ProjectContext {
    /// Returns a context with a log that is open already.
    pub(crate) fn with_log(log: Arc<dyn Log>) -> ProjectContext {
        ProjectContext { log: Arc::new(OnceCell::new_with(Some(log))), ..ProjectContext::default() }
    }

    /// Returns the same context with API keys that take the place of those of the user.
    pub(crate) fn with_provider_keys(self, keys: ProviderKeys) -> ProjectContext {
        ProjectContext { provider_keys: Arc::new(keys), ..self }
    }

    /// Returns the context of another project in the same process, whose notes go to `notes`.
    pub(crate) fn for_project(&self, notes: ProjectNotes) -> ProjectContext {
        let (log, provider_keys) = (Arc::clone(&self.log), Arc::clone(&self.provider_keys));
        ProjectContext { notes, approvals: SharedApprovals::default(), log, provider_keys }
    }

    /// Returns the log, which all engines of the process share. If none is open, it is the one in
    /// this folder.
    pub(crate) async fn log(&self, folder: &Path) -> Result<Arc<dyn Log>, StorageError> {
        let open = async || SqliteLog::open(folder).await.map(|log| Arc::new(log) as Arc<dyn Log>);
        self.log.get_or_try_init(open).await.cloned()
    }
}
