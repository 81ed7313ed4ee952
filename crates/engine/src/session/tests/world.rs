//! A simulated world: a log with a disk behind it, a scripted model, tools with a journal that
//! survives crashes, and a person.
//!
//! What a tool does depends on its name: `look` reads, `change` changes, `ask` changes and must
//! be asked about, `peek` reads and must be asked about, `broken` fails before it says what it is
//! about to do, `slow` reads until it is cancelled, `poll` reads something new each time, `long`
//! gives much, `tale` fails at length, `todowrite` keeps a list, `bash` starts a job, `inquire` asks
//! the person something and `leave` does so for the mode. A hook refuses `guarded`, withholds what
//! `veiled` gave, and wants a person to be asked about `doubted`; asked again, it would let each pass.
//!
//! `== withdraw` and `== back` name a prompt by its number: it is taken back, or everything from it on.
//!
//! `== terms` says what the session works with: `window CONTEXT OUTPUT`, `takes TOKENS` (what the
//! provider does not refuse), `tokens N`, `cost N`, `price READ WRITTEN`, `time MS`,
//! `looping allow|ask|deny`. Time passes only when nothing else happens.

use crate::session::answer::NUDGE;
use crate::session::{Effect, Input, Limits, Looping, Session, Stamp, Terms, Window, gauge};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, Answer, CallId, Cost, Delivery, Fact, Fault, Finish, Inquiry, Live, Message, Messages,
    Millis, Op, Outcome, Output, Part, Point, PromptId, Purpose, Record, Role, SessionId,
    Suggestion, Transcript, Usage, Verdict,
};
use windlass_testkit::script::Line;
use windlass_testkit::{Case, Script};
use windlass_toolkit::{Firing, Intent, Stake};

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
    /// What the model says when it is to sum up.
    summaries: Script,
    terms: Terms,
    /// How many tokens the provider takes.
    takes: Option<u64>,
    answer: Answer,
    replies: Vec<Vec<String>>,
    interrupt_at: Option<String>,
    // What survives a crash.
    log: Vec<Fact>,
    synced: usize,
    /// Every run of a call that changed something, by whoever looks from outside.
    pub(super) journal: Vec<CallId>,
    pub(super) requests: Vec<Messages>,
    /// How often each reply was asked for: whether it sums up, and how many came before it.
    times: BTreeMap<(bool, usize), usize>,
    clock: u128,
    /// When a turn wants to hear whether its time is up.
    alarm: Option<(u32, u64)>,
    // What does not.
    session: Session,
    inputs: VecDeque<Input>,
    intents: HashMap<CallId, (u32, Intent, String)>,
    sent: usize,
    points: usize,
    crash: Option<Crash>,
    /// A digest of everything that came in and was decided, if somebody wants it.
    trace: Option<u64>,
}

impl World {
    pub(super) fn of(case: &Case) -> World {
        let mut prompts = Vec::new();
        for section in &case.sections {
            let after = section.argument.strip_prefix("after ").map_or(0, |n| n.parse().unwrap());
            let text = section.body.trim().to_owned();
            match section.name.as_str() {
                "prompt" => prompts.push((after, Op::prompt(text))),
                "queue" => {
                    let (attachments, when) = (Vec::new(), Delivery::Queue);
                    prompts.push((after, Op::Prompt { text, attachments, when }));
                }
                "mode" => prompts.push((after, Op::Mode { mode: text.parse().unwrap() })),
                "compact" => prompts.push((after, Op::Compact)),
                // Which prompt is meant is found in the log when it is said.
                "withdraw" => {
                    let prompt = PromptId(Uuid::from_u128(text.parse().unwrap()));
                    prompts.push((after, Op::Withdraw { prompt }));
                }
                "back" => prompts.push((after, Op::Back { to: text.parse().unwrap() })),
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
        let mut replies = Vec::new();
        for line in person.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("answers", "yes") => answer = Answer::Once,
                ("answers", "session") => answer = Answer::Session,
                ("answers", "no") => answer = Answer::No { reason: None },
                ("answers", no) => {
                    answer = Answer::No { reason: Some(no.trim_start_matches("no ").into()) };
                }
                ("replies", said) => replies = vec![vec![said.to_owned()]],
                ("interrupts", at) => interrupt_at = Some(at.to_owned()),
                _ => panic!("a person cannot `{line}`"),
            }
        }
        let (terms, takes) = terms(case);
        let session = Session::new(Fact::opened("/w", "0"), terms.clone());
        World {
            prompts,
            script: Script::of(case),
            summaries: Script::new(case.all("summary").map(|section| section.body.as_str())),
            terms,
            takes,
            answer,
            replies,
            interrupt_at,
            log: Vec::new(),
            synced: 0,
            journal: Vec::new(),
            requests: Vec::new(),
            times: BTreeMap::new(),
            clock: 1,
            alarm: None,
            session,
            inputs: VecDeque::new(),
            intents: HashMap::new(),
            sent: 0,
            points: 0,
            crash: None,
            trace: None,
        }
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.log
    }

