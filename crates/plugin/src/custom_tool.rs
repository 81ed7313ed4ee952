//! Custom tools: parses the tools that a program declares and runs their calls through the tool
//! pipeline.
//!
//! The access that a tool declares is checked against the permission rules and also limits its
//! process: a tool that declares only reads runs in a read-only sandbox without network. A tool
//! that declares nothing has the access of a shell command and requires approval as a whole.

use crate::program_limits::DeclaredHostPolicy;
use crate::program_messages::{ReplyFile, ToolReply};
use crate::tool_process::{
    CallConcurrency, ToolCallRequest, ToolNetworkAccess, ToolProcess, ToolSandbox,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{Attachment, ToolAccess, ToolOutput};
use windlass_sandbox::{HostAllowlist, WorkspaceAccess};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, ToolDefinitionBudget,
};

/// Advice about OpenCode's `shell.env` hook: its variables would change what an approved command
/// does, and the user would not see them.
const SHELL_ENV_ADVICE: &str = ". Variables of a command must be visible when it is approved: \
                                write them into the command in tool.execute.before";
/// Bounds the number of tools per program.
const MAX_TOOLS: usize = 64;
/// Bounds the paths that `expand_path_pattern` returns.
const MAX_PATHS: usize = 200;

/// A tool implemented by a program that `ToolProcess` runs.
pub struct CustomTool {
    name: String,
    definition: ToolDefinition,
    declared_access: Option<DeclaredAccess>,
    timeout: Option<Duration>,
    concurrency: CallConcurrency,
    listing: CustomToolVisibility,
    program: Arc<ToolProcess>,
}

/// The visibility of a tool to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CustomToolVisibility {
    /// The tool is in the model's tool list.
    Listed,
    /// The model finds the tool by search: the list had no room, or was already sent when the tool
    /// appeared.
    Searchable,
}

#[derive(Deserialize)]
struct DeclaredTool {
    name: Option<String>,
    #[serde(default)]
    description: String,
    schema: Option<Value>,
    access: Option<DeclaredAccess>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    parallel: Option<bool>,
    /// The name is that of a plugin's tool and has no prefix.
    #[serde(default)]
    keeps_name: bool,
}

/// The access that a tool declares. Unknown fields are rejected, because they could mean anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredAccess {
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    edit: Vec<String>,
    #[serde(default)]
    network: Vec<String>,
}

impl DeclaredAccess {
    /// Returns true if the tool declares no edits and no network access.
    fn is_read_only(&self) -> bool {
        self.edit.is_empty() && self.network.is_empty()
    }
}

impl ToolProcess {
    /// Parses the tools from a program's description; also returns notes about problems. The tools
    /// are listed if all of them fit into the budget; otherwise, or without a budget, they are only
    /// searchable.
    pub fn parse_tools(
        self: &Arc<ToolProcess>,
        description: &Value,
        budget: Option<&mut ToolDefinitionBudget>,
    ) -> (Vec<CustomTool>, Vec<String>) {
        let list = description.get("tools").and_then(Value::as_array);
        let entries: Vec<&Value> = match list {
            Some(list) => list.iter().collect(),
            None => vec![description],
        };
        let (mut tools, mut notes): (Vec<CustomTool>, Vec<String>) = Default::default();
        let own_notes = description.get("notes").and_then(Value::as_array);
        for note in own_notes.into_iter().flatten().filter_map(Value::as_str) {
            notes.push(format!("{}: {}", self.name(), to_one_line(note)));
        }
        let unsupported = description.get("unsupported_hooks").and_then(Value::as_array);
        let unsupported: Vec<&str> =
            unsupported.into_iter().flatten().filter_map(Value::as_str).collect();
        if !unsupported.is_empty() {
            let advice = match unsupported.contains(&"shell.env") {
                true => SHELL_ENV_ADVICE,
                false => "",
            };
            notes.push(format!(
                "{}: hooks that do not exist here never run: {}{advice}",
                self.name(),
                to_one_line(&unsupported.join(", "))
            ));
        }
        if entries.len() > MAX_TOOLS {
            notes.push(format!("{}: only the first {MAX_TOOLS} tools are used", self.name()));
        }
        for entry in entries.into_iter().take(MAX_TOOLS) {
            match self.parse_tool(entry) {
                Ok(tool) if tools.iter().any(|other| other.name == tool.name) => {
                    notes.push(format!("{}: {} is defined twice", self.name(), tool.name));
                }
                Ok(tool) => {
                    notes.extend(tool.unmet_hosts_note());
                    tools.push(tool);
                }
                Err(error) => notes.push(format!("{}: skipped a tool: {error}", self.name())),
            }
        }
        let definitions = tools.iter().map(|tool| (tool.name.as_str(), &tool.definition));
        if budget.is_some_and(|budget| budget.try_spend(definitions)) {
            tools.iter_mut().for_each(|tool| tool.listing = CustomToolVisibility::Listed);
        }
        (tools, notes)
    }

