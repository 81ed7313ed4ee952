//! What requests begin with: the same bytes, from the first to the last of a session, whatever
//! becomes different on the way.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;
use windlass_engine::brief::{Advice, Brief, Day, Git};
use windlass_engine::session::{Effect, Input, Session, Stamp, Terms};
use windlass_llm::catalog::{Model, Quirks, plain};
use windlass_llm::wire::Format;
use windlass_llm::{ModelEvent, Request};
use windlass_protocol::{
    Access, CallId, Fact, Fault, Finish, Messages, Millis, Mode, Op, Outcome, Output, Part, Record,
    Role, SessionId, ToolSummary, Usage,
};
use windlass_toolkit::Intent;

const DAY: u64 = 86_400_000;

/// A session with a world around it that does what is expected.
struct Play {
    session: Session,
    log: Vec<Fact>,
    clock: u64,
    ids: u128,
    asked: Option<(u32, u32)>,
    tools: HashMap<CallId, (u32, String)>,
    /// What lists were written.
    lists: HashMap<CallId, Value>,
    requests: Vec<(Arc<str>, Messages)>,
}

fn terms(brief: &str) -> Terms {
    Terms { model: "p/m".into(), brief: brief.into(), ..Terms::default() }
}

impl Play {
    fn new(brief: &str) -> Play {
        Play {
            session: Session::new(Fact::opened("/w", "0"), terms(brief)),
            log: Vec::new(),
            clock: 20_000 * DAY,
            ids: 1,
            asked: None,
            tools: HashMap::new(),
            lists: HashMap::new(),
            requests: Vec::new(),
        }
    }

    fn reopen(&mut self, brief: &str) {
        let session = SessionId(Uuid::nil());
        let record = |(index, fact): (usize, &Fact)| Record {
            session,
            seq: index as u64 + 1,
            at: Millis(0),
            fact: fact.clone(),
        };
        let log: Vec<Record> = self.log.iter().enumerate().map(record).collect();
        self.session = Session::replay(&log, terms(brief));
        self.take(Input::Resume);
    }

    fn take(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.ids += 1;
            self.clock += 1;
            let stamp = Stamp { at: Millis(self.clock), id: Uuid::from_u128(self.ids) };
            for effect in self.session.apply(stamp, input) {
                match effect {
                    Effect::Append(facts) => self.log.extend(facts),
                    Effect::CallModel { turn, step, system, messages, .. } => {
                        self.asked = Some((turn, step));
                        self.requests.push((system, messages));
                    }
                    Effect::CallTool { turn, call, tool, arguments, .. } => {
                        if tool == "todowrite" {
                            self.lists.insert(call, serde_json::from_str(&arguments).unwrap());
                        }
                        self.tools.insert(call, (turn, tool));
                        let intent = Intent {
                            accesses: vec![Access::Edit { path: arguments }],
                            read_only: false,
                            asking: None,
                            offer: None,
                            coverable: true,
                            repaired: None,
                        };
                        inputs.push_back(Input::Intended { turn, call, intent });
                    }
                    Effect::Answer { call, .. } => {
                        let (turn, tool) = self.tools[&call].clone();
                        let text = format!("{tool} {call}: \"done\"\n").repeat(20);
                        let outcome = match (self.ids % 5, self.lists.remove(&call)) {
                            (_, Some(Value::Object(metadata))) => {
                                let output = Output { text, metadata, ..Output::default() };
                                Outcome::Completed { output }
                            }
                            (0, _) => Outcome::Failed { text },
                            _ => {
                                Outcome::Completed { output: Output { text, ..Output::default() } }
                            }
                        };
                        inputs.push_back(Input::Settled { turn, call, outcome, seen: Vec::new() });
                    }
                    Effect::Wake { turn, step, .. } => {
                        inputs.push_back(Input::Woke { turn, step });
                    }
                    _ => {}
                }
            }
        }
    }

    fn model(&mut self, events: Vec<ModelEvent>) {
        let (turn, step) = self.asked.unwrap();
        for event in events {
            self.take(Input::Model { turn, step, event });
        }
    }

    fn ends(&mut self, events: Vec<ModelEvent>, finish: Finish) {
        self.model(events);
        self.model(vec![ModelEvent::Ended { finish, usage: Usage::default() }]);
    }

    /// One prompt, one answer.
    fn talk(&mut self, text: &str) {
        self.take(Input::Op(Op::prompt(text)));
        self.ends(vec![ModelEvent::Text(format!("About {text}."))], Finish::Stop);
    }

    /// What the last request's model was told besides the conversation.
    fn context(&self) -> Vec<String> {
        let (_, messages) = self.requests.last().unwrap();
        let told = messages.iter().filter(|message| message.role == Role::Context);
        told.map(|message| match &message.parts[..] {
            [Part::Text { text, .. }] => text.clone(),
            other => panic!("{other:?}"),
        })
        .collect()
    }
}

