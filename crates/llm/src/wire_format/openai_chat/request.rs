//! Encodes requests for the OpenAI Chat Completions API.

use crate::ModelRequest;
use crate::adapt::{AdaptedTurn, FileOrDescription, ModelReadableFile, TurnItem};
use crate::quirks::{Quirks, ReasoningEcho, ReasoningEffortField};
use crate::wire_format::{answer_schema, set_field, tool_parameters};
use serde_json::{Map, Value, json};
use windlass_protocol::{ReasoningEffort, ToolChoice};

/// Encodes the body of a streaming request without its `messages`.
pub fn envelope(request: &ModelRequest, quirks: &Quirks) -> Value {
    let (options, model) = (&request.options, &request.model);
    let mut body = Map::new();
    body.insert("model".into(), model.id.clone().into());
    // Local servers cannot constrain a response to a schema while tools are present, so omit the
    // tools if the model must not call any.
    let calls_forbidden = options.tool_choice == Some(ToolChoice::None) && quirks.inline_calls;
    let with_tools = !request.tools.is_empty() && !calls_forbidden;
    if with_tools {
        let tools = request.tools.iter().map(|tool| {
            let (parameters, is_strict) = tool_parameters(tool, quirks);
            let mut function = Map::new();
            function.insert("name".into(), tool.name.as_str().into());
            function.insert("description".into(), tool.description.as_str().into());
            function.insert("parameters".into(), parameters);
            if is_strict {
                function.insert("strict".into(), true.into());
            }
            json!({"type": "function", "function": function})
        });
        body.insert("tools".into(), tools.collect());
        let choice = options.tool_choice.as_ref().map(|choice| match choice {
            // These providers do not allow a forced call while the model thinks.
            ToolChoice::Required | ToolChoice::Tool(_) if thinks_by_default(request, quirks) => {
                "auto".into()
            }
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        });
        body.extend(choice.map(|choice| ("tool_choice".into(), choice)));
        let parallel = options.parallel_calls.filter(|_| quirks.parallel_tool_calls);
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".into(), parallel.into())));
    }
    body.insert("messages".into(), Value::Null);
    let max_tokens = request.max_output_tokens();
    let key = if quirks.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    body.extend(max_tokens.map(|max_tokens| (key.into(), max_tokens.into())));
    if model.temperature {
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(options.top_p.map(|value| ("top_p".into(), value.into())));
        // The format does not define it. Servers on this machine accept it, OpenAI rejects it.
        let top_k = options.top_k.filter(|_| quirks.inline_calls);
        body.extend(top_k.map(|value| ("top_k".into(), value.into())));
    }
    if let Some(effort) = options.effort {
        set_reasoning(request, quirks, effort, &mut body);
    }
    // A schema that is not sent is still validated later.
    let constrains_response = match quirks.inline_calls {
        true => quirks.json_schema && !with_tools,
        false => quirks.json_schema && model.structured,
    };
    if let Some(answer) = options.answer.as_ref().filter(|_| constrains_response) {
        let response_format = json!({"type": "json_schema", "json_schema": answer_schema(answer)});
        body.insert("response_format".into(), response_format);
    }
    if let Some(key) = request.cache_key.as_ref().filter(|_| quirks.cache_key) {
        body.insert("prompt_cache_key".into(), key.clone().into());
    }
    body.insert("stream".into(), true.into());
    if quirks.stream_usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    body.into()
}

/// Returns true if the model thinks unless told not to, with a provider that then rejects forced
/// calls.
fn thinks_by_default(request: &ModelRequest, quirks: &Quirks) -> bool {
    let has_toggle = matches!(
        quirks.effort_style,
        ReasoningEffortField::ThinkingToggle | ReasoningEffortField::EnableThinking
    );
    has_toggle && request.model.reasons && request.options.effort != Some(ReasoningEffort::None)
}

fn set_reasoning(
    request: &ModelRequest,
    quirks: &Quirks,
    effort: ReasoningEffort,
    body: &mut Map<String, Value>,
) {
    let model = &request.model;
    if !model.reasons {
        return;
    }
    let is_enabled = effort != ReasoningEffort::None;
    // `ReasoningEffort::None` is not a low effort: it is used only if requested, and never as the
    // nearest level.
    let levels: Vec<ReasoningEffort> = model
        .efforts
        .iter()
        .copied()
        .filter(|level| (*level != ReasoningEffort::None) == is_enabled)
        .collect();
    let level = effort.nearest(&levels);
    if !is_enabled && level.is_none() && !model.toggles {
        return;
    }
    let mut set = |key: &str, value: Value| {
        body.insert(key.into(), value);
    };
    match (quirks.effort_style, level) {
        (ReasoningEffortField::None, _) | (ReasoningEffortField::ReasoningEffort, None) => {}
        (
            ReasoningEffortField::ReasoningEffort
            | ReasoningEffortField::ReasoningSwitch
            | ReasoningEffortField::ThinkingToggle,
            Some(level),
        ) => set("reasoning_effort", level.name().into()),
        (ReasoningEffortField::ReasoningObject, level) => {
            set("reasoning", json!({"effort": level.unwrap_or(effort).name()}));
        }
        (ReasoningEffortField::ReasoningSwitch, None) => {
            set("reasoning", json!({"enabled": is_enabled}))
        }
        (ReasoningEffortField::ThinkingToggle, None) => {
            set("thinking", json!({"type": if is_enabled { "enabled" } else { "disabled" }}));
        }
        (ReasoningEffortField::EnableThinking, _) => {
            set("enable_thinking", is_enabled.into());
            if let Some(budget) = model.budget.filter(|_| is_enabled) {
                let max_budget = effort.token_budget().min(budget.max_tokens.unwrap_or(u64::MAX));
                set("thinking_budget", max_budget.max(budget.min_tokens.unwrap_or(0)).into());
            }
        }
    }
}

