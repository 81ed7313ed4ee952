//! What a log means, case by case.

use super::*;
use crate::call::{Answer, Author, Outcome, Output};
use crate::id::PromptId;
use uuid::Uuid;

fn fold(facts: &[Fact]) -> Transcript {
    let mut transcript = Transcript::default();
    for (index, fact) in facts.iter().enumerate() {
        transcript.push(index as Seq + 1, fact);
        if let Fact::Prompted { prompt, .. } = fact {
            transcript
                .push(index as Seq + 1, &Fact::TurnStarted { turn: 1, prompt: Some(*prompt) });
        }
    }
    transcript
}

fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

fn prompted(text: &str) -> Fact {
    Fact::Prompted {
        prompt: PromptId(Uuid::from_u128(1)),
        text: text.into(),
        attachments: Vec::new(),
        when: Default::default(),
    }
}

fn said(text: &str) -> Fact {
    Fact::Said { text: text.into(), seal: None }
}

fn called(number: u128) -> Fact {
    Fact::Called {
        call: call(number),
        reference: format!("ref{number}"),
        tool: "read".into(),
        arguments: "{}".into(),
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    }
}

fn settled(number: u128, text: &str) -> Fact {
    let output = Output { text: text.into(), ..Output::default() };
    Fact::Settled { call: call(number), outcome: Outcome::Completed { output }, seen: Vec::new() }
}

/// One line a message: role, then parts.
fn shape(transcript: &Transcript) -> Vec<String> {
    transcript
        .messages
        .iter()
        .map(|message| {
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    Part::Text { text, .. } => text.clone(),
                    Part::Reasoning { text, .. } => format!("({text})"),
                    Part::File(file) => format!("<{}>", file.name),
                    Part::Call(call) => match &call.outcome {
                        Some(outcome) => format!("{}={}", call.reference, outcome.text()),
                        None => format!("{}?", call.reference),
                    },
                })
                .collect();
            format!("{:?}: {}", message.role, parts.join(" | "))
        })
        .collect()
}

#[test]
fn a_step_is_one_message_and_results_sit_with_their_calls() {
    let transcript = fold(&[
        prompted("what is here?"),
        Fact::Reasoned { text: "hm".into(), seal: None },
        said("Looking."),
        called(1),
        called(2),
        settled(2, "two"),
        settled(1, "one"),
        Fact::StepStarted { turn: 1, step: 2, model: "m".into(), purpose: Default::default() },
        said("Done."),
        Fact::TurnStarted { turn: 2, prompt: None },
        called(3),
    ]);
    assert_eq!(
        shape(&transcript),
        [
            "User: what is here?",
            "Assistant: (hm) | Looking. | ref1=one | ref2=two",
            "Assistant: Done.",
            "Assistant: ref3?",
        ]
    );
    assert_eq!(transcript.title, "what is here?");
}

#[test]
fn a_prompt_joins_the_conversation_when_its_turn_begins() {
    let mut transcript = Transcript::default();
    transcript.push(1, &prompted("later"));
    assert_eq!((transcript.messages.len(), transcript.waiting.len()), (0, 1));
    let prompt = Some(PromptId(Uuid::from_u128(1)));
    transcript.push(2, &Fact::TurnStarted { turn: 1, prompt });
    assert_eq!((shape(&transcript), transcript.waiting.len()), (vec!["User: later".into()], 0));
}

#[test]
fn a_call_under_way_has_no_outcome() {
    assert_eq!(shape(&fold(&[called(1)])), ["Assistant: ref1?"]);
}

#[test]
fn a_revert_drops_what_came_after_it() {
    let transcript = fold(&[
        prompted("one"),
        said("1"),
        prompted("two"),
        said("2"),
        Fact::Reverted { to: 2 },
        prompted("three"),
    ]);
    assert_eq!(shape(&transcript), ["User: one", "Assistant: 1", "User: three"]);
}

