//! How a request is written.

use crate::Request;
use crate::adapt::{File, Item, Sight, Turn, schema};
use crate::catalog::{Echo, EffortStyle, Quirks};
use crate::wire::{set, shape};
use serde_json::{Map, Value, json};
use windlass_protocol::{Choice, Effort};

/// The body of a streaming request, but for the conversation, which is left open.
pub fn frame(request: &Request, quirks: &Quirks) -> Value {
    let (options, model) = (&request.options, &request.model);
    let mut body = Map::new();
    body.insert("model".into(), model.id.clone().into());
    // Servers on one's own machine cannot give an answer a shape while there are tools.
    let barred = options.tool_choice == Some(Choice::None) && quirks.text;
    let with_tools = !request.tools.is_empty() && !barred;
    if with_tools {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": schema::adapt(&tool.schema, quirks.schema),
            }})
        });
        body.insert("tools".into(), tools.collect());
        let choice = options.tool_choice.as_ref().map(|choice| match choice {
            // A model that thinks cannot be made to call.
            Choice::Required | Choice::Tool(_) if thinks(request, quirks) => "auto".into(),
            Choice::Auto => "auto".into(),
            Choice::None => "none".into(),
            Choice::Required => "required".into(),
            Choice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        });
        body.extend(choice.map(|choice| ("tool_choice".into(), choice)));
        let parallel = options.parallel_calls.filter(|_| quirks.parallel);
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".into(), parallel.into())));
    }
    body.insert("messages".into(), Value::Null);
    let most = request.max_output();
    let key = if quirks.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    body.extend(most.map(|most| (key.into(), most.into())));
    if model.temperature {
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(options.top_p.map(|value| ("top_p".into(), value.into())));
    }
    if let Some(effort) = options.effort {
        think(request, quirks, effort, &mut body);
    }
    // What is not sent is checked afterwards all the same.
    let shaped = match quirks.text {
        true => quirks.json_schema && !with_tools,
        false => quirks.json_schema && model.structured,
    };
    if let Some(answer) = options.answer.as_ref().filter(|_| shaped) {
        let shape = json!({"type": "json_schema", "json_schema": shape(answer)});
        body.insert("response_format".into(), shape);
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

/// True if the model thinks unless it is told not to, where that keeps it from being made to call.
fn thinks(request: &Request, quirks: &Quirks) -> bool {
    let style = matches!(quirks.effort, EffortStyle::ThinkingToggle | EffortStyle::EnableThinking);
    style && request.model.reasons && request.options.effort != Some(Effort::None)
}

fn think(request: &Request, quirks: &Quirks, effort: Effort, body: &mut Map<String, Value>) {
    let model = &request.model;
    if !model.reasons {
        return;
    }
    let on = effort != Effort::None;
    // None is not a little: it is chosen only where it was asked for, and never instead.
    let levels: Vec<Effort> =
        model.efforts.iter().copied().filter(|level| (*level != Effort::None) == on).collect();
    let level = effort.nearest(&levels);
    if !on && level.is_none() && !model.toggles {
        return;
    }
    let mut set = |key: &str, value: Value| {
        body.insert(key.into(), value);
    };
    match (quirks.effort, level) {
        (EffortStyle::None, _) | (EffortStyle::ReasoningEffort, None) => {}
        (
            EffortStyle::ReasoningEffort
            | EffortStyle::ReasoningSwitch
            | EffortStyle::ThinkingToggle,
            Some(level),
        ) => set("reasoning_effort", level.name().into()),
        (EffortStyle::ReasoningObject, level) => {
            set("reasoning", json!({"effort": level.unwrap_or(effort).name()}));
        }
        (EffortStyle::ReasoningSwitch, None) => set("reasoning", json!({"enabled": on})),
        (EffortStyle::ThinkingToggle, None) => {
            set("thinking", json!({"type": if on { "enabled" } else { "disabled" }}));
        }
        (EffortStyle::EnableThinking, _) => {
            set("enable_thinking", on.into());
            if let Some(budget) = model.budget.filter(|_| on) {
                let most = effort.budget().min(budget.most.unwrap_or(u64::MAX));
                set("thinking_budget", most.max(budget.least.unwrap_or(0)).into());
            }
        }
    }
}

/// The message before the conversation, if there is one.
pub fn opening(request: &Request, quirks: &Quirks) -> Option<Value> {
    if request.system.is_empty() {
        return None;
    }
    let role = if quirks.developer { "developer" } else { "system" };
    let mut message = json!({"role": role, "content": &*request.system});
    if marks(request, quirks) && role == "system" {
        mark(&mut message);
    }
    Some(message)
}

/// The messages of a turn.
pub fn write(turn: &Turn<'_>, quirks: &Quirks, messages: &mut Vec<Value>) {
    match turn {
        Turn::User(items) => user(items, quirks, messages),
        Turn::Model(items) => messages.push(model(items, quirks)),
    }
}

/// Marks mean something only to the makers of these models; others may refuse them.
fn marks(request: &Request, quirks: &Quirks) -> bool {
    quirks.cache_marks && request.model.id.contains("claude")
}

/// Results are messages of their own. Files cannot be in them, so they follow.
fn user(items: &[Item<'_>], quirks: &Quirks, messages: &mut Vec<Value>) {
    let mut content: Vec<Value> = Vec::new();
    let mut answered = false;
    for item in items {
        match item {
            Item::Text { text, .. } => content.push(json!({"type": "text", "text": text})),
            Item::File(shown) => content.push(file(shown)),
            Item::Result { id, name, text, files, .. } => {
                answered = true;
                let words = files.iter().filter_map(|sight| match sight {
                    Sight::Words(words) => Some(words.as_str()),
                    Sight::File(_) => None,
                });
                let text = if text.is_empty() { "(a file)" } else { text };
                let text = std::iter::once(text).chain(words).collect::<Vec<_>>().join("\n");
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
                for sight in files {
                    if let Sight::File(shown) = sight {
                        let told = format!("{}, which {name} gave:", shown.name);
                        content.push(json!({"type": "text", "text": told}));
                        content.push(file(shown));
                    }
                }
            }
            Item::Thought { .. } | Item::Call { .. } => {}
        }
    }
    if content.is_empty() {
        return;
    }
    if answered && quirks.alternates {
        messages.push(json!({"role": "assistant", "content": "I see."}));
    }
    // Plain text is sent plainly: not every server takes a list.
    let texts: Option<Vec<&str>> = content.iter().map(|block| block["text"].as_str()).collect();
    let content: Value = match texts {
        Some(texts) => texts.join("\n\n").into(),
        None => content.into(),
    };
    messages.push(json!({"role": "user", "content": content}));
}

fn model(items: &[Item<'_>], quirks: &Quirks) -> Value {
    let (mut text, mut thought) = (String::new(), String::new());
    let (mut calls, mut details) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Text { text: more, .. } => text.push_str(more),
            Item::Thought { text: more, seal } => {
                thought.push_str(more);
                let sealed = seal.and_then(|seal| serde_json::from_str::<Vec<Value>>(seal).ok());
                details.extend(sealed.unwrap_or_default());
            }
            Item::Call { id, name, arguments, .. } => {
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            Item::File(_) | Item::Result { .. } => {}
        }
    }
    let mut said = Map::new();
    said.insert("role".into(), "assistant".into());
    let content = if text.is_empty() { Value::Null } else { text.into() };
    said.insert("content".into(), content);
    match quirks.echo {
        Echo::ReasoningContent if !calls.is_empty() => {
            said.insert("reasoning_content".into(), thought.into());
        }
        Echo::AlwaysReasoningContent => {
            said.insert("reasoning_content".into(), thought.into());
        }
        Echo::ReasoningDetails if !details.is_empty() => {
            said.insert("reasoning_details".into(), details.into());
        }
        Echo::None | Echo::ReasoningContent | Echo::ReasoningDetails => {}
    }
    if !calls.is_empty() {
        said.insert("tool_calls".into(), calls.into());
    }
    said.into()
}

fn file(file: &File<'_>) -> Value {
    if file.is_image() {
        return json!({"type": "image_url", "image_url": {"url": file.url()}});
    }
    json!({"type": "file", "file": {"filename": file.name, "file_data": file.url()}})
}

/// Marks the last two of our messages, as the system prompt is.
pub fn mark_last(messages: &mut [Value], request: &Request, quirks: &Quirks) {
    let ours = |message: &&mut Value| message["role"] == "user" || message["role"] == "tool";
    let last = if marks(request, quirks) { 2 } else { 0 };
    for message in messages.iter_mut().rev().filter(ours).take(last) {
        mark(message);
    }
}

fn mark(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        let block = json!({"type": "text", "text": text});
        set(message, "content", json!([block]));
    }
    let content = message.get_mut("content").and_then(Value::as_array_mut);
    if let Some(last) = content.and_then(|content| content.last_mut()) {
        set(last, "cache_control", json!({"type": "ephemeral"}));
    }
}
