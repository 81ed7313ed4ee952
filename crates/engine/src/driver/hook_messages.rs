//! The messages of a model request in the form in which hooks see and change them.
//!
//! A hook may change texts and the outputs of tools, and add texts. Everything else stays: roles,
//! calls and their order, which a provider would reject if they did not match.

use serde_json::{Value, json};
use windlass_protocol::{CallOutcome, Message, MessagePart, MessageRole, Messages};

/// Returns the messages in the form of hooks.
pub(super) fn to_hook_form(messages: &Messages) -> Value {
    let to_part = |part: &MessagePart| match part {
        MessagePart::Text { text, .. } => json!({"type": "text", "text": text}),
        MessagePart::Reasoning { text, .. } => json!({"type": "reasoning", "text": text}),
        MessagePart::File(file) => {
            json!({"type": "file", "name": file.name, "mime": file.mime_type})
        }
        MessagePart::Call(call) => json!({
            "type": "tool",
            "tool": call.tool,
            "call": call.call,
            "arguments": call.arguments,
            "output": call.outcome.as_ref().map(CallOutcome::text),
            "failed": !matches!(call.outcome, Some(CallOutcome::Completed { .. })),
        }),
    };
    let to_message = |message: &Message| {
        let role = match message.role {
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::Context => "context",
        };
        let parts: Vec<Value> = message.parts.iter().map(to_part).collect();
        json!({"role": role, "seq": message.seq, "model": message.model, "parts": parts})
    };
    messages.iter().map(|message| to_message(message)).collect()
}

/// Returns the messages with the changes of a hook, or the reason why they are invalid.
pub(super) fn apply_revision(messages: &Messages, revised: &Value) -> Result<Messages, String> {
    let revised = revised.as_array().ok_or("they are not a list")?;
    if revised.len() != messages.len() {
        return Err(format!("{} instead of {}", revised.len(), messages.len()));
    }
    let pairs = messages.iter().zip(revised).enumerate();
    let result: Result<Vec<Message>, String> = pairs
        .map(|(index, (message, revised))| {
            revise_message(message, revised).map_err(|reason| format!("message {index}: {reason}"))
        })
        .collect();
    Ok(Messages::from(result?))
}

fn revise_message(message: &Message, revised: &Value) -> Result<Message, String> {
    let parts = revised.get("parts").and_then(Value::as_array).ok_or("it has no parts")?;
    let (kept, added) = parts.split_at_checked(message.parts.len()).ok_or("a part was removed")?;
    let mut message = message.clone();
    for (part, revised) in message.parts.iter_mut().zip(kept) {
        revise_part(part, revised)?;
    }
    for part in added {
        let text = part.get("text").and_then(Value::as_str);
        let text = text.filter(|text| !text.is_empty() && part.get("type") == Some(&json!("text")));
        message.parts.push(MessagePart::text(text.ok_or("an added part is not a text")?));
    }
    Ok(message)
}

fn revise_part(part: &mut MessagePart, revised: &Value) -> Result<(), String> {
    let (kind, field) = match part {
        MessagePart::Text { .. } => ("text", "text"),
        MessagePart::Call(_) => ("tool", "output"),
        MessagePart::Reasoning { .. } => ("reasoning", ""),
        MessagePart::File(_) => ("file", ""),
    };
    if revised.get("type").and_then(Value::as_str) != Some(kind) {
        return Err(format!("a part is no longer a {kind}"));
    }
    let Some(new) = revised.get(field).and_then(Value::as_str) else { return Ok(()) };
    match part {
        MessagePart::Text { text, provider_signature } if text != new => {
            // An empty text is not valid everywhere.
            *text = if new.is_empty() { "(removed)".to_owned() } else { new.to_owned() };
            *provider_signature = None;
        }
        MessagePart::Call(call) => match &mut call.outcome {
            Some(CallOutcome::Completed { output }) => output.text = new.to_owned(),
            Some(
                CallOutcome::Failed { text }
                | CallOutcome::Denied { text }
                | CallOutcome::Interrupted { text },
            ) => *text = new.to_owned(),
            Some(CallOutcome::ResultUnknown) | None => {}
        },
        MessagePart::Text { .. } | MessagePart::Reasoning { .. } | MessagePart::File(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Messages {
        let signed = MessagePart::Text {
            text: "I look".to_owned(),
            provider_signature: Some("signature".to_owned()),
        };
        let thought = MessagePart::Reasoning { text: "hm".to_owned(), provider_signature: None };
        Messages::from(vec![
            Message {
                role: MessageRole::User,
                seq: 1,
                model: None,
                parts: vec![MessagePart::text("mail a@b.c")],
            },
            Message {
                role: MessageRole::Assistant,
                seq: 2,
                model: None,
                parts: vec![thought, signed],
            },
        ])
    }

    #[test]
    fn texts_change_and_may_be_added() {
        let messages = conversation();
        let mut form = to_hook_form(&messages);
        assert_eq!(apply_revision(&messages, &form).unwrap(), messages);
        form[0]["parts"][0]["text"] = json!("mail MAIL");
        form[1]["parts"][1]["text"] = json!("");
        form[0]["parts"].as_array_mut().unwrap().push(json!({"type": "text", "text": "more"}));
        let revised = apply_revision(&messages, &form).unwrap();
        let texts = json!(revised).to_string();
        assert!(texts.contains("mail MAIL") && texts.contains("more"), "{texts}");
        assert!(texts.contains("(removed)") && !texts.contains("signature"), "{texts}");
    }

    #[test]
    fn the_structure_cannot_change() {
        let messages = conversation();
        let form = to_hook_form(&messages);
        let change = |edit: &dyn Fn(&mut Value)| {
            let mut form = form.clone();
            edit(&mut form);
            apply_revision(&messages, &form).unwrap_err()
        };
        assert_eq!(change(&|form| *form = json!({})), "they are not a list");
        assert_eq!(change(&|form| drop(form.as_array_mut().unwrap().pop())), "1 instead of 2");
        let removed = change(&|form| drop(form[1]["parts"].as_array_mut().unwrap().pop()));
        assert_eq!(removed, "message 1: a part was removed");
        let other = change(&|form| form[1]["parts"][0]["type"] = json!("text"));
        assert_eq!(other, "message 1: a part is no longer a reasoning");
        let added = change(&|form| {
            form[0]["parts"].as_array_mut().unwrap().push(json!({"type": "tool"}));
        });
        assert_eq!(added, "message 0: an added part is not a text");
    }
}
