//! A simulated world: a log with a disk behind it, a scripted model, tools with a journal that
//! survives crashes, and a person.
//!
//! What a tool does depends on its name: `look` reads, `change` changes, `ask` changes and must
//! be asked about, `peek` reads and must be asked about, `broken` fails before it says what it is
//! about to do, `slow` reads until it is cancelled.

use crate::session::{Effect, Input, Limits, Session, Stamp};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, Answer, CallId, Fact, Fault, Finish, Live, Message, Millis, Op, Outcome, Output,
    Record, SessionId, Transcript, Usage,
};
use windlass_testkit::script::Line;
use windlass_testkit::{Case, Script};
use windlass_toolkit::Intent;

/// When and how the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crash {
    /// The point, counted over inputs and effects.
    pub(super) point: usize,
    pub(super) moment: Moment,
    pub(super) disk: Disk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The effect was not begun.
    Before,
    /// The effect was done in the world, but the process never learnt of it.
    During,
    /// The effect was done; the next one was not begun.
    After,
}

/// What a crash leaves of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// The process died: everything that was appended.
    Kept,
    /// The power failed: everything up to the last barrier.
    Lost,
}

struct Crashed;

#[derive(Clone)]
pub(super) struct World {
    prompts: Vec<(usize, Op)>,
    script: Script,
    answer: Answer,
    interrupt_at: Option<String>,
    // What survives a crash.
    log: Vec<Fact>,
    synced: usize,
    /// Every run of a call that changed something, by whoever looks from outside.
    pub(super) journal: Vec<CallId>,
    pub(super) requests: Vec<Vec<Arc<Message>>>,
    times: BTreeMap<usize, usize>,
    clock: u128,
    // What does not.
    session: Session,
    inputs: VecDeque<Input>,
    intents: HashMap<CallId, (u32, Intent, String)>,
    sent: usize,
    points: usize,
    crash: Option<Crash>,
}

