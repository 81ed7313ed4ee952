//! How a request is written.

use crate::Request;
use crate::adapt::{File, Item, Sight, Turn, schema};
use crate::catalog::Quirks;
use crate::wire::{set, shape};
use serde_json::{Map, Value, json};
use windlass_protocol::Choice;

/// The body of a streaming request, but for the conversation. Nothing is kept at the provider's: the conversation is sent
/// whole, and thoughts come and go encrypted.
pub fn frame(request: &Request, quirks: &Quirks) -> Value {
    let (options, model) = (&request.options, &request.model);
    let mut body = Map::new();
    body.insert("model".into(), model.id.clone().into());
    if !request.system.is_empty() {
        body.insert("instructions".into(), (*request.system).into());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": schema::adapt(&tool.schema, quirks.schema),
                "strict": quirks.schema == schema::Subset::Strict,
            })
        });
        body.insert("tools".into(), tools.collect());
        let choice = options.tool_choice.as_ref().map(|choice| match choice {
            Choice::Auto => "auto".into(),
            Choice::None => "none".into(),
            Choice::Required => "required".into(),
            Choice::Tool(name) => json!({"type": "function", "name": name}),
        });
        body.extend(choice.map(|choice| ("tool_choice".into(), choice)));
        let parallel = options.parallel_calls.filter(|_| quirks.parallel);
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".into(), parallel.into())));
    }
    body.insert("input".into(), Value::Null);
    let most = request.max_output();
    body.extend(most.map(|most| ("max_output_tokens".into(), most.into())));
    if model.temperature {
        body.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        body.extend(options.top_p.map(|value| ("top_p".into(), value.into())));
    }
    // A model that knows no effort does not take these, whatever it is said to do. Summaries are not
    // asked for: that is refused to whom the provider has not verified.
    if model.reasons && !model.efforts.is_empty() {
        if let Some(effort) = options.effort.and_then(|effort| effort.nearest(&model.efforts)) {
            body.insert("reasoning".into(), json!({"effort": effort.name()}));
        }
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(answer) = &options.answer {
        let mut format = shape(answer);
        set(&mut format, "type", "json_schema");
        body.insert("text".into(), json!({"format": format}));
    }
    if let Some(key) = request.cache_key.as_ref().filter(|_| quirks.cache_key) {
        body.insert("prompt_cache_key".into(), key.clone().into());
    }
    body.insert("store".into(), false.into());
    body.insert("stream".into(), true.into());
    body.into()
}

/// The items of a turn.
pub fn write(turn: &Turn<'_>, input: &mut Vec<Value>) {
    let (role, items) = match turn {
        Turn::User(items) => ("user", items),
        Turn::Model(items) => ("assistant", items),
    };
    // What belongs to one message, until something else comes.
    let mut content: Vec<Value> = Vec::new();
    for item in items {
        match item {
            Item::Text { text, seal } if role == "assistant" => {
                flush(role, &mut content, input);
                input.push(said(text, *seal));
            }
            Item::Text { text, .. } => content.push(json!({"type": "input_text", "text": text})),
            Item::File(shown) => content.push(file(shown)),
            // A thought goes back as the item it came as, byte for byte.
            Item::Thought { seal, .. } => {
                let item = seal.and_then(|seal| serde_json::from_str::<Value>(seal).ok());
                input.extend(item.filter(|item| item["type"] == "reasoning"));
            }
            Item::Call { id, name, arguments, .. } => input.push(json!({
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": arguments,
            })),
            Item::Result { id, text, files, .. } => {
                input.push(json!({
                    "type": "function_call_output",
                    "call_id": id,
                    "output": output(text, files),
                }));
            }
        }
    }
    flush(role, &mut content, input);
}

fn flush(role: &str, content: &mut Vec<Value>, input: &mut Vec<Value>) {
    if !content.is_empty() {
        let content = std::mem::take(content);
        input.push(json!({"type": "message", "role": role, "content": content}));
    }
}

fn said(text: &str, seal: Option<&str>) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    let mut message = json!({"type": "message", "role": "assistant", "content": content});
    let seal = seal.and_then(|seal| serde_json::from_str::<Value>(seal).ok());
    if let Some(phase) = seal.as_ref().and_then(|seal| seal.get("phase")) {
        set(&mut message, "phase", phase.clone());
    }
    message
}

fn output(text: &str, files: &[Sight<'_>]) -> Value {
    if files.is_empty() {
        return text.into();
    }
    let shown = files.iter().map(|sight| match sight {
        Sight::File(shown) => file(shown),
        Sight::Words(words) => json!({"type": "input_text", "text": words}),
    });
    let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
    text.into_iter().chain(shown).collect()
}

fn file(file: &File<'_>) -> Value {
    if file.is_image() {
        return json!({"type": "input_image", "image_url": file.url()});
    }
    json!({"type": "input_file", "filename": file.name, "file_data": file.url()})
}
