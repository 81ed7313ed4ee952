//! How a request is written.

use crate::Request;
use serde_json::{Map, Value, json};
use windlass_protocol::{Author, CallPart, Message, Outcome, Part, Role};

/// The body of a streaming request. The same request gives the same bytes, and a longer
/// conversation begins with the bytes of a shorter one, so that providers can cache it.
pub fn body(request: &Request) -> Value {
    let mut messages = vec![json!({"role": "system", "content": &*request.system})];
    for message in &request.messages {
        write(message, &mut messages);
    }
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            }})
        });
        body.insert("tools".into(), tools.collect());
    }
    body.insert("messages".into(), messages.into());
    if let Some(most) = request.max_output {
        body.insert("max_tokens".into(), most.into());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.into()
}

fn write(message: &Message, messages: &mut Vec<Value>) {
    let mut text = String::new();
    let mut calls: Vec<&CallPart> = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text: more } => text.push_str(more),
            // This format has no place for earlier thoughts.
            Part::Reasoning { .. } => {}
            Part::Call(call) => match call.by {
                Author::Model => calls.push(call),
                Author::Person => {
                    let told = format!(
                        "I ran the tool {} myself, with {}. It gave:\n{}",
                        call.tool,
                        call.arguments,
                        result(call)
                    );
                    messages.push(json!({"role": "user", "content": told}));
                }
            },
        }
    }
    match message.role {
        Role::User | Role::Context => messages.push(json!({"role": "user", "content": text})),
        Role::Assistant if calls.is_empty() && text.is_empty() => {}
        Role::Assistant => {
            let mut said = Map::new();
            said.insert("role".into(), "assistant".into());
            let content = if text.is_empty() { Value::Null } else { text.into() };
            said.insert("content".into(), content);
            if !calls.is_empty() {
                let tool_calls = calls.iter().map(|call| {
                    let function = json!({"name": name(call), "arguments": arguments(call)});
                    json!({"id": call.reference, "type": "function", "function": function})
                });
                said.insert("tool_calls".into(), tool_calls.collect());
            }
            messages.push(said.into());
            for call in calls {
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": call.reference,
                    "content": result(call),
                }));
            }
        }
    }
}

/// Some servers refuse a conversation in which a call's arguments are not JSON, so what the model
/// wrote is replaced there; the result tells it what was wrong.
fn arguments(call: &CallPart) -> &str {
    let json = serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
    if json { &call.arguments } else { "{}" }
}

/// Nor may a name hold what a name cannot: one made-up name would have every later request of the
/// session refused.
fn name(call: &CallPart) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = call.tool.chars().take(64).map(plain).collect();
    if name.is_empty() { "invalid".into() } else { name }
}

fn result(call: &CallPart) -> &str {
    call.outcome.as_ref().map_or("This call was not run.", Outcome::text)
}