fn call(tool: &str, turn: usize, n: usize) -> ModelEvent {
    ModelEvent::Call {
        // Some providers use the same names again and again.
        reference: format!("call_{n}"),
        tool: tool.into(),
        arguments: json!({"filePath": format!("src/{turn}_{n}.rs"), "z": 1, "a": "ü\n"})
            .to_string(),
        seal: None,
        repaired: Vec::new(),
    }
}

fn brief(day: u64, rules: &str) -> Brief {
    Brief {
        folder: "/w".into(),
        platform: "linux".into(),
        day: Some(Day::of(Millis(day * DAY))),
        git: Git::Branch("main".into()),
        mode: Some(Mode::Ask),
        instructions: vec![Advice {
            path: "AGENTS.md".into(),
            text: rules.into(),
            length: rules.len() as u64,
        }],
    }
}

/// Fifty turns with calls, thoughts, jobs that end, a switch of the mode, a child, a failure, a
/// person's own call, an interrupt, and other instructions on another day.
fn long_session() -> Play {
    let first = brief(20_000, "Run the tests.").text();
    let mut play = Play::new(&first);
    for turn in 1..=50 {
        match turn {
            20 => play.take(Input::Op(Op::Mode { mode: Mode::Plan })),
            25 => play.reopen(&brief(20_003, "Run all of the tests.").text()),
            30 => play.clock += DAY,
            35 => {
                let tool = "read".to_owned();
                play.take(Input::Op(Op::Call { tool, arguments: "{\"filePath\": \"a\"}".into() }));
            }
            _ => {}
        }
        play.take(Input::Op(Op::prompt(format!("Task {turn}: {}", "words ".repeat(turn)))));
        if turn == 15 {
            let fault = Fault::RateLimited { message: String::new(), wait_ms: None };
            play.model(vec![ModelEvent::Failed(fault)]);
        }
        let tool = if turn % 10 == 5 { "task" } else { "edit" };
        let events = vec![
            ModelEvent::Reasoning("Let me think.".into()),
            ModelEvent::Sealed("{\"signature\": \"abc\"}".into()),
            ModelEvent::Text(format!("Step one of {turn}.")),
            call(tool, turn, 1),
            call("write", turn, 2),
        ];
        play.ends(events, Finish::Calls);
        if turn % 7 == 0 {
            play.take(Input::Told { text: format!("The file src/{turn}_1.rs was changed.") });
        }
        if turn == 40 {
            play.model(vec![ModelEvent::Text("I was going to".into())]);
            play.take(Input::Op(Op::Interrupt));
            continue;
        }
        play.ends(vec![ModelEvent::Text(format!("Done with {turn}."))], Finish::Stop);
    }
    play
}

fn tools() -> Vec<ToolSummary> {
    ["edit", "read", "task", "write"]
        .into_iter()
        .map(|name| ToolSummary {
            name: name.into(),
            description: format!("{name} does what it says. ").repeat(10),
            schema: json!({"type": "object", "properties": {"filePath": {"type": "string"}}}),
        })
        .collect()
}

