//! Compaction under any window: whatever the provider refuses, the session goes on, and what must
//! not be lost is in the next request.

use crate::session::{Effect, Input, Limits, Session, Stamp, Terms, Window, gauge};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, BlobRef, CallId, Fact, Fault, Finish, Messages, Millis, Mode, Op, Outcome, Output,
    Part, Purpose, Record, SessionId, Sight, TurnEnd, Usage,
};
use windlass_testkit::grammar;
use windlass_toolkit::Intent;

/// What must be in every request after the first step.
const PLANTED: [&str; 5] = [
    "fix the roof before it rains",
    "find the hole",
    "job 7: watch the sky",
    "src/roof.rs",
    "The mode is now plan",
];

/// A provider: what it takes, and what it does not.
#[derive(Clone)]
struct Provider {
    takes: u64,
    /// The answer that it refuses, whatever its length, and how often.
    refuses: Option<(usize, usize)>,
    /// It says nothing when it is to sum up.
    mute: bool,
}

struct Stage {
    session: Session,
    terms: Terms,
    log: Vec<Fact>,
    clock: u128,
    provider: Provider,
    /// How long what each step's call gives is, in words.
    outputs: Vec<usize>,
    answers: usize,
    refused: usize,
    requests: Vec<(Purpose, Messages)>,
    /// The process dies when there are so many facts.
    crash: Option<usize>,
}

impl Stage {
    fn new(window: Window, provider: Provider, outputs: Vec<usize>) -> Stage {
        let limits = Limits { steps: 500, ..Limits::default() };
        let terms = Terms { window, ..super::terms(limits) };
        let session = Session::new(Fact::opened("/w", "0"), terms.clone());
        let (log, requests) = (Vec::new(), Vec::new());
        let (clock, answers, refused, crash) = (0, 0, 0, None);
        Stage { session, terms, log, clock, provider, outputs, answers, refused, requests, crash }
    }

