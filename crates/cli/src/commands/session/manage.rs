//! Implements `windlass session fork`, `rename`, `search`, `export`, `import` and `share`.

use crate::session_lookup::{find_session, load_transcript};
use crate::setup::LoadedProject;
use crate::terminal::output;
use crate::{CliExit, session_export};
use anyhow::bail;
use serde_json::json;
use std::io::Write;
use windlass_engine::{Engine, ExportImportReport, ForkPoint};
use windlass_protocol::display_text::format_age;
use windlass_protocol::{QueryReply, SessionId, SessionQuery, SessionSearchHit};

/// Starts a session from a copy of another one.
pub(crate) async fn fork_session(
    engine: &Engine,
    session: SessionId,
    at: Option<ForkPoint>,
    json: bool,
) -> anyhow::Result<CliExit> {
    let fork = engine.fork(session, at.unwrap_or(ForkPoint::LastTurn)).await?;
    if json {
        output::print_json(&json!({ "session": fork, "from": session }).to_string());
    } else {
        output::print_line(&fork.to_string());
        output::print_note(&format!("To resume the copy: `windlass run --session {fork}`"));
    }
    Ok(CliExit::Done)
}

/// Changes the title of a session.
pub(crate) async fn rename_session(
    engine: &Engine,
    id: &str,
    title: &str,
) -> anyhow::Result<CliExit> {
    let session = find_session(engine, id).await?;
    let title = engine.rename(session, title).await?;
    output::print_note(&format!("renamed session {session} to {title}"));
    Ok(CliExit::Done)
}

/// Searches past sessions for words.
pub(crate) async fn search_sessions(
    engine: &Engine,
    words: &[String],
    workspace: Option<String>,
    json: bool,
) -> anyhow::Result<CliExit> {
    let all = workspace.is_none();
    let query = SessionQuery::SearchSessions { words: words.join(" "), workspace };
    let QueryReply::SearchHits { hits } = engine.query(query).await? else {
        bail!("cannot search the sessions");
    };
    if json {
        output::print_json(&serde_json::to_string_pretty(&hits)?);
        return Ok(CliExit::Done);
    }
    if hits.is_empty() {
        let hint = if all { "" } else { "; use --all to search all folders" };
        output::print_note(&format!("no matching sessions{hint}"));
    }
    let now = crate::now_millis();
    for SessionSearchHit { session, title, workspace, at, snippet, .. } in hits {
        let folder = if all { format!("  {workspace}") } else { String::new() };
        output::print_line(&format!(
            "{session}  {:>8}  {title}{folder}\n    {snippet}",
            format_age(at, now)
        ));
    }
    Ok(CliExit::Done)
}

/// Exports a session to a file, or its log to standard output.
pub(crate) async fn export_session(
    engine: &Engine,
    session: SessionId,
    file: Option<&str>,
) -> anyhow::Result<CliExit> {
    let report = match file {
        None => {
            let mut print = |line: &str| {
                output::print_json(line);
                Ok(())
            };
            Some(session_export::export_log(engine, session, &mut print).await?)
        }
        Some(file) => {
            let (path, report) = session_export::export_to_file(engine, session, file).await?;
            output::print_note(&format!("wrote session {session} to {path}"));
            report
        }
    };
    report.iter().for_each(note_missing_blobs);
    Ok(CliExit::Done)
}

/// Imports a session from a file.
pub(crate) async fn import_session(
    engine: &Engine,
    file: &str,
    json: bool,
) -> anyhow::Result<CliExit> {
    let report = engine.import(&mut *LoadedProject::open_reader(file)?).await?;
    let ExportImportReport { session, facts, dropped_facts, missing_blobs } = report;
    if json {
        let summary = json!({
            "session": session, "facts": facts, "dropped": dropped_facts, "missing": missing_blobs
        });
        output::print_json(&summary.to_string());
    } else {
        output::print_line(&session.to_string());
    }
    if dropped_facts > 0 {
        output::print_note(&format!(
            "skipped everything after the last finished turn ({dropped_facts} events)"
        ));
    }
    note_missing_blobs(&report);
    Ok(CliExit::Done)
}

fn note_missing_blobs(report: &ExportImportReport) {
    if report.missing_blobs > 0 {
        output::print_note(&format!(
            "{} outputs or files are missing: they are no longer stored, or contain an API key",
            report.missing_blobs
        ));
    }
}

/// Writes a session as an HTML page.
pub(crate) async fn share_session(
    engine: &Engine,
    session: SessionId,
    file: Option<&str>,
) -> anyhow::Result<CliExit> {
    let page = session_export::render_html(&load_transcript(engine, session).await?);
    match file {
        None => output::print_raw(&page),
        Some(path) => {
            let mut file = LoadedProject::create_private_file(path)?;
            file.write_all(page.as_bytes())?;
            output::print_note(&format!("wrote session {session} to {path}"));
        }
    }
    output::print_note(
        "note: the page contains the whole conversation, including command output. Review it \
         before you share it",
    );
    Ok(CliExit::Done)
}
