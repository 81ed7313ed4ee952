//! What servers have, by asking them: `mcp tools`, `mcp list --check`, and the first meeting after
//! `mcp add`.

use crate::{Exit, screen, setup::Setup};
use anyhow::anyhow;
use serde_json::{Value, json};
use windlass_mcp::{Change, Lifecycle, Listing, PinnedTool, Servers};
use windlass_project::Flags;
use windlass_protocol::text::{beginning, counted};
use windlass_toolkit::{Failure, bound, foreign};

/// As much of a description as is shown in a list.
const SHORT: usize = 72;

/// What a server has; `None` if the person does not want to wait any longer.
async fn look(servers: &Servers, name: &str) -> Option<Result<Listing, Failure>> {
    tokio::select! {
        listing = servers.look(name) => Some(listing),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// `windlass mcp tools`.
pub(super) async fn tools(name: &str, accept: bool, as_json: bool) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    super::found(&setup, name)?;
    let (_kept, servers) = setup.servers_alone()?;
    screen::note(&format!("asking {name} …"));
    let Some(listing) = look(&servers, name).await else { return Ok(Exit::Interrupted) };
    let listing = listing.map_err(|failure| anyhow!(failure.text))?;
    if as_json {
        screen::json(&serde_json::to_string_pretty(&described(name, &listing))?);
    } else {
        shown(name, &listing);
    }
    let unseen = !listing.changed.is_empty() || !listing.gone.is_empty();
    if accept {
        servers.accept(name).await.map_err(|failure| anyhow!(failure.text))?;
        screen::note("these are what you agreed to from now on");
    } else if unseen {
        screen::note(&format!(
            "the changed ones are asked about before each is called; `windlass mcp tools {name} \
             --accept` agrees to all of them"
        ));
    }
    servers.close().await;
    Ok(Exit::Done)
}

/// `windlass mcp list --check`.
pub(super) async fn check() -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let (_kept, servers) = setup.servers_alone()?;
    let names: Vec<&String> = setup.config.servers.keys().collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    screen::note(&format!("asking {} servers …", names.len()));
    let asked = names.iter().map(|name| look(&servers, name));
    let mut all_well = true;
    for (name, listing) in names.iter().zip(futures_util::future::join_all(asked).await) {
        let used = setup.config.servers.get(*name).is_some_and(|(server, _)| server.enabled);
        let line = match listing {
            _ if !used => "off".to_owned(),
            None => return Ok(Exit::Interrupted),
            Some(Ok(listing)) => summary(&listing),
            Some(Err(failure)) => {
                all_well = false;
                failure.text
            }
        };
        screen::line(&format!("{name:<width$}  {line}"));
    }
    servers.close().await;
    Ok(if all_well { Exit::Done } else { Exit::Failed })
}

/// The first meeting. A server that does not answer stays in the config: it may have to be logged in
/// to, or be there tomorrow.
pub(super) async fn greet(name: &str) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let (_kept, servers) = setup.servers_alone()?;
    screen::note(&format!("added; asking {name} what it has …"));
    match look(&servers, name).await {
        None => return Ok(Exit::Interrupted),
        Some(Ok(listing)) => {
            shown(name, &listing);
            screen::note("each call asks you first, unless your `permission` says otherwise");
        }
        Some(Err(failure)) => screen::note(&format!(
            "note: {}\n`windlass mcp tools {name}` asks again, `windlass mcp remove {name}` takes it \
             out",
            failure.text
        )),
    }
    servers.close().await;
    Ok(Exit::Done)
}

fn summary(listing: &Listing) -> String {
    let mut parts = vec![counted(listing.tools.len(), "tool")];
    if !listing.prompts.is_empty() {
        parts.push(counted(listing.prompts.len(), "prompt"));
    }
    if listing.resources {
        parts.push("resources".into());
    }
    match (listing.changed.len(), listing.gone.len()) {
        (0, 0) => {}
        (changed, gone) => parts.push(format!("{changed} changed, {gone} gone")),
    }
    let revision = match listing.lifecycle {
        Lifecycle::Initialize => "2025-11-25",
        Lifecycle::Discover => "2026-07-28",
    };
    format!("{} (MCP {revision})", parts.join(", "))
}

fn shown(name: &str, listing: &Listing) {
    screen::line(&format!("{name}: {}", summary(listing)));
    let called: Vec<String> =
        listing.tools.iter().map(|tool| foreign::sanitized(name, &tool.name)).collect();
    let width = called.iter().map(String::len).max().unwrap_or_default().min(40);
    for (tool, called) in listing.tools.iter().zip(&called) {
        screen::line(&format!("  {called:<width$}  {}", first_line(tool)));
    }
    for prompt in &listing.prompts {
        let arguments = prompt.arguments.join(" ");
        let line = format!("  --command {name}:{} {arguments}", bound::plain(&prompt.name));
        screen::line(line.trim_end());
    }
    for Change { name, difference } in &listing.changed {
        screen::line(&format!("\n{} is not what it was:", bound::plain(name)));
        screen::line(&bound::plain(difference));
    }
    for gone in &listing.gone {
        screen::line(&format!("\n{} is gone", bound::plain(gone)));
    }
}

fn first_line(tool: &PinnedTool) -> String {
    let text = tool.definition.get("description").and_then(Value::as_str).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    beginning(&bound::plain(line), SHORT)
}

fn described(name: &str, listing: &Listing) -> Value {
    let tools: Vec<Value> = listing
        .tools
        .iter()
        .map(|tool| {
            let changed = listing.changed.iter().any(|change| change.name == tool.name);
            json!({"name": foreign::sanitized(name, &tool.name), "changed": changed,
                   "definition": tool.definition})
        })
        .collect();
    let prompts: Vec<Value> = listing
        .prompts
        .iter()
        .map(|prompt| json!({"name": prompt.name, "arguments": prompt.arguments}))
        .collect();
    json!({"server": name, "tools": tools, "gone": listing.gone, "prompts": prompts,
           "resources": listing.resources})
}