    pub(super) fn transcript(&self) -> Transcript {
        Transcript::of(&self.records())
    }

    /// Runs everything without a crash, and gives a digest of what came in and what was decided.
    pub(super) fn trace(mut self) -> (World, u64) {
        self.trace = Some(0xcbf2_9ce4_8422_2325);
        self.run();
        let trace = self.trace.unwrap();
        (self, trace)
    }

    fn traced(&mut self, what: &dyn std::fmt::Debug) {
        let Some(trace) = &mut self.trace else { return };
        for byte in format!("{what:?}").bytes() {
            *trace = (*trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
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
            Session::new(Fact::opened("/w", "0"), self.terms.clone())
        } else {
            Session::replay(&self.records(), self.terms.clone())
        };
        self.alarm = None;
        self.inputs.clear();
        self.intents.clear();
        let said = |fact: &&Fact| {
            matches!(
                fact,
                Fact::Prompted { .. }
                    | Fact::TurnStarted { prompt: None, .. }
                    | Fact::ModeChanged { .. }
                    | Fact::Withdrawn { .. }
                    | Fact::Reverted { .. }
            )
        };
        self.sent = self.log.iter().filter(said).count();
        self.inputs.push_back(Input::Resume);
        self.speak();
    }

    fn settle_down(&mut self) -> Result<(), Crashed> {
        let mut rounds = 0;
        while let Some(input) = self.inputs.pop_front().or_else(|| self.pass_time()) {
            rounds += 1;
            assert!(rounds < 10_000, "it never comes to rest");
            self.point(Moment::Before)?;
            self.points += 1;
            self.clock += 1;
            let stamp = Stamp { at: Millis(self.clock as u64), id: Uuid::from_u128(self.clock) };
            let input = self.meant(input);
            self.traced(&input);
            for effect in self.session.apply(stamp, input) {
                self.traced(&effect);
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

    /// A person names prompts by their number, from 1 on; the session by other names.
    fn meant(&self, input: Input) -> Input {
        let place = |number: usize| {
            let prompts = self.log.iter().enumerate().filter_map(|(place, fact)| match fact {
                Fact::Prompted { prompt, .. } => Some((place, *prompt)),
                _ => None,
            });
            prompts.into_iter().nth(number - 1).unwrap()
        };
        match input {
            Input::Op(Op::Withdraw { prompt }) => {
                let (_, prompt) = place(prompt.0.as_u128() as usize);
                Input::Op(Op::Withdraw { prompt })
            }
            Input::Op(Op::Back { to }) => Input::Op(Op::Back { to: place(to as usize).0 as u64 }),
            other => other,
        }
    }

    /// Nothing happens, so the next thing that does is an alarm.
    fn pass_time(&mut self) -> Option<Input> {
        let (turn, after) = self.alarm.take().filter(|_| self.session.busy())?;
        self.clock += u128::from(after);
        Some(Input::Rang { turn })
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
            Effect::Show(_)
            | Effect::CancelModel
            | Effect::EndJob { .. }
            | Effect::Remember { .. }
            | Effect::Spawn { .. } => Vec::new(),
            Effect::Alarm { turn, after_ms } => {
                self.alarm = Some((turn, after_ms));
                Vec::new()
            }
            Effect::CallModel { turn, step, purpose, messages, .. } => {
                self.requests.push(messages.clone());
                let events = self.reply(purpose, &messages);
                let heard = events.into_iter().map(|event| Input::Model { turn, step, event });
                heard.collect()
            }
            Effect::CallTool { turn, call, tool, arguments, by: _ } => {
                self.call(turn, call, tool, &arguments)
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
            Effect::Reply { call, replies } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                let text = format!("they said {replies:?}");
                vec![settled(
                    turn,
                    call,
                    Outcome::Completed { output: Output { text, ..Output::default() } },
                )]
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

    /// Sends a call down the road.
    fn call(&mut self, turn: u32, call: CallId, tool: String, arguments: &str) -> Vec<Input> {
        if tool == "tale" {
            let outcome = Outcome::Failed { text: format!("{arguments} ").repeat(2_000) };
            return vec![settled(turn, call, outcome)];
        }
        if is_unfit(&tool) {
            let outcome = Outcome::Failed { text: "it does not fit".into() };
            return vec![settled(turn, call, outcome)];
        }
        self.intents.insert(call, (turn, intent(&tool, arguments), tool.clone()));
        let mut heard = self.fire(turn, call, &tool);
        if let Some((_, intent, _)) = self.intents.get(&call) {
            heard.push(Input::Intended { turn, call, intent: intent.clone() });
        }
        heard
    }

    /// What the hook says before a call.
    fn fire(&mut self, turn: u32, call: CallId, tool: &str) -> Vec<Input> {
        let of = |fact: &&Fact| matches!(fact, Fact::Hooked { call: of, .. } if *of == Some(call));
        let before = self.log.iter().filter(of).count();
        match tool {
            "guarded" => {
                assert_eq!(before, 0, "a no on record was asked for again");
                self.intents.remove(&call);
                let text = "The hook guard refused: not this".to_owned();
                let reason = "not this".to_owned();
                vec![
                    hooked(call, Point::BeforeTool, Verdict::Refused { reason }),
                    settled(turn, call, Outcome::Denied { text }),
                ]
            }
            // The hook is of another mind now: what it wanted first holds.
            "doubted" if before > 0 => Vec::new(),
            "doubted" => {
                let reason = "is that right?".to_owned();
                if let Some((_, intent, _)) = self.intents.get_mut(&call) {
                    intent.asking = Some(format!("the hook guard asks: {reason}"));
                    intent.coverable = false;
                }
                vec![hooked(call, Point::BeforeTool, Verdict::Asks { reason })]
            }
            "veiled" => {
                assert_eq!(before, 0, "what was withheld was looked at again");
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn go_on(&mut self, call: CallId, answer: &Answer) -> Vec<Input> {
        let Some((turn, intent, tool)) = self.intents.get(&call).cloned() else {
            return Vec::new();
        };
        if matches!(tool.as_str(), "inquire" | "leave") && answer.is_yes() {
            let stake = if tool == "leave" { Stake::Mode } else { Stake::Words };
            return vec![Input::Inquired { turn, call, inquiries: vec![inquiry()], stake }];
        }
        if tool == "slow" && answer.is_yes() {
            return Vec::new();
        }
        if tool == "patch" && answer.is_yes() {
            let changes =
                vec![windlass_protocol::Change { path: "a".into(), before: None, after: None }];
            return vec![Input::Changing { turn, call, changes }];
        }
        self.intents.remove(&call);
        if tool == "veiled" && answer.is_yes() {
            let reason = "it broke".to_owned();
            let text = format!("The call ran, but the hook guard withheld its result: {reason}");
            return vec![
                hooked(call, Point::AfterTool, Verdict::Failed { reason }),
                settled(turn, call, Outcome::Failed { text }),
            ];
        }
        let outcome = if answer.is_yes() {
            if !intent.read_only {
                self.journal.push(call);
            }
            Outcome::Completed { output: self.output(&tool, &intent) }
        } else {
            Outcome::Denied { text: "no".into() }
        };
        vec![settled(turn, call, outcome)]
    }

    fn output(&self, tool: &str, intent: &Intent) -> Output {
        let given = intent.accesses[0].subject();
        let mut output = Output { text: format!("{tool} gave this"), ..Output::default() };
        match tool {
            "poll" => {
                let settled = |fact: &&Fact| matches!(fact, Fact::Settled { .. });
                output.text = format!("{} so far", self.log.iter().filter(settled).count());
            }
            "long" => output.text = format!("{given} ").repeat(2_000),
            "todowrite" => {
                let todos = json!([{"content": given, "status": "pending", "priority": "high"}]);
                output.metadata.insert("todos".into(), todos);
            }
            "bash" => drop(output.metadata.insert("job".into(), json!(7))),
            _ => {}
        }
        output
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
            Fact::Inquired { .. } if self.interrupts("inquired") => Some(Input::Op(Op::Interrupt)),
            Fact::Inquired { call, .. } => {
                Some(Input::Op(Op::Reply { call: *call, replies: self.replies.clone() }))
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

    fn reply(&mut self, purpose: Purpose, messages: &Messages) -> Vec<ModelEvent> {
        let size: u64 = messages.iter().map(|message| gauge::weigh(message)).sum();
        if self.takes.is_some_and(|takes| size > takes) {
            return vec![ModelEvent::Failed(Fault::Overflow { message: "too long".into() })];
        }
        // How many answers there are, however much of them it is still told.
        let nudge = |part: &Part| matches!(part, Part::Text { text, .. } if text == NUDGE);
        let all = &self.session.transcript().messages;
        let answered =
            |m: &&std::sync::Arc<Message>| m.role == Role::Assistant || m.parts.iter().any(nudge);
        let (script, answers) = match purpose {
            Purpose::Answer => (&self.script, all.iter().filter(answered).count()),
            Purpose::Summary => (&self.summaries, 0),
        };
        let time = self.times.entry((purpose == Purpose::Summary, answers)).or_insert(0);
        *time += 1;
        let lines = script
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
                    let reference = match tool.as_str() {
                        "twin" => "twin".to_owned(),
                        _ => format!("call_{answers}_{index}"),
                    };
                    events.push(ModelEvent::Call {
                        reference,
                        tool,
                        arguments,
                        seal: None,
                        repaired: Vec::new(),
                    });
                    finish = Finish::Calls;
                }
                Line::Finish(word) => {
                    finish = match word.as_str() {
                        "stop" => Finish::Stop,
                        "filtered" => Finish::Filtered,
                        _ => Finish::Length,
                    }
                }
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
        let honest = self.terms.window != Window::default() || self.takes.is_some();
        let input = if honest { size } else { 100 };
        let usage = Usage { input, output: 5, ..Usage::default() };
        events.push(ModelEvent::Ended { finish, usage });
        events
    }
}

/// True if a call fails before it says what it is about to do.
fn is_unfit(tool: &str) -> bool {
    matches!(tool, "broken" | "nothing" | "../../etc") || tool.contains('\u{1b}')
}

fn intent(tool: &str, arguments: &str) -> Intent {
    let path = arguments.to_owned();
    let looks =
        ["look", "peek", "slow", "poll", "long", "todowrite", "job", "inquire", "leave", "veiled"];
    let read_only = looks.contains(&tool);
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

/// What `inquire` and `leave` ask.
pub(super) fn inquiry() -> Inquiry {
    let option = |label: &str| Suggestion { label: label.to_owned(), description: String::new() };
    Inquiry {
        header: "Plan".into(),
        question: "Go on?".into(),
        options: ["auto", "ask", "no"].map(option).into(),
        multiple: false,
        custom: false,
    }
}

fn limits() -> Limits {
    Limits { steps: 20, calls: 4, answer: 10_000, ..Limits::default() }
}

/// What the session works with, and how many tokens the provider takes.
fn terms(case: &Case) -> (Terms, Option<u64>) {
    let mut terms = super::terms(limits());
    let mut takes = None;
    for line in case.all("terms").flat_map(|section| section.body.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "window" => terms.window = Window { context: number(1), output: number(2) },
            "takes" => takes = Some(number(1)),
            "tokens" => terms.limits.tokens = Some(number(1)),
            "cost" => terms.limits.cost = Some(Cost(number(1))),
            "time" => terms.limits.time_ms = Some(number(1)),
            "price" => {
                terms.price.input = Some(number(1) as f64);
                terms.price.output = Some(number(2) as f64);
            }
            "looping" => {
                terms.looping = match words[1] {
                    "allow" => Looping::Allow,
                    "deny" => Looping::Deny,
                    _ => Looping::Ask,
                }
            }
            _ => panic!("there is no `{line}` in terms"),
        }
    }
    (terms, takes)
}

/// What a call says whose change was on record, but had not happened.
pub(super) const NOT_APPLIED: &str = "it was not applied";

fn hooked(call: CallId, point: Point, verdict: Verdict) -> Input {
    let (hook, took) = ("guard".to_owned(), Duration::from_millis(3));
    Input::Hooked { call: Some(call), firings: vec![Firing { hook, point, took, verdict }] }
}

fn settled(turn: u32, call: CallId, outcome: Outcome) -> Input {
    Input::Settled { turn, call, outcome, seen: Vec::new() }
}