impl World {
    pub(super) fn of(case: &Case) -> World {
        let mut prompts = Vec::new();
        for section in &case.sections {
            let after = section.argument.strip_prefix("after ").map_or(0, |n| n.parse().unwrap());
            let text = section.body.trim().to_owned();
            match section.name.as_str() {
                "prompt" => prompts.push((after, Op::Prompt { text, attachments: Vec::new() })),
                "person-calls" => {
                    let (tool, arguments) = text.split_once(' ').unwrap();
                    let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
                    prompts.push((after, Op::Call { tool, arguments }));
                }
                _ => {}
            }
        }
        let person = case.all("person").next().map_or("", |section| section.body.trim());
        let mut answer = Answer::Once;
        let mut interrupt_at = None;
        for line in person.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("answers", "yes") => answer = Answer::Once,
                ("answers", "session") => answer = Answer::Session,
                ("answers", "no") => answer = Answer::No { reason: None },
                ("answers", no) => {
                    answer = Answer::No { reason: Some(no.trim_start_matches("no ").into()) };
                }
                ("interrupts", at) => interrupt_at = Some(at.to_owned()),
                _ => panic!("a person cannot `{line}`"),
            }
        }
        World {
            prompts,
            script: Script::of(case),
            answer,
            interrupt_at,
            log: Vec::new(),
            synced: 0,
            journal: Vec::new(),
            requests: Vec::new(),
            times: BTreeMap::new(),
            clock: 1,
            session: fresh(),
            inputs: VecDeque::new(),
            intents: HashMap::new(),
            sent: 0,
            points: 0,
            crash: None,
        }
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.log
    }

    pub(super) fn transcript(&self) -> Transcript {
        Transcript::of(&self.records())
    }

    fn records(&self) -> Vec<Record> {
        let session = SessionId(Uuid::nil());
        let record = |(index, fact): (usize, &Fact)| {
            let (seq, at) = (index as u64 + 1, Millis(index as u64));
            Record { session, seq, at, fact: fact.clone() }
        };
        self.log.iter().enumerate().map(record).collect()
    }

    /// Runs until nothing is left to do; returns how many points there were.
    pub(super) fn run(&mut self) -> usize {
        self.run_with(None)
    }

    /// The same with a crash at a point, after which everything is opened again.
    pub(super) fn run_with(&mut self, crash: Option<Crash>) -> usize {
        self.crash = crash;
        self.points = 0;
        self.inputs.push_back(Input::Resume);
        self.speak();
        loop {
            let done = self.settle_down();
            let points = self.points;
            match done {
                Ok(()) => return points,
                Err(Crashed) => self.reopen(),
            }
        }
    }

    /// Runs up to a crash and leaves everything lying there; false if that point has no such
    /// moment.
    pub(super) fn stop_at(&mut self, crash: Crash) -> bool {
        self.crash = Some(crash);
        self.inputs.push_back(Input::Resume);
        self.speak();
        self.settle_down().is_err()
    }

    /// Opens everything again, with another crash on the way.
    pub(super) fn go_on_with(&mut self, crash: Crash) {
        self.reopen();
        self.points = 0;
        self.crash = Some(crash);
        while self.settle_down().is_err() {
            self.reopen();
        }
    }

    fn reopen(&mut self) {
        let crash = self.crash.take().unwrap();
        if crash.disk == Disk::Lost {
            self.log.truncate(self.synced);
        }
        self.session = if self.log.is_empty() {
            fresh()
        } else {
            Session::replay(&self.records(), "p/m".into(), limits())
        };
        self.inputs.clear();
        self.intents.clear();
        let said = |fact: &&Fact| {
            matches!(fact, Fact::Prompted { .. } | Fact::TurnStarted { prompt: None, .. })
        };
        self.sent = self.log.iter().filter(said).count();
        self.inputs.push_back(Input::Resume);
        self.speak();
    }

    fn settle_down(&mut self) -> Result<(), Crashed> {
        let mut rounds = 0;
        while let Some(input) = self.inputs.pop_front() {
            rounds += 1;
            assert!(rounds < 10_000, "it never comes to rest");
            self.point(Moment::Before)?;
            self.points += 1;
            self.clock += 1;
            let stamp = Stamp { at: Millis(self.clock as u64), id: Uuid::from_u128(self.clock) };
            for effect in self.session.apply(stamp, input) {
                self.point(Moment::Before)?;
                let heard = self.perform(effect);
                self.point(Moment::During)?;
                for input in heard {
                    // As in the driver, what a person says comes first.
                    match input {
                        Input::Op(_) => self.inputs.push_front(input),
                        _ => self.inputs.push_back(input),
                    }
                }
                self.speak();
                self.point(Moment::After)?;
                self.points += 1;
            }
        }
        Ok(())
    }

    fn point(&self, moment: Moment) -> Result<(), Crashed> {
        let here = |crash: &Crash| crash.point == self.points && crash.moment == moment;
        if self.crash.as_ref().is_some_and(here) { Err(Crashed) } else { Ok(()) }
    }

    /// The person says what is due.
    fn speak(&mut self) {
        let ended = self.log.iter().filter(|fact| matches!(fact, Fact::TurnEnded { .. })).count();
        while let Some((after, op)) = self.prompts.get(self.sent) {
            if ended < *after {
                return;
            }
            self.inputs.push_back(Input::Op(op.clone()));
            self.sent += 1;
        }
    }

    /// Does an effect and returns what the process would hear of it.
    fn perform(&mut self, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Append(facts) => {
                let barrier = facts.iter().any(Fact::needs_barrier);
                let heard = facts.iter().filter_map(|fact| self.reaction(fact)).collect();
                self.log.extend(facts);
                if barrier {
                    self.synced = self.log.len();
                }
                heard
            }
            Effect::Show(Live::Delta { text, .. }) if self.interrupts(&format!("text {text}")) => {
                vec![Input::Op(Op::Interrupt)]
            }
            Effect::Show(_) | Effect::CancelModel | Effect::Remember { .. } => Vec::new(),
            Effect::CallModel { turn, step, messages } => {
                self.requests.push(messages.clone());
                let events = self.reply(&messages);
                let heard = events.into_iter().map(|event| Input::Model { turn, step, event });
                heard.collect()
            }
            Effect::CallTool { turn, call, tool, arguments, by: _ } => {
                if tool == "broken" {
                    let outcome = Outcome::Failed { text: "it does not fit".into() };
                    return vec![settled(turn, call, outcome)];
                }
                let intent = intent(&tool, &arguments);
                self.intents.insert(call, (turn, intent.clone(), tool));
                vec![Input::Intended { turn, call, intent }]
            }
            Effect::CancelTool { call } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                let outcome = Outcome::Interrupted { text: "stopped".into() };
                vec![settled(turn, call, outcome)]
            }
            Effect::Answer { call, answer } => self.go_on(call, &answer),
            Effect::Look { call } => {
                let Some((turn, ..)) = self.intents.get(&call) else { return Vec::new() };
                vec![Input::Looked { turn: *turn, call, preview: None }]
            }
            Effect::Recorded { call } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                self.journal.push(call);
                let output = Output { text: "patch gave this".into(), ..Output::default() };
                vec![settled(turn, call, Outcome::Completed { output })]
            }
            Effect::Reconcile { turn, call, accesses, changes } => {
                assert!(!accesses.is_empty());
                let outcome = if changes.is_empty() {
                    Outcome::Unknown
                } else if self.journal.contains(&call) {
                    let output = Output { text: "patch gave this".into(), ..Output::default() };
                    Outcome::Completed { output }
                } else {
                    Outcome::Failed { text: NOT_APPLIED.into() }
                };
                vec![settled(turn, call, outcome)]
            }
            Effect::Wake { turn, step, .. } => vec![Input::Woke { turn, step }],
        }
    }

    fn go_on(&mut self, call: CallId, answer: &Answer) -> Vec<Input> {
        let Some((turn, intent, tool)) = self.intents.get(&call).cloned() else {
            return Vec::new();
        };
        if tool == "slow" && answer.is_yes() {
            return Vec::new();
        }
        if tool == "patch" && answer.is_yes() {
            let changes =
                vec![windlass_protocol::Change { path: "a".into(), before: None, after: None }];
            return vec![Input::Changing { turn, call, changes }];
        }
        self.intents.remove(&call);
        let outcome = if answer.is_yes() {
            if !intent.read_only {
                self.journal.push(call);
            }
            let text = format!("{tool} gave this");
            Outcome::Completed { output: Output { text, ..Output::default() } }
        } else {
            Outcome::Denied { text: "no".into() }
        };
        vec![settled(turn, call, outcome)]
    }

    /// What the person does when they see a fact.
    fn reaction(&self, fact: &Fact) -> Option<Input> {
        match fact {
            Fact::Asked { call, .. } if self.interrupts("asked") => {
                let _ = call;
                Some(Input::Op(Op::Interrupt))
            }
            Fact::Asked { call, .. } => {
                Some(Input::Op(Op::Answer { call: *call, answer: self.answer.clone() }))
            }
            Fact::Started { call, .. } => {
                let tool = &self.intents.get(call)?.2;
                self.interrupts(&format!("started {tool}")).then_some(Input::Op(Op::Interrupt))
            }
            _ => None,
        }
    }

    fn interrupts(&self, at: &str) -> bool {
        self.interrupt_at.as_deref() == Some(at.trim())
    }

    fn reply(&mut self, messages: &[Arc<Message>]) -> Vec<ModelEvent> {
        use windlass_protocol::Role;
        let answers = messages.iter().filter(|m| m.role == Role::Assistant).count();
        let time = self.times.entry(answers).or_insert(0);
        *time += 1;
        let lines = self
            .script
            .reply(answers, *time - 1)
            .unwrap_or_else(|| panic!("the script ends here:\n{}", super::render_log(&self.log)));
        let mut events = Vec::new();
        let mut finish = Finish::Stop;
        for (index, line) in lines.into_iter().enumerate() {
            match line {
                Line::Say(text) => {
                    let words = text.split_inclusive(' ').map(str::to_owned);
                    events.extend(words.map(ModelEvent::Text));
                }
                Line::Think(text) => events.push(ModelEvent::Reasoning(text)),
                Line::Call(tool, arguments) => {
                    let reference = format!("call_{answers}_{index}");
                    events.push(ModelEvent::Call {
                        reference,
                        tool,
                        arguments,
                        seal: None,
                        repaired: Vec::new(),
                    });
                    finish = Finish::Calls;
                }
                Line::Finish(_) => finish = Finish::Length,
                Line::Cut => {
                    let fault = Fault::Network { message: "cut".into() };
                    events.push(ModelEvent::Failed(fault));
                    return events;
                }
                Line::Status(401, message) => {
                    events.push(ModelEvent::Failed(Fault::Auth { message }));
                    return events;
                }
                Line::Status(status, message) => {
                    let fault = Fault::provider(Some(status), message);
                    events.push(ModelEvent::Failed(fault));
                    return events;
                }
                other => panic!("a simulated model cannot {other:?}"),
            }
        }
        let usage = Usage { input: 100, output: 5, ..Usage::default() };
        events.push(ModelEvent::Ended { finish, usage });
        events
    }
}

fn intent(tool: &str, arguments: &str) -> Intent {
    let path = arguments.to_owned();
    let read_only = matches!(tool, "look" | "peek" | "slow");
    let access = if read_only { Access::Read { path } } else { Access::Edit { path } };
    let asks = matches!(tool, "ask" | "peek");
    let asking = asks.then(|| "no rule allows it".to_owned());
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
    Limits { steps: 20, calls: 4, answer: 10_000 }
}

fn fresh() -> Session {
    let opening = Fact::Opened { workspace: "/w".into(), version: "0".into() };
    Session::new(opening, "p/m".into(), limits())
}

/// What a call says whose change was on record, but had not happened.
pub(super) const NOT_APPLIED: &str = "it was not applied";

fn settled(turn: u32, call: CallId, outcome: Outcome) -> Input {
    Input::Settled { turn, call, outcome, seen: Vec::new() }
}