/// What a provider reads, in the order in which it does: tools, what comes before the conversation,
/// the conversation.
fn read(format: Format, (system, messages): &(Arc<str>, Messages)) -> String {
    let request = Request {
        model: Arc::new(Model::assumed("m")),
        name: "p/m".into(),
        system: Arc::clone(system),
        messages: messages.clone(),
        files: Default::default(),
        tools: tools(),
        options: Arc::default(),
        cache_key: Some("session".into()),
        draft: Default::default(),
    };
    // The marks say how far to cache; they are no part of what is cached.
    let quirks = Quirks { cache_marks: false, ..plain(format, false).quirks };
    let body: Value = format.body(&request, &quirks);
    let part = |names: &[&str]| names.iter().find_map(|name| body.get(name)).map(Value::to_string);
    let mut text = part(&["tools"]).unwrap();
    text.push_str(&part(&["system", "instructions", "systemInstruction"]).unwrap_or_default());
    let list = part(&["messages", "input", "contents"]).unwrap();
    text.push_str(list.strip_suffix(']').unwrap());
    text
}

#[test]
fn every_request_begins_with_the_bytes_of_the_one_before() {
    let play = long_session();
    assert!(play.requests.len() >= 100, "{}", play.requests.len());
    let told = play.context();
    assert!(told.iter().any(|text| text.contains("Run all of the tests.")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("src/49_1.rs was changed")), "{told:?}");
    for (name, format) in Format::NAMES {
        let texts: Vec<String> =
            play.requests.iter().map(|request| read(*format, request)).collect();
        let (mut lost, mut misses) = (0, Vec::new());
        for (index, pair) in texts.windows(2).enumerate() {
            let (before, after) = (pair[0].as_bytes(), pair[1].as_bytes());
            let shorter = before.len().min(after.len());
            let same = match before[..shorter] == after[..shorter] {
                true => shorter,
                false => before.iter().zip(after).take_while(|(one, two)| one == two).count(),
            };
            lost += shorter - same;
            // What closes the last message may move.
            if shorter - same > 4 {
                misses.push(format!("request {}: {} bytes", index + 2, shorter - same));
            }
            assert!(same * 100 >= shorter * 99, "{name}, {misses:?}");
        }
        let sent: usize = texts.iter().map(String::len).sum();
        println!("{name}: {lost} of {sent} bytes not shared with the request before");
        assert!(misses.is_empty(), "{name}: {misses:?}");
    }
}

#[test]
fn what_became_different_is_told_once_and_the_brief_stays() {
    let first = brief(20_000, "Old rules.").text();
    let mut play = Play::new(&first);
    play.talk("one");
    assert_eq!(play.context(), [""; 0]);
    play.reopen(&first);
    play.talk("two");
    assert_eq!(play.context(), [""; 0], "nothing is different");

    let other = brief(20_000, "New rules.").text();
    play.reopen(&other);
    assert_eq!(play.log.len(), play.session.head() as usize, "opening it writes nothing");
    play.talk("three");
    let told = play.context();
    assert!(told.len() == 1 && told[0].contains("New rules."), "{told:?}");
    assert!(!told[0].contains("Date"), "{told:?}");
    for text in ["four", "five"] {
        play.reopen(&other);
        play.talk(text);
        assert_eq!(play.context().len(), 1);
    }

    play.clock += DAY;
    play.talk("the next day");
    assert!(play.context()[1].contains("Date: 2024-10-05\n"), "{:?}", play.context());
    play.clock -= 3 * DAY;
    play.talk("a clock that was set back");
    assert_eq!(play.context().len(), 2);

    play.reopen("A brief of somebody else's.");
    play.talk("six");
    assert_eq!(play.context().len(), 2);
    assert!(play.requests.iter().all(|(system, _)| **system == *first));
}

#[test]
fn what_a_summary_took_away_is_told_again() {
    let mut play = Play::new(&brief(20_000, "Old rules.").text());
    play.talk("one");
    let now = brief(20_000, "New rules.").text();
    play.reopen(&now);
    play.talk("two");
    let through = play.log.len() as u64;
    play.log.push(Fact::Compacted { through, summary: "They spoke.".into() });
    play.reopen(&now);
    play.talk("three");
    let told = play.context();
    assert!(told.len() == 2 && told[1].contains("New rules."), "{told:?}");
}

fn todos(what: &str) -> String {
    let row = |n| json!({"content": format!("{what} {n}"), "status": "pending", "priority": "low"});
    json!({"todos": [row(1), row(2)]}).to_string()
}

