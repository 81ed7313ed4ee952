//! Tests of `Transcript`.

use super::*;
use crate::call_approval_and_outcome::{CallAuthor, CallOutcome, PermissionAnswer, ToolOutput};
use crate::ids_and_timestamps::PromptId;
use uuid::Uuid;

fn fold(facts: &[Fact]) -> Transcript {
    let mut transcript = Transcript::default();
    for (index, fact) in facts.iter().enumerate() {
        transcript.push(index as LogSeq + 1, fact);
        if let Fact::PromptSubmitted { prompt, .. } = fact {
            transcript
                .push(index as LogSeq + 1, &Fact::TurnStarted { turn: 1, prompt: Some(*prompt) });
        }
    }
    transcript
}

fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

fn prompt_submitted(text: &str) -> Fact {
    Fact::PromptSubmitted {
        prompt: PromptId(Uuid::from_u128(1)),
        text: text.into(),
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    }
}

fn model_text(text: &str) -> Fact {
    Fact::ModelText { text: text.into(), provider_signature: None }
}

fn tool_called(number: u128) -> Fact {
    Fact::ToolCalled {
        description: crate::CallDescription::default(),
        call: call(number),
        provider_call_id: format!("ref{number}"),
        tool: "read".into(),
        arguments: "{}".into(),
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    }
}

fn call_settled(number: u128, text: &str) -> Fact {
    let output = ToolOutput { text: text.into(), ..ToolOutput::default() };
    Fact::CallSettled {
        call: call(number),
        outcome: CallOutcome::Completed { output },
        seen_files: Vec::new(),
    }
}

/// Returns one line per message: its role, then its parts.
fn summarize(transcript: &Transcript) -> Vec<String> {
    transcript
        .messages
        .iter()
        .map(|message| {
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    MessagePart::Text { text, .. } => text.clone(),
                    MessagePart::Reasoning { text, .. } => format!("({text})"),
                    MessagePart::File(file) => format!("<{}>", file.name),
                    MessagePart::Call(call) => match &call.outcome {
                        Some(outcome) => format!("{}={}", call.provider_call_id, outcome.text()),
                        None => format!("{}?", call.provider_call_id),
                    },
                })
                .collect();
            format!("{:?}: {}", message.role, parts.join(" | "))
        })
        .collect()
}