/// Encodes the system prompt as the first message; `None` if it is empty.
pub fn system_message(request: &ModelRequest, quirks: &Quirks) -> Option<Value> {
    if request.system_prompt.is_empty() {
        return None;
    }
    let role = if quirks.developer_role { "developer" } else { "system" };
    let mut message = json!({"role": role, "content": &*request.system_prompt});
    if uses_cache_marks(request, quirks) && role == "system" {
        set_cache_mark(&mut message);
    }
    Some(message)
}

/// Appends the messages of a turn.
pub fn write_turn(turn: &AdaptedTurn<'_>, quirks: &Quirks, messages: &mut Vec<Value>) {
    match turn {
        AdaptedTurn::User(items) => write_user_turn(items, quirks, messages),
        AdaptedTurn::Model(items) => messages.push(model_message(items, quirks)),
    }
}

/// Returns true for Claude models at a provider with `cache_marks`. The marks have an effect only
/// for these models; others may reject them.
fn uses_cache_marks(request: &ModelRequest, quirks: &Quirks) -> bool {
    quirks.cache_marks && request.model.id.contains("claude")
}

/// Appends a user turn. Each tool result is a message of its own. Results cannot contain files, so
/// the files follow in a user message.
fn write_user_turn(items: &[TurnItem<'_>], quirks: &Quirks, messages: &mut Vec<Value>) {
    let mut content: Vec<Value> = Vec::new();
    let mut has_results = false;
    for item in items {
        match item {
            TurnItem::Text { text, .. } => content.push(json!({"type": "text", "text": text})),
            TurnItem::File(file) => content.push(file_part(file)),
            TurnItem::Result { id, name, text, files, .. } => {
                has_results = true;
                let descriptions = files.iter().filter_map(|file| match file {
                    FileOrDescription::Description(description) => Some(description.as_str()),
                    FileOrDescription::File(_) => None,
                });
                let text = if text.is_empty() { "(a file)" } else { text };
                let text = std::iter::once(text).chain(descriptions).collect::<Vec<_>>().join("\n");
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
                for file in files {
                    if let FileOrDescription::File(file) = file {
                        let caption = format!("{}, returned by {name}:", file.name);
                        content.push(json!({"type": "text", "text": caption}));
                        content.push(file_part(file));
                    }
                }
            }
            TurnItem::Reasoning { .. } | TurnItem::Call { .. } => {}
        }
    }
    if content.is_empty() {
        return;
    }
    if has_results && quirks.strict_alternation {
        messages.push(json!({"role": "assistant", "content": "I see."}));
    }
    // Send plain text as a string: not every server accepts a list.
    let texts: Option<Vec<&str>> = content.iter().map(|block| block["text"].as_str()).collect();
    let content: Value = match texts {
        Some(texts) => texts.join("\n\n").into(),
        None => content.into(),
    };
    messages.push(json!({"role": "user", "content": content}));
}

fn model_message(items: &[TurnItem<'_>], quirks: &Quirks) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    let mut details = Vec::new();
    for item in items {
        match item {
            TurnItem::Text { text: more, .. } => text.push_str(more),
            TurnItem::Reasoning { text: more, provider_signature } => {
                reasoning.push_str(more);
                let parsed_details = provider_signature.and_then(|provider_signature| {
                    serde_json::from_str::<Vec<Value>>(provider_signature).ok()
                });
                details.extend(parsed_details.unwrap_or_default());
            }
            TurnItem::Call { id, name, arguments, .. } => {
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            TurnItem::File(_) | TurnItem::Result { .. } => {}
        }
    }
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let content = if text.is_empty() { Value::Null } else { text.into() };
    message.insert("content".into(), content);
    match quirks.reasoning_echo {
        ReasoningEcho::ReasoningContent if !calls.is_empty() => {
            message.insert("reasoning_content".into(), reasoning.into());
        }
        ReasoningEcho::AlwaysReasoningContent => {
            message.insert("reasoning_content".into(), reasoning.into());
        }
        ReasoningEcho::ReasoningDetails if !details.is_empty() => {
            message.insert("reasoning_details".into(), details.into());
        }
        ReasoningEcho::None | ReasoningEcho::ReasoningContent | ReasoningEcho::ReasoningDetails => {
        }
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

fn file_part(file: &ModelReadableFile<'_>) -> Value {
    if file.is_image() {
        return json!({"type": "image_url", "image_url": {"url": file.to_data_url()}});
    }
    json!({"type": "file", "file": {"filename": file.name, "file_data": file.to_data_url()}})
}

/// Sets `cache_control` on the last two user or tool messages, in the same way as on the system
/// prompt.
pub fn mark_last_messages(messages: &mut [Value], request: &ModelRequest, quirks: &Quirks) {
    let is_input = |message: &&mut Value| message["role"] == "user" || message["role"] == "tool";
    let marked_count = if uses_cache_marks(request, quirks) { 2 } else { 0 };
    for message in messages.iter_mut().rev().filter(is_input).take(marked_count) {
        set_cache_mark(message);
    }
}

fn set_cache_mark(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        let block = json!({"type": "text", "text": text});
        set_field(message, "content", json!([block]));
    }
    let content = message.get_mut("content").and_then(Value::as_array_mut);
    if let Some(last) = content.and_then(|content| content.last_mut()) {
        set_field(last, "cache_control", json!({"type": "ephemeral"}));
    }
}
