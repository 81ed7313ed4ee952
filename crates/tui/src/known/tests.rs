//! What the status line is told, as it happens and after a session was opened again.

use super::*;
use windlass_protocol::{Author, Delivery, Fault, Millis, Outcome, Output, PromptId};

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

fn call(number: u128) -> CallId {
    CallId(uuid::Uuid::from_u128(number))
}

fn prompt(number: u128) -> PromptId {
    PromptId(uuid::Uuid::from_u128(number))
}

fn called(number: u128, tool: &str, arguments: &str) -> Fact {
    Fact::Called {
        call: call(number),
        reference: String::new(),
        tool: tool.into(),
        arguments: arguments.into(),
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    }
}

fn started(number: u128) -> Fact {
    let (accesses, repaired) = (Vec::new(), None);
    Fact::Started { call: call(number), attempt: 1, accesses, read_only: true, repaired }
}

fn settled(number: u128) -> Fact {
    let outcome = Outcome::Completed { output: Output::default() };
    Fact::Settled { call: call(number), outcome, seen: Vec::new() }
}

fn prompted(number: u128, when: Delivery) -> Fact {
    let (text, attachments) = (format!("prompt {number}"), Vec::new());
    Fact::Prompted { prompt: prompt(number), text, attachments, when }
}

fn step() -> Fact {
    let model = "maker/one".to_owned();
    Fact::StepStarted { turn: 1, step: 1, model, purpose: Purpose::Answer }
}

fn records(facts: impl IntoIterator<Item = Fact>) -> Vec<Record> {
    let record = |(seq, fact)| Record { session: session(), seq, at: Millis(seq * 1_000), fact };
    (1..).zip(facts).map(record).collect()
}

fn known() -> Known {
    Known { session: Some(session()), ..Known::default() }
}

fn hears(known: &mut Known, facts: impl IntoIterator<Item = Fact>) {
    for record in records(facts) {
        known.hear(&Event::Fact(record), 0);
    }
}

#[test]
fn what_goes_on_is_said_in_words() {
    let mut known = known();
    hears(&mut known, [Fact::TurnStarted { turn: 1, prompt: None }, step()]);
    assert_eq!(known.doing, "waiting for one");
    hears(
        &mut known,
        [
            called(1, "bash", r#"{"command":"cargo test"}"#),
            called(2, "read", r#"{"filePath":"a.rs"}"#),
        ],
    );
    hears(&mut known, [started(1), started(2)]);
    assert_eq!(known.doing, "running cargo test");
    hears(&mut known, [settled(1)]);
    assert_eq!(known.doing, "reading a.rs", "what is over is no longer said");
    let (accesses, reason) = (Vec::new(), String::new());
    let (preview, offer, repaired) = (None, None, None);
    hears(&mut known, [Fact::Asked { call: call(2), accesses, reason, preview, offer, repaired }]);
    assert_eq!(known.doing, "waiting for your answer");
    let fault = Fault::Network { message: "reset".into() };
    hears(&mut known, [Fact::Retrying { turn: 1, step: 1, attempt: 1, fault, wait_ms: 4_000 }]);
    assert_eq!(known.doing, "trying again in 4 s");
    hears(&mut known, [Fact::TurnEnded { turn: 1, end: TurnEnd::Done }]);
    assert!(known.doing.is_empty() && !known.busy());
}

#[test]
fn a_prompt_waits_until_it_is_heard_or_taken_back() {
    let mut known = known();
    hears(&mut known, (1..=3).map(|number| prompted(number, Delivery::Queue)));
    assert_eq!(known.waiting.len(), 3);
    hears(&mut known, [Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) }]);
    hears(&mut known, [Fact::Steered { turn: 1, prompt: prompt(2) }]);
    hears(&mut known, [Fact::Withdrawn { prompt: prompt(3) }]);
    assert!(known.waiting.is_empty(), "{:?}", known.waiting);
}

#[test]
fn a_session_that_is_gone_on_with_is_known_as_if_it_had_been_watched() {
    let facts = || {
        let usage = Usage { input: 900, output: 100, ..Usage::default() };
        let finish = windlass_protocol::Finish::Calls;
        [
            Fact::ModeChanged { mode: Mode::Auto },
            Fact::renamed("the harbour".into()),
            prompted(1, Delivery::Steer),
            Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) },
            step(),
            called(1, "bash", r#"{"command":"make"}"#),
            Fact::StepEnded { turn: 1, step: 1, finish, usage, cost: Some(Cost(5)) },
            started(1),
            prompted(2, Delivery::Queue),
        ]
    };
    let mut watched = known();
    hears(&mut watched, facts());
    let mut opened = Known { early: Some(Vec::new()), ..known() };
    // Something is heard before the past has come, which does not tell of it yet.
    let mut page = records(facts());
    let last = page.pop().unwrap();
    opened.hear(&Event::Fact(last), 20_000);
    let reply = Reply::Events { events: page };
    opened.remember(&Ok(Answered::Reply { reply }), 20_000);
    assert_eq!(opened.doing, "running make");
    assert_eq!(opened.turn.map(|(turn, _)| turn), Some(1));
    assert_eq!(
        (&opened.title, opened.mode, opened.cost, opened.context, opened.head),
        (&watched.title, watched.mode, watched.cost, watched.context, watched.head)
    );
    assert_eq!(opened.waiting, watched.waiting);
    assert_eq!(opened.early, None);
}

#[test]
fn what_lies_further_back_than_the_last_page_is_known_too() {
    let mut transcript = Transcript::default();
    let cost = Some(Cost(7));
    let finish = windlass_protocol::Finish::Stop;
    let usage = Usage::default();
    let facts = [
        Fact::ModeChanged { mode: Mode::Plan },
        Fact::renamed("long ago".into()),
        Fact::StepEnded { turn: 1, step: 1, finish, usage, cost },
    ];
    for record in records(facts) {
        transcript.push(record.seq, &record.fact);
    }
    let mut known = known();
    let reply = Reply::Transcript { transcript: Box::new(transcript) };
    known.remember(&Ok(Answered::Reply { reply }), 0);
    assert_eq!((known.mode, known.title.as_str(), known.cost), (Mode::Plan, "long ago", Cost(7)));
}
