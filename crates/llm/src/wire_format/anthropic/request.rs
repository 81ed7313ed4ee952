//! Encodes requests for the Anthropic Messages API.

use crate::ModelRequest;
use crate::adapt::{AdaptedTurn, FileOrDescription, ModelReadableFile, TurnItem, schema};
use crate::quirks::Quirks;
use crate::wire_format::set_field;
use serde_json::{Map, Value, json};
use windlass_protocol::{ReasoningEffort, ToolChoice};

/// The `max_tokens` of a request that sets no limit.
const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// Encodes the body of a streaming request without its `messages`.
pub fn envelope(request: &ModelRequest, quirks: &Quirks) -> Value {
    let options = &request.options;
    let mut body = Map::new();
    body.insert("model".into(), request.model.id.clone().into());
    // This API requires `max_tokens`.
    let mut max_tokens =
        options.max_output.unwrap_or(DEFAULT_MAX_TOKENS).min(request.model.max_output_tokens());
    let mut output = Map::new();
    let thinks = set_thinking(request, &mut body, &mut output, &mut max_tokens);
    body.insert("max_tokens".into(), max_tokens.into());
    // The cache covers everything before a mark, in the order tools, system prompt, messages. One
    // mark follows the part that never changes, and one follows each of the last two user turns;
    // the older of these was the newest one request earlier.
    let marks = quirks.cache_marks;
    let mut tools = tool_list(request, quirks);
    if !request.system_prompt.is_empty() {
        let mut system = json!({"type": "text", "text": &*request.system_prompt});
        set_cache_mark(&mut system, marks);
        body.insert("system".into(), json!([system]));
    } else if let Some(last) = tools.last_mut() {
        set_cache_mark(last, marks);
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        if let Some(choice) = tool_choice(request, thinks) {
            body.insert("tool_choice".into(), choice);
        }
    }
    body.insert("messages".into(), Value::Null);
    if !thinks && request.model.temperature {
        // The API rejects `top_p` together with `temperature`.
        let top_p = options.top_p.filter(|_| options.temperature.is_none());
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(top_p.map(|value| ("top_p".into(), value.into())));
        body.extend(options.top_k.map(|value| ("top_k".into(), value.into())));
    }
    let is_supported = |answer: &&Value| request.model.structured && schema::fits_strict(answer);
    if let Some(answer) = options.answer.as_ref().filter(is_supported) {
        let mut schema = schema::adapt_schema(answer, schema::SchemaSubset::Strict);
        drop_unsupported_keywords(&mut schema);
        output.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    if !output.is_empty() {
        body.insert("output_config".into(), output.into());
    }
    body.insert("stream".into(), true.into());
    body.into()
}

/// Sets the `thinking` fields; returns true if the model will think.
fn set_thinking(
    request: &ModelRequest,
    body: &mut Map<String, Value>,
    output: &mut Map<String, Value>,
    max_tokens: &mut u64,
) -> bool {
    let model = &request.model;
    let Some(effort) = request.options.effort.filter(|_| model.reasons) else {
        // Models with effort levels and no budget think by default.
        return model.reasons && !model.efforts.is_empty() && model.budget.is_none();
    };
    if effort == ReasoningEffort::None {
        if model.toggles {
            body.insert("thinking".into(), json!({"type": "disabled"}));
        }
        return false;
    }
    if let Some(effort) = effort.nearest(&model.efforts).filter(|_| model.budget.is_none()) {
        body.insert("thinking".into(), json!({"type": "adaptive"}));
        output.insert("effort".into(), effort.name().into());
    } else {
        // Thinking counts as output, so `max_tokens` must leave room for the response.
        let limit = model.output.unwrap_or(*max_tokens);
        let budget = effort.token_budget().min(limit.saturating_sub(1_024)).max(1_024);
        *max_tokens = (*max_tokens).max(budget + 1_024).min(limit.max(budget + 1));
        body.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
    }
    true
}

/// Removes keywords that the API does not support in a response schema. The response is validated
/// against the full schema later.
fn drop_unsupported_keywords(schema: &mut Value) {
    const UNSUPPORTED_KEYWORDS: &[&str] = &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
    ];
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !UNSUPPORTED_KEYWORDS.contains(&key.as_str()));
    for (key, inner) in map {
        match (key.as_str(), inner) {
            ("properties", Value::Object(fields)) => {
                fields.values_mut().for_each(drop_unsupported_keywords)
            }
            ("anyOf", Value::Array(list)) => list.iter_mut().for_each(drop_unsupported_keywords),
            ("items", item) => drop_unsupported_keywords(item),
            _ => {}
        }
    }
}