    fn parse_tool(self: &Arc<ToolProcess>, value: &Value) -> Result<CustomTool, String> {
        let description = DeclaredTool::deserialize(value).map_err(|error| error.to_string())?;
        let stem = self.name();
        let name = description.name.unwrap_or_else(|| stem.to_owned());
        let suffix = name.strip_prefix(stem);
        let has_prefix = suffix.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        if !has_prefix && !description.keeps_name {
            return Err(format!(
                "its name is {name:?}, but must be `{stem}` or start with \
                                `{stem}_`"
            ));
        }
        if description.description.trim().is_empty() {
            return Err("it has no description, so the model cannot know what it is for".into());
        }
        let schema =
            description.schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let schema = untrusted_schema::sanitize_schema(&schema)?;
        if let Some(declared) = &description.access {
            HostAllowlist::parse(&declared.network).map_err(|error| error.to_string())?;
        }
        let text =
            untrusted_schema::truncate_description(description.description.trim()).to_owned();
        Ok(CustomTool {
            name,
            definition: ToolDefinition { description: text, schema },
            declared_access: description.access,
            timeout: description.timeout_ms.map(|ms| Duration::from_millis(ms.max(1))),
            concurrency: match description.parallel {
                Some(true) => CallConcurrency::Parallel,
                Some(false) | None => CallConcurrency::Serial,
            },
            listing: CustomToolVisibility::Searchable,
            program: Arc::clone(self),
        })
    }
}

impl CustomTool {
    /// Returns a note about declared hosts that the tool may not reach.
    fn unmet_hosts_note(&self) -> Option<String> {
        let declared = &self.declared_access.as_ref()?.network;
        let (hosts, limit) = match &self.program.limits().host_allowance {
            DeclaredHostPolicy::Own => return None,
            DeclaredHostPolicy::Approved(approved)
                if declared.iter().all(|host| approved.contains(host)) =>
            {
                return None;
            }
            DeclaredHostPolicy::Approved(_) => {
                (declared, "a plugin's tool may only reach hosts of its manifest and")
            }
            DeclaredHostPolicy::Default => (declared, "a project's tool may only reach"),
        };
        (!hosts.is_empty()).then(|| {
            format!(
                "{} requests network access to {}; {limit} hosts in `sandbox.network` of your \
                 own config",
                self.name,
                hosts.join(", ")
            )
        })
    }

    fn sandbox(&self) -> ToolSandbox {
        match &self.declared_access {
            None => ToolSandbox {
                workspace_access: WorkspaceAccess::Write,
                network: ToolNetworkAccess::Default,
            },
            Some(declared) => ToolSandbox {
                workspace_access: if declared.edit.is_empty() {
                    WorkspaceAccess::Read
                } else {
                    WorkspaceAccess::Write
                },
                network: match declared.network.is_empty() {
                    true => ToolNetworkAccess::None,
                    false => ToolNetworkAccess::Hosts(declared.network.clone()),
                },
            },
        }
    }