/// A turn in which the model writes a list.
fn plan(play: &mut Play, what: &str) {
    play.take(Input::Op(Op::prompt(format!("plan to {what}"))));
    let (reference, tool) = (format!("list_{what}"), "todowrite".to_owned());
    let (arguments, seal, repaired) = (todos(what), None, Vec::new());
    let event = ModelEvent::Call { reference, tool, arguments, seal, repaired };
    play.ends(vec![event], Finish::Calls);
    play.ends(vec![ModelEvent::Text("Planned.".into())], Finish::Stop);
}

fn compact(play: &mut Play) -> String {
    play.take(Input::Op(Op::Compact));
    play.ends(vec![ModelEvent::Text("Much happened.".into())], Finish::Stop);
    let summary = |fact: &Fact| match fact {
        Fact::Compacted { summary, .. } => Some(summary.clone()),
        _ => None,
    };
    play.log.iter().rev().find_map(summary).unwrap()
}

fn told_of_lists(play: &Play) -> Vec<String> {
    let told = |fact: &Fact| match fact {
        Fact::ContextChanged { text } if text.contains("to-do list") => Some(text.clone()),
        _ => None,
    };
    play.log.iter().filter_map(told).collect()
}

#[test]
fn a_list_that_only_a_summary_remembers_is_told_once_after_its_turn_was_taken_back() {
    let text = brief(20_000, "Test.").text();
    for empty in [false, true] {
        let mut play = Play::new(&text);
        if empty {
            play.talk("the weather");
        } else {
            plan(&mut play, "dig");
        }
        let before = play.log.len() as u64;
        plan(&mut play, "fill");
        let kept = compact(&mut play);
        assert!(kept.contains("fill 1") && !kept.contains("dig 1"), "{kept}");
        // As it is where the last turns are kept word for word behind a summary.
        for fact in &mut play.log {
            if let Fact::Compacted { through, .. } = fact {
                *through = before;
            }
        }
        play.log.push(Fact::Reverted { to: before });
        play.reopen(&text);
        play.talk("something else");
        let told = told_of_lists(&play);
        let expected = match empty {
            false => "The to-do list is now:\n- [pending] dig 1\n- [pending] dig 2",
            true => "The to-do list is now empty.",
        };
        assert_eq!(told, [expected]);
        assert!(play.context().iter().any(|text| text == expected), "{:?}", play.context());
        play.talk("more");
        play.reopen(&text);
        play.talk("and more");
        assert_eq!(told_of_lists(&play).len(), 1, "it is told once");
        // If the message that told it is taken back as well, it is told again.
        let at = play
            .log
            .iter()
            .position(|it| matches!(it, Fact::ContextChanged { text } if text == expected));
        play.log.push(Fact::Reverted { to: at.unwrap() as u64 });
        play.reopen(&text);
        play.talk("once more");
        assert_eq!(told_of_lists(&play), [expected, expected]);
    }
}

#[test]
fn a_list_that_the_conversation_itself_tells_is_not_told_again() {
    let text = brief(20_000, "Test.").text();
    let mut play = Play::new(&text);
    plan(&mut play, "dig");
    let before = play.log.len() as u64;
    plan(&mut play, "fill");
    play.log.push(Fact::Reverted { to: before });
    play.reopen(&text);
    play.talk("something else");
    assert!(told_of_lists(&play).is_empty());
    let summary = compact(&mut play);
    assert!(summary.contains("- [pending] dig 1"), "a summary tells what stands: {summary}");
    assert!(!summary.contains("fill 1"), "{summary}");
    play.talk("more");
    assert!(told_of_lists(&play).is_empty());

    // A person's own list reaches the model in the words it was written in.
    let tool = "todowrite".to_owned();
    play.take(Input::Op(Op::Call { tool, arguments: todos("rest") }));
    play.talk("and more");
    let (_, messages) = play.requests.last().unwrap();
    let own = messages.iter().flat_map(|message| &message.parts).any(|part| {
        matches!(part, Part::Call(call) if call.arguments == todos("rest") && call.outcome.is_some())
    });
    assert!(own && told_of_lists(&play).is_empty());
    assert!(compact(&mut play).contains("- [pending] rest 2"));
}
