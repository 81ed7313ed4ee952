//! The hook format of Claude Code: other names for tools and arguments, and another response
//! format. Its `allow` lets a call pass and grants nothing.
//!
//! Two differences are deliberate: an exit code other than 0 and 2 denies, and a hook at the end of
//! a turn cannot make the turn continue.

use super::response::{accepts_context, can_ask_user, malformed_output, parse_object};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;
use windlass_protocol::{ClaudeToolNames, HookPoint, PermissionMode};
use windlass_toolkit::{HookContext, HookError, HookPayload, HookReply};

/// The format of Claude Code hooks: its names for tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaudeHookFormat {
    /// The names of the built-in tools.
    pub tools: ClaudeToolNames,
    /// The configured MCP servers, because the names of their tools contain the server name.
    pub servers: Vec<String>,
}

impl ClaudeHookFormat {
    /// Returns Claude's names for a tool. The first one is sent to the hook.
    pub(super) fn tool_names(&self, tool: &str) -> Vec<String> {
        if let Some(row) = self.tools.get(tool) {
            return row.claude_names.iter().map(|name| (*name).to_owned()).collect();
        }
        let mcp_name = |server: &String| {
            let name = tool.strip_prefix(server.as_str())?.strip_prefix('_')?;
            Some((server.len(), format!("mcp__{server}__{name}")))
        };
        // One server name may be a prefix of another: send the longest match, and match any of
        // them.
        let mut names: Vec<_> = self.servers.iter().filter_map(mcp_name).collect();
        names.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        names.into_iter().map(|(_, name)| name).collect()
    }

    fn tool_name(&self, tool: &str) -> String {
        self.tool_names(tool).into_iter().next().unwrap_or_else(|| tool.to_owned())
    }

    /// Returns the arguments of a tool that have other names: ours and theirs.
    fn argument_names(&self, tool: &str) -> &'static [(&'static str, &'static str)] {
        self.tools.get(tool).map(|row| row.arguments).unwrap_or_default()
    }
}

/// Builds the JSON that a hook receives on its standard input.
pub(super) fn build_payload(
    format: &ClaudeHookFormat,
    context: &HookContext<'_>,
    hook_payload: &HookPayload,
) -> Value {
    let mut payload = json!({
        "session_id": context.session,
        "transcript_path": "",
        "cwd": context.folder,
        "permission_mode": match context.mode {
            PermissionMode::Plan => "plan",
            PermissionMode::Ask => "default",
            PermissionMode::Auto => "acceptEdits",
            PermissionMode::Full => "bypassPermissions",
        },
        "hook_event_name": claude_event_name(hook_payload.point()),
    });
    let Some(map) = payload.as_object_mut() else { return payload };
    if let Some(call) = context.call {
        map.insert("tool_use_id".into(), json!(call));
    }
    if let Some(tool) = hook_payload.tool() {
        map.insert("tool_name".into(), json!(format.tool_name(tool)));
    }
    match hook_payload {
        HookPayload::BeforeCall { tool, arguments } => {
            let input = to_claude_arguments(format, tool, arguments, context.folder);
            map.insert("tool_input".into(), input);
        }
        HookPayload::AfterCall { tool, arguments, output } => {
            let input = to_claude_arguments(format, tool, arguments, context.folder);
            map.insert("tool_input".into(), input);
            let response = match format.tool_name(tool).as_str() {
                "Bash" => json!({"stdout": output.text, "stderr": "", "interrupted": false}),
                _ => json!({"content": output.text}),
            };
            map.insert("tool_response".into(), response);
        }
        HookPayload::PermissionAsked { accesses, reason, .. } => {
            map.insert("tool_input".into(), json!({"accesses": accesses}));
            map.insert("reason".into(), json!(reason));
        }
        HookPayload::UserPrompt { text } => {
            map.insert("prompt".into(), json!(text));
        }
        HookPayload::Event { point, details } => {
            map.extend(details.as_object().cloned().unwrap_or_default());
            match point {
                HookPoint::TurnEnd | HookPoint::SubagentEnd => {
                    let continuations = map.shift_remove("continuations");
                    let is_active = continuations.is_some_and(|count| count != json!(0));
                    map.insert("stop_hook_active".into(), json!(is_active));
                    if let Some(text) = map.shift_remove("text") {
                        map.insert("last_assistant_message".into(), text);
                    }
                }
                HookPoint::Notification => {
                    if let Some(kind) = map.shift_remove("kind") {
                        map.insert("notification_type".into(), kind);
                    }
                }
                HookPoint::Compaction => drop(map.insert("custom_instructions".into(), json!(""))),
                HookPoint::SessionEnd => drop(map.insert("reason".into(), json!("other"))),
                _ => {}
            }
        }
        HookPayload::ToolDefinition { .. }
        | HookPayload::CommandPrompt { .. }
        | HookPayload::ModelParams { .. }
        | HookPayload::RequestMessages { .. }
        | HookPayload::SystemPrompt { .. } => {}
    }
    payload
}