#[test]
fn a_summary_stands_for_what_it_covers_until_it_is_reverted() {
    let mut facts = vec![
        prompted("one"),
        said("1"),
        Fact::Compacted { through: 2, summary: "we counted".into() },
        prompted("two"),
    ];
    let transcript = fold(&facts);
    let told: Vec<String> = transcript
        .for_model()
        .iter()
        .map(|message| match message.parts.first() {
            Some(Part::Text { text, .. }) => text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, ["we counted", "two"]);
    assert_eq!(transcript.messages.len(), 3, "a person still sees everything");

    facts.push(Fact::Reverted { to: 1 });
    assert_eq!(fold(&facts).summary, None);
}

#[test]
fn usage_adds_up_and_lost_steps_do_not_count() {
    let ended = |finish| Fact::StepEnded {
        turn: 1,
        step: 1,
        finish,
        usage: Usage { input: 10, output: 2, cached: 1, ..Usage::default() },
        cost: Some(Cost(3)),
    };
    let transcript = fold(&[ended(Finish::Calls), ended(Finish::Lost), ended(Finish::Stop)]);
    assert_eq!(transcript.usage, Usage { input: 20, output: 4, cached: 2, ..Usage::default() });
    assert_eq!(transcript.cost, Cost(6));
}

#[test]
fn a_summary_row_agrees_with_the_transcript() {
    use crate::id::{Millis, SessionId};
    use crate::op::SessionSummary;
    let facts = [
        Fact::opened("/w", "0"),
        called(1),
        prompted("what?"),
        Fact::TurnStarted { turn: 1, prompt: None },
        Fact::TurnEnded { turn: 1, end: TurnEnd::Denied },
    ];
    let mut transcript = Transcript::default();
    let mut summary = SessionSummary::new(SessionId(Uuid::nil()));
    for (index, fact) in facts.iter().enumerate() {
        transcript.push(index as Seq + 1, fact);
        summary.push(index as Seq + 1, Millis(index as u64), fact);
        let told = (&summary.title, &summary.workspace, &summary.end);
        assert_eq!(told, (&transcript.title, &transcript.workspace, &transcript.end));
    }
    assert_eq!((summary.length, summary.changed), (5, Millis(4)));
}

#[test]
fn a_long_first_line_becomes_a_short_title() {
    let transcript = fold(&[prompted(&format!("{}\nmore", "ü".repeat(200)))]);
    assert_eq!(transcript.title.chars().count(), 81);
}

#[test]
fn exactly_promises_need_a_barrier() {
    let started = |read_only| {
        let (accesses, repaired) = (vec![], None);
        Fact::Started { call: call(1), attempt: 1, accesses, read_only, repaired }
    };
    assert!(prompted("x").needs_barrier());
    assert!(Fact::Answered { call: call(1), answer: Answer::Once }.needs_barrier());
    assert!(Fact::Interrupted { turn: 1 }.needs_barrier());
    assert!(started(false).needs_barrier());
    assert!(!started(true).needs_barrier());
    assert!(!settled(1, "x").needs_barrier());
}

#[test]
fn every_kind_names_itself_as_the_log_spells_it() {
    for fact in [prompted("x"), said("y"), called(1), settled(1, "z")] {
        let json = serde_json::to_value(&fact).unwrap();
        assert_eq!(json["kind"], fact.kind());
        assert_eq!(serde_json::from_value::<Fact>(json).unwrap(), fact);
    }
}

#[test]
fn a_start_without_repairs_is_written_and_read_as_it_always_was() {
    let (accesses, repaired) = (vec![], None);
    let started = Fact::Started { call: call(1), attempt: 1, accesses, read_only: true, repaired };
    let json = serde_json::to_value(&started).unwrap();
    assert_eq!(json.get("repaired"), None);
    assert_eq!(serde_json::from_value::<Fact>(json).unwrap(), started);
}

#[test]
fn a_revert_over_a_summary_brings_back_the_one_before() {
    let mut facts = vec![
        prompted("one"),
        Fact::Compacted { through: 1, summary: "first".into() },
        prompted("two"),
        Fact::Compacted { through: 3, summary: "second".into() },
        prompted("three"),
        Fact::Reverted { to: 2 },
    ];
    let summary = |facts: &[Fact]| fold(facts).summary.map(|summary| summary.text);
    assert_eq!(summary(&facts).as_deref(), Some("first"));
    assert_eq!(fold(&facts).for_model().len(), 1, "what it stands for is not told besides");
    facts.push(Fact::Reverted { to: 0 });
    assert_eq!(summary(&facts), None);
}

#[test]
fn a_prompt_that_was_withdrawn_waits_no_longer() {
    let mut transcript = Transcript::default();
    let prompt = |number| PromptId(Uuid::from_u128(number));
    for number in [1, 2] {
        let (text, attachments, when) = (number.to_string(), Vec::new(), Default::default());
        transcript.push(
            number as u64,
            &Fact::Prompted { prompt: prompt(number), text, attachments, when },
        );
    }
    transcript.push(3, &Fact::Withdrawn { prompt: prompt(1) });
    let waiting: Vec<PromptId> = transcript.waiting.iter().map(|waits| waits.id).collect();
    assert_eq!(waiting, [prompt(2)]);
    transcript.push(4, &Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) });
    assert!(transcript.messages.is_empty(), "nothing takes it up");
}
