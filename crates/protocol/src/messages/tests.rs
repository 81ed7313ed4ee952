//! Shared pages behave as one list, and nobody sees another's change.

use super::{Messages, PAGE};
use crate::message::{Message, Part, Role};
use proptest::prelude::*;
use std::sync::Arc;

fn message(seq: u64) -> Message {
    Message { role: Role::User, seq, model: None, parts: vec![Part::text(seq.to_string())] }
}

fn of(count: u64) -> Messages {
    (1..=count).map(message).collect()
}

#[test]
fn what_somebody_holds_does_not_change_under_them() {
    let mut messages = of(600);
    let (held, first) = (messages.clone(), Arc::clone(messages.get(0).unwrap()));
    messages.change_last(|message| message.seq == 1).unwrap().parts.clear();
    messages.push(message(601));
    assert_eq!((held.len(), messages.len()), (600, 601));
    assert_eq!(first.parts.len(), 1);
    assert_eq!(held, of(600));
    assert!(messages.get(0).unwrap().parts.is_empty());
}

#[test]
fn a_change_is_seen_where_it_is() {
    let mut messages = of(1_000);
    let before = messages.clone();
    assert_eq!(messages.shared(&before), 1_000);
    messages.push(message(1_001));
    assert_eq!(messages.shared(&before), 1_000);
    messages.change_last(|message| message.seq == 300).unwrap().parts.clear();
    assert_eq!(messages.shared(&before), 299);
    assert_eq!(before.shared(&messages), 299);
}

#[test]
fn a_conversation_behind_a_summary_is_shared_with_the_next_request() {
    let mut messages = of(700);
    let head = Arc::new(message(300));
    let before = messages.after(300, Arc::clone(&head));
    messages.push(message(701));
    let after = messages.after(300, Arc::clone(&head));
    assert_eq!((before.len(), after.len()), (401, 402));
    assert_eq!(after.shared(&before), 401);
    assert_eq!(messages.after(300, message(300).into()).shared(&before), 0, "another summary");
}

proptest! {
    #[test]
    fn pages_are_nothing_to_a_reader(count in 0..3 * PAGE as u64, cut in 0..3 * PAGE as u64) {
        let messages = of(count);
        let plain: Vec<Message> = (1..=count).map(message).collect();
        prop_assert_eq!(messages.len(), plain.len());
        prop_assert_eq!(messages.is_empty(), plain.is_empty());
        prop_assert!(messages.iter().map(|message| &**message).eq(plain.iter()));
        prop_assert!(messages.iter().rev().map(|m| m.seq).eq(plain.iter().rev().map(|m| m.seq)));
        prop_assert_eq!(messages.last().map(|m| m.seq), plain.last().map(|m| m.seq));
        let told = serde_json::to_string(&messages).unwrap();
        prop_assert_eq!(&told, &serde_json::to_string(&plain).unwrap());
        prop_assert_eq!(&serde_json::from_str::<Messages>(&told).unwrap(), &messages);
        let mut kept = messages.clone();
        kept.keep_through(cut);
        prop_assert_eq!(kept, of(count.min(cut)));
        let after: Vec<u64> = messages.after(cut, message(0).into()).iter().map(|m| m.seq).collect();
        let expected: Vec<u64> = std::iter::once(0).chain(cut + 1..=count).collect();
        prop_assert_eq!(after, expected);
    }
}