fn tool_list(request: &ModelRequest, quirks: &Quirks) -> Vec<Value> {
    let encode_tool = |tool: &windlass_protocol::ModelToolDefinition| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": schema::adapt_schema(&tool.schema, quirks.schema_subset),
        })
    };
    request.tools.iter().map(encode_tool).collect()
}

fn tool_choice(request: &ModelRequest, thinks: bool) -> Option<Value> {
    let options = &request.options;
    let mut choice = match &options.tool_choice {
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        // The API does not allow a forced call while the model thinks.
        Some(ToolChoice::Required) if !thinks => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) if !thinks => json!({"type": "tool", "name": name}),
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_)) => {
            json!({"type": "auto"})
        }
        None if options.parallel_calls == Some(false) => json!({"type": "auto"}),
        None => return None,
    };
    if options.parallel_calls == Some(false) {
        set_field(&mut choice, "disable_parallel_tool_use", true);
    }
    Some(choice)
}

fn set_cache_mark(block: &mut Value, marks: bool) {
    // A `thinking` block cannot carry a cache mark.
    let is_reasoning = matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if marks && !is_reasoning {
        set_field(block, "cache_control", json!({"type": "ephemeral"}));
    }
}

/// Sets `cache_control` on the last two user messages.
pub fn mark_last_messages(messages: &mut [Value], quirks: &Quirks) {
    let user_messages = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in user_messages.take(2) {
        let content = message.get_mut("content").and_then(Value::as_array_mut);
        if let Some(last) = content.and_then(|content| content.last_mut()) {
            set_cache_mark(last, quirks.cache_marks);
        }
    }
}

/// Encodes one turn as a message.
pub fn turn_message(turn: &AdaptedTurn<'_>) -> Value {
    let (role, items) = match turn {
        AdaptedTurn::User(items) => ("user", items),
        AdaptedTurn::Model(items) => ("assistant", items),
    };
    let content: Vec<Value> = items.iter().filter_map(content_block).collect();
    json!({"role": role, "content": content})
}

fn content_block(item: &TurnItem<'_>) -> Option<Value> {
    Some(match item {
        TurnItem::Text { text, .. } if text.is_empty() => return None,
        TurnItem::Text { text, .. } => json!({"type": "text", "text": text}),
        TurnItem::Reasoning { text, provider_signature } => {
            return thinking_block(text, (*provider_signature)?);
        }
        TurnItem::File(file) => file_block(file),
        TurnItem::Call { id, name, arguments, .. } => {
            let input = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        TurnItem::Result { id, text, failed, files, .. } => {
            let mut content = Vec::new();
            content.extend((!text.is_empty()).then(|| json!({"type": "text", "text": text})));
            content.extend(files.iter().map(|file| match file {
                FileOrDescription::File(file) => file_block(file),
                FileOrDescription::Description(description) => {
                    json!({"type": "text", "text": description})
                }
            }));
            let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            if *failed {
                set_field(&mut block, "is_error", true);
            }
            block
        }
    })
}

/// Encodes reasoning, using the signature it came with; returns `None` if the signature is not of
/// this format.
fn thinking_block(text: &str, provider_signature: &str) -> Option<Value> {
    let provider_signature: Value = serde_json::from_str(provider_signature).ok()?;
    if let Some(data) = provider_signature.get("redacted") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let signature = provider_signature.get("signature")?;
    Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
}

fn file_block(file: &ModelReadableFile<'_>) -> Value {
    let kind = if file.is_image() { "image" } else { "document" };
    let source = json!({"type": "base64", "media_type": file.mime, "data": file.to_base64()});
    let mut block = json!({"type": kind, "source": source});
    if kind == "document" {
        set_field(&mut block, "title", file.name);
    }
    block
}
