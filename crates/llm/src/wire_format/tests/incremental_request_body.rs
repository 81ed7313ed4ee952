//! An incremental body has the bytes of one written from scratch, however a conversation changes.

use super::{SIGNATURE, empty_request, full_conversation};
use crate::ModelRequest;
use crate::catalog::{ALL_PROVIDERS, Model, Quirks, generic_provider};
use crate::wire_format::WireFormat;
use crate::wire_format::incremental_request_body::IncrementalRequestBody;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::sync::Arc;
use windlass_protocol::{
    Attachment, BlobRef, CallAuthor, CallId, CallOutcome, Message, MessagePart, MessageRole,
    Messages, ModelOptions, ToolCallPart, ToolOutput,
};

/// A change of a conversation between two requests.
#[derive(Clone, Debug)]
enum TestConversationChange {
    AddMessage(MessageRole, Vec<RandomMessagePart>),
    /// Edits a message, as pruning and late results do.
    EditMessage(usize),
    Truncate(usize),
    SetFiles(bool),
    SetModel(bool),
    SetSystemPrompt(bool),
}

#[derive(Clone, Debug)]
enum RandomMessagePart {
    Text(&'static str),
    Reasoning,
    File(u8),
    Call(CallAuthor, &'static str, u8),
}

fn any_part() -> impl Strategy<Value = RandomMessagePart> {
    let author = prop_oneof![9 => Just(CallAuthor::Model), 1 => Just(CallAuthor::User)];
    let provider_id = prop::sample::select(vec!["call_1", "call_2", "", "so odd!", "123456789"]);
    prop_oneof![
        3 => prop::sample::select(vec!["hello", "", " ", "\u{2028}\"\\"])
            .prop_map(RandomMessagePart::Text),
        1 => Just(RandomMessagePart::Reasoning),
        1 => (0..3_u8).prop_map(RandomMessagePart::File),
        3 => (author, provider_id, 0..5_u8)
            .prop_map(|(author, id, outcome)| RandomMessagePart::Call(author, id, outcome)),
    ]
}

fn any_change() -> impl Strategy<Value = TestConversationChange> {
    let role = prop::sample::select(vec![
        MessageRole::User,
        MessageRole::Context,
        MessageRole::Assistant,
        MessageRole::Assistant,
        MessageRole::Assistant,
    ]);
    prop_oneof![
        20 => (role, prop::collection::vec(any_part(), 0..4))
            .prop_map(|(role, parts)| TestConversationChange::AddMessage(role, parts)),
        1 => (0..40_usize).prop_map(TestConversationChange::EditMessage),
        1 => (0..40_usize).prop_map(TestConversationChange::Truncate),
        1 => any::<bool>().prop_map(TestConversationChange::SetFiles),
        1 => any::<bool>().prop_map(TestConversationChange::SetModel),
        1 => any::<bool>().prop_map(TestConversationChange::SetSystemPrompt),
    ]
}

fn numbered_blob(number: u8) -> BlobRef {
    BlobRef::from_digest([number; 32])
}

fn numbered_file(number: u8) -> Attachment {
    let mime = if number == 0 { "application/pdf" } else { "image/png" };
    Attachment { name: format!("f{number}"), mime_type: mime.into(), blob: numbered_blob(number) }
}

fn to_message_part(random_part: &RandomMessagePart) -> MessagePart {
    match random_part {
        RandomMessagePart::Text(text) => MessagePart::text(*text),
        RandomMessagePart::Reasoning => {
            MessagePart::Reasoning { text: "hm".into(), provider_signature: Some(SIGNATURE.into()) }
        }
        RandomMessagePart::File(number) => MessagePart::File(numbered_file(*number)),
        RandomMessagePart::Call(author, provider_id, outcome_number) => {
            let attachments =
                if *outcome_number == 1 { vec![numbered_file(1)] } else { Vec::new() };
            let outcome = match outcome_number {
                0 => None,
                1 | 2 => Some(CallOutcome::Completed {
                    output: ToolOutput { text: "out".into(), attachments, ..ToolOutput::default() },
                }),
                3 => Some(CallOutcome::ResultUnknown),
                _ => Some(CallOutcome::Failed { text: "no".into() }),
            };
            MessagePart::Call(Box::new(ToolCallPart {
                description: windlass_protocol::CallDescription::default(),
                call: CallId(Default::default()),
                provider_call_id: (*provider_id).into(),
                tool: "read".into(),
                arguments: "{\"a\": 1}".into(),
                author: *author,
                provider_signature: None,
                outcome,
                pruned: false,
            }))
        }
    }
}

fn apply_change(request: &mut ModelRequest, change: &TestConversationChange) {
    match change {
        TestConversationChange::AddMessage(role, parts_to_add) => {
            let seq = request.messages.len() as u64 + 1;
            let model = (*role == MessageRole::Assistant).then(|| "p/m".to_owned());
            let parts = parts_to_add.iter().map(to_message_part).collect();
            request.messages.push(Message { role: *role, seq, model, parts });
        }
        TestConversationChange::EditMessage(seq_number) => {
            let seq = *seq_number as u64;
            if let Some(message) = request.messages.last_matching_mut(|m| m.seq == seq) {
                message.parts.pop();
            }
        }
        TestConversationChange::Truncate(seq_number) => {
            request.messages.truncate_after(*seq_number as u64);
        }
        TestConversationChange::SetFiles(present) => {
            request.file_bytes.clear();
            if *present {
                request
                    .file_bytes
                    .extend((0..3).map(|number| (numbered_blob(number), vec![number; 9].into())));
            }
        }
        TestConversationChange::SetModel(has_images) => {
            request.model =
                Arc::new(Model { images: *has_images, pdfs: true, ..(*request.model).clone() });
        }
        TestConversationChange::SetSystemPrompt(present) => {
            request.system_prompt = if *present { "be brief" } else { "" }.into();
        }
    }
}

fn check_body(
    format: WireFormat,
    quirks: &Quirks,
    incremental: &IncrementalRequestBody,
    request: &ModelRequest,
    check_held_bytes: bool,
) {
    let plain = format.body(request, quirks).to_string();
    let written = incremental.write_body(format, request, quirks);
    assert_eq!(std::str::from_utf8(&written).unwrap(), plain);
    // The bytes of a request that is still being sent do not change.
    if check_held_bytes {
        let before = written.clone();
        let mut longer = request.clone();
        apply_change(
            &mut longer,
            &TestConversationChange::AddMessage(
                MessageRole::User,
                vec![RandomMessagePart::Text("more")],
            ),
        );
        incremental.write_body(format, &longer, quirks);
        assert_eq!(before, plain.as_bytes());
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "an environment variable selects the soak")]
fn an_incremental_body_equals_one_written_from_scratch() {
    // Every case runs with every provider, so there are fewer cases than in other tests.
    let cases = if std::env::var_os("WINDLASS_SOAK").is_some() { 1_500 } else { 128 };
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let changes = prop::collection::vec((any_change(), any::<bool>()), 1..60);
    let result = runner.run(&(changes, any::<bool>()), |(changes, claude)| {
        let id = if claude { "claude-x" } else { "m" };
        let rows = ALL_PROVIDERS.iter().map(|row| (row.format, row.quirks));
        let plain = WireFormat::NAMES.iter().map(|(_, f)| (*f, generic_provider(*f, false).quirks));
        for (format, quirks) in rows.chain(plain) {
            let mut request = empty_request();
            request.model = Arc::new(Model { images: true, ..Model::unlisted(id) });
            let incremental = IncrementalRequestBody::default();
            for (change, check_held_bytes) in &changes {
                apply_change(&mut request, change);
                check_body(format, &quirks, &incremental, &request, *check_held_bytes);
            }
        }
        Ok(())
    });
    result.unwrap();
}

/// Checks the incremental body of a conversation at every length.
pub(super) fn check_growing(format: WireFormat, quirks: &Quirks, whole: &ModelRequest) {
    let incremental = IncrementalRequestBody::default();
    for length in 0..=whole.messages.len() {
        let messages: Messages = whole.messages.iter().take(length).cloned().collect();
        check_body(
            format,
            quirks,
            &incremental,
            &ModelRequest { messages, ..whole.clone() },
            false,
        );
    }
}

#[test]
fn a_full_conversation_is_written_correctly_at_every_length() {
    for (_, format) in WireFormat::NAMES {
        for marks in [true, false] {
            let quirks = Quirks { cache_marks: marks, ..generic_provider(*format, false).quirks };
            check_growing(*format, &quirks, &full_conversation());
        }
    }
}

#[test]
fn a_user_option_may_replace_the_messages_field() {
    for (_, format) in WireFormat::NAMES {
        let quirks = generic_provider(*format, false).quirks;
        let extra = [("messages", json!([1])), ("zeal", json!({"a": "\n"}))];
        let extra = extra.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let options = Arc::new(ModelOptions { extra, ..ModelOptions::default() });
        check_body(
            *format,
            &quirks,
            &IncrementalRequestBody::default(),
            &ModelRequest { options, ..full_conversation() },
            true,
        );
    }
}

/// Only new messages are written: a request costs the same after thousands of messages as after a
/// few.
#[test]
fn a_long_conversation_is_not_rewritten() {
    for (name, format) in WireFormat::NAMES {
        let quirks = generic_provider(*format, false).quirks;
        let (mut request, incremental) = (empty_request(), IncrementalRequestBody::default());
        let mut buffers = Vec::new();
        for _ in 0..2_000 {
            apply_change(
                &mut request,
                &TestConversationChange::AddMessage(
                    MessageRole::User,
                    vec![RandomMessagePart::Text("hello")],
                ),
            );
            let body = incremental.write_body(*format, &request, &quirks);
            buffers.push(body.as_ptr());
            drop(body);
            let call = RandomMessagePart::Call(CallAuthor::Model, "call_1", 2);
            apply_change(
                &mut request,
                &TestConversationChange::AddMessage(
                    MessageRole::Assistant,
                    vec![RandomMessagePart::Text("so"), call],
                ),
            );
        }
        // The buffer grows sometimes; it is not allocated for each request.
        buffers.dedup();
        assert!(buffers.len() < 40, "{name}: {} buffers", buffers.len());
        check_body(*format, &quirks, &incremental, &request, false);
    }
}
