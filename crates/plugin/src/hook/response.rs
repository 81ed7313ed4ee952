//! Parses hook output in Windlass's own format: empty, or one JSON object. There is no decision
//! that grants: a hook can only let an operation pass to the checks that follow.

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::HookPoint;
use windlass_toolkit::{HookError, HookPayload, HookReply};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct HookOutput {
    verdict: HookDecision,
    reason: Option<String>,
    arguments: Option<Map<String, Value>>,
    output: Option<String>,
    title: Option<String>,
    metadata: Option<Map<String, Value>>,
    prompt: Option<String>,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
    params: Option<Map<String, Value>>,
    messages: Option<Vec<Value>>,
    system: Option<String>,
    context: Option<String>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum HookDecision {
    #[default]
    Pass,
    Refuse,
    Ask,
}

/// Interprets a hook's output and applies it to the `HookPayload`.
pub(super) fn interpret_output(
    output: &str,
    hook_payload: HookPayload,
) -> Result<HookReply, HookError> {
    if output.trim().is_empty() {
        return Ok(HookReply::Continue(hook_payload));
    }
    let reply: Map<String, Value> = parse_object(output)?;
    let reply: HookOutput =
        serde_json::from_value(Value::Object(reply)).map_err(malformed_output)?;
    let reason = reply.reason.clone();
    let reason_or_default = || reason.clone().unwrap_or_else(|| "no reason given".to_owned());
    if reply.verdict == HookDecision::Refuse {
        return Err(HookError::denied(reason_or_default()));
    }
    let asks_user = reply.verdict == HookDecision::Ask;
    let context = reply.context.clone();
    let point = hook_payload.point();
    let hook_payload = apply_output(hook_payload, reply)?;
    match context {
        Some(text) if accepts_context(point) && !asks_user => {
            Ok(HookReply::AddContext(hook_payload, text))
        }
        Some(_) => Err(misplaced_field("context", point)),
        None if !asks_user => Ok(HookReply::Continue(hook_payload)),
        None if can_ask_user(point) => Ok(HookReply::AskUser(hook_payload, reason_or_default())),
        None => Err(HookError::failed(format!("approval cannot be requested at {point}"))),
    }
}

/// Parses output that must be exactly one JSON object.
pub(super) fn parse_object(output: &str) -> Result<Map<String, Value>, HookError> {
    serde_json::from_str(output).map_err(malformed_output)
}

pub(super) fn malformed_output(error: serde_json::Error) -> HookError {
    HookError::failed(format!("invalid output: {error}"))
}

/// Returns true at points where a hook can add context for the model.
pub(super) fn accepts_context(point: HookPoint) -> bool {
    matches!(point, HookPoint::SessionStart | HookPoint::Prompt | HookPoint::Compaction)
}

/// Returns true at points where a hook can ask the user.
pub(super) fn can_ask_user(point: HookPoint) -> bool {
    matches!(point, HookPoint::BeforeTool | HookPoint::Permission)
}

fn misplaced_field(field: &str, point: HookPoint) -> HookError {
    HookError::failed(format!("`{field}` is not supported at {point}"))
}

/// Applies a hook's changes to the `HookPayload`. A field that cannot be changed at this point is
/// an error rather than ignored, because the hook's author expects it to have an effect.
fn apply_output(hook_payload: HookPayload, reply: HookOutput) -> Result<HookPayload, HookError> {
    let point = hook_payload.point();
    let HookOutput { arguments, output, title, metadata, prompt, .. } = reply;
    let HookOutput { description, parameters, params, messages, system, .. } = reply;
    let fields = [
        ("arguments", arguments.is_some(), point == HookPoint::BeforeTool),
        ("output", output.is_some(), point == HookPoint::AfterTool),
        ("title", title.is_some(), point == HookPoint::AfterTool),
        ("metadata", metadata.is_some(), point == HookPoint::AfterTool),
        ("prompt", prompt.is_some(), matches!(point, HookPoint::Prompt | HookPoint::Command)),
        ("description", description.is_some(), point == HookPoint::ToolDefinition),
        ("parameters", parameters.is_some(), point == HookPoint::ToolDefinition),
        ("params", params.is_some(), point == HookPoint::Params),
        ("messages", messages.is_some(), point == HookPoint::Messages),
        ("system", system.is_some(), point == HookPoint::System),
    ];
    if let Some((field, ..)) = fields.iter().find(|(_, given, allowed)| *given && !allowed) {
        return Err(misplaced_field(field, point));
    }
    Ok(match hook_payload {
        HookPayload::BeforeCall { tool, arguments: original } => {
            HookPayload::BeforeCall { tool, arguments: arguments.map_or(original, Value::Object) }
        }
        HookPayload::AfterCall { tool, arguments, output: mut original } => {
            original.text = output.unwrap_or(original.text);
            original.title = title.unwrap_or(original.title);
            original.metadata = metadata.unwrap_or(original.metadata);
            HookPayload::AfterCall { tool, arguments, output: original }
        }
        HookPayload::UserPrompt { text } => {
            HookPayload::UserPrompt { text: prompt.unwrap_or(text) }
        }
        HookPayload::CommandPrompt { command, arguments, text } => {
            let text = prompt.unwrap_or(text);
            HookPayload::CommandPrompt { command, arguments, text }
        }
        HookPayload::ToolDefinition { tool, mut definition } => {
            definition.description = description.unwrap_or(definition.description);
            definition.schema = parameters.map_or(definition.schema, Value::Object);
            HookPayload::ToolDefinition { tool, definition }
        }
        HookPayload::ModelParams { params: original } => {
            HookPayload::ModelParams { params: params.map_or(original, Value::Object) }
        }
        HookPayload::RequestMessages { messages: original } => {
            HookPayload::RequestMessages { messages: messages.map_or(original, Value::Array) }
        }
        HookPayload::SystemPrompt { text } => {
            HookPayload::SystemPrompt { text: system.unwrap_or(text) }
        }
        unchanged @ (HookPayload::PermissionAsked { .. } | HookPayload::Event { .. }) => unchanged,
    })
}
