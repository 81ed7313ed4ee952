//! `windlass session fork`, `rename`, `search`, `export`, `import` and `share`.

use crate::session::{find, transcript};
use crate::setup::Setup;
use crate::{Exit, screen, share};
use anyhow::bail;
use serde_json::json;
use std::io::Write;
use windlass_engine::{Carried, Engine, Point};
use windlass_protocol::text::ago;
use windlass_protocol::{Hit, Query, Reply};

/// Begins a session with a copy of another one.
pub(crate) async fn fork(
    engine: &Engine,
    id: &str,
    at: Option<Point>,
    json: bool,
) -> anyhow::Result<Exit> {
    let session = find(engine, id).await?;
    let fork = engine.fork(session, at.unwrap_or(Point::Last)).await?;
    if json {
        screen::json(&json!({ "session": fork, "from": session }).to_string());
    } else {
        screen::line(&fork.to_string());
        screen::note(&format!("`windlass run --session {fork}` goes on with the copy"));
    }
    Ok(Exit::Done)
}

/// Gives a session another title.
pub(crate) async fn rename(engine: &Engine, id: &str, title: &str) -> anyhow::Result<Exit> {
    let session = find(engine, id).await?;
    let title = engine.rename(session, title).await?;
    screen::note(&format!("session {session} is now called {title}"));
    Ok(Exit::Done)
}

/// Finds words in past sessions.
pub(crate) async fn search(
    engine: &Engine,
    words: &[String],
    workspace: Option<String>,
    json: bool,
) -> anyhow::Result<Exit> {
    let all = workspace.is_none();
    let query = Query::Search { words: words.join(" "), workspace };
    let Reply::Found { hits } = engine.query(query).await? else {
        bail!("the sessions could not be searched");
    };
    if json {
        screen::json(&serde_json::to_string_pretty(&hits)?);
        return Ok(Exit::Done);
    }
    if hits.is_empty() {
        let more = if all { "" } else { "; --all looks in all folders" };
        screen::note(&format!("no session holds these words{more}"));
    }
    let now = crate::now();
    for Hit { session, title, workspace, at, snippet, .. } in hits {
        let place = if all { format!("  {workspace}") } else { String::new() };
        screen::line(&format!("{session}  {:>8}  {title}{place}\n    {snippet}", ago(at, now)));
    }
    Ok(Exit::Done)
}

/// Writes a session as one file.
pub(crate) async fn export(engine: &Engine, id: &str, file: Option<&str>) -> anyhow::Result<Exit> {
    let session = find(engine, id).await?;
    let carried = match file {
        None => {
            let mut print = |line: &str| {
                screen::json(line);
                Ok(())
            };
            engine.export(session, &mut print).await?
        }
        Some(path) => {
            // What cannot be read leaves no empty file behind.
            transcript(engine, session).await?;
            let mut file = std::io::BufWriter::new(Setup::new_file(path)?);
            let carried = engine.export(session, &mut |line| writeln!(file, "{line}")).await?;
            file.flush()?;
            screen::note(&format!("wrote session {session} to {path}"));
            carried
        }
    };
    tell_missing(&carried);
    Ok(Exit::Done)
}

/// Takes in a session from a file.
pub(crate) async fn import(engine: &Engine, file: &str, json: bool) -> anyhow::Result<Exit> {
    let carried = engine.import(&mut *Setup::reader(file)?).await?;
    let Carried { session, facts, dropped, missing } = carried;
    if json {
        let told = json!({
            "session": session, "facts": facts, "dropped": dropped, "missing": missing
        });
        screen::json(&told.to_string());
    } else {
        screen::line(&session.to_string());
    }
    if dropped > 0 {
        screen::note(&format!(
            "left out what came after the last turn that ended ({dropped} facts)"
        ));
    }
    tell_missing(&carried);
    Ok(Exit::Done)
}

fn tell_missing(carried: &Carried) {
    if carried.missing > 0 {
        screen::note(&format!("{} outputs or files are no longer kept", carried.missing));
    }
}

/// Writes a session as a page.
pub(crate) async fn share(engine: &Engine, id: &str, file: Option<&str>) -> anyhow::Result<Exit> {
    let session = find(engine, id).await?;
    let page = share::page(&transcript(engine, session).await?);
    match file {
        None => screen::raw(&page),
        Some(path) => {
            let mut file = Setup::new_file(path)?;
            file.write_all(page.as_bytes())?;
            screen::note(&format!("wrote session {session} to {path}"));
        }
    }
    screen::note(
        "note: the page holds all that was said and done, outputs of commands among it. Read it \
         before you give it away",
    );
    Ok(Exit::Done)
}
