//! Sessions that work in a checkout of their own: it is restored when this node claims the session,
//! and saved when a turn ends, once a minute during a turn, and before the session is released.

use super::{OpenSession, SessionHub};
use crate::checkouts::{Checkouts, SavePoint};
use crate::fleet_node::{FleetNode, storage_error};
use crate::now_millis;
use futures_util::FutureExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::{BeforeRelease, SessionHandle, UnfinishedTurn};
use windlass_protocol::{Fault, LogSeq, RequestError, SessionId};
use windlass_storage::{Log, ReleaseState, SessionClaim};

/// Limit for the checkout of a session to be saved before the session is released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two saves while a turn is under way, and between two attempts.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

impl SessionHub {
    /// Returns the checkouts and the node, if the folder is a checkout.
    fn checkouts_of(&self, folder: &Path) -> Option<(&Arc<Checkouts>, &Arc<FleetNode>)> {
        self.dirs.checkout_project(folder)?;
        Some((self.options.checkouts.as_ref()?, self.options.fleet.as_ref()?))
    }

    /// Returns the folder of an open session, if it is a checkout.
    fn checkout_of(&self, open: &OpenSession) -> Option<PathBuf> {
        let folder = open.workspace.state().setup.root.clone();
        self.checkouts_of(&folder).map(|_| folder)
    }

    /// Creates a checkout for a session that starts in a folder, if the folder is a project with
    /// checkouts.
    pub(super) async fn create_checkout(
        &self,
        project: &Path,
    ) -> Result<Option<PathBuf>, RequestError> {
        let Some(checkouts) = &self.options.checkouts else { return Ok(None) };
        let id = windlass_engine::new_op_id().0.to_string();
        let created = checkouts.create(project, &id).await;
        created.map(Some).map_err(|error| {
            let message = format!("no checkout could be made for the session: {error:#}");
            Fault::Refused { message }.into()
        })
    }

    /// Claims a session that works in a checkout, unless that has happened, restores the checkout and
    /// opens the session.
    pub(super) async fn open_in_checkout(
        &self,
        (session, folder): (SessionId, &Path),
        claim: Option<SessionClaim>,
        unfinished_turn: UnfinishedTurn,
    ) -> Result<Arc<OpenSession>, RequestError> {
        let not_found =
            || RequestError::NotFound { text: "the folder has no checkouts".to_owned() };
        let (checkouts, fleet) = self.checkouts_of(folder).ok_or_else(not_found)?;
        let lock = self.session_lock(session);
        let _opening = lock.lock().await;
        if let Some(open) = self.open_session(session) {
            match claim {
                None => return Ok(open),
                Some(_) => self.remove_stale(&open),
            }
        }
        let (room, claim) = match (self.reserve_room().await, claim) {
            (Ok(room), Some(claim)) => (room, claim),
            (Ok(room), None) => (room, fleet.log.claim(session).await.map_err(storage_error)?),
            (Err(error), claim) => {
                if let Some(claim) = claim {
                    // Another node may have room.
                    let _ = fleet.log.release(claim, ReleaseState::Due).await;
                }
                return Err(error);
            }
        };
        let note = match checkouts.restore(folder, session, &fleet.shared_log()).await {
            Ok(note) => note,
            Err(error) => {
                let _ = fleet.log.release(claim, ReleaseState::Failed).await;
                let message =
                    format!("the files of session {session} were not restored: {error:#}");
                return Err(Fault::Refused { message }.into());
            }
        };
        let workspace = self.workspace(folder).await?;
        let _state = workspace.keep_state().await;
        if self.is_stopping.load(Ordering::SeqCst) {
            // Meanwhile, it began to shut down, and closes no session that is opened now.
            let _ = fleet.log.release(claim, ReleaseState::Due).await;
            return Err(RequestError::Unavailable { text: "the server is stopping".to_owned() });
        }
        let engine = self.with_policy(&*workspace.state().best_engine().await?);
        let opened = engine.open_claimed(claim, unfinished_turn, note).await?;
        Ok(self.insert(Arc::clone(&workspace), opened, room))
    }

    /// Ends an open session of this process whose claim is gone.
    pub(super) fn remove_stale(&self, stale: &OpenSession) {
        let message = format!("session {} was claimed again", stale.session);
        self.remove(stale, Some(Fault::SessionMoved { message }));
    }

