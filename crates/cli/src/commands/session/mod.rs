//! Implements `windlass session …`: lists, shows and manages sessions.

pub(crate) mod maintenance;
pub(crate) mod manage;

use crate::CliExit;
use crate::args;
use crate::commands::run::{RunOptions, run_turn, summarize_arguments, summarize_outcome};
use crate::session_lookup::{find_or_last_session, find_session, load_transcript};
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use windlass_engine::Engine;
use windlass_project::ConfigFlags;
use windlass_protocol::display_text::format_age;
use windlass_protocol::{
    DiffDirection, LogSeq, MessagePart, MessageRole, QueryReply, SessionId, SessionOp,
    SessionQuery, SessionSummary, Transcript, TurnEndReason, UndoScope,
};
use windlass_storage::SqliteLog;

/// Runs a `windlass session` command.
pub(crate) async fn run_session(command: args::SessionCommand) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let engine = setup.build_inspect_engine().await?;
    match command {
        args::SessionCommand::List { all, json } => {
            let workspace = if all { None } else { Some(setup.workspace_name()) };
            let QueryReply::Sessions { mut sessions } =
                engine.query(SessionQuery::Sessions { workspace }).await?
            else {
                bail!("cannot read the list of sessions");
            };
            sessions.retain(|row| all || row.parent.is_none());
            if json {
                output::print_json(&serde_json::to_string_pretty(&sessions)?);
            } else {
                print_sessions(&sessions, all);
            }
        }
        args::SessionCommand::Search { words, all, json } => {
            let workspace = if all { None } else { Some(setup.workspace_name()) };
            return manage::search_sessions(&engine, &words, workspace, json).await;
        }
        args::SessionCommand::Show { id, json } => {
            setup.register_keys();
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            let transcript = load_transcript(&engine, session).await?;
            if json {
                output::print_json(&serde_json::to_string_pretty(&transcript)?);
            } else {
                print_session(session, &transcript);
            }
        }
        args::SessionCommand::Fork { id, at, json } => {
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            return manage::fork_session(&engine, session, at, json).await;
        }
        args::SessionCommand::Rename { id, title } => {
            return manage::rename_session(&engine, &id, &title).await;
        }
        args::SessionCommand::Export { id, file } => {
            setup.register_keys();
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            return manage::export_session(&engine, session, file.as_deref()).await;
        }
        args::SessionCommand::Import { file, json } => {
            return manage::import_session(&engine, &file, json).await;
        }
        args::SessionCommand::Share { id, file } => {
            setup.register_keys();
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            return manage::share_session(&engine, session, file.as_deref()).await;
        }
        args::SessionCommand::Diff { id } => {
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            let (_, diff) =
                load_changes(&engine, session, UndoScope::All, DiffDirection::Forward).await?;
            match diff.trim_end() {
                "" => output::print_note("no changes of this session remain in the files"),
                diff => output::print_line(diff),
            }
        }
        args::SessionCommand::Undo { id, all, yes } => {
            let scope = if all { UndoScope::All } else { UndoScope::LastTurn };
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            return undo_changes(&engine, session, scope, UndoConsent::from_flag(yes)).await;
        }
        args::SessionCommand::Redo { id, yes } => {
            let session = find_or_last_session(&engine, &setup, id.as_deref()).await?;
            let consent = UndoConsent::from_flag(yes);
            return undo_changes(&engine, session, UndoScope::LastUndo, consent).await;
        }
        args::SessionCommand::Delete { id } => {
            let session = find_session(&engine, &id).await?;
            engine.delete(session).await?;
            output::print_note(&format!("deleted session {session}"));
        }
        args::SessionCommand::Prune { older_than, max_size, dry_run } => {
            let log = SqliteLog::open(&setup.dirs.data).await?;
            return maintenance::prune(&log, older_than, max_size, dry_run).await;
        }
        args::SessionCommand::Verify { id } => {
            let session = match id {
                Some(id) => Some(find_session(&engine, &id).await?),
                None => None,
            };
            let log = SqliteLog::open(&setup.dirs.data).await?;
            return maintenance::verify(&log, session).await;
        }
        args::SessionCommand::Backup { folder } => {
            let log = SqliteLog::open(&setup.dirs.data).await?;
            return maintenance::backup(&log, &folder).await;
        }
    }
    Ok(CliExit::Done)
}

/// Loads the diff of a session's file changes, and the facts that recorded them.
async fn load_changes(
    engine: &Engine,
    session: SessionId,
    scope: UndoScope,
    direction: DiffDirection,
) -> anyhow::Result<(Vec<LogSeq>, String)> {
    let reply = engine.query(SessionQuery::Changes { session, scope, direction }).await?;
    let QueryReply::Changes { facts, diff } = reply else { bail!("cannot read the changes") };
    Ok((facts, diff))
}

