//! Prompts that hooks had their say about: what goes on record, all at once, and what the model hears.

use crate::session::{Effect, Input, Limits, Session, Stamp};
use std::time::Duration;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, Delivery, Fact, Finish, Live, Messages, Millis, Op, Part, Point, Record, SessionId,
    TurnEnd, Usage, Verdict,
};
use windlass_testkit::grammar;
use windlass_toolkit::Firing;

struct Stage {
    session: Session,
    /// What was appended, each time at once.
    appends: Vec<Vec<Fact>>,
    requests: Vec<Messages>,
    noticed: Vec<String>,
    clock: u128,
}

impl Stage {
    fn new() -> Stage {
        let session = Session::new(Fact::opened("/w", "0"), super::terms(Limits::default()));
        let (appends, requests, noticed) = Default::default();
        Stage { session, appends, requests, noticed, clock: 0 }
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => self.appends.push(facts),
                Effect::CallModel { messages, .. } => self.requests.push(messages),
                Effect::Show(Live::Noticed { text }) => self.noticed.push(text),
                _ => {}
            }
        }
        grammar::check(&self.log()).unwrap();
    }

    fn log(&self) -> Vec<Fact> {
        self.appends.concat()
    }

    fn end_turn(&mut self) {
        let turn = self.log().iter().filter(|fact| fact.kind() == "turn_started").count() as u32;
        self.apply(Input::Model { turn, step: 1, event: ModelEvent::Text("ok".into()) });
        let event = ModelEvent::Ended { finish: Finish::Stop, usage: Usage::default() };
        self.apply(Input::Model { turn, step: 1, event });
    }

    fn told(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text { text, .. } => text.clone(),
            other => format!("{other:?}"),
        };
        let last = self.requests.last().unwrap();
        let parts = last.iter().flat_map(|message| message.parts.iter().map(text));
        parts.collect::<Vec<_>>().join("\n")
    }
}

fn firing(verdict: Verdict) -> Vec<Firing> {
    let (hook, point, took) = ("guard".to_owned(), Point::Prompt, Duration::from_millis(7));
    vec![Firing { hook, point, took, verdict }]
}

fn prompted(text: &str, context: &[&str]) -> Input {
    let context = context.iter().map(|text| (*text).to_owned()).collect();
    let (attachments, when) = (Vec::new(), Delivery::default());
    let firings = firing(Verdict::Rewrote);
    Input::Prompted { text: text.to_owned(), attachments, when, firings, context }
}

fn withheld() -> Input {
    let firings = firing(Verdict::Refused { reason: "a key".into() });
    let text = "[withheld by the hook guard: a key]".to_owned();
    Input::Withheld { text, end: TurnEnd::Denied, firings }
}

#[test]
fn a_prompt_goes_on_record_with_what_hooks_said_or_not_at_all() {
    let mut stage = Stage::new();
    stage.apply(prompted("do it well", &["it is late"]));
    let first = &stage.appends[0];
    let kinds: Vec<&str> = first.iter().map(Fact::kind).collect();
    let place = |kind: &str| kinds.iter().position(|each| *each == kind).unwrap();
    assert!(place("hooked") < place("prompted") && place("context_changed") < place("prompted"));
    assert!(stage.told().contains("do it well") && stage.told().contains("it is late"));
    assert_eq!(stage.requests.len(), 1);
}

#[test]
fn a_withheld_prompt_is_a_turn_that_ends_as_it_begins() {
    let mut stage = Stage::new();
    stage.apply(withheld());
    assert_eq!(stage.appends.len(), 1, "all or nothing, so no crash sends it to the model");
    assert!(stage.requests.is_empty() && !stage.session.busy());
    let ends = |fact: &Fact| matches!(fact, Fact::TurnEnded { end: TurnEnd::Denied, .. });
    assert!(stage.log().iter().any(ends));

    // Opened again, nothing of it is left to do.
    let record = |(seq, fact)| Record { session: SessionId(Uuid::nil()), seq, at: Millis(0), fact };
    let log: Vec<Record> = (1..).zip(stage.log()).map(record).collect();
    let mut again = Session::replay(&log, super::terms(Limits::default()));
    let stamp = Stamp { at: Millis(1), id: Uuid::from_u128(99) };
    assert_eq!(again.apply(stamp, Input::Resume), Vec::new());

    stage.apply(Input::Op(Op::prompt("something else")));
    assert!(stage.told().contains("[withheld by the hook guard: a key]"));
    stage.end_turn();
    grammar::check_settled(&stage.log()).unwrap();
}

#[test]
fn what_is_withheld_while_the_model_works_leaves_its_turn_alone() {
    let mut stage = Stage::new();
    stage.apply(Input::Op(Op::prompt("go")));
    stage.apply(withheld());
    assert!(stage.session.busy());
    assert_eq!(stage.noticed, ["[withheld by the hook guard: a key]"]);
    stage.end_turn();
    let log = stage.log();
    assert_eq!(log.iter().filter(|fact| fact.kind() == "prompted").count(), 1);
    assert_eq!(log.iter().filter(|fact| fact.kind() == "hooked").count(), 1);
    assert!(!stage.told().contains("withheld"));
}

#[test]
fn a_word_about_a_call_that_is_settled_or_was_never_made_is_about_none() {
    let mut stage = Stage::new();
    stage.apply(Input::Op(Op::prompt("go")));
    let firings = firing(Verdict::Refused { reason: "late".into() });
    stage.apply(Input::Hooked { call: Some(CallId(Uuid::from_u128(77))), firings });
    let of = |fact: &Fact| matches!(fact, Fact::Hooked { call: None, .. });
    assert!(stage.log().iter().any(of));
    stage.end_turn();
}