    fn run(&mut self) -> TurnEnd {
        let mut inputs = vec![
            Input::Op(Op::Mode { mode: Mode::Plan }),
            Input::Op(Op::prompt("fix the roof before it rains")),
        ];
        while !inputs.is_empty() {
            let input = inputs.remove(0);
            self.clock += 1;
            let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
            for effect in self.session.apply(stamp, input) {
                inputs.extend(self.perform(effect));
            }
            grammar::check(&self.log).unwrap();
            assert!(self.requests.len() < 400, "it never ends");
            if self.crash.take_if(|fact| self.log.len() >= *fact).is_some() {
                self.session = Session::replay(&self.records(), self.terms.clone());
                inputs = vec![Input::Resume];
            }
        }
        match self.log.last() {
            Some(Fact::TurnEnded { end, .. }) => end.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn records(&self) -> Vec<Record> {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| Record { session, seq, at: Millis(0), fact: fact.clone() };
        (1..).zip(&self.log).map(record).collect()
    }

    fn perform(&mut self, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Append(facts) => {
                self.log.extend(facts);
                Vec::new()
            }
            Effect::CallModel { turn, step, purpose, messages, .. } => {
                let events = self.speak(purpose, &messages);
                self.requests.push((purpose, messages));
                events.into_iter().map(|event| Input::Model { turn, step, event }).collect()
            }
            Effect::CallTool { turn, call, tool, .. } => {
                let accesses = vec![Access::Use { tool }];
                let intent = Intent {
                    accesses,
                    read_only: true,
                    asking: None,
                    offer: None,
                    coverable: true,
                    repaired: None,
                };
                vec![Input::Intended { turn, call, intent }]
            }
            Effect::Answer { call, .. } => vec![self.settle(call)],
            Effect::Wake { turn, step, .. } => vec![Input::Woke { turn, step }],
            _ => Vec::new(),
        }
    }

    fn settle(&self, id: CallId) -> Input {
        let called = |fact: &&Fact| matches!(fact, Fact::Called { call, .. } if *call == id);
        let Some(Fact::Called { tool, arguments, .. }) = self.log.iter().find(called) else {
            panic!("{id:?}");
        };
        let mut output = Output::default();
        let mut seen = Vec::new();
        match tool.as_str() {
            "todowrite" => {
                let todos = json!([{"content": "find the hole", "status": "pending"}]);
                output.metadata.insert("todos".into(), todos);
            }
            "bash" => drop(output.metadata.insert("job".into(), json!(7))),
            "read" => {
                let digest = BlobRef::of(b"roof");
                seen.push(Sight { path: "src/roof.rs".into(), digest });
            }
            _ => {
                let words = self.outputs[arguments.parse::<usize>().unwrap()];
                output.text = "word ".repeat(words);
            }
        }
        let turn = 1;
        Input::Settled { turn, call: id, outcome: Outcome::Completed { output }, seen }
    }

    fn speak(&mut self, purpose: Purpose, messages: &Messages) -> Vec<ModelEvent> {
        let size: u64 = messages.iter().map(|message| gauge::weigh(message)).sum();
        let usage = Usage { input: size, output: 20, ..Usage::default() };
        let no = |refused: &mut usize| {
            *refused += 1;
            vec![ModelEvent::Failed(Fault::Overflow { message: "too long".into() })]
        };
        if size > self.provider.takes {
            return no(&mut self.refused);
        }
        if purpose == Purpose::Summary {
            let text = if self.provider.mute { " " } else { "It went on." };
            let ended = ModelEvent::Ended { finish: Finish::Stop, usage };
            return vec![ModelEvent::Text(text.into()), ended];
        }
        let model = |fact: &&Fact| matches!(fact, Fact::StepEnded { finish: Finish::Calls, .. });
        self.answers = self.log.iter().filter(model).count();
        match &mut self.provider.refuses {
            Some((answer, times)) if *answer == self.answers && *times > 0 => {
                *times -= 1;
                return no(&mut self.refused);
            }
            _ => {}
        }
        let call = |tool: &str, arguments: String| ModelEvent::Call {
            reference: "r".into(),
            tool: tool.into(),
            arguments,
            seal: None,
            repaired: Vec::new(),
        };
        let mut events = match self.answers {
            0 => vec![
                call("todowrite", "{}".into()),
                call("bash", r#"{"command": "watch the sky"}"#.into()),
                call("read", "{}".into()),
            ],
            n if n <= self.outputs.len() => {
                vec![ModelEvent::Text(format!("Step {n}.")), call("look", (n - 1).to_string())]
            }
            _ => vec![ModelEvent::Text("Done.".into())],
        };
        let finish = if self.answers <= self.outputs.len() { Finish::Calls } else { Finish::Stop };
        events.push(ModelEvent::Ended { finish, usage });
        events
    }

    /// Everything that was planted, in every request for an answer after a summary.
    fn check(&self) -> usize {
        let mut summed_up = 0;
        let asked = self.requests.iter().filter(|(purpose, _)| *purpose == Purpose::Answer);
        for (_, messages) in asked {
            let head = messages.get(0).map(|first| text(&Messages::from_iter([first.clone()])));
            if !head.is_some_and(|head| head.contains("was summed up")) {
                continue;
            }
            summed_up += 1;
            let told = text(messages);
            for fact in PLANTED {
                assert!(told.contains(fact), "{fact} is not in\n{told}");
            }
        }
        summed_up
    }
}

fn text(messages: &Messages) -> String {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

const UNKNOWN: Window = Window { context: 0, output: 0 };

fn taking(takes: u64) -> Provider {
    Provider { takes, refuses: None, mute: false }
}

#[test]
fn a_conversation_refused_at_any_step_goes_on() {
    // Before the second answer there is nothing that could be left out.
    for answer in 2..=9 {
        for times in 1..=2 {
            if answer < 4 && times > 1 {
                continue;
            }
            let refuses = Some((answer, times));
            let provider = Provider { refuses, ..taking(u64::MAX) };
            let mut stage = Stage::new(UNKNOWN, provider, vec![400; 8]);
            assert_eq!(stage.run(), TurnEnd::Done, "refused {times} times at {answer}");
            assert_eq!(stage.refused, times);
            let pruned = |fact: &Fact| matches!(fact, Fact::Pruned { .. });
            assert!(stage.check() > 0 || stage.log.iter().any(pruned));
        }
    }
}

#[test]
fn a_provider_that_refuses_everything_is_given_up_on() {
    for answer in 0..=5 {
        let provider = Provider { refuses: Some((answer, usize::MAX)), ..taking(u64::MAX) };
        let mut stage = Stage::new(UNKNOWN, provider, vec![400; 8]);
        let end = stage.run();
        let overflow = matches!(&end, TurnEnd::Failed { fault: Fault::Overflow { .. } });
        assert!(overflow, "{end:?}");
        assert!(stage.refused <= 3, "asked {} times", stage.refused);
    }
}

#[test]
fn a_model_that_cannot_sum_up_is_given_up_on() {
    let provider = Provider { mute: true, ..taking(900) };
    let mut stage = Stage::new(Window { context: 900, output: 100 }, provider, vec![250; 12]);
    let end = stage.run();
    assert!(matches!(&end, TurnEnd::Failed { fault: Fault::Overflow { .. } }), "{end:?}");
    let summaries = stage.requests.iter().filter(|(purpose, _)| *purpose == Purpose::Summary);
    assert_eq!(summaries.count(), 2);
}

/// What is known of a window keeps the provider from ever having to say no.
#[test]
fn a_known_window_is_never_exceeded() {
    let mut stage =
        Stage::new(Window { context: 1_600, output: 200 }, taking(1_600), vec![300; 30]);
    assert_eq!(stage.run(), TurnEnd::Done);
    assert_eq!(stage.refused, 0);
    assert!(stage.check() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sessions_that_overflow_go_on_and_lose_nothing_that_was_planted(
        outputs in proptest::collection::vec(0_usize..900, 1..14),
        takes in 900_u64..3_000,
        known in any::<bool>(),
        crash in proptest::option::of(4_usize..60),
    ) {
        let window = if known { Window { context: takes, output: takes / 8 } } else { UNKNOWN };
        let mut stage = Stage::new(window, taking(takes), outputs);
        stage.crash = crash;
        prop_assert_eq!(stage.run(), TurnEnd::Done);
        stage.check();
        grammar::check_settled(&stage.log).unwrap();
        let replayed = Session::replay(&stage.records(), stage.terms.clone());
        prop_assert_eq!(replayed.transcript(), stage.session.transcript());
        prop_assert_eq!(replayed.gauge.estimate(), stage.session.gauge.estimate());
    }
}
