//! Tests of the linear mode: input lines, requests and printed lines.

mod questions;
mod reports;
mod session_commands;

use super::{LinearUi, LinearUiEvent};
use crate::app::TuiOptions;
use crate::ui_context::UiEffect;
use expect_test::{Expect, expect};
use uuid::Uuid;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostMessage, HostResponse, HostStatus,
};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Event, Fact, FactRecord, LiveEvent, LiveEventRecord,
    ModelStreamKind, PermissionAnswer, SessionId, SessionOp, ToolAccess, TurnEndReason, UnixMillis,
};

/// A `LinearUi` with its printed lines and sent requests. Answers in `sent` have no position: the
/// environment checks that it is that of a question.
struct TestLinearUi {
    linear: LinearUi,
    lines: Vec<String>,
    sent: Vec<FrontendRequest>,
    quit: bool,
    last_request_id: u64,
    seq: u64,
}

const SESSION: SessionId = SessionId(Uuid::from_u128(1));
const CALL: CallId = CallId(Uuid::from_u128(2));

impl TestLinearUi {
    /// Removes the position of the question from an answer.
    fn without_position(&self, mut request: FrontendRequest) -> FrontendRequest {
        if let FrontendRequest::SessionOp {
            op: SessionOp::AnswerPermission { asked, .. } | SessionOp::AnswerQuestion { asked, .. },
            ..
        } = &mut request
        {
            let seq = asked.take().expect("an answer names its question");
            assert!((1..=self.seq).contains(&seq), "{seq}");
        }
        request
    }

    fn new() -> TestLinearUi {
        TestLinearUi::with(TuiOptions::default())
    }

    fn with(options: TuiOptions) -> TestLinearUi {
        let (linear, output) = LinearUi::new(options);
        let mut env = TestLinearUi {
            linear,
            lines: Vec::new(),
            sent: Vec::new(),
            quit: false,
            last_request_id: 0,
            seq: 0,
        };
        env.record_output(output);
        let status = HostStatus {
            version: "1.0".into(),
            workspace: "~/project".into(),
            model: Some("local/small".into()),
            trust: windlass_protocol::frontend_messages::TrustState::Trusted,
            ..HostStatus::default()
        };
        env.answer(HostResponse::Status { status: Box::new(status) });
        env
    }

    /// Returns a `TestLinearUi` with an open session and a running turn.
    fn with_running_turn() -> TestLinearUi {
        let mut env = TestLinearUi::new();
        env.enter_line("fix it");
        env.answer(HostResponse::SessionOpened { session: SESSION, head: 0, model: None });
        env.fact(Fact::TurnStarted { turn: 1, prompt: None });
        (env.lines, env.sent) = (Vec::new(), Vec::new());
        env
    }

    fn record_output(&mut self, (lines, ui_effects): (Vec<String>, Vec<UiEffect>)) {
        self.lines.extend(lines);
        for effect in ui_effects {
            match effect {
                UiEffect::Send(message) => {
                    self.last_request_id = message.id;
                    self.sent.push(self.without_position(message.request));
                }
                UiEffect::Quit => self.quit = true,
                effect => panic!("{effect:?}"),
            }
        }
    }

    fn update(&mut self, input: LinearUiEvent) {
        let output = self.linear.update(input);
        self.record_output(output);
    }

    fn enter_line(&mut self, line: &str) {
        self.update(LinearUiEvent::Line(line.into()));
    }

    fn answer(&mut self, response: HostResponse) {
        let message = HostMessage::Response { id: self.last_request_id, response: Ok(response) };
        self.update(LinearUiEvent::HostMessage(Box::new(message)));
    }

    fn fact(&mut self, fact: Fact) {
        self.fact_in_session(SESSION, fact);
    }

    fn fact_in_session(&mut self, session: SessionId, fact: Fact) {
        self.seq += 1;
        let record = FactRecord::new(session, self.seq, UnixMillis(0), fact);
        self.update(LinearUiEvent::HostMessage(Box::new(HostMessage::Event {
            event: Box::new(Event::Fact(record)),
        })));
    }

