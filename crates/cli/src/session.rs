//! `windlass session …`: looking at what happened.

use crate::args;
use crate::care;
use crate::run::{Manner, brief, gist, turn};
use crate::{Exit, screen, setup::Setup};
use anyhow::bail;
use windlass_engine::Engine;
use windlass_project::Flags;
use windlass_protocol::text::ago;
use windlass_protocol::{
    Cost, Op, Part, Query, Reply, Role, Scope, Seq, SessionId, SessionSummary, Transcript, TurnEnd,
    View,
};

/// Does a command.
pub(crate) async fn session(command: args::Session) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let engine = setup.host().await?;
    match command {
        args::Session::List { all, json } => {
            let workspace = if all { None } else { Some(setup.workspace()) };
            let Reply::Sessions { mut sessions } =
                engine.query(Query::Sessions { workspace }).await?
            else {
                bail!("the list could not be read");
            };
            sessions.retain(|row| all || row.parent.is_none());
            if json {
                screen::json(&serde_json::to_string_pretty(&sessions)?);
            } else {
                list(&sessions, all);
            }
        }
        args::Session::Search { words, all, json } => {
            let workspace = if all { None } else { Some(setup.workspace()) };
            return care::search(&engine, &words, workspace, json).await;
        }
        args::Session::Show { id, json } => {
            let session = find(&engine, &id).await?;
            let transcript = transcript(&engine, session).await?;
            if json {
                screen::json(&serde_json::to_string_pretty(&transcript)?);
            } else {
                show(session, &transcript);
            }
        }
        args::Session::Fork { id, at, json } => return care::fork(&engine, &id, at, json).await,
        args::Session::Rename { id, title } => return care::rename(&engine, &id, &title).await,
        args::Session::Export { id, file } => {
            return care::export(&engine, &id, file.as_deref()).await;
        }
        args::Session::Import { file, json } => return care::import(&engine, &file, json).await,
        args::Session::Share { id, file } => {
            return care::share(&engine, &id, file.as_deref()).await;
        }
        args::Session::Diff { id } => {
            let session = find(&engine, &id).await?;
            let (_, diff) = changes(&engine, session, Scope::All, View::Made).await?;
            match diff.trim_end() {
                "" => screen::note("this session changed nothing that still stands"),
                diff => screen::line(diff),
            }
        }
        args::Session::Undo { id, all, yes } => {
            let scope = if all { Scope::All } else { Scope::LastTurn };
            return take_back(&engine, &id, scope, Consent::of(yes)).await;
        }
        args::Session::Redo { id, yes } => {
            return take_back(&engine, &id, Scope::LastUndo, Consent::of(yes)).await;
        }
        args::Session::Delete { id } => {
            let session = find(&engine, &id).await?;
            engine.delete(session).await?;
            screen::note(&format!("deleted session {session}"));
        }
    }
    Ok(Exit::Done)
}

/// What a session's log means.
pub(crate) async fn transcript(engine: &Engine, session: SessionId) -> anyhow::Result<Transcript> {
    let reply = engine.query(Query::Transcript { session }).await?;
    let Reply::Transcript { transcript } = reply else { bail!("the session could not be read") };
    Ok(*transcript)
}

/// What a session changed, and the facts that say so.
async fn changes(
    engine: &Engine,
    session: SessionId,
    scope: Scope,
    view: View,
) -> anyhow::Result<(Vec<Seq>, String)> {
    let reply = engine.query(Query::Changes { session, scope, view }).await?;
    let Reply::Changes { facts, diff } = reply else { bail!("the changes could not be read") };
    Ok((facts, diff))
}

/// Whether the person is asked before something is done.
enum Consent {
    Asked,
    Given,
}

impl Consent {
    fn of(yes: bool) -> Consent {
        if yes { Consent::Given } else { Consent::Asked }
    }
}