#[test]
fn a_step_is_one_message_and_outcomes_are_with_their_calls() {
    let transcript = fold(&[
        prompt_submitted("what is here?"),
        Fact::ModelReasoning { text: "hm".into(), provider_signature: None },
        model_text("Looking."),
        tool_called(1),
        tool_called(2),
        call_settled(2, "two"),
        call_settled(1, "one"),
        Fact::StepStarted { turn: 1, step: 2, model: "m".into(), purpose: Default::default() },
        model_text("Done."),
        Fact::TurnStarted { turn: 2, prompt: None },
        tool_called(3),
    ]);
    assert_eq!(
        summarize(&transcript),
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
    transcript.push(1, &prompt_submitted("later"));
    assert_eq!((transcript.messages.len(), transcript.queued_prompts.len()), (0, 1));
    let prompt = Some(PromptId(Uuid::from_u128(1)));
    transcript.push(2, &Fact::TurnStarted { turn: 1, prompt });
    assert_eq!(
        (summarize(&transcript), transcript.queued_prompts.len()),
        (vec!["User: later".into()], 0)
    );
}

#[test]
fn a_running_call_has_no_outcome() {
    assert_eq!(summarize(&fold(&[tool_called(1)])), ["Assistant: ref1?"]);
}

#[test]
fn a_rewind_drops_later_messages() {
    let transcript = fold(&[
        prompt_submitted("one"),
        model_text("1"),
        prompt_submitted("two"),
        model_text("2"),
        Fact::Rewound { to: 2 },
        prompt_submitted("three"),
    ]);
    assert_eq!(summarize(&transcript), ["User: one", "Assistant: 1", "User: three"]);
}

#[test]
fn a_summary_replaces_messages_for_the_model_until_it_is_rewound() {
    let mut facts = vec![
        prompt_submitted("one"),
        model_text("1"),
        Fact::ContextCompacted {
            through: 2,
            summary: "we counted".into(),
            todos: Vec::new(),
            mode: None,
        },
        prompt_submitted("two"),
    ];
    let transcript = fold(&facts);
    let texts: Vec<String> = transcript
        .model_messages()
        .iter()
        .map(|message| match message.parts.first() {
            Some(MessagePart::Text { text, .. }) => text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["we counted", "two"]);
    assert_eq!(transcript.messages.len(), 3, "the user still sees everything");

    facts.push(Fact::Rewound { to: 1 });
    assert_eq!(fold(&facts).summary, None);
}

#[test]
fn usage_adds_up_and_lost_steps_do_not_count() {
    let step_ended = |finish_reason| Fact::StepEnded {
        turn: 1,
        step: 1,
        finish_reason,
        usage: TokenUsage { input: 10, output: 2, cache_reads: 1, ..TokenUsage::default() },
        cost: Some(Cost(3)),
    };
    let transcript = fold(&[
        step_ended(FinishReason::ToolCalls),
        step_ended(FinishReason::ProcessDied),
        step_ended(FinishReason::Stop),
    ]);
    assert_eq!(
        transcript.usage,
        TokenUsage { input: 20, output: 4, cache_reads: 2, ..TokenUsage::default() }
    );
    assert_eq!(transcript.cost, Cost(6));
}

#[test]
fn a_summary_row_agrees_with_the_transcript() {
    use crate::ids_and_timestamps::{SessionId, UnixMillis};
    use crate::ops_and_queries::SessionSummary;
    let facts = [
        Fact::session_opened("/w", "0"),
        tool_called(1),
        prompt_submitted("what?"),
        Fact::TurnStarted { turn: 1, prompt: None },
        Fact::TurnEnded { turn: 1, end: TurnEndReason::Denied },
    ];
    let mut transcript = Transcript::default();
    let mut summary = SessionSummary::new(SessionId(Uuid::nil()));
    for (index, fact) in facts.iter().enumerate() {
        transcript.push(index as LogSeq + 1, fact);
        summary.push(index as LogSeq + 1, UnixMillis(index as u64), fact);
        let row = (&summary.title, &summary.workspace, &summary.last_turn_end);
        assert_eq!(row, (&transcript.title, &transcript.workspace, &transcript.last_turn_end));
    }
    assert_eq!((summary.fact_count, summary.changed_at), (5, UnixMillis(4)));
}

#[test]
fn a_long_first_line_becomes_a_short_title() {
    let transcript = fold(&[prompt_submitted(&format!("{}\nmore", "ü".repeat(200)))]);
    assert_eq!(transcript.title.chars().count(), 81);
}

#[test]
fn only_promises_need_a_disk_sync() {
    let call_started = |read_only| {
        let (accesses, repair) = (vec![], None);
        Fact::CallStarted { call: call(1), attempt: 1, accesses, read_only, repair }
    };
    assert!(prompt_submitted("x").needs_disk_sync());
    assert!(
        Fact::PermissionAnswered { call: call(1), answer: PermissionAnswer::Once }
            .needs_disk_sync()
    );
    assert!(Fact::TurnInterrupted { turn: 1 }.needs_disk_sync());
    assert!(call_started(false).needs_disk_sync());
    assert!(!call_started(true).needs_disk_sync());
    assert!(!call_settled(1, "x").needs_disk_sync());
}

#[test]
fn kind_is_the_name_that_is_serialized() {
    for fact in [prompt_submitted("x"), model_text("y"), tool_called(1), call_settled(1, "z")] {
        let json = serde_json::to_value(&fact).unwrap();
        assert_eq!(json["kind"], fact.kind());
        assert_eq!(serde_json::from_value::<Fact>(json).unwrap(), fact);
    }
}

#[test]
fn a_start_without_repairs_serializes_without_the_field() {
    let (accesses, repair) = (vec![], None);
    let started =
        Fact::CallStarted { call: call(1), attempt: 1, accesses, read_only: true, repair };
    let json = serde_json::to_value(&started).unwrap();
    assert_eq!(json.get("repair"), None);
    assert_eq!(serde_json::from_value::<Fact>(json).unwrap(), started);
}

#[test]
fn a_rewind_past_a_summary_restores_the_previous_one() {
    let mut facts = vec![
        prompt_submitted("one"),
        Fact::ContextCompacted {
            through: 1,
            summary: "first".into(),
            todos: Vec::new(),
            mode: None,
        },
        prompt_submitted("two"),
        Fact::ContextCompacted {
            through: 3,
            summary: "second".into(),
            todos: Vec::new(),
            mode: None,
        },
        prompt_submitted("three"),
        Fact::Rewound { to: 2 },
    ];
    let summary = |facts: &[Fact]| fold(facts).summary.map(|summary| summary.text);
    assert_eq!(summary(&facts).as_deref(), Some("first"));
    assert_eq!(
        fold(&facts).model_messages().len(),
        1,
        "messages that the summary replaces are not sent"
    );
    facts.push(Fact::Rewound { to: 0 });
    assert_eq!(summary(&facts), None);
}

#[test]
fn a_withdrawn_prompt_leaves_the_queue() {
    let mut transcript = Transcript::default();
    let prompt = |number| PromptId(Uuid::from_u128(number));
    for number in [1, 2] {
        let (text, attachments, delivery) = (number.to_string(), Vec::new(), Default::default());
        transcript.push(
            number as u64,
            &Fact::PromptSubmitted {
                prompt: prompt(number),
                text,
                attachments,
                delivery,
                settings: Default::default(),
            },
        );
    }
    transcript.push(3, &Fact::PromptWithdrawn { prompt: prompt(1) });
    let queued_ids: Vec<PromptId> =
        transcript.queued_prompts.iter().map(|queued| queued.id).collect();
    assert_eq!(queued_ids, [prompt(2)]);
    transcript.push(4, &Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) });
    assert!(transcript.messages.is_empty(), "a withdrawn prompt is not delivered");
}
