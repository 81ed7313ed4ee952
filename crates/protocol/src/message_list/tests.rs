//! Tests of `Messages`: shared pages behave as one list, and a clone never changes.

use super::{MESSAGES_PER_PAGE, Messages};
use crate::message::{Message, MessagePart, MessageRole};
use proptest::prelude::*;
use std::sync::Arc;

fn message(seq: u64) -> Message {
    Message {
        role: MessageRole::User,
        seq,
        model: None,
        parts: vec![MessagePart::text(seq.to_string())],
    }
}

fn numbered_messages(count: u64) -> Messages {
    (1..=count).map(message).collect()
}

#[test]
fn a_clone_is_unaffected_by_later_changes() {
    let mut messages = numbered_messages(600);
    let (clone, first) = (messages.clone(), Arc::clone(messages.get(0).unwrap()));
    messages.last_matching_mut(|message| message.seq == 1).unwrap().parts.clear();
    messages.push(message(601));
    assert_eq!((clone.len(), messages.len()), (600, 601));
    assert_eq!(first.parts.len(), 1);
    assert_eq!(clone, numbered_messages(600));
    assert!(messages.get(0).unwrap().parts.is_empty());
}

#[test]
fn the_shared_prefix_ends_at_the_first_change() {
    let mut messages = numbered_messages(1_000);
    let before = messages.clone();
    assert_eq!(messages.shared_prefix_len(&before), 1_000);
    messages.push(message(1_001));
    assert_eq!(messages.shared_prefix_len(&before), 1_000);
    messages.last_matching_mut(|message| message.seq == 300).unwrap().parts.clear();
    assert_eq!(messages.shared_prefix_len(&before), 299);
    assert_eq!(before.shared_prefix_len(&messages), 299);
}

#[test]
fn messages_after_a_summary_are_shared_between_requests() {
    let mut messages = numbered_messages(700);
    let head = Arc::new(message(300));
    let before = messages.after_with_head(300, Arc::clone(&head));
    messages.push(message(701));
    let after = messages.after_with_head(300, Arc::clone(&head));
    assert_eq!((before.len(), after.len()), (401, 402));
    assert_eq!(after.shared_prefix_len(&before), 401);
    assert_eq!(
        messages.after_with_head(300, message(300).into()).shared_prefix_len(&before),
        0,
        "another summary"
    );
}

proptest! {
    #[test]
    fn pages_behave_like_a_plain_list(
        count in 0..3 * MESSAGES_PER_PAGE as u64,
        cut in 0..3 * MESSAGES_PER_PAGE as u64,
    ) {
        let messages = numbered_messages(count);
        let plain: Vec<Message> = (1..=count).map(message).collect();
        prop_assert_eq!(messages.len(), plain.len());
        prop_assert_eq!(messages.is_empty(), plain.is_empty());
        prop_assert!(messages.iter().map(|message| &**message).eq(plain.iter()));
        prop_assert!(messages.iter().rev().map(|m| m.seq).eq(plain.iter().rev().map(|m| m.seq)));
        prop_assert_eq!(messages.last().map(|m| m.seq), plain.last().map(|m| m.seq));
        let json = serde_json::to_string(&messages).unwrap();
        prop_assert_eq!(&json, &serde_json::to_string(&plain).unwrap());
        prop_assert_eq!(&serde_json::from_str::<Messages>(&json).unwrap(), &messages);
        let mut truncated = messages.clone();
        truncated.truncate_after(cut);
        prop_assert_eq!(truncated, numbered_messages(count.min(cut)));
        let after: Vec<u64> = messages.after_with_head(cut, message(0).into()).iter().map(|m| m.seq).collect();
        let expected: Vec<u64> = std::iter::once(0).chain(cut + 1..=count).collect();
        prop_assert_eq!(after, expected);
    }
}