/// Shows what would change in files, asks, and does it.
async fn take_back(
    engine: &Engine,
    id: &str,
    scope: Scope,
    consent: Consent,
) -> anyhow::Result<Exit> {
    let session = find(engine, id).await?;
    let transcript = transcript(engine, session).await?;
    if transcript.end.is_none() || !transcript.waiting.is_empty() {
        bail!(
            "session {session} is in the middle of something. Let it end first: \
             `windlass run --session {session}`"
        );
    }
    let (facts, diff) = changes(engine, session, scope, View::Back).await?;
    if facts.is_empty() {
        let what = if scope == Scope::LastUndo { "do again" } else { "take back" };
        screen::note(&format!("there is nothing to {what} in session {session}"));
        return Ok(Exit::Done);
    }
    screen::line(diff.trim_end());
    if let (Consent::Asked, false) = (&consent, diff.trim().is_empty()) {
        if !screen::is_interactive() {
            screen::note("nothing was changed; use --yes to do this without being asked");
            return Ok(Exit::Denied);
        }
        if !screen::agrees("Change the files like this? [y/N] ") {
            screen::note("nothing was changed");
            return Ok(Exit::Denied);
        }
    }
    let manner = Manner { output: args::Output::Text, yes: true, shape: None, mode: None };
    turn(engine, Some(session), Some(Op::Undo { facts }), manner).await
}

/// The session a person means: by its whole id, or by the beginning or end of it.
pub(crate) async fn find(engine: &Engine, id: &str) -> anyhow::Result<SessionId> {
    if let Ok(session) = id.parse() {
        return Ok(session);
    }
    let Reply::Sessions { sessions } = engine.query(Query::Sessions { workspace: None }).await?
    else {
        bail!("the list could not be read");
    };
    let names = sessions.iter().map(|row| (row.session, row.session.to_string()));
    let meant: Vec<SessionId> = names
        .filter(|(_, name)| id.len() >= 4 && (name.starts_with(id) || name.ends_with(id)))
        .map(|(session, _)| session)
        .collect();
    match meant.as_slice() {
        [session] => Ok(*session),
        [] => bail!("there is no session {id}. `windlass session list --all` shows all of them"),
        _ => bail!("{} sessions begin or end with {id}. Write more of it", meant.len()),
    }
}

fn list(sessions: &[SessionSummary], all: bool) {
    if sessions.is_empty() {
        let place = if all { "anywhere" } else { "in this folder" };
        screen::note(&format!("no sessions {place} yet; `windlass run` begins one"));
    }
    let now = crate::now();
    for row in sessions {
        let end = match &row.end {
            None => "unfinished",
            Some(TurnEnd::Done) => "done",
            Some(TurnEnd::Denied) => "denied",
            Some(TurnEnd::Interrupted) => "interrupted",
            Some(TurnEnd::Limit { .. }) => "limit",
            Some(TurnEnd::Looped { .. }) => "looped",
            Some(TurnEnd::Failed { .. }) => "failed",
        };
        let place = if all { format!("  {}", row.workspace) } else { String::new() };
        screen::line(&format!(
            "{}  {:>8}  {end:<11}  {:>8}  {}{place}",
            row.session,
            ago(row.changed, now),
            if row.cost.0 > 0 { dollars(row.cost) } else { String::new() },
            row.title
        ));
    }
}

/// Money, to a hundredth of a cent.
pub(crate) fn dollars(cost: Cost) -> String {
    let rounded = cost.0.saturating_add(50) / 100;
    format!("${}.{:04}", rounded / 10_000, rounded % 10_000)
}

fn show(session: SessionId, transcript: &Transcript) {
    screen::line(&format!("session {session} in {}", transcript.workspace));
    for message in &transcript.messages {
        for part in &message.parts {
            match (message.role, part) {
                (Role::User, Part::Text { text, .. }) => screen::line(&format!("\n> {text}")),
                (Role::Context, Part::Text { text, .. }) => screen::line(&format!("\n[{text}]")),
                (Role::Assistant, Part::Text { text, .. }) => screen::line(&format!("\n{text}")),
                (_, Part::Reasoning { text, .. }) => screen::line(&format!("\n({text})")),
                (_, Part::File(file)) => screen::line(&format!("[{}, {}]", file.name, file.mime)),
                (_, Part::Call(call)) => {
                    let became = call.outcome.as_ref().map_or("under way".into(), gist);
                    let line = format!("• {} {}: {became}", call.tool, brief(&call.arguments));
                    screen::line(&line);
                }
            }
        }
    }
    let usage = transcript.usage;
    if usage.input + usage.output > 0 {
        let cached = usage.cached;
        screen::line(&format!(
            "\n{} tokens in ({cached} cached), {} out",
            usage.input, usage.output
        ));
    }
    if transcript.cost.0 > 0 {
        screen::line(&dollars(transcript.cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_told_to_a_hundredth_of_a_cent() {
        let told = |millionths| dollars(Cost(millionths));
        assert_eq!([told(49), told(50), told(1_234_567)], ["$0.0000", "$0.0001", "$1.2346"]);
        assert!(told(u64::MAX).starts_with("$18446744073709.5516"));
    }
}
