//! Lookup of sessions: by ID, by folder, and their transcripts.

use crate::setup::LoadedProject;
use anyhow::bail;
use windlass_engine::Engine;
use windlass_protocol::{QueryReply, SessionId, SessionQuery, SessionSummary, Transcript};

/// Fewer characters of a session ID would match sessions by accident.
const MIN_ID_CHARS: usize = 4;

/// Finds a session by its ID, or by at least `MIN_ID_CHARS` first or last characters of it.
pub(crate) async fn find_session(engine: &Engine, id: &str) -> anyhow::Result<SessionId> {
    if let Ok(session) = id.parse() {
        return Ok(session);
    }
    let QueryReply::Sessions { sessions } =
        engine.query(SessionQuery::Sessions { workspace: None }).await?
    else {
        bail!("cannot read the list of sessions");
    };
    match_session(&sessions, id)
}

/// Returns the session whose ID starts or ends with `id`.
pub(crate) fn match_session(sessions: &[SessionSummary], id: &str) -> anyhow::Result<SessionId> {
    if id.len() < MIN_ID_CHARS {
        bail!("`{id}` is too short; give at least {MIN_ID_CHARS} characters of the session ID");
    }
    let names = sessions.iter().map(|row| (row.session, row.session.to_string()));
    let matching: Vec<SessionId> = names
        .filter(|(_, name)| name.starts_with(id) || name.ends_with(id))
        .map(|(session, _)| session)
        .collect();
    match matching.as_slice() {
        [session] => Ok(*session),
        [] => bail!(
            "session {id} not found. Run `windlass session list --all` to see all \
                     sessions"
        ),
        _ => bail!("{} sessions start or end with {id}. Give more of the ID", matching.len()),
    }
}

/// Finds a session by its ID, or returns the last one of this folder if there is no ID.
pub(crate) async fn find_or_last_session(
    engine: &Engine,
    setup: &LoadedProject,
    id: Option<&str>,
) -> anyhow::Result<SessionId> {
    match id {
        Some(id) => find_session(engine, id).await,
        None => last_session(engine, setup).await,
    }
}

/// Returns the last session of this folder that the user worked in.
pub(crate) async fn last_session(
    engine: &Engine,
    setup: &LoadedProject,
) -> anyhow::Result<SessionId> {
    let workspace = Some(setup.workspace_name());
    let reply = engine.query(SessionQuery::Sessions { workspace }).await?;
    let QueryReply::Sessions { sessions } = reply else { bail!("cannot read the sessions") };
    // Subagent sessions are resumed by the model that started them.
    let session = sessions.iter().find(|row| row.parent.is_none()).map(|row| row.session);
    session.ok_or_else(|| anyhow::anyhow!("this folder has no session yet. `windlass` starts one"))
}

/// Loads the [`Transcript`] of a session.
pub(crate) async fn load_transcript(
    engine: &Engine,
    session: SessionId,
) -> anyhow::Result<Transcript> {
    let reply = engine.query(SessionQuery::Transcript { session }).await?;
    let QueryReply::Transcript { transcript } = reply else { bail!("cannot read the session") };
    Ok(*transcript)
}
