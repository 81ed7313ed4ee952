//! Implements `windlass session prune`, `verify` and `backup`, and `windlass doctor --repair`.

use crate::CliExit;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use std::path::Path;
use std::time::Duration;
use windlass_protocol::display_text::{format_age, pluralize};
use windlass_protocol::{SessionId, SessionSummary};
use windlass_storage::{Log, SessionFilter, SqliteLog};

/// Sessions deleted at once for `--max-size`, before the size is measured again.
const DELETE_BATCH: usize = 20;

/// Deletes old sessions, and the oldest ones until the log is small enough.
pub(crate) async fn prune(
    log: &SqliteLog,
    older_than: Option<Duration>,
    max_size: Option<u64>,
    dry_run: bool,
) -> anyhow::Result<CliExit> {
    let mut sessions = log.list(&SessionFilter::default()).await?;
    // A subagent session is deleted with the session that started it.
    sessions.retain(|row| row.parent.is_none());
    sessions.sort_by_key(|row| row.changed_at);
    let now = crate::now_millis();
    let is_old = |row: &SessionSummary| {
        let age = Duration::from_millis(now.0.saturating_sub(row.changed_at.0));
        older_than.is_some_and(|limit| age >= limit)
    };
    let (old, rest): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_old);
    if dry_run {
        for row in &old {
            let age = format_age(row.changed_at, now);
            output::print_line(&format!("{}  {age:>8}  {}", row.session, row.title));
        }
        output::print_note(&format!("{} would be deleted", pluralize(old.len(), "session")));
        return Ok(CliExit::Done);
    }
    let before = log.stored_bytes().await?;
    let mut deleted = log.delete_sessions(&ids(&old)).await?;
    let mut rest = rest.chunks(DELETE_BATCH);
    while let Some(limit) = max_size
        && log.stored_bytes().await? > limit
        && let Some(batch) = rest.next()
    {
        deleted += log.delete_sessions(&ids(batch)).await?;
    }
    let freed = before.saturating_sub(log.stored_bytes().await?);
    output::print_note(&format!(
        "deleted {} ({:.1} MB)",
        pluralize(deleted, "session"),
        freed as f64 / 1e6
    ));
    Ok(CliExit::Done)
}

fn ids(sessions: &[SessionSummary]) -> Vec<SessionId> {
    sessions.iter().map(|row| row.session).collect()
}

/// Verifies one session, or all sessions and the structure of the database.
pub(crate) async fn verify(log: &SqliteLog, session: Option<SessionId>) -> anyhow::Result<CliExit> {
    let (sessions, mut faults) = match session {
        Some(session) => (vec![session], 0),
        None => {
            let found = log.check_structure().await?;
            for line in &found {
                output::print_line(&format!("database: {line}"));
            }
            (ids(&log.list(&SessionFilter::default()).await?), found.len())
        }
    };
    for session in &sessions {
        let damage = log.find_damage(*session).await?;
        for found in &damage {
            output::print_line(&format!("{session}: event {}: {}", found.seq, found.reason));
        }
        faults += damage.len();
    }
    if faults == 0 {
        output::print_note(&format!(
            "{} verified, no damage",
            pluralize(sessions.len(), "session")
        ));
        return Ok(CliExit::Done);
    }
    output::print_error(&format!(
        "{} found. Run `windlass doctor --repair` to save everything that can be read",
        pluralize(faults, "fault")
    ));
    Ok(CliExit::Failed)
}

/// Copies all sessions to a new folder.
pub(crate) async fn backup(log: &SqliteLog, folder: &Path) -> anyhow::Result<CliExit> {
    if LoadedProject::path_exists(folder) {
        bail!("{} already exists; name a new folder", folder.display());
    }
    log.backup(folder).await?;
    output::print_note(&format!("copied all sessions to {}", folder.display()));
    Ok(CliExit::Done)
}

/// Repairs the session log.
pub(crate) async fn repair_log() -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let report = windlass_storage::repair(&dirs.data).await?;
    output::print_note(&format!(
        "saved {} with {}; {} lost. The damaged database is in {}",
        pluralize(report.sessions, "session"),
        pluralize(report.facts as usize, "event"),
        report.lost_facts,
        report.damaged_copy.display()
    ));
    Ok(CliExit::Done)
}
