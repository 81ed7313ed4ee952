//! The prompt prefix: every request of a session starts with the bytes of the request before, also
//! when the environment, the instructions or the mode change.
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
use windlass_engine::session::{
    InputTimeAndId, Session, SessionConfig, SessionEffect, SessionInput,
};
use windlass_engine::system_prompt::{
    GitState, InstructionFile, RenderedSystemPrompt, SystemPromptValues,
};
use windlass_llm::catalog::{Model, Quirks, generic_provider};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{ModelEvent, ModelRequest};
use windlass_protocol::{
    CallId, CallOutcome, Fact, FactRecord, Fault, FinishReason, MessagePart, MessageRole, Messages,
    ModelToolDefinition, PermissionMode, SessionId, SessionOp, TokenUsage, ToolAccess, ToolOutput,
    UnixMillis,
};
use windlass_toolkit::CallIntent;

const DAY: u64 = 86_400_000;

/// A session whose calls are all permitted and settled at once.
struct TestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u64,
    ids: u128,
    /// Turn and step of the last request.
    last_request: Option<(u32, u32)>,
    tools: HashMap<CallId, (u32, String)>,
    /// Arguments of each `todowrite` call.
    todo_lists: HashMap<CallId, Value>,
    requests: Vec<(Arc<str>, Messages)>,
}

fn config(system_prompt: &RenderedSystemPrompt) -> SessionConfig {
    SessionConfig {
        model: "p/m".into(),
        system_prompt: system_prompt.clone(),
        ..SessionConfig::default()
    }
}

impl TestSession {
    fn new(system_prompt: &RenderedSystemPrompt) -> TestSession {
        TestSession {
            session: Session::new(Fact::session_opened("/w", "0"), config(system_prompt)),
            log: Vec::new(),
            clock: 20_000 * DAY,
            ids: 1,
            last_request: None,
            tools: HashMap::new(),
            todo_lists: HashMap::new(),
            requests: Vec::new(),
        }
    }

    fn reopen(&mut self, system_prompt: &RenderedSystemPrompt) {
        let session = SessionId(Uuid::nil());
        let record = |(index, fact): (usize, &Fact)| {
            FactRecord::new(session, index as u64 + 1, UnixMillis(0), fact.clone())
        };
        let log: Vec<FactRecord> = self.log.iter().enumerate().map(record).collect();
        self.session = Session::replay(&log, config(system_prompt));
        self.apply(SessionInput::Resume);
    }

