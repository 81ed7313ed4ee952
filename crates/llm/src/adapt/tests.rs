//! Call ids, tool names, roles, files and reasoning in adapted conversations.

use super::{AdaptedTurn, TurnItem, adapt_conversation, merge_roles};
use crate::catalog::{CallIdFormat, Quirks, generic_provider};
use crate::wire_format::WireFormat;
use crate::wire_format::tests::{empty_request, full_conversation};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_protocol::{CallAuthor, CallId, Message, MessagePart, MessageRole, ToolCallPart};

fn quirks_with_ids(ids: CallIdFormat) -> Quirks {
    Quirks { call_id_format: ids, ..generic_provider(WireFormat::OpenaiChat, false).quirks }
}

fn adapted_call_ids(kind: CallIdFormat, provider_ids: &[&str]) -> Vec<String> {
    let mut request = empty_request();
    let call = |provider_id: &&str| {
        MessagePart::Call(Box::new(ToolCallPart {
            description: windlass_protocol::CallDescription::default(),
            call: CallId(Default::default()),
            provider_call_id: (*provider_id).into(),
            tool: "odd name!".into(),
            arguments: "[1]".into(),
            author: CallAuthor::Model,
            provider_signature: None,
            outcome: None,
            pruned: false,
        }))
    };
    let parts = provider_ids.iter().map(call).collect();
    let message = Message { role: MessageRole::Assistant, seq: 1, model: None, parts };
    request.messages.push(message);
    let turns = adapt_conversation(&request, &quirks_with_ids(kind));
    let [AdaptedTurn::Model(calls), AdaptedTurn::User(results)] = turns.as_slice() else {
        panic!("{turns:?}");
    };
    let id_of = |item: &TurnItem<'_>| match item {
        TurnItem::Call { id, name, arguments, .. } => {
            assert_eq!((name.as_str(), *arguments), ("odd_name_", "{}"));
            id.clone()
        }
        TurnItem::Result { id, .. } => id.clone(),
        other => panic!("{other:?}"),
    };
    let calls: Vec<String> = calls.iter().map(id_of).collect();
    assert_eq!(
        calls,
        results.iter().map(id_of).collect::<Vec<_>>(),
        "each call must have its result"
    );
    calls
}

#[test]
fn call_ids_are_valid_for_the_provider_and_unique() {
    let odd = ["call_1", "call_1", "", "functions.read:0", "ü", &"x".repeat(100), &"x".repeat(100)];
    for kind in [CallIdFormat::Any, CallIdFormat::Identifier64, CallIdFormat::NineAlphanumeric] {
        let ids = adapted_call_ids(kind, &odd);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), odd.len(), "{ids:?}");
        for id in &ids {
            let word = id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
            match kind {
                CallIdFormat::Any => {}
                CallIdFormat::Identifier64 => assert!(word && (1..=64).contains(&id.len()), "{id}"),
                CallIdFormat::NineAlphanumeric => {
                    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
                }
            }
        }
    }
    assert_eq!(adapted_call_ids(CallIdFormat::Any, &["functions.read:0"]), ["functions.read:0"]);
    assert_eq!(
        adapted_call_ids(CallIdFormat::NineAlphanumeric, &["abcdefgh1"]),
        ["abcdefgh1"],
        "a valid id must be kept"
    );
}

#[test]
fn merged_turns_alternate_and_lose_nothing() {
    let conversation = full_conversation();
    let turns = adapt_conversation(&conversation, &quirks_with_ids(CallIdFormat::Any));
    let items = |turns: &[AdaptedTurn<'_>]| -> usize {
        turns
            .iter()
            .map(|turn| match turn {
                AdaptedTurn::User(items) | AdaptedTurn::Model(items) => items.len(),
            })
            .sum()
    };
    let count = items(&turns);
    let merged = merge_roles(turns);
    assert_eq!(items(&merged), count);
    for pair in merged.windows(2) {
        assert!(!matches!(
            pair,
            [AdaptedTurn::User(_), AdaptedTurn::User(_)]
                | [AdaptedTurn::Model(_), AdaptedTurn::Model(_)]
        ));
    }
}

#[test]
fn files_that_a_model_cannot_read_are_described() {
    let mut conversation = full_conversation();
    conversation.model = Arc::new(crate::catalog::Model::unlisted("blind"));
    let rendered =
        format!("{:?}", adapt_conversation(&conversation, &quirks_with_ids(CallIdFormat::Any)));
    assert!(
        rendered.contains("[a.png (image/png) was left out: this model does not support images]")
    );
    assert!(!rendered.contains("File("));
}

/// An interrupted response may end in reasoning, which some providers always reject.
#[test]
fn trailing_reasoning_is_dropped() {
    let mut request = empty_request();
    let reasoning =
        || MessagePart::Reasoning { text: "hm".into(), provider_signature: Some("s".into()) };
    for (parts, expected) in [
        (vec![reasoning(), MessagePart::text("so"), reasoning()], 2),
        (vec![reasoning(), MessagePart::text(" \n")], 0),
        (vec![reasoning()], 0),
    ] {
        let message =
            Message { role: MessageRole::Assistant, seq: 1, model: Some("p/m".into()), parts };
        request.messages = vec![message].into();
        let turns = adapt_conversation(&request, &quirks_with_ids(CallIdFormat::Any));
        let count = turns.iter().map(|turn| match turn {
            AdaptedTurn::User(items) | AdaptedTurn::Model(items) => items.len(),
        });
        assert_eq!(count.sum::<usize>(), expected, "{turns:?}");
    }
}

/// A pruned output takes no context, but can be found again.
#[test]
fn a_pruned_output_is_replaced_by_a_reference() {
    let mut conversation = full_conversation();
    let blob = windlass_protocol::BlobRef::for_bytes(b"whole");
    let mut pruned = 0;
    let prune = |message: &Arc<Message>| {
        let mut message = Message::clone(message);
        for part in &mut message.parts {
            let MessagePart::Call(call) = part else { continue };
            let Some(windlass_protocol::CallOutcome::Completed { output }) = &mut call.outcome
            else {
                continue;
            };
            output.text = "a long output".into();
            output.full_text = Some(blob.clone());
            call.pruned = true;
            pruned += 1;
        }
        message
    };
    conversation.messages = conversation.messages.iter().map(prune).collect();
    let rendered =
        format!("{:?}", adapt_conversation(&conversation, &quirks_with_ids(CallIdFormat::Any)));
    assert!(pruned > 0 && !rendered.contains("a long output"), "{rendered}");
    assert_eq!(rendered.matches("removed to save context").count(), pruned);
    assert!(rendered.contains(&format!("blob:{}", blob.as_str())));
}