    fn delta(&mut self, text: &str) {
        let event = LiveEvent::ModelDelta { stream: ModelStreamKind::Text, text: text.into() };
        self.live(0, event);
    }

    fn live(&mut self, at: u64, event: LiveEvent) {
        let live_record = LiveEventRecord { session: SESSION, at: UnixMillis(at), event };
        self.update(LinearUiEvent::HostMessage(Box::new(HostMessage::Event {
            event: Box::new(Event::Live(live_record)),
        })));
    }

    fn ask_permission(&mut self) {
        let accesses =
            vec![ToolAccess::RunCommand { command: "cargo test".into(), folder: ".".into() }];
        let reason = "a command is run only with a yes".into();
        self.fact(Fact::PermissionAsked {
            danger: Default::default(),
            call: CALL,
            accesses,
            reason,
            preview: None,
            approval_kind: None,
            repair: None,
        });
    }

    fn assert_lines(&mut self, expected: Expect) {
        expected.assert_eq(&(std::mem::take(&mut self.lines).join("\n") + "\n"));
    }
}

#[test]
fn the_first_prompt_starts_a_session_and_is_sent_to_it() {
    let mut env = TestLinearUi::new();
    env.assert_lines(expect![[r#"
        windlass 1.0 in ~/project
        local/small, mode ask. /help lists commands
        ready
    "#]]);
    env.enter_line("fix it");
    assert_eq!(env.sent.last(), Some(&FrontendRequest::new_session(None)));
    env.answer(HostResponse::SessionOpened { session: SESSION, head: 0, model: None });
    let op = SessionOp::prompt("fix it");
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
}

#[test]
fn model_text_is_printed_once_by_paragraph() {
    let mut env = TestLinearUi::with_running_turn();
    env.delta("I look at the ");
    assert!(env.lines.is_empty());
    env.delta("parser.\n\nquestion: Run outside the sandbox?\x1b[31m");
    env.fact(Fact::ModelText {
        text: "I look at the parser.\n\nquestion: Run outside the sandbox?\x1b[31m".into(),
        provider_signature: None,
    });
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    env.assert_lines(expect![[r#"
        model:
          I look at the parser.
          question: Run outside the sandbox?␛[31m
        ready
    "#]]);
}

#[test]
fn a_call_that_takes_long_to_write_is_announced() {
    let mut env = TestLinearUi::with_running_turn();
    for at in (0..30_000).step_by(100) {
        let (tool, path) = ("write".into(), Some("src/main.rs".into()));
        let event = LiveEvent::PartialCall { index: 0, tool, path, argument_bytes: at };
        env.live(at, event);
        let event =
            LiveEvent::PartialCall { index: 1, tool: "read".into(), path: None, argument_bytes: 9 };
        if at < 900 {
            env.live(at, event);
        }
    }
    env.assert_lines(expect![[r#"
        writing: write src/main.rs … 1.0 kB
        writing: write src/main.rs … 11.0 kB
        writing: write src/main.rs … 21.0 kB
    "#]]);
}

#[test]
fn a_call_prints_a_line_when_it_starts_and_when_it_ends() {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::ToolCalled {
        description: crate::test_call_descriptions::describe("bash", r#"{"command":"cargo test"}"#),
        call: CALL,
        provider_call_id: String::new(),
        tool: "bash".into(),
        arguments: r#"{"command":"cargo test"}"#.into(),
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    });
    env.fact(Fact::CallSettled {
        call: CALL,
        outcome: CallOutcome::Failed { text: "1 test failed".into() },
        seen_files: Vec::new(),
    });
    env.assert_lines(expect![[r#"
        call: Run cargo test
        failed: Run cargo test
          1 test failed
    "#]]);
}

#[test]
fn an_empty_or_invalid_line_answers_nothing() {
    let mut env = TestLinearUi::with_running_turn();
    env.ask_permission();
    env.assert_lines(expect![[r#"
        question: Run a command?
          cargo test
        why: a command is run only with a yes
        Answer y to allow once; s to allow exactly this command this session; p to always allow exactly this command in this project
        n to deny; n and a reason to tell the model why; all to read the full request
    "#]]);
    for line in ["", "  ", "yes please", "Y", "ok", "k"] {
        env.enter_line(line);
    }
    assert!(env.sent.is_empty(), "{:?}", env.sent);
    env.enter_line("n use the other one");
    let answer = PermissionAnswer::No { reason: Some("use the other one".into()) };
    let op = SessionOp::AnswerPermission { call: CALL, answer, asked: None };
    assert_eq!(env.sent, [FrontendRequest::SessionOp { id: None, session: SESSION, op }]);
}

#[test]
fn a_letter_answers_a_permission_request() {
    for (letter, answer) in [
        ("y", PermissionAnswer::Once),
        ("s", PermissionAnswer::Session),
        ("p", PermissionAnswer::Project),
        ("n", PermissionAnswer::No { reason: None }),
    ] {
        let mut env = TestLinearUi::with_running_turn();
        env.ask_permission();
        env.enter_line(letter);
        let op = SessionOp::AnswerPermission { call: CALL, answer, asked: None };
        assert_eq!(env.sent, [FrontendRequest::SessionOp { id: None, session: SESSION, op }]);
    }
}

#[test]
fn ctrl_c_interrupts_the_turn_and_twice_quits() {
    let mut env = TestLinearUi::with_running_turn();
    env.update(LinearUiEvent::Interrupt);
    assert_eq!(
        env.sent,
        [FrontendRequest::SessionOp {
            id: None,
            session: SESSION,
            op: SessionOp::Interrupt { turn: None }
        }]
    );
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted });
    env.update(LinearUiEvent::Interrupt);
    assert!(!env.quit);
    env.update(LinearUiEvent::Interrupt);
    assert!(env.quit);
}

#[test]
fn a_typed_shell_command_runs_between_turns_without_a_question() {
    let mut env = TestLinearUi::with_running_turn();
    env.enter_line("!ls");
    assert!(env.sent.is_empty(), "{:?}", env.sent);
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    env.enter_line("!ls");
    let arguments = String::from(r#"{"command":"ls"}"#);
    let op = SessionOp::CallTool { tool: "bash".into(), arguments: arguments.clone() };
    assert_eq!(env.sent, [FrontendRequest::SessionOp { id: None, session: SESSION, op }]);
    env.fact(Fact::ToolCalled {
        description: crate::test_call_descriptions::describe("bash", &arguments),
        call: CALL,
        provider_call_id: "r".into(),
        tool: "bash".into(),
        arguments,
        author: CallAuthor::User,
        repair: Vec::new(),
        provider_signature: None,
    });
    env.fact(Fact::PermissionAsked {
        danger: Default::default(),
        call: CALL,
        accesses: vec![ToolAccess::RunCommand { command: "ls".into(), folder: ".".into() }],
        reason: "so".into(),
        preview: None,
        approval_kind: None,
        repair: None,
    });
    let op =
        SessionOp::AnswerPermission { call: CALL, answer: PermissionAnswer::Once, asked: None };
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
    env.assert_lines(expect![[r#"
        The model is working; type the command again when it is done.
        ready
        call: Run ls
    "#]]);
}

#[test]
fn a_custom_command_is_expanded_in_a_session() {
    let mut env = TestLinearUi::new();
    env.enter_line("/mine a b");
    assert_eq!(env.sent.last(), Some(&FrontendRequest::new_session(None)));
    env.answer(HostResponse::SessionOpened { session: SESSION, head: 0, model: None });
    let request = FrontendRequest::ExpandCommand {
        session: None,
        name: "mine".into(),
        arguments: "a b".into(),
    };
    assert_eq!(env.sent.last(), Some(&request));
    env.answer(HostResponse::Prompt { text: "what is meant".into(), settings: Default::default() });
    let op = SessionOp::prompt("what is meant");
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
}

#[test]
fn the_initial_prompt_is_sent_to_the_resumed_session() {
    let options = TuiOptions {
        session: Some(SESSION),
        prompt: Some("go on".into()),
        ..TuiOptions::default()
    };
    let mut env = TestLinearUi::with(options);
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::OpenSession { session: SESSION, resume: false })
    );
    env.answer(HostResponse::SessionOpened { session: SESSION, head: 12, model: None });
    let op = SessionOp::prompt("go on");
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
}

#[test]
fn the_files_that_an_initial_prompt_mentions_are_read_first() {
    let text = "read @README.md";
    let prompt = Some(text.to_owned());
    let prepare = FrontendRequest::PreparePrompt {
        text: text.to_owned(),
        attachments: Vec::new(),
        model: None,
    };
    let env = TestLinearUi::with(TuiOptions { prompt: prompt.clone(), ..TuiOptions::default() });
    assert_eq!(env.sent.last(), Some(&prepare));
    let options = TuiOptions { session: Some(SESSION), prompt, ..TuiOptions::default() };
    let mut env = TestLinearUi::with(options);
    env.answer(HostResponse::SessionOpened { session: SESSION, head: 12, model: None });
    assert_eq!(env.sent.last(), Some(&prepare));
    env.answer(HostResponse::PreparedPrompt { attachments: Vec::new(), warnings: Vec::new() });
    let op = SessionOp::prompt(text);
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
}

#[test]
fn lines_are_joined_and_commands_are_distinguished_from_prompts() {
    let mut env = TestLinearUi::with_running_turn();
    env.enter_line("one\\");
    env.enter_line("two");
    env.enter_line("/usr/bin is missing");
    env.enter_line("/mine a b");
    env.enter_line("/mode plan");
    let session_op = |op| FrontendRequest::SessionOp { id: None, session: SESSION, op };
    assert_eq!(
        env.sent,
        [
            session_op(SessionOp::prompt("one\ntwo")),
            session_op(SessionOp::prompt("/usr/bin is missing")),
            FrontendRequest::ExpandCommand {
                session: None,
                name: "mine".into(),
                arguments: "a b".into()
            },
            session_op(SessionOp::SetMode { mode: windlass_protocol::PermissionMode::Plan }),
        ]
    );
    env.enter_line("/help");
    env.assert_lines(expect![[r#"
        The model gets this at its next step.
        The model gets this at its next step.
        Type what to do and press Enter. A line that ends with \ continues on the next line.
        ! runs a shell command. Ctrl-C stops the model; press it twice to quit.
        /help: List commands and keys (? on an empty prompt)
        /commands: Search all commands
        /mode: Switch to the next mode: plan, ask, auto
        /sessions: List, search, open, fork, rename and delete sessions
        /new: Start a new session
        /fork: Continue in a copy of this session
        /rewind: Rewind to an earlier prompt
        /rename: Rename this session: /rename TITLE
        /detach: Hand this session over to the server and quit
        /retry: Try again after a failed turn
        /compact: Summarize the conversation to free context
        /undo: Preview and undo the last turn's file changes
        /redo: Redo the last undo
        /diff: Show all file changes of this session
        /model: Choose the model
        /effort: Choose the reasoning effort or variant of the model
        /agent: Choose the agent of this session (Tab: the next one)
        /todos: Show the todo list
        /jobs: Show background commands
        /tasks: Show the subagents and what they do
        /cost: Show token usage and cost of this session
        /context: Show what fills the context window
        /doctor: Check the installation
        /mcp: Show MCP servers: state, tools, log; restart one
        /permissions: Show rules and approvals; revoke an approval
        /lsp: Show language servers: state, log; restart one
        /plugins: Show plugins
        /stats: Show usage by day, model and tool: /stats DAYS
        /export: Export this session: /export NAME.html, .md or .jsonl
        /skills: List the skills that the model can load
        /hooks: List the hooks in effect
        /config: Show the settings in effect and their origin
        /trust: Review and trust this folder, or revoke trust
        /login: Save a provider's API key
        /goal: Work until it is true: /goal CONDITION or /goal !COMMAND
        /init: Let the model write this project's AGENTS.md
        /review: Review uncommitted changes, or a branch: /review BRANCH
        /copy: Copy an answer, a prompt or a code block
        /quit: Quit (the session can be resumed)
        /panel: Show or hide the side panel
        /find: Find text in this session: /find TEXT
        Your custom commands also work.
    "#]]);
    env.enter_line("/quit");
    assert!(env.quit);
}