    /// Returns the callback that saves checkouts when their sessions end.
    pub(super) fn checkout_saver(&self) -> Option<BeforeRelease> {
        self.options.checkouts.as_ref()?;
        let hub = self.own.clone();
        Some(Arc::new(move |session, head| {
            let hub = hub.clone();
            async move {
                let Some(hub) = hub.upgrade() else { return };
                let Some(open) = hub.open_session(session) else { return };
                let saving = async {
                    match (head, hub.checkout_of(&open)) {
                        // Nothing of the session is stored.
                        (0, Some(folder)) => hub.remove_checkout(&folder).await,
                        _ => drop(hub.save_checkout(&open, head).await),
                    }
                };
                if tokio::time::timeout(RELEASE_TIMEOUT, saving).await.is_err() {
                    tracing::warn!(%session, "a checkout was not saved in time");
                }
            }
            .boxed()
        }))
    }

    /// Saves the checkout of a session, if it has one.
    pub(super) async fn save_checkout(&self, open: &OpenSession, head: LogSeq) -> bool {
        let Some(folder) = self.checkout_of(open) else { return true };
        let Some((checkouts, fleet)) = self.checkouts_of(&folder) else { return true };
        let _saving = open.saving.lock().await;
        let point = SavePoint { session: open.session, head, at: now_millis() };
        let is_still_ours = async || matches!(fleet.log.holder(open.session).await, Ok(None));
        let saved = checkouts.save(&folder, point, is_still_ours).await;
        if let Err(error) = &saved {
            let text = format!("The files of the session were not saved: {error:#}");
            tracing::warn!(session = %open.session, "{text}");
            self.send_notice(open.workspace.name(), text);
        }
        saved.is_ok()
    }

    /// Saves the checkout of a session while its loop runs.
    pub(super) async fn keep_checkout_saved(
        self: Arc<Self>,
        open: Arc<OpenSession>,
        handle: &SessionHandle,
    ) {
        let folder = self.checkout_of(&open);
        let Some((folder, (checkouts, _))) =
            folder.as_ref().and_then(|folder| Some((folder, self.checkouts_of(folder)?)))
        else {
            return;
        };
        {
            let _saving = open.saving.lock().await;
            if let Err(error) = checkouts.add_epoch(folder, handle.epoch) {
                tracing::warn!(%error, "the claim of a checkout was not noted");
            }
        }
        let (mut activity, mut saved_at) = (handle.activity(), Instant::now());
        // Files change in turns only.
        let (mut has_changed, mut has_failed) = (false, false);
        loop {
            let (is_busy, head) = {
                let activity = activity.borrow_and_update();
                (activity.is_busy, activity.head)
            };
            let next_save = saved_at + SAVE_INTERVAL;
            let is_early = is_busy || has_failed;
            if has_changed && (!is_early || Instant::now() >= next_save) {
                // It is not cut off when the session ends.
                let (hub, open) = (Arc::clone(&self), Arc::clone(&open));
                let saving = self.tasks.spawn(async move { hub.save_checkout(&open, head).await });
                has_failed = !saving.await.unwrap_or(false);
                (has_changed, saved_at) = (has_failed, Instant::now());
                continue;
            }
            has_changed |= is_busy;
            tokio::select! {
                changed = activity.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep_until(next_save), if has_changed => {}
            }
        }
    }

    /// Forgets the config of a checkout whose session is closed.
    pub(super) fn forget_checkout(&self, open: &OpenSession) {
        let (Some(folder), Some(hub)) = (self.checkout_of(open), self.own.upgrade()) else {
            return;
        };
        self.tasks.spawn(async move {
            let mut workspaces = hub.workspaces.lock().await;
            let is_open = |other: &Arc<OpenSession>| other.workspace.state().setup.root == folder;
            if !hub.open_sessions().iter().any(is_open) {
                workspaces.remove(&folder);
            }
        });
    }

    /// Removes the checkout of a session that was deleted.
    pub(super) async fn remove_checkout(&self, folder: &Path) {
        let Some((checkouts, _)) = self.checkouts_of(folder) else { return };
        if let Err(error) = checkouts.remove(folder).await {
            tracing::warn!(%error, "a checkout was not removed");
        }
    }
}
