//! Prompts that hooks accepted or rejected: the facts that are recorded together, and the next
//! request to the model.

use crate::session::{
    InputTimeAndId, Session, SessionEffect, SessionInput, SubmittedPrompt, TurnLimits,
};
use std::time::Duration;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, Fact, FactRecord, FinishReason, HookPoint, HookVerdict, MessagePart, Messages,
    PromptDelivery, SessionId, SessionOp, TokenUsage, TurnEndReason, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::HookRun;

struct HookTestSession {
    session: Session,
    /// The facts of each append.
    appends: Vec<Vec<Fact>>,
    requests: Vec<Messages>,
    refusals: Vec<String>,
    clock: u128,
}

impl HookTestSession {
    fn new() -> HookTestSession {
        let session =
            Session::new(Fact::session_opened("/w", "0"), super::config(TurnLimits::default()));
        let (appends, requests, refusals) = Default::default();
        HookTestSession { session, appends, requests, refusals, clock: 0 }
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.appends.push(facts),
                SessionEffect::CallModel { messages, .. } => self.requests.push(messages),
                SessionEffect::AnswerOp { result: Err(error) } => {
                    self.refusals.push(error.to_string())
                }
                _ => {}
            }
        }
        log_grammar::check(&self.log()).unwrap();
    }

    fn log(&self) -> Vec<Fact> {
        self.appends.concat()
    }

    fn end_turn(&mut self) {
        let turn = self.log().iter().filter(|fact| fact.kind() == "turn_started").count() as u32;
        self.apply(SessionInput::Model { turn, step: 1, event: ModelEvent::Text("ok".into()) });
        let event = ModelEvent::Ended { finish: FinishReason::Stop, usage: TokenUsage::default() };
        self.apply(SessionInput::Model { turn, step: 1, event });
    }

    fn last_request(&self) -> String {
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text, .. } => text.clone(),
            other => format!("{other:?}"),
        };
        let last = self.requests.last().unwrap();
        let parts = last.iter().flat_map(|message| message.parts.iter().map(text));
        parts.collect::<Vec<_>>().join("\n")
    }
}

fn hook_run(verdict: HookVerdict) -> Vec<HookRun> {
    let (hook, point) = ("guard".to_owned(), HookPoint::Prompt);
    vec![HookRun { hook, point, duration: Duration::from_millis(7), verdict }]
}

fn accepted_prompt(text: &str, context: &[&str]) -> SessionInput {
    let context = context.iter().map(|text| (*text).to_owned()).collect();
    SessionInput::PromptAccepted {
        prompt: SubmittedPrompt {
            text: text.to_owned(),
            attachments: Vec::new(),
            delivery: PromptDelivery::default(),
            settings: Default::default(),
        },
        hook_runs: hook_run(HookVerdict::Rewrote),
        context,
    }
}

fn rejected_prompt() -> SessionInput {
    let hook_runs = hook_run(HookVerdict::Refused { reason: "a key".into() });
    let text = "[blocked by the hook guard: a key]".to_owned();
    SessionInput::PromptRejected { text, end: TurnEndReason::Denied, hook_runs }
}

#[test]
fn a_prompt_is_recorded_together_with_its_hook_runs() {
    let mut env = HookTestSession::new();
    env.apply(accepted_prompt("do it well", &["it is late"]));
    let first = &env.appends[0];
    let kinds: Vec<&str> = first.iter().map(Fact::kind).collect();
    let position = |kind: &str| kinds.iter().position(|each| *each == kind).unwrap();
    assert!(
        position("hook_ran") < position("prompt_submitted")
            && position("context_changed") < position("prompt_submitted")
    );
    assert!(env.last_request().contains("do it well") && env.last_request().contains("it is late"));
    assert_eq!(env.requests.len(), 1);
}

#[test]
fn a_rejected_prompt_is_a_turn_that_ends_at_once() {
    let mut env = HookTestSession::new();
    env.apply(rejected_prompt());
    assert_eq!(env.appends.len(), 1, "one append, so no crash can send the prompt to the model");
    assert!(env.requests.is_empty() && !env.session.is_busy());
    let is_denied =
        |fact: &Fact| matches!(fact, Fact::TurnEnded { end: TurnEndReason::Denied, .. });
    assert!(env.log().iter().any(is_denied));

    // A session that is opened again has nothing to resume.
    let record = |(seq, fact)| FactRecord::new(SessionId(Uuid::nil()), seq, UnixMillis(0), fact);
    let log: Vec<FactRecord> = (1..).zip(env.log()).map(record).collect();
    let mut reopened = Session::replay(&log, super::config(TurnLimits::default()));
    let stamp = InputTimeAndId { at: UnixMillis(1), id: Uuid::from_u128(99) };
    assert_eq!(reopened.apply(stamp, SessionInput::Resume), Vec::new());

    env.apply(SessionInput::Op(SessionOp::prompt("something else")));
    assert!(env.last_request().contains("[blocked by the hook guard: a key]"));
    env.end_turn();
    log_grammar::check_settled(&env.log()).unwrap();
}

#[test]
fn a_prompt_rejected_while_the_model_works_does_not_affect_its_turn() {
    let mut env = HookTestSession::new();
    env.apply(SessionInput::Op(SessionOp::prompt("go")));
    env.apply(rejected_prompt());
    assert!(env.session.is_busy());
    assert_eq!(env.refusals, ["[blocked by the hook guard: a key]"]);
    env.end_turn();
    let log = env.log();
    assert_eq!(log.iter().filter(|fact| fact.kind() == "prompt_submitted").count(), 1);
    assert_eq!(log.iter().filter(|fact| fact.kind() == "hook_ran").count(), 1);
    assert!(!env.last_request().contains("blocked"));
}

#[test]
fn a_hook_run_of_an_unknown_call_is_recorded_without_a_call() {
    let mut env = HookTestSession::new();
    env.apply(SessionInput::Op(SessionOp::prompt("go")));
    let hook_runs = hook_run(HookVerdict::Refused { reason: "late".into() });
    env.apply(SessionInput::HooksRan { call: Some(CallId(Uuid::from_u128(77))), hook_runs });
    let has_no_call = |fact: &Fact| matches!(fact, Fact::HookRan { call: None, .. });
    assert!(env.log().iter().any(has_no_call));
    env.end_turn();
}