/// Returns Claude's name for a hook point.
fn claude_event_name(point: HookPoint) -> &'static str {
    match point {
        HookPoint::SessionStart => "SessionStart",
        HookPoint::SessionEnd => "SessionEnd",
        HookPoint::Prompt => "UserPromptSubmit",
        HookPoint::BeforeTool => "PreToolUse",
        HookPoint::AfterTool => "PostToolUse",
        HookPoint::Permission => "PermissionRequest",
        HookPoint::TurnEnd => "Stop",
        HookPoint::SubagentEnd => "SubagentStop",
        HookPoint::Notification => "Notification",
        HookPoint::Compaction => "PreCompact",
        HookPoint::Command
        | HookPoint::ToolDefinition
        | HookPoint::Params
        | HookPoint::Messages
        | HookPoint::System
        | HookPoint::Event => point.name(),
    }
}

/// Renames arguments to Claude's names and makes file paths absolute.
fn to_claude_arguments(
    format: &ClaudeHookFormat,
    tool: &str,
    arguments: &Value,
    folder: &str,
) -> Value {
    let names = format.argument_names(tool);
    let Some(arguments) = arguments.as_object() else { return arguments.clone() };
    let rename = |(key, value): (&String, &Value)| {
        let known = names.iter().find(|(ours, _)| ours == key);
        let key = known.map_or(key.as_str(), |(_, theirs)| theirs).to_owned();
        let path = value.as_str().filter(|_| key == "file_path");
        let value = path.map_or_else(
            || value.clone(),
            |path| json!(Path::new(folder).join(path).display().to_string()),
        );
        (key, value)
    };
    Value::Object(arguments.iter().map(rename).collect())
}

