//! Ids, names and roles, whatever a conversation brings.

use super::{Item, Turn, conversation, merged};
use crate::catalog::{CallIds, Quirks, plain};
use crate::wire::Format;
use crate::wire::tests::{conversation as everything, request};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_protocol::{Author, CallId, CallPart, Message, Part, Role};

fn quirks(ids: CallIds) -> Quirks {
    Quirks { ids, ..plain(Format::OpenaiChat, false).quirks }
}

fn ids(kind: CallIds, references: &[&str]) -> Vec<String> {
    let mut request = request();
    let call = |reference: &&str| {
        Part::Call(Box::new(CallPart {
            call: CallId(Default::default()),
            reference: (*reference).into(),
            tool: "odd name!".into(),
            arguments: "[1]".into(),
            by: Author::Model,
            seal: None,
            outcome: None,
            pruned: false,
        }))
    };
    let parts = references.iter().map(call).collect();
    let message = Message { role: Role::Assistant, seq: 1, model: None, parts };
    request.messages.push(message);
    let turns = conversation(&request, &quirks(kind));
    let [Turn::Model(calls), Turn::User(results)] = turns.as_slice() else {
        panic!("{turns:?}");
    };
    let told = |item: &Item<'_>| match item {
        Item::Call { id, name, arguments, .. } => {
            assert_eq!((name.as_str(), *arguments), ("odd_name_", "{}"));
            id.clone()
        }
        Item::Result { id, .. } => id.clone(),
        other => panic!("{other:?}"),
    };
    let calls: Vec<String> = calls.iter().map(told).collect();
    assert_eq!(calls, results.iter().map(told).collect::<Vec<_>>(), "each call has its result");
    calls
}

#[test]
fn ids_are_what_providers_allow_and_never_the_same() {
    let odd = ["call_1", "call_1", "", "functions.read:0", "ü", &"x".repeat(100), &"x".repeat(100)];
    for kind in [CallIds::Any, CallIds::Word64, CallIds::Nine] {
        let ids = ids(kind, &odd);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), odd.len(), "{ids:?}");
        for id in &ids {
            let word = id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
            match kind {
                CallIds::Any => {}
                CallIds::Word64 => assert!(word && (1..=64).contains(&id.len()), "{id}"),
                CallIds::Nine => {
                    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
                }
            }
        }
    }
    assert_eq!(ids(CallIds::Any, &["functions.read:0"]), ["functions.read:0"]);
    assert_eq!(ids(CallIds::Nine, &["abcdefgh1"]), ["abcdefgh1"], "one that is right is kept");
}

#[test]
fn merged_turns_alternate_and_lose_nothing() {
    let everything = everything();
    let turns = conversation(&everything, &quirks(CallIds::Any));
    let items = |turns: &[Turn<'_>]| -> usize {
        turns
            .iter()
            .map(|turn| match turn {
                Turn::User(items) | Turn::Model(items) => items.len(),
            })
            .sum()
    };
    let count = items(&turns);
    let merged = merged(turns);
    assert_eq!(items(&merged), count);
    for pair in merged.windows(2) {
        assert!(!matches!(pair, [Turn::User(_), Turn::User(_)] | [Turn::Model(_), Turn::Model(_)]));
    }
}

#[test]
fn a_model_that_sees_nothing_is_told_what_it_misses() {
    let mut everything = everything();
    everything.model = Arc::new(crate::catalog::Model::assumed("blind"));
    let told = format!("{:?}", conversation(&everything, &quirks(CallIds::Any)));
    assert!(told.contains("[a.png (image/png) was left out: this model does not read images]"));
    assert!(!told.contains("File("));
}

/// An answer that was cut off may end in a thought, which some providers refuse for good.
#[test]
fn a_thought_that_nothing_follows_is_left_out() {
    let mut request = request();
    let thought = || Part::Reasoning { text: "hm".into(), seal: Some("s".into()) };
    for (parts, left) in [
        (vec![thought(), Part::text("so"), thought()], 2),
        (vec![thought(), Part::text(" \n")], 0),
        (vec![thought()], 0),
    ] {
        let message = Message { role: Role::Assistant, seq: 1, model: Some("p/m".into()), parts };
        request.messages = vec![message].into();
        let turns = conversation(&request, &quirks(CallIds::Any));
        let count = turns.iter().map(|turn| match turn {
            Turn::User(items) | Turn::Model(items) => items.len(),
        });
        assert_eq!(count.sum::<usize>(), left, "{turns:?}");
    }
}

/// What is no longer told takes no room, but can be found again.
#[test]
fn a_pruned_output_is_not_told_and_says_where_it_is_kept() {
    let mut everything = everything();
    let blob = windlass_protocol::BlobRef::of(b"whole");
    let mut pruned = 0;
    let prune = |message: &Arc<Message>| {
        let mut message = Message::clone(message);
        for part in &mut message.parts {
            let Part::Call(call) = part else { continue };
            let Some(windlass_protocol::Outcome::Completed { output }) = &mut call.outcome else {
                continue;
            };
            output.text = "a long output".into();
            output.full = Some(blob.clone());
            call.pruned = true;
            pruned += 1;
        }
        message
    };
    everything.messages = everything.messages.iter().map(prune).collect();
    let told = format!("{:?}", conversation(&everything, &quirks(CallIds::Any)));
    assert!(pruned > 0 && !told.contains("a long output"), "{told}");
    assert_eq!(told.matches("left out to save room").count(), pruned);
    assert!(told.contains(&format!("blob:{}", blob.as_str())));
}
