//! Queries servers for their contents: `mcp tools`, `mcp list --check`, and the first connection
//! after `mcp add`.

use crate::CliExit;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::anyhow;
use serde_json::{Value, json};
use windlass_mcp::{
    McpServerInventory, McpServers, PinnedToolDefinition, ProtocolRevision, ToolDefinitionChange,
};
use windlass_project::ConfigFlags;
use windlass_protocol::display_text::{pluralize, truncate_chars};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{CallFailure, truncate_output};

/// Limit for a description in a list.
const MAX_DESCRIPTION_CHARS: usize = 72;

/// Lists what a server offers; `None` if the user presses Ctrl-C.
async fn list_server(
    servers: &McpServers,
    name: &str,
) -> Option<Result<McpServerInventory, CallFailure>> {
    tokio::select! {
        listing = servers.inspect(name) => Some(listing),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// Runs `windlass mcp tools`.
pub(super) async fn show_tools(name: &str, accept: bool, as_json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    super::find_server(&setup, name)?;
    let (_runtime, servers) = setup.open_servers_only()?;
    output::print_note(&format!("Connecting to `{name}`…"));
    let Some(listing) = list_server(&servers, name).await else { return Ok(CliExit::Interrupted) };
    let listing = listing.map_err(|failure| anyhow!(failure.text))?;
    if as_json {
        output::print_json(&serde_json::to_string_pretty(&listing_json(name, &listing))?);
    } else {
        print_listing(name, &listing);
    }
    let has_changes = !listing.changed.is_empty() || !listing.removed.is_empty();
    if accept {
        servers.accept_server(name).await.map_err(|failure| anyhow!(failure.text))?;
        output::print_note(match listing.instructions.is_empty() {
            true => "accepted all current tools",
            false => "accepted all current tools and the instructions",
        });
    } else {
        let mut effects = Vec::new();
        if has_changes {
            effects.push("changed tools require approval before each call");
        }
        if listing.instructions_change.is_some() {
            effects.push("the model does not get changed instructions");
        }
        if !effects.is_empty() {
            output::print_note(&format!(
                "{}; run `windlass mcp tools {name} --accept` to accept all of them",
                effects.join(", and ")
            ));
        }
    }
    servers.close().await;
    Ok(CliExit::Done)
}

/// Runs `windlass mcp list --check`.
pub(super) async fn check_servers() -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let (_runtime, servers) = setup.open_servers_only()?;
    let names: Vec<&String> = setup.config.servers.keys().collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    output::print_note(&format!("Connecting to {} servers…", names.len()));
    let listings = names.iter().map(|name| list_server(&servers, name));
    let mut all_ok = true;
    for (name, listing) in names.iter().zip(futures_util::future::join_all(listings).await) {
        let is_enabled = setup.config.servers.get(*name).is_some_and(|(server, _)| server.enabled);
        let line = match listing {
            _ if !is_enabled => "off".to_owned(),
            None => return Ok(CliExit::Interrupted),
            Some(Ok(listing)) => summarize_listing(&listing),
            Some(Err(failure)) => {
                all_ok = false;
                failure.text
            }
        };
        output::print_line(&format!("{name:<width$}  {line}"));
    }
    servers.close().await;
    Ok(if all_ok { CliExit::Done } else { CliExit::Failed })
}

/// Connects to a server that `mcp add` just added. A server that does not respond stays in the
/// config: it may need a login, or be available later.
pub(super) async fn connect_first_time(name: &str) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let (_runtime, servers) = setup.open_servers_only()?;
    output::print_note(&format!("added; connecting to {name} …"));
    match list_server(&servers, name).await {
        None => return Ok(CliExit::Interrupted),
        Some(Ok(listing)) => {
            print_listing(name, &listing);
            output::print_note(
                "each call requires approval, unless a rule in `permission` allows it",
            );
        }
        Some(Err(failure)) => output::print_note(&format!(
            "note: {}\nTo try again: `windlass mcp tools {name}`. To remove it: `windlass mcp \
             remove {name}`",
            failure.text
        )),
    }
    servers.close().await;
    Ok(CliExit::Done)
}

fn summarize_listing(listing: &McpServerInventory) -> String {
    let mut parts = vec![pluralize(listing.tools.len(), "tool")];
    if !listing.prompts.is_empty() {
        parts.push(pluralize(listing.prompts.len(), "prompt"));
    }
    if listing.resources {
        parts.push("resources".into());
    }
    match (listing.changed.len(), listing.removed.len()) {
        (0, 0) => {}
        (changed, removed) => parts.push(format!("{changed} changed, {removed} removed")),
    }
    if listing.instructions_change.is_some() {
        parts.push("instructions changed".into());
    }
    let revision = match listing.revision {
        ProtocolRevision::Initialize => "2025-11-25",
        ProtocolRevision::Discover => "2026-07-28",
    };
    format!("{} (MCP {revision})", parts.join(", "))
}

fn print_listing(name: &str, listing: &McpServerInventory) {
    output::print_line(&format!("{name}: {}", summarize_listing(listing)));
    let names: Vec<String> =
        listing.tools.iter().map(|tool| untrusted_schema::tool_name(name, &tool.name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default().min(40);
    for (tool, name) in listing.tools.iter().zip(&names) {
        output::print_line(&format!("  {name:<width$}  {}", short_description(tool)));
    }
    for prompt in &listing.prompts {
        let arguments = prompt.arguments.join(" ");
        let line = format!(
            "  --command {name}:{} {arguments}",
            truncate_output::strip_controls(&prompt.name)
        );
        output::print_line(line.trim_end());
    }
    for ToolDefinitionChange { name, difference } in &listing.changed {
        output::print_line(&format!("\n{} has changed:", truncate_output::strip_controls(name)));
        output::print_line(&truncate_output::strip_controls(difference));
    }
    for removed in &listing.removed {
        output::print_line(&format!("\n{} was removed", truncate_output::strip_controls(removed)));
    }
    match &listing.instructions_change {
        Some(difference) => {
            output::print_line("\nThe instructions for the model have changed:");
            output::print_line(&truncate_output::strip_controls(difference));
        }
        None if listing.instructions.is_empty() => {}
        None => {
            output::print_line("\nInstructions for the model:");
            for line in listing.instructions.lines() {
                output::print_line(&format!("  {}", truncate_output::strip_controls(line)));
            }
        }
    }
}

fn short_description(tool: &PinnedToolDefinition) -> String {
    let text = tool.definition.get("description").and_then(Value::as_str).unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    truncate_chars(&truncate_output::strip_controls(line), MAX_DESCRIPTION_CHARS)
}

fn listing_json(name: &str, listing: &McpServerInventory) -> Value {
    let tools: Vec<Value> = listing
        .tools
        .iter()
        .map(|tool| {
            let changed = listing.changed.iter().any(|change| change.name == tool.name);
            json!({"name": untrusted_schema::tool_name(name, &tool.name), "changed": changed,
                   "definition": tool.definition})
        })
        .collect();
    let prompts: Vec<Value> = listing
        .prompts
        .iter()
        .map(|prompt| json!({"name": prompt.name, "arguments": prompt.arguments}))
        .collect();
    json!({"server": name, "tools": tools, "removed": listing.removed, "prompts": prompts,
           "resources": listing.resources, "instructions": listing.instructions,
           "instructions_changed": listing.instructions_change.is_some()})
}
