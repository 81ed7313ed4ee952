//! Pinned tools of a server: compares the accepted definitions with the ones the server lists now,
//! and registers the tools. A definition that was listed to the model (`ToolVisibility::Listed`)
//! never changes.

use super::McpServer;
use super::tool::{McpTool, ToolPinState, ToolVisibility, model_definition};
use crate::client::listing::ListedTools;
use crate::config::{PinnedServerDefinitions, PinnedToolDefinition};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::mutex_lock::lock;
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{ToolDefinition, ToolDefinitionBudget};

/// The pinned and the registered tools of an `McpServer`.
#[derive(Default)]
pub(crate) struct KnownTools {
    pub(crate) pins: Option<PinnedServerDefinitions>,
    /// Registered tools, by their local name (`tool_name`).
    pub(crate) registered: BTreeMap<String, RegisteredTool>,
}

/// A tool as `Registry` knows it.
#[derive(Clone)]
pub(crate) struct RegisteredTool {
    remote_name: String,
    definition: ToolDefinition,
    visibility: ToolVisibility,
    digest: String,
    pin_state: ToolPinState,
}

impl McpServer {
    /// Registers the pinned tools: listed if all of them fit into `budget`, otherwise searchable.
    pub(crate) fn register_pinned(self: &Arc<Self>, budget: &mut ToolDefinitionBudget) {
        let Some(pins) = self.pins() else { return };
        let definitions = pins.tools.iter().filter_map(|tool| {
            Some((
                untrusted_schema::tool_name(self.name(), &tool.name),
                model_definition(&tool.definition).ok()?,
            ))
        });
        let definitions: Vec<(String, ToolDefinition)> = definitions.collect();
        let fits = budget
            .try_spend(definitions.iter().map(|(name, definition)| (name.as_str(), definition)));
        let visibility = if fits { ToolVisibility::Listed } else { ToolVisibility::Searchable };
        let tools = pins.tools.iter().map(|tool| (tool, ToolPinState::Unchanged, None)).collect();
        self.register_tools(tools, visibility);
    }

    /// Registers the tools that the server lists now. Pinned definitions stay pinned.
    pub(crate) fn update_tools(
        self: &Arc<Self>,
        listed: ListedTools,
        pinned_server: Option<PinnedServerDefinitions>,
    ) {
        let name = self.name();
        for note in &listed.skipped {
            self.store.notify_user(format!("{name}: {note}"));
        }
        let mut known = lock(&self.known_tools);
        if known.pins.is_none() {
            let Some(mut pinned_server) = pinned_server else { return };
            pinned_server.tools = listed.tools.values().cloned().collect();
            self.store.save_pins(name, &pinned_server);
            self.store.log_line(name, &format!("its {} tools are new", pinned_server.tools.len()));
            known.pins = Some(pinned_server);
        } else if let (Some(pinned_server), Some(pins)) = (pinned_server, &mut known.pins) {
            // The model reads the instructions, so others must be accepted, like a definition.
            if pins.instructions != pinned_server.instructions {
                self.store.notify_user(format!(
                    "{name} has other instructions for the model, which are not used until you \
                     accept them: windlass mcp tools {name} --accept"
                ));
            }
            let (tools, instructions) = (pins.tools.clone(), pins.instructions.clone());
            let updated = PinnedServerDefinitions { tools, instructions, ..pinned_server };
            if *pins != updated {
                self.store.save_pins(name, &updated);
                *pins = updated;
            }
        }
        let pins = known.pins.clone();
        drop(known);
        let pinned: BTreeMap<&str, &PinnedToolDefinition> = pins
            .iter()
            .flat_map(|pins| &pins.tools)
            .map(|tool| (tool.name.as_str(), tool))
            .collect();
        let tools = listed.tools.values().map(|live| match pinned.get(live.name.as_str()) {
            Some(old) if old.digest == live.digest => (live, ToolPinState::Unchanged, None),
            Some(old) => (live, ToolPinState::Changed, Some(&old.definition)),
            None => (live, ToolPinState::New, None),
        });
        self.register_tools(tools.collect(), ToolVisibility::Searchable);
    }

