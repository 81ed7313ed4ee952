//! Any interleaving of inputs, late, doubled and nonsensical ones included, with crashes between
//! them, gives a log that follows the grammar and settles every call exactly once.

use super::world::inquiry;
use crate::session::{Effect, Input, Limits, Looping, Session, Stamp, Terms, Window};
use proptest::prelude::*;
use std::collections::BTreeSet;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, Answer, CallId, Delivery, Fact, Fault, Finish, Millis, Mode, Op, Outcome, Output,
    PromptId, Record, SessionId, Usage,
};
use windlass_testkit::grammar;
use windlass_toolkit::{Intent, Stake};

/// Something that happens. Numbers pick among the calls made so far.
#[derive(Clone, Debug)]
enum Act {
    Prompt,
    /// A prompt that waits for the turn's end.
    Queue,
    /// Another mode.
    Mode(u8),
    /// A person has the conversation summed up.
    Compact,
    /// A prompt is taken back: one that waits, or one that nobody knows.
    TakeBack(usize),
    /// A person steps back so many facts.
    StepBack(u64),
    /// The time of the turn may be up, and perhaps it is.
    Ring(bool),
    PersonCalls,
    Interrupt,
    Answer(usize, u8),
    Speak,
    Call,
    /// The model ends, for one of several reasons.
    End(u8),
    /// The model fails, in one of several ways.
    Fail(u8),
    /// A call says what it is about to do, and whether somebody must be asked.
    Intend(usize, bool),
    Settle(usize, u8),
    /// A call says what it would do.
    Look(usize),
    /// A call asks the person something, perhaps for the mode.
    Inquire(usize, bool),
    /// The person says something to it, sensible or not.
    Reply(usize, u8),
    /// A call is about to change files.
    Change(usize),
    /// What it was about to change it did not.
    Withdraw(usize),
    Wake,
    /// The next input comes with an older turn or step number.
    Late,
    /// The process dies and the session is opened again.
    Crash,
    /// The power fails: what came after the last barrier is gone.
    PowerCut,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => Just(Act::Prompt),
        1 => Just(Act::Queue),
        1 => (0_u8..4).prop_map(Act::Mode),
        1 => Just(Act::Compact),
        1 => (0_usize..3).prop_map(Act::TakeBack),
        2 => (0_u64..40).prop_map(Act::StepBack),
        1 => any::<bool>().prop_map(Act::Ring),
        1 => Just(Act::PersonCalls),
        1 => Just(Act::Interrupt),
        4 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| Act::Answer(call, kind)),
        2 => Just(Act::Speak),
        4 => Just(Act::Call),
        4 => (0_u8..5).prop_map(Act::End),
        2 => (0_u8..4).prop_map(Act::Fail),
        8 => (0_usize..6, any::<bool>()).prop_map(|(call, asks)| Act::Intend(call, asks)),
        8 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| Act::Settle(call, kind)),
        6 => (0_usize..6).prop_map(Act::Look),
        4 => (0_usize..6, any::<bool>()).prop_map(|(call, mode)| Act::Inquire(call, mode)),
        4 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| Act::Reply(call, kind)),
        3 => (0_usize..6).prop_map(Act::Change),
        1 => (0_usize..6).prop_map(Act::Withdraw),
        1 => Just(Act::Wake),
        1 => Just(Act::Late),
        1 => Just(Act::Crash),
        1 => Just(Act::PowerCut),
    ];
    proptest::collection::vec(act, 0..120)
}

struct Stage {
    terms: Terms,
    session: Session,
    log: Vec<Fact>,
    reader: grammar::Reader,
    synced: usize,
    clock: u128,
    turn: u32,
    step: u32,
    calls: Vec<CallId>,
    /// The calls that were let go.
    running: BTreeSet<CallId>,
    /// The calls that were turned back.
    refused: BTreeSet<CallId>,
    /// The calls that were changing files when the process died.
    checked: BTreeSet<CallId>,
    /// The calls that were told to say what they would do.
    looking: BTreeSet<CallId>,
    late: bool,
}

