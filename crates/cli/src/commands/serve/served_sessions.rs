//! The sessions of a server across its restarts: those that were open and under way go on, unless
//! they keep the server from running.

use crate::session_hub::{OpenSessions, SessionHub};
use crate::terminal::output;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_project::{ProjectError, ServedSession, ServerFiles};

/// A session that was open in this many starts of the server that crashed soon is not resumed: it
/// may be the one that crashes the process.
const MAX_FAILED_STARTS: u32 = 3;
/// Time after which a start of the server counts as a success.
const MIN_LIFETIME: Duration = Duration::from_secs(20);

/// Opens the sessions again that a server had open when it ended, and that were under way.
pub(super) async fn resume_sessions(
    hub: &Arc<SessionHub>,
    files: &ServerFiles,
) -> anyhow::Result<()> {
    let mut sessions = BTreeMap::new();
    for (session, ServedSession { failed_starts }) in files.read_sessions()? {
        if let Ok(true) = hub.is_unfinished(session).await {
            sessions.insert(session, ServedSession { failed_starts: failed_starts + 1 });
        }
    }
    // On the disk first: a session that crashes the process counts as a failed start.
    files.write_sessions(&sessions)?;
    for (session, ServedSession { failed_starts }) in sessions {
        if failed_starts > MAX_FAILED_STARTS {
            output::print_note(&format!(
                "session {session} is not resumed: the server crashed soon after its last \
                 {MAX_FAILED_STARTS} starts. To look at it: windlass attach --session {session}"
            ));
        } else if let Err(error) = hub.open(session, true).await {
            output::print_note(&format!("session {session} is not resumed: {error}"));
        }
    }
    Ok(())
}

impl SessionHub {
    /// Keeps the file of open sessions current until `stop` fires: the sessions that are closed then
    /// go on at the next start.
    pub(in crate::commands) fn follow_served_sessions(
        &self,
        files: ServerFiles,
        stop: CancellationToken,
    ) {
        let mut changes = self.subscribe_to_open_sessions();
        self.spawn_until_stopped(async move {
            let mut lifetime = Some(Box::pin(tokio::time::sleep(MIN_LIFETIME)));
            loop {
                let open = changes.borrow_and_update().clone();
                if let Err(error) = save_open(&files, &open, lifetime.is_none()) {
                    tracing::warn!("cannot save the open sessions: {error}");
                }
                let is_old = async {
                    match &mut lifetime {
                        Some(lifetime) => lifetime.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = is_old => lifetime = None,
                    Ok(()) = changes.changed() => {}
                    else => return,
                }
            }
        });
    }
}

/// Saves the sessions that are open. What is known about failed starts stays, unless the server
/// `is_stable`.
pub(super) fn save_open(
    files: &ServerFiles,
    open: &OpenSessions,
    is_stable: bool,
) -> Result<(), ProjectError> {
    let known = if is_stable { BTreeMap::new() } else { files.read_sessions()? };
    let entry = |session: &_| (*session, known.get(session).copied().unwrap_or_default());
    files.write_sessions(&open.keys().map(entry).collect())
}