    async fn build_output(
        &self,
        reply: ToolReply,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let ToolReply { text, title, metadata, files } = reply;
        let mut attachments = Vec::with_capacity(files.len());
        for ReplyFile { name, mime, bytes } in files {
            attachments.push(Attachment {
                name,
                mime_type: mime,
                blob: cx.caller.put_blob(bytes).await?,
            });
        }
        Ok(ToolOutput { title, text, metadata, attachments, ..ToolOutput::default() })
    }
}

#[async_trait]
impl Tool for CustomTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn allows_batching(&self) -> bool {
        self.declared_access.as_ref().is_some_and(DeclaredAccess::is_read_only)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn is_listed(&self) -> bool {
        self.listing == CustomToolVisibility::Listed
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        self.definition.clone()
    }

    fn access(&self, input: &Self::Input) -> Vec<ToolAccess> {
        let use_tool = ToolAccess::UseTool { tool: self.name.clone() };
        let Some(declared) = &self.declared_access else { return vec![use_tool] };
        let read = declared.read.iter().flat_map(|pattern| expand_path_pattern(pattern, input));
        let edit = declared.edit.iter().flat_map(|pattern| expand_path_pattern(pattern, input));
        let mut accesses: Vec<ToolAccess> = read.map(|path| ToolAccess::Read { path }).collect();
        accesses.extend(edit.map(|path| ToolAccess::Edit { path }));
        if !declared.is_read_only() {
            accesses.push(use_tool);
        } else if accesses.is_empty() {
            accesses.push(ToolAccess::Search { path: ".".into() });
        }
        accesses
    }

    async fn preview(
        &self,
        input: &Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        Ok(Some(untrusted_schema::call_preview("", input)))
    }

    async fn run(
        &self,
        input: Self::Input,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let request = ToolCallRequest {
            tool: &self.name,
            arguments: Value::Object(input),
            sandbox: self.sandbox(),
            timeout: self.timeout,
            concurrency: self.concurrency,
        };
        let reply = self.program.call_tool(request, cx).await?;
        self.build_output(reply, cx).await
    }
}

/// Expands a path pattern such as `src/{file}` with each value of the argument; returns no path if
/// the call omits the argument.
fn expand_path_pattern(pattern: &str, input: &Map<String, Value>) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((name, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    let to_text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let values: Vec<String> = match input.get(name) {
        Some(Value::Array(items)) => items.iter().take(MAX_PATHS).filter_map(to_text).collect(),
        Some(value) => to_text(value).into_iter().collect(),
        None => Vec::new(),
    };
    let mut paths = Vec::new();
    for value in values {
        // An argument value is never expanded; only the pattern text after it is.
        let suffixes = expand_path_pattern(after, input);
        paths.extend(suffixes.into_iter().map(|suffix| format!("{before}{value}{suffix}")));
        if paths.len() >= MAX_PATHS {
            break;
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(pattern: &str, input: Value) -> Vec<String> {
        let Value::Object(input) = input else { panic!() };
        expand_path_pattern(pattern, &input)
    }

    #[test]
    fn a_path_pattern_is_expanded_with_the_arguments() {
        assert_eq!(paths("a/b", json!({})), ["a/b"]);
        assert_eq!(paths("{p}", json!({"p": "x y"})), ["x y"]);
        assert_eq!(paths("{p}", json!({"p": ["x", 1, null, {}]})), ["x", "1"]);
        assert_eq!(paths("in/{p}/{q}.md", json!({"p": "x", "q": 7})), ["in/x/7.md"]);
        assert!(paths("{p}", json!({})).is_empty());
        assert_eq!(
            paths("{p}", json!({"p": "{q}", "q": "no"})),
            ["{q}"],
            "a value is not expanded"
        );
        assert_eq!(paths("{p", json!({"p": "x"})), ["{p"]);
        let many: Vec<u32> = (0..1_000).collect();
        assert_eq!(paths("{p}", json!({"p": many})).len(), MAX_PATHS);
    }

    #[test]
    fn an_unknown_field_of_access_is_rejected() {
        assert!(
            serde_json::from_value::<DeclaredAccess>(json!({"read": [], "write": ["x"]})).is_err()
        );
        assert!(
            serde_json::from_value::<DeclaredAccess>(json!({"read": []})).unwrap().is_read_only()
        );
    }
}