impl Stage {
    fn new(terms: Terms) -> Stage {
        let mut stage = Stage {
            session: Session::new(Fact::opened("/w", "0"), terms.clone()),
            terms,
            log: Vec::new(),
            reader: grammar::Reader::default(),
            synced: 0,
            clock: 0,
            turn: 0,
            step: 0,
            calls: Vec::new(),
            running: BTreeSet::new(),
            refused: BTreeSet::new(),
            checked: BTreeSet::new(),
            looking: BTreeSet::new(),
            late: false,
        };
        stage.apply(Input::Resume);
        stage
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(self.clock as u64), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => {
                    assert!(!facts.is_empty());
                    for fact in &facts {
                        self.reader.read(fact).unwrap_or_else(|why| panic!("{why}: {fact:?}"));
                    }
                    let barrier = facts.iter().any(Fact::needs_barrier);
                    self.log.extend(facts);
                    if barrier {
                        self.synced = self.log.len();
                    }
                }
                Effect::CallModel { turn, step, .. } => (self.turn, self.step) = (turn, step),
                Effect::CallTool { turn, call, .. } => {
                    self.turn = turn;
                    self.calls.retain(|known| *known != call);
                    self.calls.insert(0, call);
                }
                Effect::Answer { call, answer } => {
                    let started =
                        |fact: &Fact| matches!(fact, Fact::Started { call: id, .. } if *id == call);
                    assert!(!answer.is_yes() || self.log.iter().any(started), "let go unrecorded");
                    if answer.is_yes() {
                        self.running.insert(call);
                    } else {
                        self.refused.insert(call);
                    }
                }
                Effect::Alarm { .. } => {}
                // After a crash it may wait behind an earlier step than the last one seen.
                Effect::Wake { turn, step, .. } => (self.turn, self.step) = (turn, step),
                Effect::Look { call } => drop(self.looking.insert(call)),
                Effect::Reply { call, .. } => {
                    let said =
                        |fact: &Fact| matches!(fact, Fact::Replied { call: id, .. } if *id == call);
                    assert!(self.log.iter().any(said), "told unrecorded");
                }
                Effect::Recorded { call } => {
                    let put = |fact: &Fact| matches!(fact, Fact::Changing { call: id, .. } if *id == call);
                    assert!(self.log.iter().any(put), "changed unrecorded");
                }
                Effect::Spawn { session, .. } => {
                    let put = |fact: &Fact| matches!(fact, Fact::Spawned { session: id, .. } if *id == session);
                    assert!(self.log.iter().any(put), "spawned unrecorded");
                }
                Effect::Reconcile { turn, call, .. } => {
                    self.turn = turn;
                    self.checked.insert(call);
                }
                Effect::Show(_)
                | Effect::CancelModel
                | Effect::CancelTool { .. }
                | Effect::EndJob { .. }
                | Effect::Remember { .. } => {}
            }
        }
        assert_eq!(self.session.head(), self.log.len() as u64);
    }

    fn call(&self, pick: usize) -> CallId {
        self.calls.get(pick).copied().unwrap_or(CallId(Uuid::from_u128(u128::MAX)))
    }

    fn reopen(&mut self) {
        self.reader = grammar::Reader::of(&self.log).unwrap();
        let session = SessionId(Uuid::nil());
        let records: Vec<Record> = (1..)
            .zip(&self.log)
            .map(|(seq, fact)| Record { session, seq, at: Millis(seq), fact: fact.clone() })
            .collect();
        self.session = if records.is_empty() {
            Session::new(Fact::opened("/w", "0"), self.terms.clone())
        } else {
            Session::replay(&records, self.terms.clone())
        };
        self.calls.clear();
        self.running.clear();
        self.refused.clear();
        self.checked.clear();
        self.looking.clear();
        self.apply(Input::Resume);
    }

    fn model(&mut self, event: ModelEvent) {
        let (mut turn, mut step) = (self.turn, self.step);
        if std::mem::take(&mut self.late) {
            (turn, step) = if step > 1 { (turn, step - 1) } else { (turn.wrapping_sub(1), step) };
        }
        self.apply(Input::Model { turn, step, event });
    }

    fn turn_of_call(&mut self) -> u32 {
        if std::mem::take(&mut self.late) { self.turn.wrapping_sub(1) } else { self.turn }
    }

    fn inquire(&mut self, pick: usize, mode: bool) {
        let stake = if mode { Stake::Mode } else { Stake::Words };
        let inquiries = vec![inquiry()];
        self.says(pick, |turn, call| Input::Inquired { turn, call, inquiries, stake });
    }

    fn reply(&mut self, pick: usize, kind: u8) {
        let replies = match kind {
            0 => vec![vec!["auto".to_owned()]],
            1 => vec![Vec::new()],
            2 => Vec::new(),
            _ => vec![vec!["nonsense".to_owned()]],
        };
        self.apply(Input::Op(Op::Reply { call: self.call(pick), replies }));
    }

    #[allow(clippy::too_many_lines, reason = "one arm for everything that can happen")]
    fn act(&mut self, act: &Act) {
        match act {
            Act::Prompt => self.apply(Input::Op(Op::prompt("p"))),
            Act::Queue => {
                let (text, attachments, when) = ("q".into(), Vec::new(), Delivery::Queue);
                self.apply(Input::Op(Op::Prompt { text, attachments, when }));
            }
            Act::Mode(kind) => {
                self.apply(Input::Op(Op::Mode { mode: Mode::ALL[usize::from(*kind)] }));
            }
            Act::Compact => self.apply(Input::Op(Op::Compact)),
            Act::TakeBack(pick) => {
                let waiting = &self.session.transcript().waiting;
                let unknown = PromptId(Uuid::from_u128(u128::MAX));
                let prompt = waiting.get(*pick).map_or(unknown, |prompt| prompt.id);
                self.apply(Input::Op(Op::Withdraw { prompt }));
            }
            Act::StepBack(far) => {
                let to = (self.log.len() as u64).saturating_sub(*far);
                self.apply(Input::Op(Op::Back { to }));
            }
            Act::Ring(late) => {
                self.clock += if *late { 1_000_000 } else { 0 };
                let turn = self.turn_of_call();
                self.apply(Input::Rang { turn });
            }
            Act::PersonCalls => {
                let (tool, arguments) = ("look".into(), "{}".into());
                self.apply(Input::Op(Op::Call { tool, arguments }));
            }
            Act::Interrupt => self.apply(Input::Op(Op::Interrupt)),
            Act::Answer(pick, kind) => {
                let answer = match kind {
                    0 => Answer::Once,
                    1 => Answer::Session,
                    2 => Answer::No { reason: None },
                    _ => Answer::No { reason: Some("because".into()) },
                };
                self.apply(Input::Op(Op::Answer { call: self.call(*pick), answer }));
            }
            Act::Speak => self.model(ModelEvent::Text("word ".into())),
            Act::Call => {
                let (reference, tool, arguments) = ("r".into(), "t".into(), "{}".into());
                self.model(ModelEvent::Call {
                    reference,
                    tool,
                    arguments,
                    seal: None,
                    repaired: Vec::new(),
                });
            }
            Act::End(kind) => {
                let finish = match kind {
                    0 => Finish::Stop,
                    1 | 2 => Finish::Calls,
                    3 => Finish::Length,
                    _ => Finish::Filtered,
                };
                let usage = Usage { input: 40, output: 2, ..Usage::default() };
                self.model(ModelEvent::Ended { finish, usage });
            }
            Act::Fail(kind) => {
                let message = "f".to_owned();
                self.model(ModelEvent::Failed(match kind {
                    0 => Fault::Network { message },
                    1 => Fault::Auth { message },
                    2 => Fault::Overflow { message },
                    _ => Fault::RateLimited { message, wait_ms: Some(1) },
                }));
            }
            Act::Intend(pick, asks) => {
                let asking = asks.then(|| "r".to_owned());
                let (turn, call) = (self.turn_of_call(), self.call(*pick));
                self.apply(Input::Intended { turn, call, intent: intent(call, asking) });
            }
            Act::Settle(pick, kind) => {
                let text = String::from("t");
                let (turn, call) = (self.turn_of_call(), self.call(*pick));
                // Only what was let go can say that it ran.
                let outcome = match (kind, self.running.contains(&call)) {
                    (0, true) => Outcome::Completed { output: Output::default() },
                    (1, true) => Outcome::Unknown,
                    (2, _) => Outcome::Denied { text },
                    _ => Outcome::Failed { text },
                };
                self.apply(Input::Settled { turn, call, outcome, seen: Vec::new() });
            }
            Act::Look(pick) => {
                self.says(*pick, |turn, call| Input::Looked { turn, call, preview: None })
            }
            Act::Inquire(pick, mode) => self.inquire(*pick, *mode),
            Act::Reply(pick, kind) => self.reply(*pick, *kind),
            Act::Withdraw(pick) => self.says(*pick, |turn, call| Input::Unchanged { turn, call }),
            Act::Change(pick) => self.says(*pick, |turn, call| {
                let change =
                    windlass_protocol::Change { path: "a".into(), before: None, after: None };
                Input::Changing { turn, call, changes: vec![change] }
            }),
            Act::Wake => self.apply(Input::Woke { turn: self.turn, step: self.step }),
            Act::Late => self.late = true,
            Act::Crash => self.reopen(),
            Act::PowerCut => {
                self.log.truncate(self.synced);
                self.reopen();
            }
        }
    }

    /// A call says something.
    fn says(&mut self, pick: usize, says: impl FnOnce(u32, CallId) -> Input) {
        let said = says(self.turn_of_call(), self.call(pick));
        self.apply(said);
    }

    /// Lets everything come to its end: the model stops, every call ends.
    fn wind_down(&mut self) {
        self.late = false;
        for _ in 0..500 {
            if !self.session.busy() {
                return;
            }
            self.model(ModelEvent::Ended { finish: Finish::Stop, usage: Usage::default() });
            self.apply(Input::Woke { turn: self.turn, step: self.step });
            for call in self.calls.clone() {
                let intent = intent(call, None);
                self.apply(Input::Intended { turn: self.turn, call, intent });
                self.apply(Input::Looked { turn: self.turn, call, preview: None });
                self.apply(Input::Op(Op::Answer { call, answer: Answer::Once }));
            }
            // What may never start would hang here, because only what runs can end.
            for call in self.running.clone() {
                let outcome = Outcome::Completed { output: Output::default() };
                self.apply(Input::Settled { turn: self.turn, call, outcome, seen: Vec::new() });
            }
            for call in std::mem::take(&mut self.checked) {
                let outcome = Outcome::Unknown;
                self.apply(Input::Settled { turn: self.turn, call, outcome, seen: Vec::new() });
            }
            for call in std::mem::take(&mut self.refused) {
                let outcome = Outcome::Denied { text: "no".into() };
                self.apply(Input::Settled { turn: self.turn, call, outcome, seen: Vec::new() });
            }
        }
        panic!("it never comes to rest");
    }
}

