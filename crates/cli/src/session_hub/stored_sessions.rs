//! Sessions as they are stored, open or not: their folders, copies and deletion.

use super::{OpenSession, SessionHub};
use crate::workspace_host::WorkspaceHost;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::ForkPoint;
use windlass_protocol::display_text::workspace_name;
use windlass_protocol::{
    Fact, FactRecord, Fault, QueryReply, RequestError, SessionId, SessionQuery,
};

/// The place of a stored session.
struct StoredPlace {
    folder: PathBuf,
    is_subagent: bool,
}

impl SessionHub {
    /// Returns true if the last turn of a session was cut off, or prompts wait.
    pub(crate) async fn is_unfinished(&self, session: SessionId) -> Result<bool, RequestError> {
        let engine = self.workspace_of(session).await?.state().inspect_engine().await?;
        let query = SessionQuery::Transcript { session };
        let QueryReply::Transcript { transcript } = engine.query(query).await? else {
            return Ok(false);
        };
        Ok(transcript.last_turn_end.is_none() || !transcript.queued_prompts.is_empty())
    }

    /// Returns the host of the folder that a session works in. For a checkout, unless it is open, it
    /// is the host of the project.
    pub(super) async fn workspace_of(
        &self,
        session: SessionId,
    ) -> Result<Arc<WorkspaceHost>, RequestError> {
        if let Some(open) = self.open_session(session) {
            return Ok(Arc::clone(&open.workspace));
        }
        let folder = self.folder_of(session).await?;
        let any = self.named_workspace(None).await?;
        let project = workspace_name(self.dirs.project_of(&folder));
        match &self.options.roots {
            _ if any.is_host_of(&project) => Ok(any),
            // The engine says that the session belongs to another folder.
            None => Ok(any),
            Some(_) => self.named_workspace(Some(&project)).await,
        }
    }

    /// Returns the place of a session, as its first fact states it.
    async fn place_of(&self, session: SessionId) -> Result<StoredPlace, RequestError> {
        let not_found =
            || RequestError::NotFound { text: format!("session {session} was not found") };
        let any = self.named_workspace(None).await?;
        let query = SessionQuery::Events { session, after: 0, limit: Some(1) };
        let first = any.state().inspect_engine().await?.query(query).await;
        let events = match first {
            Ok(QueryReply::Events { events }) => events,
            Err(Fault::Storage { message } | Fault::SessionMoved { message }) => {
                return Err(RequestError::Unavailable { text: message });
            }
            Ok(_) | Err(_) => return Err(not_found()),
        };
        match events.first() {
            Some(FactRecord { fact: Fact::SessionOpened { workspace, parent, .. }, .. }) => {
                match any.is_host_of(workspace) || self.is_visible(workspace) {
                    true => Ok(StoredPlace {
                        folder: PathBuf::from(workspace),
                        is_subagent: parent.is_some(),
                    }),
                    false => Err(not_found()),
                }
            }
            // The first fact is lost: the session can be read, wherever it worked.
            _ => {
                let folder = any.state().setup.root.clone();
                Ok(StoredPlace { folder, is_subagent: false })
            }
        }
    }

    /// Returns the folder that a session works in.
    pub(super) async fn folder_of(&self, session: SessionId) -> Result<PathBuf, RequestError> {
        if let Some(open) = self.open_session(session) {
            return Ok(open.workspace.state().setup.root.clone());
        }
        Ok(self.place_of(session).await?.folder)
    }

    /// Returns the checkout of a session that is to be opened, if it has one. That of a subagent is
    /// the one of its parent, which works in it.
    pub(super) async fn checkout_to_open(
        &self,
        session: SessionId,
    ) -> Result<Option<PathBuf>, RequestError> {
        let StoredPlace { folder, is_subagent } = self.place_of(session).await?;
        if self.dirs.checkout_project(&folder).is_none() {
            return Ok(None);
        }
        if is_subagent {
            let message = "the session of a subagent with a checkout can only be read";
            return Err(Fault::Refused { message: message.to_owned() }.into());
        }
        Ok(Some(folder))
    }

    /// Copies a session, and opens the copy.
    pub(super) async fn fork_session(
        &self,
        session: SessionId,
        point: ForkPoint,
    ) -> Result<Arc<OpenSession>, RequestError> {
        let folder = self.folder_of(session).await?;
        if self.dirs.checkout_project(&folder).is_some() {
            let message = "sessions with a checkout of their own cannot be forked";
            return Err(Fault::Refused { message: message.to_owned() }.into());
        }
        let workspace = self.workspace_of(session).await?;
        let fork = workspace.state().inspect_engine().await?.fork(session, point).await?;
        self.open(fork, false).await
    }

    /// Closes a session, and deletes it with its checkout.
    pub(super) async fn delete_session(&self, session: SessionId) -> Result<(), RequestError> {
        let StoredPlace { folder, is_subagent } = self.place_of(session).await?;
        let workspace = self.workspace_of(session).await?;
        let lock = self.session_lock(session);
        let _deleting = lock.lock().await;
        self.close_locked(session, None, Duration::ZERO).await;
        workspace.state().inspect_engine().await?.delete(session).await?;
        if !is_subagent {
            self.remove_checkout(&folder).await;
        }
        Ok(())
    }
}