    /// Registers tools, except those that are already registered unchanged.
    fn register_tools(
        self: &Arc<Self>,
        tools: Vec<(&PinnedToolDefinition, ToolPinState, Option<&Value>)>,
        visibility: ToolVisibility,
    ) {
        let Some(registry) = self.registry.upgrade() else { return };
        for (tool, pin_state, pinned) in tools {
            let name = untrusted_schema::tool_name(self.name(), &tool.name);
            let previous = lock(&self.known_tools).registered.get(&name).cloned();
            let (definition, visibility) = match &previous {
                Some(previous) if previous.remote_name != tool.name => {
                    let first = &previous.remote_name;
                    let second = &tool.name;
                    let text =
                        format!("{first} and {second} of {} both get the name {name}", self.name());
                    self.store.notify_user(format!("{text}; the second is skipped"));
                    continue;
                }
                Some(previous)
                    if previous.digest == tool.digest && previous.pin_state == pin_state =>
                {
                    continue;
                }
                // A listed definition stays as the model saw it; a searchable one follows the
                // accepted definition.
                Some(previous)
                    if previous.visibility == ToolVisibility::Listed
                        || pin_state != ToolPinState::Unchanged =>
                {
                    (Ok(previous.definition.clone()), previous.visibility)
                }
                Some(previous) => (model_definition(&tool.definition), previous.visibility),
                None => (model_definition(&tool.definition), visibility),
            };
            let definition = match definition {
                Ok(definition) => definition,
                Err(reason) => {
                    self.store.notify_user(format!("{name} is skipped: {reason}"));
                    continue;
                }
            };
            let registered = RegisteredTool {
                remote_name: tool.name.clone(),
                definition: definition.clone(),
                visibility,
                digest: tool.digest.clone(),
                pin_state,
            };
            let entry = McpTool {
                server: Arc::clone(self),
                name: name.clone(),
                remote_name: tool.name.clone(),
                definition,
                visibility,
                pin_state,
                digest: tool.digest.clone(),
                live_definition: tool.definition.clone(),
                pinned_definition: pinned.cloned(),
            };
            if let Err(error) = registry.register_external(self.name(), entry) {
                self.store.notify_user(error.to_string());
            }
            lock(&self.known_tools).registered.insert(name, registered);
        }
    }

    /// Pins the definition of an `McpTool` that the user has approved.
    pub(crate) fn accept_tool(self: &Arc<Self>, tool: &McpTool) {
        if tool.pin_state == ToolPinState::Unchanged {
            return;
        }
        let accepted = PinnedToolDefinition {
            name: tool.remote_name.clone(),
            digest: tool.digest.clone(),
            definition: tool.live_definition.clone(),
        };
        self.update_pins(|tools| {
            tools.retain(|old| old.name != accepted.name);
            tools.push(accepted.clone());
        });
        self.register_tools(vec![(&accepted, ToolPinState::Unchanged, None)], tool.visibility);
    }

    /// Pins all current definitions and the instructions, which the user has accepted.
    pub(crate) fn accept_all(
        self: &Arc<Self>,
        live: &BTreeMap<String, PinnedToolDefinition>,
        instructions: String,
    ) {
        if let Some(pins) = &mut lock(&self.known_tools).pins {
            pins.instructions = instructions;
        }
        self.update_pins(|tools| *tools = live.values().cloned().collect());
        let all = live.values().map(|tool| (tool, ToolPinState::Unchanged, None)).collect();
        self.register_tools(all, ToolVisibility::Searchable);
    }

    fn update_pins(&self, change: impl FnOnce(&mut Vec<PinnedToolDefinition>)) {
        let mut known = lock(&self.known_tools);
        if let Some(pins) = &mut known.pins {
            change(&mut pins.tools);
            pins.tools.sort_by(|a, b| a.name.cmp(&b.name));
            self.store.save_pins(self.name(), pins);
        }
    }
}