/// What a call would touch. Whether it looks or changes is a property of the call: it does not
/// become another one when it is understood again after a crash.
fn intent(call: CallId, asking: Option<String>) -> Intent {
    let number = call.0.as_u128();
    let (read_only, path) = (number.is_multiple_of(2), (number % 3).to_string());
    let access = if read_only { Access::Read { path } } else { Access::Edit { path } };
    Intent {
        accesses: vec![access],
        read_only,
        asking,
        offer: None,
        coverable: true,
        repaired: None,
    }
}

fn limits() -> Limits {
    Limits { steps: 8, calls: 3, answer: 200, ..Limits::default() }
}

/// What sessions work with: windows that are full soon or never, limits, and loops.
fn terms() -> impl Strategy<Value = Terms> {
    let context = prop::sample::select(vec![0, 16, 60, 400]);
    let looping = prop::sample::select(vec![Looping::Allow, Looping::Ask, Looping::Deny]);
    let (time, tokens) = (any::<bool>(), any::<bool>());
    (context, looping, time, tokens).prop_map(|(context, looping, time, tokens)| {
        let mut limits = limits();
        limits.time_ms = time.then_some(500_000);
        limits.tokens = tokens.then_some(100);
        let window = Window { context, output: 0 };
        Terms { window, looping, ..super::terms(limits) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_follows_the_grammar_and_settles_every_call_once(
        acts in acts(),
        terms in terms(),
    ) {
        let mut stage = Stage::new(terms);
        for act in &acts {
            stage.act(act);
        }
        stage.wind_down();
        grammar::check_settled(&stage.log).unwrap();

        // The fold is the state: what the log tells is what the session knows.
        let session = SessionId(Uuid::nil());
        let records: Vec<Record> = (1..)
            .zip(&stage.log)
            .map(|(seq, fact)| Record { session, seq, at: Millis(seq), fact: fact.clone() })
            .collect();
        let replayed = Session::replay(&records, stage.terms.clone());
        prop_assert_eq!(replayed.transcript(), stage.session.transcript());
    }
}
