//! Encodes requests for the OpenAI Responses API.

use crate::ModelRequest;
use crate::adapt::{AdaptedTurn, FileOrDescription, ModelReadableFile, TurnItem};
use crate::quirks::Quirks;
use crate::wire_format::{answer_schema, set_field, tool_parameters};
use serde_json::{Map, Value, json};
use windlass_protocol::ToolChoice;

/// Encodes the body of a streaming request without the input items. Nothing is stored at the
/// provider (`store: false`): each request sends the whole conversation, and reasoning is exchanged
/// in encrypted form.
pub fn envelope(request: &ModelRequest, quirks: &Quirks) -> Value {
    let (options, model) = (&request.options, &request.model);
    let mut body = Map::new();
    body.insert("model".into(), model.id.clone().into());
    if !request.system_prompt.is_empty() {
        body.insert("instructions".into(), (*request.system_prompt).into());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (parameters, is_strict) = tool_parameters(tool, quirks);
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters,
                "strict": is_strict,
            })
        });
        body.insert("tools".into(), tools.collect());
        let choice = options.tool_choice.as_ref().map(|choice| match choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
        });
        body.extend(choice.map(|choice| ("tool_choice".into(), choice)));
        let parallel = options.parallel_calls.filter(|_| quirks.parallel_tool_calls);
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".into(), parallel.into())));
    }
    body.insert("input".into(), Value::Null);
    let max_tokens = request.max_output_tokens();
    body.extend(max_tokens.map(|max_tokens| ("max_output_tokens".into(), max_tokens.into())));
    if model.temperature {
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(options.top_p.map(|value| ("top_p".into(), value.into())));
    }
    // A model without effort levels rejects these fields, even if the catalog says that it reasons.
    // Summaries are not requested, because the provider rejects that for unverified accounts.
    if model.reasons && !model.efforts.is_empty() {
        if let Some(effort) = options.effort.and_then(|effort| effort.nearest(&model.efforts)) {
            body.insert("reasoning".into(), json!({"effort": effort.name()}));
        }
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(answer) = &options.answer {
        let mut format = answer_schema(answer);
        set_field(&mut format, "type", "json_schema");
        body.insert("text".into(), json!({"format": format}));
    }
    if let Some(key) = request.cache_key.as_ref().filter(|_| quirks.cache_key) {
        body.insert("prompt_cache_key".into(), key.clone().into());
    }
    body.insert("store".into(), false.into());
    body.insert("stream".into(), true.into());
    body.into()
}

/// Appends the `input` items of a turn.
pub fn write_turn(turn: &AdaptedTurn<'_>, input: &mut Vec<Value>) {
    let (role, items) = match turn {
        AdaptedTurn::User(items) => ("user", items),
        AdaptedTurn::Model(items) => ("assistant", items),
    };
    // Content of the current message, until another kind of item follows.
    let mut content: Vec<Value> = Vec::new();
    for item in items {
        match item {
            TurnItem::Text { text, provider_signature } if role == "assistant" => {
                flush_content(role, &mut content, input);
                input.push(assistant_message(text, *provider_signature));
            }
            TurnItem::Text { text, .. } => {
                content.push(json!({"type": "input_text", "text": text}))
            }
            TurnItem::File(file) => content.push(file_content(file)),
            // Reasoning is sent back as the item it arrived as, byte for byte.
            TurnItem::Reasoning { provider_signature, .. } => {
                let item = provider_signature.and_then(|provider_signature| {
                    serde_json::from_str::<Value>(provider_signature).ok()
                });
                input.extend(item.filter(|item| item["type"] == "reasoning"));
            }
            TurnItem::Call { id, name, arguments, .. } => input.push(json!({
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": arguments,
            })),
            TurnItem::Result { id, text, files, .. } => {
                input.push(json!({
                    "type": "function_call_output",
                    "call_id": id,
                    "output": tool_output(text, files),
                }));
            }
        }
    }
    flush_content(role, &mut content, input);
}

fn flush_content(role: &str, content: &mut Vec<Value>, input: &mut Vec<Value>) {
    if !content.is_empty() {
        let content = std::mem::take(content);
        input.push(json!({"type": "message", "role": role, "content": content}));
    }
}

fn assistant_message(text: &str, provider_signature: Option<&str>) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    let mut message = json!({"type": "message", "role": "assistant", "content": content});
    let provider_signature = provider_signature
        .and_then(|provider_signature| serde_json::from_str::<Value>(provider_signature).ok());
    if let Some(phase) =
        provider_signature.as_ref().and_then(|provider_signature| provider_signature.get("phase"))
    {
        set_field(&mut message, "phase", phase.clone());
    }
    message
}

fn tool_output(text: &str, files: &[FileOrDescription<'_>]) -> Value {
    if files.is_empty() {
        return text.into();
    }
    let contents = files.iter().map(|file| match file {
        FileOrDescription::File(file) => file_content(file),
        FileOrDescription::Description(text) => json!({"type": "input_text", "text": text}),
    });
    let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
    text.into_iter().chain(contents).collect()
}

fn file_content(file: &ModelReadableFile<'_>) -> Value {
    if file.is_image() {
        return json!({"type": "input_image", "image_url": file.to_data_url()});
    }
    json!({"type": "input_file", "filename": file.name, "file_data": file.to_data_url()})
}
