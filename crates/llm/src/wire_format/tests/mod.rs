//! Properties of every wire format: a stream decodes to the same events however it is split, real
//! recordings replay, and our requests are equivalent to the recorded ones.

mod incremental_request_body;
mod recorded_request;
mod recordings;
mod stream_splits;

pub(crate) use stream_splits::{check_case, decode_chunks};

use super::{WireFormat, merge_override};
use crate::catalog::{Model, generic_provider};
use crate::{ModelRequest, catalog};
use serde_json::json;
use std::sync::Arc;
use windlass_protocol::{
    Attachment, BlobRef, CallAuthor, CallId, CallOutcome, Message, MessagePart, MessageRole,
    Messages, ModelOptions, ModelToolDefinition, ToolCallPart, ToolChoice, ToolOutput,
};

/// A request without messages.
pub(crate) fn empty_request() -> ModelRequest {
    ModelRequest {
        model: Arc::new(Model::unlisted("m")),
        model_name: "p/m".into(),
        system_prompt: "be brief".into(),
        messages: Messages::default(),
        file_bytes: Default::default(),
        tools: Vec::new(),
        options: Arc::default(),
        cache_key: None,
        incremental_body: Arc::default(),
    }
}

/// A conversation with every kind of message and part.
pub(crate) fn full_conversation() -> ModelRequest {
    let mut request = empty_request();
    let image = BlobRef::from_digest([1; 32]);
    request.file_bytes.insert(image.clone(), b"png".to_vec().into());
    let file = |name: &str, mime: &str, blob: &BlobRef| Attachment {
        name: name.into(),
        mime_type: mime.into(),
        blob: blob.clone(),
    };
    let image_file = file("a.png", "image/png", &image);
    let missing_file = file("b.pdf", "application/pdf", &BlobRef::from_digest([2; 32]));
    let output = ToolOutput {
        text: "one line".into(),
        attachments: vec![image_file.clone()],
        ..ToolOutput::default()
    };
    let completed = Some(CallOutcome::Completed { output });
    let failed = Some(CallOutcome::Failed { text: "no such file".into() });
    let own = Some("p/m".to_owned());
    let other = Some("q/other".to_owned());
    let reasoning = |provider_signature: &str| MessagePart::Reasoning {
        text: "hm".into(),
        provider_signature: Some(provider_signature.into()),
    };
    let text_part = |text: &str, provider_signature: Option<&str>| MessagePart::Text {
        text: text.into(),
        provider_signature: provider_signature.map(str::to_owned),
    };
    let message = |role, model: &Option<String>, parts| {
        Arc::new(Message { role, seq: 1, model: model.clone(), parts })
    };
    let messages = vec![
        message(
            MessageRole::User,
            &None,
            vec![
                MessagePart::text("what is in a?"),
                MessagePart::File(image_file),
                MessagePart::File(missing_file),
            ],
        ),
        message(
            MessageRole::Assistant,
            &own,
            vec![
                reasoning(SIGNATURE),
                call_part(CallAuthor::Model, "call_1", "{\"filePath\": \"a\"}", completed),
                call_part(CallAuthor::Model, "call_1", "{\"filePath\": \"b", failed),
            ],
        ),
        message(MessageRole::Context, &None, vec![MessagePart::text("a was changed")]),
        message(
            MessageRole::Assistant,
            &own,
            vec![call_part(CallAuthor::User, "x", "{}", Some(CallOutcome::ResultUnknown))],
        ),
        message(MessageRole::Assistant, &own, vec![reasoning(SIGNATURE)]),
        message(
            MessageRole::Assistant,
            &other,
            vec![reasoning(SIGNATURE), call_part(CallAuthor::Model, "so odd an id!", "{}", None)],
        ),
        message(MessageRole::User, &None, vec![MessagePart::text("")]),
        message(
            MessageRole::Assistant,
            &own,
            vec![text_part("done", Some("{\"phase\": \"final_answer\"}"))],
        ),
        message(MessageRole::User, &None, vec![MessagePart::text("thanks")]),
    ];
    request.messages = messages.into();
    request.model = Arc::new(Model { images: true, ..Model::unlisted("m") });
    request.tools = vec![ModelToolDefinition {
        name: "read".into(),
        description: "Reads.".into(),
        schema: json!({
            "$schema": "x",
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "limit": {"type": ["integer", "null"], "format": "uint"}},
            "required": ["filePath"],
            "additionalProperties": false,
        }),
    }];
    request.options = Arc::new(ModelOptions {
        temperature: Some(0.5),
        max_output: Some(1_000),
        tool_choice: Some(ToolChoice::Required),
        answer: Some(json!({"type": "object", "properties": {"x": {"type": "integer"}}})),
        ..ModelOptions::default()
    });
    request.cache_key = Some("session".into());
    request
}