    fn apply(&mut self, input: SessionInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.ids += 1;
            self.clock += 1;
            let stamp =
                InputTimeAndId { at: UnixMillis(self.clock), id: Uuid::from_u128(self.ids) };
            for effect in self.session.apply(stamp, input) {
                match effect {
                    SessionEffect::Append(facts) => self.log.extend(facts),
                    SessionEffect::CallModel { turn, step, system_prompt, messages, .. } => {
                        self.last_request = Some((turn, step));
                        self.requests.push((system_prompt, messages));
                    }
                    SessionEffect::CallTool { turn, call, tool, arguments, .. } => {
                        if tool == "todowrite" {
                            self.todo_lists.insert(call, serde_json::from_str(&arguments).unwrap());
                        }
                        self.tools.insert(call, (turn, tool));
                        let intent = CallIntent {
                            danger: Default::default(),
                            accesses: vec![ToolAccess::Edit { path: arguments }],
                            read_only: false,
                            ask_reason: None,
                            approval_kind: None,
                            accepts_earlier_approval: true,
                            repair: None,
                        };
                        inputs.push_back(SessionInput::PermissionRequested { turn, call, intent });
                    }
                    SessionEffect::SendPermission { call, .. } => {
                        let (turn, tool) = self.tools[&call].clone();
                        let text = format!("{tool} {call}: \"done\"\n").repeat(20);
                        let outcome = match (self.ids % 5, self.todo_lists.remove(&call)) {
                            (_, Some(mut arguments)) => {
                                let todos = serde_json::from_value(arguments["todos"].take());
                                let todos = Some(todos.unwrap());
                                let output = ToolOutput { text, todos, ..ToolOutput::default() };
                                CallOutcome::Completed { output }
                            }
                            (0, _) => CallOutcome::Failed { text },
                            _ => CallOutcome::Completed {
                                output: ToolOutput { text, ..ToolOutput::default() },
                            },
                        };
                        inputs.push_back(SessionInput::CallSettled {
                            turn,
                            call,
                            outcome,
                            seen_files: Vec::new(),
                        });
                    }
                    SessionEffect::RetryAfter { turn, step, .. } => {
                        inputs.push_back(SessionInput::RetryTimer { turn, step });
                    }
                    _ => {}
                }
            }
        }
    }

    fn model(&mut self, events: Vec<ModelEvent>) {
        let (turn, step) = self.last_request.unwrap();
        for event in events {
            self.apply(SessionInput::Model { turn, step, event });
        }
    }

    fn end_step(&mut self, events: Vec<ModelEvent>, finish: FinishReason) {
        self.model(events);
        self.model(vec![ModelEvent::Ended { finish, usage: TokenUsage::default() }]);
    }

    /// Runs a turn with one prompt and one answer.
    fn run_turn(&mut self, text: &str) {
        self.apply(SessionInput::Op(SessionOp::prompt(text)));
        self.end_step(vec![ModelEvent::Text(format!("About {text}."))], FinishReason::Stop);
    }

    /// Returns the context messages of the last request.
    fn context(&self) -> Vec<String> {
        let (_, messages) = self.requests.last().unwrap();
        let context = messages.iter().filter(|message| message.role == MessageRole::Context);
        context
            .map(|message| match &message.parts[..] {
                [MessagePart::Text { text, .. }] => text.clone(),
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

fn call(tool: &str, turn: usize, number: usize) -> ModelEvent {
    ModelEvent::Call {
        // Some providers reuse call ids.
        reference: format!("call_{number}"),
        tool: tool.into(),
        arguments: json!({"filePath": format!("src/{turn}_{number}.rs"), "z": 1, "a": "ü\n"})
            .to_string(),
        provider_signature: None,
        repairs: Vec::new(),
    }
}

fn system_prompt(day: u64, instructions: &str) -> SystemPromptValues {
    SystemPromptValues {
        folder: "/w".into(),
        platform: "linux".into(),
        now: Some(UnixMillis(day * DAY)),
        git: GitState::Branch("main".into()),
        mode: Some(PermissionMode::Ask),
        instructions: vec![InstructionFile {
            path: "AGENTS.md".into(),
            text: instructions.into(),
            total_bytes: instructions.len() as u64,
        }],
        ..SystemPromptValues::default()
    }
}

/// Runs fifty turns with calls, reasoning, notices, a mode change, subagents, a failed request,
/// a call by the user, an interrupt, and changed instructions on another day.
fn long_session() -> TestSession {
    let first = system_prompt(20_000, "Run the tests.").render();
    let mut env = TestSession::new(&first);
    for turn in 1..=50 {
        match turn {
            20 => env.apply(SessionInput::Op(SessionOp::SetMode { mode: PermissionMode::Plan })),
            25 => env.reopen(&system_prompt(20_003, "Run all of the tests.").render()),
            30 => env.clock += DAY,
            35 => {
                let tool = "read".to_owned();
                env.apply(SessionInput::Op(SessionOp::CallTool {
                    tool,
                    arguments: "{\"filePath\": \"a\"}".into(),
                }));
            }
            _ => {}
        }
        env.apply(SessionInput::Op(SessionOp::prompt(format!(
            "Task {turn}: {}",
            "words ".repeat(turn)
        ))));
        if turn == 15 {
            let fault = Fault::RateLimited { message: String::new(), retry_after_ms: None };
            env.model(vec![ModelEvent::Failed(fault)]);
        }
        let tool = if turn % 10 == 5 { "task" } else { "edit" };
        let events = vec![
            ModelEvent::Reasoning("Let me think.".into()),
            ModelEvent::ProviderSignature("{\"signature\": \"abc\"}".into()),
            ModelEvent::Text(format!("Step one of {turn}.")),
            call(tool, turn, 1),
            call("write", turn, 2),
        ];
        env.end_step(events, FinishReason::ToolCalls);
        if turn % 7 == 0 {
            env.apply(SessionInput::note(format!("The file src/{turn}_1.rs was changed.")));
        }
        if turn == 40 {
            env.model(vec![ModelEvent::Text("I was going to".into())]);
            env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
            continue;
        }
        env.end_step(vec![ModelEvent::Text(format!("Done with {turn}."))], FinishReason::Stop);
    }
    env
}

fn tools() -> Vec<ModelToolDefinition> {
    ["edit", "read", "task", "write"]
        .into_iter()
        .map(|name| ModelToolDefinition {
            name: name.into(),
            description: format!("{name} does what it says. ").repeat(10),
            schema: json!({"type": "object", "properties": {"filePath": {"type": "string"}}}),
        })
        .collect()
}

/// Returns the text that a provider reads, in its order: tools, system prompt, conversation.
fn provider_text(format: WireFormat, (system_prompt, messages): &(Arc<str>, Messages)) -> String {
    let request = ModelRequest {
        model: Arc::new(Model::unlisted("m")),
        model_name: "p/m".into(),
        system_prompt: Arc::clone(system_prompt),
        messages: messages.clone(),
        file_bytes: Default::default(),
        tools: tools(),
        options: Arc::default(),
        cache_key: Some("session".into()),
        incremental_body: Default::default(),
    };
    // Cache marks are not part of the cached text.
    let quirks = Quirks { cache_marks: false, ..generic_provider(format, false).quirks };
    let body: Value = format.body(&request, &quirks);
    let part = |names: &[&str]| names.iter().find_map(|name| body.get(name)).map(Value::to_string);
    let mut text = part(&["tools"]).unwrap();
    text.push_str(&part(&["system", "instructions", "systemInstruction"]).unwrap_or_default());
    let list = part(&["messages", "input", "contents"]).unwrap();
    text.push_str(list.strip_suffix(']').unwrap());
    text
}

#[test]
fn every_request_starts_with_the_bytes_of_the_one_before() {
    let env = long_session();
    assert!(env.requests.len() >= 100, "{}", env.requests.len());
    let context = env.context();
    assert!(context.iter().any(|text| text.contains("Run all of the tests.")), "{context:?}");
    assert!(context.iter().any(|text| text.contains("src/49_1.rs was changed")), "{context:?}");
    for (name, format) in WireFormat::NAMES {
        let texts: Vec<String> =
            env.requests.iter().map(|request| provider_text(*format, request)).collect();
        let (mut lost, mut misses) = (0, Vec::new());
        for (index, pair) in texts.windows(2).enumerate() {
            let (before, after) = (pair[0].as_bytes(), pair[1].as_bytes());
            let shorter = before.len().min(after.len());
            let common = match before[..shorter] == after[..shorter] {
                true => shorter,
                false => before.iter().zip(after).take_while(|(one, two)| one == two).count(),
            };
            lost += shorter - common;
            // The end of the last message may move.
            if shorter - common > 4 {
                misses.push(format!("request {}: {} bytes", index + 2, shorter - common));
            }
            assert!(common * 100 >= shorter * 99, "{name}, {misses:?}");
        }
        let sent: usize = texts.iter().map(String::len).sum();
        println!("{name}: {lost} of {sent} bytes not shared with the request before");
        assert!(misses.is_empty(), "{name}: {misses:?}");
    }
}

#[test]
fn changes_are_stated_once_and_the_system_prompt_stays() {
    let first = system_prompt(20_000, "Old rules.").render();
    let mut env = TestSession::new(&first);
    env.run_turn("one");
    assert_eq!(env.context(), [""; 0]);
    env.reopen(&first);
    env.run_turn("two");
    assert_eq!(env.context(), [""; 0], "nothing has changed");

    let other = system_prompt(20_000, "New rules.").render();
    env.reopen(&other);
    assert_eq!(env.log.len(), env.session.head() as usize, "opening the session writes nothing");
    env.run_turn("three");
    let context = env.context();
    assert!(context.len() == 1 && context[0].contains("New rules."), "{context:?}");
    assert!(!context[0].contains("Date"), "{context:?}");
    for text in ["four", "five"] {
        env.reopen(&other);
        env.run_turn(text);
        assert_eq!(env.context().len(), 1);
    }

    env.clock += DAY;
    env.run_turn("the next day");
    assert!(env.context()[1].contains("Date: 2024-10-05\n"), "{:?}", env.context());
    env.clock -= 3 * DAY;
    env.run_turn("a clock that was set back");
    assert_eq!(env.context().len(), 2);

    env.reopen(&RenderedSystemPrompt::plain("Another prompt."));
    env.run_turn("six");
    assert_eq!(env.context().len(), 2);
    assert!(env.requests.iter().all(|(system_prompt, _)| system_prompt == first.text()));
}

#[test]
fn changes_that_a_summary_removed_are_stated_again() {
    let mut env = TestSession::new(&system_prompt(20_000, "Old rules.").render());
    env.run_turn("one");
    let changed = system_prompt(20_000, "New rules.").render();
    env.reopen(&changed);
    env.run_turn("two");
    let through = env.log.len() as u64;
    env.log.push(Fact::ContextCompacted {
        through,
        summary: "They spoke.".into(),
        todos: Vec::new(),
        mode: None,
    });
    env.reopen(&changed);
    env.run_turn("three");
    let context = env.context();
    assert!(context.len() == 2 && context[1].contains("New rules."), "{context:?}");
}

fn todos(task: &str) -> String {
    let row = |n| json!({"content": format!("{task} {n}"), "status": "pending", "priority": "low"});
    json!({"todos": [row(1), row(2)]}).to_string()
}

/// Runs a turn in which the model writes a to-do list.
fn write_todos(env: &mut TestSession, task: &str) {
    env.apply(SessionInput::Op(SessionOp::prompt(format!("plan to {task}"))));
    let event = ModelEvent::Call {
        reference: format!("list_{task}"),
        tool: "todowrite".to_owned(),
        arguments: todos(task),
        provider_signature: None,
        repairs: Vec::new(),
    };
    env.end_step(vec![event], FinishReason::ToolCalls);
    env.end_step(vec![ModelEvent::Text("Planned.".into())], FinishReason::Stop);
}

fn compact(env: &mut TestSession) -> String {
    env.apply(SessionInput::Op(SessionOp::Compact));
    env.end_step(vec![ModelEvent::Text("Much happened.".into())], FinishReason::Stop);
    let summary = |fact: &Fact| match fact {
        Fact::ContextCompacted { summary, .. } => Some(summary.clone()),
        _ => None,
    };
    env.log.iter().rev().find_map(summary).unwrap()
}

fn todo_notices(env: &TestSession) -> Vec<String> {
    let notice = |fact: &Fact| match fact {
        Fact::ContextChanged { text, .. } if text.contains("to-do list") => Some(text.clone()),
        _ => None,
    };
    env.log.iter().filter_map(notice).collect()
}

#[test]
fn a_todo_list_that_only_a_summary_contains_is_stated_once_after_a_rewind() {
    let text = system_prompt(20_000, "Test.").render();
    for empty in [false, true] {
        let mut env = TestSession::new(&text);
        if empty {
            env.run_turn("the weather");
        } else {
            write_todos(&mut env, "dig");
        }
        let before = env.log.len() as u64;
        write_todos(&mut env, "fill");
        let summary = compact(&mut env);
        assert!(summary.contains("fill 1") && !summary.contains("dig 1"), "{summary}");
        // The same as a summary with the last turns kept verbatim after it.
        for fact in &mut env.log {
            if let Fact::ContextCompacted { through, .. } = fact {
                *through = before;
            }
        }
        env.log.push(Fact::Rewound { to: before });
        env.reopen(&text);
        env.run_turn("something else");
        let notices = todo_notices(&env);
        let expected = match empty {
            false => "The to-do list is now:\n- [ ] dig 1 (low)\n- [ ] dig 2 (low)",
            true => "The to-do list is now empty.",
        };
        assert_eq!(notices, [expected]);
        assert!(env.context().iter().any(|text| text == expected), "{:?}", env.context());
        env.run_turn("more");
        env.reopen(&text);
        env.run_turn("and more");
        assert_eq!(todo_notices(&env).len(), 1, "the list is stated once");
        // If its message is rewound as well, the list is stated again.
        let at = env
            .log
            .iter()
            .position(|fact| matches!(fact, Fact::ContextChanged { text, .. } if text == expected));
        env.log.push(Fact::Rewound { to: at.unwrap() as u64 });
        env.reopen(&text);
        env.run_turn("once more");
        assert_eq!(todo_notices(&env), [expected, expected]);
    }
}

#[test]
fn a_todo_list_that_the_conversation_contains_is_not_stated_again() {
    let text = system_prompt(20_000, "Test.").render();
    let mut env = TestSession::new(&text);
    write_todos(&mut env, "dig");
    let before = env.log.len() as u64;
    write_todos(&mut env, "fill");
    env.log.push(Fact::Rewound { to: before });
    env.reopen(&text);
    env.run_turn("something else");
    assert!(todo_notices(&env).is_empty());
    let summary = compact(&mut env);
    assert!(summary.contains("- [ ] dig 1"), "a summary contains the current list: {summary}");
    assert!(!summary.contains("fill 1"), "{summary}");
    env.run_turn("more");
    assert!(todo_notices(&env).is_empty());

    // A list that the user wrote reaches the model as the arguments of the user's call.
    let tool = "todowrite".to_owned();
    env.apply(SessionInput::Op(SessionOp::CallTool { tool, arguments: todos("rest") }));
    env.run_turn("and more");
    let (_, messages) = env.requests.last().unwrap();
    let has_user_call = messages.iter().flat_map(|message| &message.parts).any(|part| {
        let MessagePart::Call(call) = part else { return false };
        call.arguments == todos("rest") && call.outcome.is_some()
    });
    assert!(has_user_call && todo_notices(&env).is_empty());
    assert!(compact(&mut env).contains("- [ ] rest 2"));
}