/// Renames arguments from Claude's names to ours. A path that the hook did not change keeps its
/// original form.
fn from_claude_arguments(
    names: &[(&str, &str)],
    input: Map<String, Value>,
    sent_input: Option<&Value>,
    original: &Value,
) -> Map<String, Value> {
    let restore = |(key, value): (String, Value)| {
        let known = names.iter().find(|(_, theirs)| *theirs == key);
        let ours = known.map_or(key.as_str(), |(ours, _)| ours).to_owned();
        let is_unchanged = sent_input.and_then(|sent_input| sent_input.get(&key)) == Some(&value);
        let value = original.get(&ours).filter(|_| is_unchanged).cloned().unwrap_or(value);
        (ours, value)
    };
    input.into_iter().map(restore).collect()
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ClaudeHookOutput {
    #[serde(rename = "continue")]
    should_continue: Option<bool>,
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<HookSpecificOutput>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct HookSpecificOutput {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    decision: Option<ClaudePermissionDecision>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudePermissionDecision {
    behavior: String,
    message: Option<String>,
}

/// The decision in a `ClaudeHookOutput`.
enum ClaudeHookDecision {
    Pass,
    Ask(String),
    Refuse(String),
}

/// Interprets a hook's output and applies it to the `HookPayload`.
pub(super) fn interpret_output(
    format: &ClaudeHookFormat,
    stdout: &str,
    sent_payload: &Value,
    hook_payload: HookPayload,
) -> Result<HookReply, HookError> {
    let point = hook_payload.point();
    let stdout = stdout.trim();
    if !stdout.starts_with('{') {
        // Output that is not JSON is context for the model at points that accept it, and is ignored
        // elsewhere.
        let is_context =
            !stdout.is_empty() && matches!(point, HookPoint::Prompt | HookPoint::SessionStart);
        return Ok(match is_context {
            true => HookReply::AddContext(hook_payload, stdout.to_owned()),
            false => HookReply::Continue(hook_payload),
        });
    }
    let output = parse_object(stdout)?;
    // Serde would accept an array as the field values in order, and an empty one as no output.
    let specific = output.get("hookSpecificOutput").unwrap_or(&Value::Null);
    if !specific.is_object() && !specific.is_null() {
        return Err(HookError::failed("`hookSpecificOutput` is not an object"));
    }
    let output: ClaudeHookOutput =
        serde_json::from_value(Value::Object(output)).map_err(malformed_output)?;
    let decision = match (point, output.should_continue) {
        // Here `continue: false` ends the turn, which is what happens without a hook.
        (HookPoint::TurnEnd | HookPoint::SubagentEnd, Some(false)) => ClaudeHookDecision::Pass,
        _ => strictest_decision(&output)?,
    };
    let specific = output.hook_specific_output.unwrap_or_default();
    if let ClaudeHookDecision::Refuse(reason) = decision {
        return Err(HookError::denied(reason));
    }
    let context = specific.additional_context;
    let hook_payload = match (hook_payload, specific.updated_input) {
        (HookPayload::BeforeCall { tool, arguments }, Some(input)) => {
            let (names, sent_input) =
                (format.argument_names(&tool), sent_payload.get("tool_input"));
            let input = from_claude_arguments(names, input, sent_input, &arguments);
            HookPayload::BeforeCall { tool, arguments: Value::Object(input) }
        }
        (_, Some(_)) => {
            return Err(HookError::failed(format!("`updatedInput` is not supported at {point}")));
        }
        (HookPayload::AfterCall { tool, arguments, mut output }, None) => {
            if let Some(text) = &context {
                output.text = format!("{}\n\n{text}", output.text);
            }
            HookPayload::AfterCall { tool, arguments, output }
        }
        (hook_payload, None) => hook_payload,
    };
    match (decision, context) {
        (ClaudeHookDecision::Ask(reason), _) if can_ask_user(point) => {
            Ok(HookReply::AskUser(hook_payload, reason))
        }
        (ClaudeHookDecision::Ask(_), _) => {
            Err(HookError::failed(format!("approval cannot be requested at {point}")))
        }
        (_, Some(text)) if accepts_context(point) => Ok(HookReply::AddContext(hook_payload, text)),
        (_, _) => Ok(HookReply::Continue(hook_payload)),
    }
}

/// Returns the strictest of the decisions in a hook's output.
fn strictest_decision(output: &ClaudeHookOutput) -> Result<ClaudeHookDecision, HookError> {
    let reason_or_default =
        |reason: Option<&String>| reason.cloned().unwrap_or_else(|| "no reason given".to_owned());
    let unknown = |decision: &str| Err(HookError::failed(format!("unknown decision `{decision}`")));
    if output.should_continue == Some(false) {
        return Ok(ClaudeHookDecision::Refuse(reason_or_default(
            output.stop_reason.as_ref().or(output.reason.as_ref()),
        )));
    }
    match output.decision.as_deref() {
        Some("block" | "deny") => {
            return Ok(ClaudeHookDecision::Refuse(reason_or_default(output.reason.as_ref())));
        }
        None | Some("approve" | "allow") => {}
        Some(decision) => return unknown(decision),
    }
    let Some(specific) = &output.hook_specific_output else { return Ok(ClaudeHookDecision::Pass) };
    if let Some(decision) = &specific.decision {
        match decision.behavior.as_str() {
            "deny" => {
                return Ok(ClaudeHookDecision::Refuse(reason_or_default(
                    decision.message.as_ref(),
                )));
            }
            "allow" => {}
            decision => return unknown(decision),
        }
    }
    let reason = || reason_or_default(specific.permission_decision_reason.as_ref());
    match specific.permission_decision.as_deref() {
        Some("deny") => Ok(ClaudeHookDecision::Refuse(reason())),
        Some("ask" | "defer") => Ok(ClaudeHookDecision::Ask(reason())),
        None | Some("allow") => Ok(ClaudeHookDecision::Pass),
        Some(decision) => unknown(decision),
    }
}