/// Determines if the user must confirm an undo; `--yes` gives consent in advance.
enum UndoConsent {
    Ask,
    Given,
}

impl UndoConsent {
    fn from_flag(yes: bool) -> UndoConsent {
        if yes { UndoConsent::Given } else { UndoConsent::Ask }
    }
}

/// Shows the diff of an undo or redo, asks for confirmation and sends `SessionOp::Undo`.
async fn undo_changes(
    engine: &Engine,
    session: SessionId,
    scope: UndoScope,
    consent: UndoConsent,
) -> anyhow::Result<CliExit> {
    let transcript = load_transcript(engine, session).await?;
    if transcript.last_turn_end.is_none() || !transcript.queued_prompts.is_empty() {
        bail!(
            "session {session} is unfinished. Finish it first: `windlass run --session {session}`"
        );
    }
    let (facts, diff) = load_changes(engine, session, scope, DiffDirection::Reverse).await?;
    if facts.is_empty() {
        let action = if scope == UndoScope::LastUndo { "redo" } else { "undo" };
        output::print_note(&format!("nothing to {action} in session {session}"));
        return Ok(CliExit::Done);
    }
    output::print_line(diff.trim_end());
    if let (UndoConsent::Ask, false) = (&consent, diff.trim().is_empty()) {
        if !output::is_interactive() {
            output::print_note("nothing was changed; use --yes to do this without confirmation");
            return Ok(CliExit::Denied);
        }
        if !output::confirm("Apply these changes? [y/N] ") {
            output::print_note("nothing was changed");
            return Ok(CliExit::Denied);
        }
    }
    let options = RunOptions::new(args::RunOutputFormat::Text, true);
    run_turn(engine, Some(session), Some(SessionOp::Undo { facts }), options).await
}

fn print_sessions(sessions: &[SessionSummary], all: bool) {
    if sessions.is_empty() {
        let place = if all { "anywhere" } else { "in this folder" };
        output::print_note(&format!("no sessions {place} yet; start one with `windlass run`"));
    }
    let now = crate::now_millis();
    for row in sessions {
        let end = match &row.last_turn_end {
            None => "unfinished",
            Some(TurnEndReason::Completed) => "done",
            Some(TurnEndReason::Denied) => "denied",
            Some(TurnEndReason::Interrupted) => "interrupted",
            Some(TurnEndReason::LimitReached { .. }) => "limit",
            Some(TurnEndReason::LoopDetected { .. }) => "looped",
            Some(TurnEndReason::Failed { .. }) => "failed",
        };
        let folder = if all { format!("  {}", row.workspace) } else { String::new() };
        output::print_line(&format!(
            "{}  {:>8}  {end:<11}  {:>8}  {}{folder}",
            row.session,
            format_age(row.changed_at, now),
            if row.cost.0 > 0 { output::format_dollars(row.cost) } else { String::new() },
            row.title
        ));
    }
}

fn print_session(session: SessionId, transcript: &Transcript) {
    output::print_line(&format!("session {session} in {}", transcript.workspace));
    for message in &transcript.messages {
        for part in &message.parts {
            match (message.role, part) {
                (MessageRole::User, MessagePart::Text { text, .. }) => {
                    output::print_line(&format!("\n> {text}"))
                }
                (MessageRole::Context, MessagePart::Text { text, .. }) => {
                    output::print_line(&format!("\n[{text}]"))
                }
                (MessageRole::Assistant, MessagePart::Text { text, .. }) => {
                    output::print_line(&format!("\n{text}"))
                }
                (_, MessagePart::Reasoning { text, .. }) => {
                    output::print_line(&format!("\n({text})"))
                }
                (_, MessagePart::File(file)) => {
                    output::print_line(&format!("[{}, {}]", file.name, file.mime_type))
                }
                (_, MessagePart::Call(call)) => {
                    let status =
                        call.outcome.as_ref().map_or("in progress".into(), summarize_outcome);
                    let line = format!(
                        "• {} {}: {status}",
                        call.tool,
                        summarize_arguments(&call.arguments)
                    );
                    output::print_line(&line);
                }
            }
        }
    }
    let usage = transcript.usage;
    if usage.input + usage.output > 0 {
        let cached = usage.cache_reads;
        output::print_line(&format!(
            "\n{} input tokens ({cached} cached), {} output tokens",
            usage.input, usage.output
        ));
    }
    if transcript.cost.0 > 0 {
        output::print_line(&output::format_dollars(transcript.cost));
    }
}