/// A provider signature that is valid in every format.
const SIGNATURE: &str = r#"{"signature": "sig", "type": "reasoning", "encrypted_content": "enc"}"#;

fn call_part(
    by: CallAuthor,
    provider_id: &str,
    arguments: &str,
    outcome: Option<CallOutcome>,
) -> MessagePart {
    MessagePart::Call(Box::new(ToolCallPart {
        description: windlass_protocol::CallDescription::default(),
        call: CallId(Default::default()),
        provider_call_id: provider_id.into(),
        tool: "read".into(),
        arguments: arguments.into(),
        author: by,
        provider_signature: None,
        outcome,
        pruned: false,
    }))
}

/// The request body of `full_conversation` in a format.
pub(crate) fn conversation_body(format: WireFormat, quirks: catalog::Quirks) -> String {
    serde_json::to_string_pretty(&format.body(&full_conversation(), &quirks)).unwrap() + "\n"
}

#[test]
fn every_format_has_a_name_and_a_request_path() {
    for (name, format) in WireFormat::NAMES {
        assert_eq!(WireFormat::from_name(name), Some(*format));
        assert!(format.request_path("m").starts_with('/'));
    }
    assert_eq!(WireFormat::from_name("openai"), None);
}

#[test]
fn a_model_name_is_escaped_in_the_request_path() {
    let path = WireFormat::Gemini.request_path("../../v1/files?x=#");
    assert_eq!(path, "/models/..%2F..%2Fv1%2Ffiles%3Fx%3D%23:streamGenerateContent?alt=sse");
}

#[test]
fn user_options_are_merged_into_the_request_body() {
    let mut body = json!({"a": 1, "text": {"format": 1}});
    merge_override(&mut body, "text", &json!({"verbosity": "low"}));
    merge_override(&mut body, "a", &json!([2]));
    merge_override(&mut body, "new", &json!(true));
    let expected = json!({"a": [2], "text": {"format": 1, "verbosity": "low"}, "new": true});
    assert_eq!(body, expected);
}

#[test]
fn the_same_request_gives_the_same_bytes_and_a_longer_one_begins_with_them() {
    for (name, format) in WireFormat::NAMES {
        let quirks =
            catalog::Quirks { cache_marks: false, ..generic_provider(*format, false).quirks };
        let mut request = empty_request();
        let message = |role, text: &str| {
            Arc::new(Message { role, seq: 1, model: None, parts: vec![MessagePart::text(text)] })
        };
        request.messages.push(message(MessageRole::User, "one"));
        let list = |request: &ModelRequest| {
            let body = format.body(request, &quirks);
            let list = ["messages", "input", "contents"].iter().find_map(|key| body.get(key));
            list.unwrap().to_string()
        };
        let short = list(&request);
        assert_eq!(short, list(&request), "{name}");
        request.messages.push(message(MessageRole::Assistant, "two"));
        assert!(list(&request).starts_with(short.trim_end_matches(']')), "{name}");
    }
}
