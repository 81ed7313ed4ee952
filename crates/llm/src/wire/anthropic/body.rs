//! How a request is written.

use crate::Request;
use crate::adapt::{File, Item, Sight, Turn, schema};
use crate::catalog::Quirks;
use crate::wire::set;
use serde_json::{Map, Value, json};
use windlass_protocol::{Choice, Effort};

/// How many tokens an answer may have where nobody says.
const USUAL: u64 = 32_000;

/// The body of a streaming request, but for the conversation, which is left open.
pub fn frame(request: &Request, quirks: &Quirks) -> Value {
    let options = &request.options;
    let mut body = Map::new();
    body.insert("model".into(), request.model.id.clone().into());
    // This format has to be told a limit.
    let mut most = options.max_output.unwrap_or(USUAL).min(request.model.most_output());
    let mut output = Map::new();
    let thinks = think(request, &mut body, &mut output, &mut most);
    body.insert("max_tokens".into(), most.into());
    // The cache holds what comes before a mark, tools first, then the system prompt, then the
    // conversation: one mark behind the part that never changes, and one behind each of the last
    // two turns of ours, the older of which was the newest one a request ago.
    let marks = quirks.cache_marks;
    let mut tools = tools(request, quirks);
    if !request.system.is_empty() {
        let mut system = json!({"type": "text", "text": &*request.system});
        mark(&mut system, marks);
        body.insert("system".into(), json!([system]));
    } else if let Some(last) = tools.last_mut() {
        mark(last, marks);
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        if let Some(choice) = choice(request, thinks) {
            body.insert("tool_choice".into(), choice);
        }
    }
    body.insert("messages".into(), Value::Null);
    if !thinks && request.model.temperature {
        // Never both: that is refused.
        let top_p = options.top_p.filter(|_| options.temperature.is_none());
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(top_p.map(|value| ("top_p".into(), value.into())));
    }
    let shaped = |answer: &&Value| request.model.structured && schema::fits_strict(answer);
    if let Some(answer) = options.answer.as_ref().filter(shaped) {
        let mut schema = schema::adapt(answer, schema::Subset::Strict);
        loosen(&mut schema);
        output.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    if !output.is_empty() {
        body.insert("output_config".into(), output.into());
    }
    body.insert("stream".into(), true.into());
    body.into()
}

/// Says how hard to think; true if it is to think at all.
fn think(
    request: &Request,
    body: &mut Map<String, Value>,
    output: &mut Map<String, Value>,
    most: &mut u64,
) -> bool {
    let model = &request.model;
    let Some(effort) = request.options.effort.filter(|_| model.reasons) else {
        // Models that are told an effort, not a budget, think by themselves.
        return model.reasons && !model.efforts.is_empty() && model.budget.is_none();
    };
    if effort == Effort::None {
        if model.toggles {
            body.insert("thinking".into(), json!({"type": "disabled"}));
        }
        return false;
    }
    if let Some(effort) = effort.nearest(&model.efforts).filter(|_| model.budget.is_none()) {
        body.insert("thinking".into(), json!({"type": "adaptive"}));
        output.insert("effort".into(), effort.name().into());
    } else {
        // Thoughts count as output, and the limit has to leave room for an answer.
        let can = model.output.unwrap_or(*most);
        let budget = effort.budget().min(can.saturating_sub(1_024)).max(1_024);
        *most = (*most).max(budget + 1_024).min(can.max(budget + 1));
        body.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
    }
    true
}

/// Takes out what this provider's shapes cannot say. The answer is checked against all of it.
fn loosen(schema: &mut Value) {
    const BEYOND: &[&str] = &[
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
    map.retain(|key, _| !BEYOND.contains(&key.as_str()));
    for (key, inner) in map {
        match (key.as_str(), inner) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(loosen),
            ("anyOf", Value::Array(list)) => list.iter_mut().for_each(loosen),
            ("items", item) => loosen(item),
            _ => {}
        }
    }
}

fn tools(request: &Request, quirks: &Quirks) -> Vec<Value> {
    let tool = |tool: &windlass_protocol::ToolSummary| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": schema::adapt(&tool.schema, quirks.schema),
        })
    };
    request.tools.iter().map(tool).collect()
}

fn choice(request: &Request, thinks: bool) -> Option<Value> {
    let options = &request.options;
    let mut choice = match &options.tool_choice {
        Some(Choice::None) => return Some(json!({"type": "none"})),
        // A model that thinks cannot be made to call.
        Some(Choice::Required) if !thinks => json!({"type": "any"}),
        Some(Choice::Tool(name)) if !thinks => json!({"type": "tool", "name": name}),
        Some(Choice::Auto | Choice::Required | Choice::Tool(_)) => json!({"type": "auto"}),
        None if options.parallel_calls == Some(false) => json!({"type": "auto"}),
        None => return None,
    };
    if options.parallel_calls == Some(false) {
        set(&mut choice, "disable_parallel_tool_use", true);
    }
    Some(choice)
}

fn mark(block: &mut Value, marks: bool) {
    // A thought cannot be marked.
    let thought = matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if marks && !thought {
        set(block, "cache_control", json!({"type": "ephemeral"}));
    }
}

/// Marks the last two of our messages.
pub fn mark_last(messages: &mut [Value], quirks: &Quirks) {
    let ours = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in ours.take(2) {
        let content = message.get_mut("content").and_then(Value::as_array_mut);
        if let Some(last) = content.and_then(|content| content.last_mut()) {
            mark(last, quirks.cache_marks);
        }
    }
}

/// One message.
pub fn message(turn: &Turn<'_>) -> Value {
    let (role, items) = match turn {
        Turn::User(items) => ("user", items),
        Turn::Model(items) => ("assistant", items),
    };
    let content: Vec<Value> = items.iter().filter_map(block).collect();
    json!({"role": role, "content": content})
}

fn block(item: &Item<'_>) -> Option<Value> {
    Some(match item {
        Item::Text { text, .. } if text.is_empty() => return None,
        Item::Text { text, .. } => json!({"type": "text", "text": text}),
        Item::Thought { text, seal } => return thought(text, (*seal)?),
        Item::File(shown) => file(shown),
        Item::Call { id, name, arguments, .. } => {
            let input = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Item::Result { id, text, failed, files, .. } => {
            let mut content = Vec::new();
            content.extend((!text.is_empty()).then(|| json!({"type": "text", "text": text})));
            content.extend(files.iter().map(|sight| match sight {
                Sight::File(shown) => file(shown),
                Sight::Words(words) => json!({"type": "text", "text": words}),
            }));
            let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            if *failed {
                set(&mut block, "is_error", true);
            }
            block
        }
    })
}

/// A thought goes back only as it was sealed.
fn thought(text: &str, seal: &str) -> Option<Value> {
    let seal: Value = serde_json::from_str(seal).ok()?;
    if let Some(data) = seal.get("redacted") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let signature = seal.get("signature")?;
    Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
}

fn file(file: &File<'_>) -> Value {
    let kind = if file.is_image() { "image" } else { "document" };
    let source = json!({"type": "base64", "media_type": file.mime, "data": file.base64()});
    let mut block = json!({"type": kind, "source": source});
    if kind == "document" {
        set(&mut block, "title", file.name);
    }
    block
}
