//! Tests of the whole `App`, with scripted host responses.

use super::*;
use crate::keys::UiCommand;
use crossterm::event::{KeyCode, KeyModifiers};
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostResponse, HostStatus,
};
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, OpError, PermissionMode, PromptId, SessionOp, TurnEndReason,
    UnixMillis,
};

/// An `App` with the requests it sent, its other effects and a clock.
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) sent: Vec<FrontendRequestMessage>,
    pub(crate) ui_effects: Vec<UiEffect>,
    pub(crate) now: u64,
    seq: u64,
}

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(7))
}

impl TestApp {
    fn new() -> TestApp {
        TestApp::with(TuiOptions::default())
    }

    fn with(options: TuiOptions) -> TestApp {
        let (app, ui_effects) = App::new(options, 0);
        let mut env = TestApp { app, sent: Vec::new(), ui_effects: Vec::new(), now: 0, seq: 0 };
        env.record_effects(ui_effects);
        let status = HostStatus {
            model: Some("test/one".into()),
            mode: PermissionMode::Ask,
            max_mode: PermissionMode::Full,
            agent: "build".into(),
            trust: windlass_protocol::frontend_messages::TrustState::Trusted,
            ..HostStatus::default()
        };
        env.answer(HostResponse::Status { status: Box::new(status) });
        env
    }

    /// Returns a `TestApp` with an open session.
    fn open() -> TestApp {
        let mut env = TestApp::new();
        env.perform_command(UiCommand::NewSession);
        env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
        env.sent.clear();
        env
    }

    fn record_effects(&mut self, ui_effects: Vec<UiEffect>) {
        for effect in ui_effects {
            match effect {
                UiEffect::Send(message) => self.sent.push(*message),
                effect => self.ui_effects.push(effect),
            }
        }
    }

    fn update(&mut self, event: AppEvent) {
        let ui_effects = self.app.update(event, self.now);
        self.record_effects(ui_effects);
    }

    fn perform_command(&mut self, command: UiCommand) {
        let mut ui_effects = Vec::new();
        self.app.perform(command, "", &mut ui_effects);
        self.record_effects(ui_effects);
    }

    /// Answers the last request.
    fn answer(&mut self, response: HostResponse) {
        let id = self.sent.last().unwrap().id;
        let message = HostMessage::Response { id, response: Ok(response) };
        self.update(AppEvent::HostMessage(Box::new(message)));
    }

    fn fail(&mut self, fault: Fault) {
        let id = self.sent.last().unwrap().id;
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Response {
            id,
            response: Err(fault),
        })));
    }

    fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let record = FactRecord::new(session(), self.seq, UnixMillis(self.now), fact);
        let event = Box::new(Event::Fact(record));
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event })));
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.update(AppEvent::Key(KeyEvent::new(code, modifiers)));
    }

    fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter), KeyModifiers::NONE);
        }
    }

    fn enter(&mut self) {
        self.press(KeyCode::Enter, KeyModifiers::NONE);
    }

    fn ctrl(&mut self, letter: char) {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL);
    }

    /// Returns the ops sent to the session.
    fn ops(&self) -> Vec<SessionOp> {
        let op = |message: &FrontendRequestMessage| match &message.request {
            FrontendRequest::SessionOp { op, .. } => Some(op.clone()),
            _ => None,
        };
        self.sent.iter().filter_map(op).collect()
    }

    /// Draws an 80×24 frame and returns it as text.
    fn text(&mut self) -> String {
        let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        let rows = buffer.content.chunks(80);
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    fn start_turn(&mut self) {
        let prompt = PromptId(uuid::Uuid::from_u128(1));
        self.fact(Fact::PromptSubmitted {
            prompt,
            text: "do".into(),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        });
        self.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
    }

    /// Asks for the approval of a command.
    fn ask_to_run(&mut self, command: &str) -> windlass_protocol::CallId {
        let call = windlass_protocol::CallId(uuid::Uuid::from_u128(2));
        let command = command.to_owned();
        self.fact(Fact::PermissionAsked {
            danger: Default::default(),
            call,
            accesses: vec![windlass_protocol::ToolAccess::RunCommand {
                command,
                folder: ".".into(),
            }],
            reason: "no rule allows it".into(),
            preview: None,
            approval_kind: None,
            repair: None,
        });
        call
    }
}

#[test]
fn the_first_prompt_starts_a_session_and_is_sent_to_it() {
    let mut env = TestApp::new();
    env.type_text("hello");
    env.enter();
    assert!(matches!(env.sent.last().unwrap().request, FrontendRequest::NewSession { .. }));
    assert!(env.ops().is_empty(), "no op is sent before the session is open");
    env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
    let is_prompt =
        |op: &SessionOp| matches!(op, SessionOp::Prompt { text, .. } if text == "hello");
    assert_eq!(env.ops().iter().filter(|op| is_prompt(op)).count(), 1, "{:?}", env.ops());
}

#[test]
fn a_local_session_is_handed_over_and_the_user_interface_ends() {
    let mut env = TestApp::open();
    env.perform_command(UiCommand::Detach);
    let request = FrontendRequest::DetachSession { session: session() };
    assert_eq!(env.sent.last().unwrap().request, request);
    env.fail(Fault::Config { message: "no server runs on this machine".into() });
    assert!(env.text().contains("no server runs"), "{}", env.text());
    assert!(!env.ui_effects.contains(&UiEffect::Quit));
    env.perform_command(UiCommand::Detach);
    env.answer(HostResponse::Done);
    assert!(env.ui_effects.contains(&UiEffect::Quit));

    let mut env = TestApp::open();
    env.app.state.host_status.host = Some("tower".into());
    env.perform_command(UiCommand::Detach);
    assert!(env.sent.is_empty());
    assert!(env.text().contains("in the server already"), "{}", env.text());
}

#[test]
fn a_question_that_another_client_answers_says_by_whom() {
    let mut env = TestApp::open();
    env.start_turn();
    let call = env.ask_to_run("touch made.txt");
    assert!(env.text().contains("touch made.txt"), "{}", env.text());
    let client = windlass_protocol::ClientInfo {
        name: "bob".into(),
        kind: windlass_protocol::ClientKind::WebPage,
    };
    let answer = windlass_protocol::PermissionAnswer::Once;
    let record =
        FactRecord::new(session(), 90, UnixMillis(0), Fact::PermissionAnswered { call, answer });
    let op = windlass_protocol::OpId(uuid::Uuid::from_u128(9));
    let origin = Some(windlass_protocol::FactOrigin { op, client });
    let event = Box::new(Event::Fact(FactRecord { origin, ..record }));
    env.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event })));
    assert!(env.text().contains("answered by bob (web page)"), "{}", env.text());
}

#[test]
fn a_prompt_that_a_session_cannot_take_stays_in_the_editor() {
    let clients = |is_live| {
        let clients = HostMessage::Clients { session: session(), clients: Vec::new(), is_live };
        AppEvent::HostMessage(Box::new(clients))
    };
    let mut env = TestApp::open();
    env.update(clients(false));
    env.type_text("hello");
    env.enter();
    assert!(env.ops().is_empty(), "{:?}", env.ops());
    assert!(env.text().contains("Another process has this session open"), "{}", env.text());
    assert!(env.text().contains("hello"), "{}", env.text());

    env.update(clients(true));
    env.app.state.host_status.right = Some(windlass_protocol::AccessRight::Read);
    env.enter();
    assert!(env.ops().is_empty(), "{:?}", env.ops());
    assert!(env.text().contains("Your token may only read"), "{}", env.text());

    env.app.state.host_status.right = Some(windlass_protocol::AccessRight::Write);
    env.enter();
    assert_eq!(env.ops(), [SessionOp::prompt("hello")]);
}

#[test]
fn a_prompt_that_was_refused_returns_to_the_editor() {
    let mut env = TestApp::open();
    env.type_text("hello");
    env.enter();
    assert_eq!(env.ops(), [SessionOp::prompt("hello")]);
    assert!(env.app.prompt.is_empty());
    env.answer(HostResponse::OpRejected { error: OpError::Stopped });
    assert!(!env.app.prompt.is_empty());
    env.enter();
    assert_eq!(env.ops().len(), 2, "{:?}", env.ops());
    // A draft that was begun meanwhile is not replaced.
    env.type_text("and then");
    env.fail(Fault::Refused { message: "the session was closed by another client".into() });
    assert!(env.text().contains("› and then"), "{}", env.text());
}

#[test]
fn questions_of_a_watched_session_are_not_shown() {
    let mut env = TestApp::open();
    env.start_turn();
    env.ask_to_run("touch made.txt");
    assert!(env.text().contains("Yes, once"), "{}", env.text());
    let is_live = false;
    let clients = HostMessage::Clients { session: session(), clients: Vec::new(), is_live };
    env.update(AppEvent::HostMessage(Box::new(clients)));
    assert!(!env.text().contains("Yes, once"), "{}", env.text());
}

#[test]
fn the_initial_prompt_is_sent_once_to_a_new_or_resumed_session() {
    let options = TuiOptions {
        session: Some(session()),
        prompt: Some("go on".into()),
        ..TuiOptions::default()
    };
    let mut env = TestApp::with(options);
    assert!(matches!(env.sent.last().unwrap().request, FrontendRequest::OpenSession { .. }));
    assert!(env.ops().is_empty());
    env.answer(HostResponse::SessionOpened { session: session(), head: 12, model: None });
    assert_eq!(env.ops(), [SessionOp::prompt("go on")]);
    let options = TuiOptions { prompt: Some("go on".into()), ..TuiOptions::default() };
    let mut env = TestApp::with(options);
    env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
    assert_eq!(env.ops(), [SessionOp::prompt("go on")]);
}

#[test]
fn the_files_that_an_initial_prompt_mentions_are_attached() {
    let file = windlass_protocol::Attachment {
        name: "README.md".into(),
        mime_type: "text/plain".into(),
        blob: windlass_protocol::BlobRef::for_bytes(b"x"),
    };
    for (initial_session, text) in [
        (None, "read @README.md"),
        (Some(session()), "read @README.md"),
        (Some(session()), "/fix @README.md"),
        (None, "!important: @README.md \\"),
    ] {
        let options = TuiOptions {
            session: initial_session,
            prompt: Some(text.into()),
            ..TuiOptions::default()
        };
        let mut env = TestApp::with(options);
        let is_resumed = initial_session.is_some();
        if is_resumed {
            env.answer(HostResponse::SessionOpened { session: session(), head: 12, model: None });
        }
        let last = &env.sent.last().unwrap().request;
        assert!(matches!(last, FrontendRequest::PreparePrompt { .. }), "{text}: {last:?}");
        let (attachments, warnings) = (vec![file.clone()], Vec::new());
        env.answer(HostResponse::PreparedPrompt { attachments, warnings });
        if !is_resumed {
            env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
        }
        let ops = env.ops();
        let [SessionOp::Prompt { text: sent, attachments, .. }] = ops.as_slice() else {
            panic!("{text}: {ops:?}")
        };
        assert_eq!((sent.trim(), attachments.as_slice()), (text, [file.clone()].as_slice()));
    }
}

#[test]
fn a_shell_command_typed_during_a_turn_stays_in_the_prompt() {
    let mut env = TestApp::open();
    env.start_turn();
    env.type_text("!make");
    env.enter();
    assert!(env.ops().is_empty(), "{:?}", env.ops());
    assert_eq!(env.app.prompt.text(), "!make");
    assert!(env.text().contains("Shell commands can run when the model is done"), "{}", env.text());
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    env.enter();
    assert_eq!(env.ops(), [SessionOp::shell_command("make")]);
}

#[test]
fn a_prompt_is_restored_when_no_session_can_be_started() {
    let mut env = TestApp::new();
    env.type_text("hello");
    env.enter();
    assert!(env.app.prompt.is_empty());
    env.fail(Fault::Config { message: "no model is set".into() });
    assert_eq!(env.app.prompt.text(), "hello");
}

#[test]
fn ctrl_c_clears_the_prompt_then_interrupts_then_quits() {
    let mut env = TestApp::open();
    env.type_text("half a thought");
    env.start_turn();
    env.ctrl('c');
    assert!(env.app.prompt.is_empty());
    assert!(env.ops().is_empty(), "the draft is cleared first");
    env.ctrl('c');
    assert_eq!(env.ops(), [SessionOp::Interrupt { turn: None }]);
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted });
    env.now += 10_000;
    env.ctrl('c');
    assert!(env.ui_effects.is_empty(), "one press does not quit");
    env.now += 5_000;
    env.ctrl('c');
    assert!(env.ui_effects.is_empty(), "two presses with a long pause do not quit");
    env.now += 500;
    env.ctrl('c');
    assert_eq!(env.ui_effects, [UiEffect::Quit]);
}

#[test]
fn esc_interrupts_the_turn_and_never_quits() {
    let mut env = TestApp::open();
    env.start_turn();
    env.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(env.ops(), [SessionOp::Interrupt { turn: None }]);
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted });
    for _ in 0..5 {
        env.press(KeyCode::Esc, KeyModifiers::NONE);
    }
    assert!(env.ui_effects.is_empty());
}

#[test]
fn an_idle_app_needs_no_wakeup() {
    let mut env = TestApp::open();
    assert_eq!(env.app.next_wakeup(), None);
    env.now = 100;
    env.start_turn();
    assert_eq!(env.app.next_wakeup(), Some(1_100), "the clock ticks once a second");
    env.now = 1_200;
    env.update(AppEvent::Tick);
    assert_eq!(env.app.next_wakeup(), Some(2_100));
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    assert_eq!(env.app.next_wakeup(), None);
}

#[test]
fn a_mode_chosen_before_the_first_prompt_is_set_in_the_session() {
    let mut env = TestApp::new();
    assert_eq!(env.app.state().mode, PermissionMode::Ask);
    env.press(KeyCode::BackTab, KeyModifiers::SHIFT);
    assert_eq!(env.app.state().mode, PermissionMode::Auto);
    env.type_text("go");
    env.enter();
    env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
    let ops = env.ops();
    assert_eq!(ops.first(), Some(&SessionOp::SetMode { mode: PermissionMode::Auto }), "{ops:?}");
    assert!(matches!(ops.get(1), Some(SessionOp::Prompt { .. })), "{ops:?}");
}

#[test]
fn the_mode_key_never_exceeds_the_maximum_mode_nor_selects_full() {
    let mut env = TestApp::new();
    let mut modes = Vec::new();
    for _ in 0..6 {
        env.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        modes.push(env.app.state().mode);
    }
    assert!(!modes.contains(&PermissionMode::Full), "{modes:?}");
    env.app.state.host_status.max_mode = PermissionMode::Ask;
    for _ in 0..6 {
        env.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert!(env.app.state().mode <= PermissionMode::Ask);
    }
}

#[test]
fn any_size_can_be_drawn() {
    let mut env = TestApp::open();
    env.start_turn();
    for (width, height) in [(80, 24), (40, 12), (1, 1), (2, 2), (200, 3), (3, 100), (0, 0)] {
        let area = ratatui::layout::Rect::new(0, 0, width, height);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        let cursor = env.app.draw(&mut buffer);
        let inside = cursor.is_none_or(|at| area.contains(at) || area.is_empty());
        assert!(inside, "{width}x{height}: {cursor:?}");
    }
}

#[test]
fn search_text_answers_no_question_and_is_not_sent() {
    let mut env = TestApp::open();
    env.fact(Fact::TurnStarted { turn: 1, prompt: None });
    env.ctrl('f');
    env.now += 60_000;
    env.fact(crate::questions::tests::permission_asked(1, Vec::new()));
    env.now += 60_000;
    env.type_text("yes");
    env.enter();
    env.now += 60_000;
    env.type_text("y");
    assert_eq!(env.ops(), []);
    let screen = env.text();
    assert!(screen.contains("Find yesy"), "{screen}");
    env.press(KeyCode::Esc, KeyModifiers::NONE);
    env.type_text("y");
    assert_eq!(env.ops(), [], "a key right after the search answers no question");
    assert!(!env.text().contains("Find"), "{}", env.text());
}

#[test]
fn a_failed_command_is_restored_unless_the_prompt_has_new_text() {
    for (new_text, expected) in [("", "/init"), ("and now", "and now")] {
        let mut env = TestApp::open();
        env.type_text("/init ");
        env.enter();
        assert!(matches!(env.sent.last().unwrap().request, FrontendRequest::ExpandCommand { .. }));
        assert_eq!(env.app.prompt.text(), "");
        env.type_text(new_text);
        let expand_request = env
            .sent
            .iter()
            .rfind(|message| matches!(message.request, FrontendRequest::ExpandCommand { .. }));
        let fault = Fault::Config { message: "no such thing".to_owned() };
        let response =
            HostMessage::Response { id: expand_request.unwrap().id, response: Err(fault) };
        env.update(AppEvent::HostMessage(Box::new(response)));
        assert_eq!(env.app.prompt.text(), expected);
        assert!(env.text().contains("no such thing"), "{}", env.text());
    }
}

#[test]
fn a_failed_turn_is_tried_again_with_enter_or_a_command() {
    let fault = Fault::Network { message: "no route".into() };
    let prompts = |env: &TestApp| {
        let is_retry = |message: &&FrontendRequestMessage| {
            matches!(&message.request, FrontendRequest::SessionOp {
                op: SessionOp::Prompt { text, .. }, ..
            } if text == "continue")
        };
        env.sent.iter().filter(is_retry).count()
    };
    let mut env = TestApp::open();
    env.enter();
    assert_eq!(prompts(&env), 0, "there is nothing to retry");
    env.fact(Fact::TurnStarted { turn: 1, prompt: None });
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Failed { fault } });
    assert!(env.text().contains("press Enter to try again"), "{}", env.text());
    assert!(env.text().contains("/retry"), "{}", env.text());
    env.enter();
    assert_eq!(prompts(&env), 1);
    env.type_text("/retry");
    env.enter();
    assert_eq!(prompts(&env), 2);
    env.fact(Fact::TurnStarted { turn: 2, prompt: None });
    env.enter();
    assert_eq!(prompts(&env), 2, "a turn is under way");
}

#[test]
fn a_command_that_fails_while_the_model_works_answers_above_the_prompt() {
    let mut env = TestApp::open();
    env.fact(Fact::TurnStarted { turn: 1, prompt: None });
    env.type_text("/compact");
    env.enter();
    let text = "A turn is running. Compact when it has finished.";
    let error = windlass_protocol::OpError::TurnRunning { text: text.into() };
    env.answer(HostResponse::OpRejected { error });
    let screen = env.text();
    let lines: Vec<&str> = screen.lines().filter(|line| line.contains(text)).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("── "), "{screen}");
}

#[test]
fn text_typed_over_a_report_goes_into_the_prompt() {
    let mut env = TestApp::open();
    env.type_text("/cost");
    env.enter();
    assert!(env.text().contains("Cost"), "{}", env.text());
    env.type_text("hello");
    assert_eq!(env.app.prompt.text(), "hello");
    assert!(env.app.panels.is_empty());
}

#[test]
fn the_double_press_hint_is_shown_only_while_a_second_press_counts() {
    let shows_hint = |env: &mut TestApp| env.text().contains("Press Esc again to rewind");
    let mut env = TestApp::open();
    env.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(shows_hint(&mut env), "{}", env.text());
    env.now += 1_500;
    env.update(AppEvent::Tick);
    assert!(!shows_hint(&mut env), "{}", env.text());
    env.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(shows_hint(&mut env), "{}", env.text());
    env.type_text("go");
    env.enter();
    assert!(!shows_hint(&mut env), "{}", env.text());
}

#[test]
fn a_prompt_waits_for_the_choice_of_a_model() {
    let mut env = TestApp::new();
    env.app.state.host_status.model = None;
    env.sent.clear();
    env.type_text("hello");
    env.enter();
    let is_new_session = |message: &FrontendRequestMessage| {
        matches!(message.request, FrontendRequest::NewSession { .. })
    };
    assert!(!env.sent.iter().any(is_new_session), "{:?}", env.sent);
    let screen = env.text();
    assert!(screen.contains("Welcome to Windlass") && screen.contains("› hello"), "{screen}");
}

fn agent_rows(names: &[&str]) -> HostResponse {
    let row = |name: &&str| windlass_protocol::frontend_messages::ListRow {
        name: (*name).into(),
        ..Default::default()
    };
    HostResponse::Rows { rows: names.iter().map(row).collect() }
}

#[test]
fn tab_on_an_empty_prompt_switches_the_agent_of_the_session() {
    let mut env = TestApp::open();
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    env.answer(agent_rows(&["build", "review"]));
    assert_eq!(env.ops(), [SessionOp::SetAgent { agent: "review".into() }]);
    env.fact(Fact::AgentChanged { agent: "review".into() });
    assert_eq!(env.app.state().agent, "review");
    assert!(env.text().contains("agent: review"), "{}", env.text());
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    env.answer(agent_rows(&["build", "review"]));
    assert_eq!(env.ops().last(), Some(&SessionOp::SetAgent { agent: "build".into() }));
    // A draft keeps Tab for itself, and a running turn keeps its agent.
    env.sent.clear();
    env.type_text("draft");
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    env.ctrl('c');
    env.fact(Fact::TurnStarted { turn: 1, prompt: None });
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    assert!(env.sent.is_empty(), "{:?}", env.sent);
    assert!(env.text().contains("when the model is done"));
}

#[test]
fn tab_with_a_single_agent_switches_plan_mode() {
    let mut env = TestApp::open();
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    env.answer(agent_rows(&["build"]));
    assert_eq!(env.ops(), [SessionOp::SetMode { mode: PermissionMode::Plan }]);
    env.fact(Fact::ModeChanged { mode: PermissionMode::Plan });
    env.press(KeyCode::Tab, KeyModifiers::NONE);
    env.answer(agent_rows(&["build"]));
    assert_eq!(env.ops().last(), Some(&SessionOp::SetMode { mode: PermissionMode::Ask }));
}

#[test]
fn a_turn_that_ends_unseen_notifies_the_user() {
    for (focus, expected) in [(Some(false), true), (Some(true), false)] {
        let mut env = TestApp::open();
        env.app.state.title = "Fix it".into();
        env.type_text("x");
        focus.into_iter().for_each(|focus| env.update(AppEvent::Focus(focus)));
        env.start_turn();
        env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
        let notified = env.ui_effects.contains(&UiEffect::Notify("Done: Fix it".into()));
        assert_eq!(notified, expected, "{focus:?} {:?}", env.ui_effects);
    }
    let mut env = TestApp::open();
    env.update(AppEvent::Focus(false));
    env.start_turn();
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted });
    assert_eq!(env.ui_effects, [], "the user stopped it");
}

#[test]
fn the_window_title_names_the_session_and_its_state() {
    let mut env = TestApp::open();
    env.app.state.host_status.workspace = "~/code/harbour".into();
    assert_eq!(env.app.window_title(), "harbour - windlass");
    env.app.state.title = "Fix it".into();
    env.start_turn();
    assert_eq!(env.app.window_title(), "● Fix it - windlass");
}

#[test]
fn enter_opens_the_selected_call_and_esc_deselects_it() {
    let mut env = TestApp::open();
    env.start_turn();
    env.fact(Fact::ModelReasoning { text: "deep thoughts".into(), provider_signature: None });
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    assert!(!env.text().contains("deep thoughts"), "{}", env.text());
    env.press(KeyCode::Up, KeyModifiers::SHIFT);
    env.enter();
    assert!(env.text().contains("deep thoughts"), "{}", env.text());
    env.press(KeyCode::Esc, KeyModifiers::NONE);
    env.enter();
    assert!(env.text().contains("deep thoughts"), "nothing is selected any more");
}

#[test]
fn the_side_panel_appears_on_wide_screens_and_on_request() {
    let mut env = TestApp::open();
    env.app.state.title = "Fix it".into();
    let shows_panel = |env: &mut TestApp, columns: u16| {
        let area = Rect::new(0, 0, columns, 24);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        env.app.draw(&mut buffer);
        let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        text.contains("│ Fix it")
    };
    assert_eq!([80, 175, 176].map(|columns| shows_panel(&mut env, columns)), [false, false, true]);
    env.perform_command(UiCommand::SidePanel);
    assert!(!shows_panel(&mut env, 176));
    shows_panel(&mut env, 100);
    env.perform_command(UiCommand::SidePanel);
    assert!(shows_panel(&mut env, 100));
    assert!(!shows_panel(&mut env, 60), "there is no room for it");
}

#[test]
fn the_status_line_command_runs_when_its_input_changes() {
    let mut appearance = Appearance::default();
    appearance.layout.status_line = crate::layout_settings::StatusLineSetting::Command;
    let mut env = TestApp::with(TuiOptions { appearance, ..TuiOptions::default() });
    let runs = |env: &TestApp| {
        let is_run = |message: &&FrontendRequestMessage| {
            matches!(message.request, FrontendRequest::RunStatusLine { .. })
        };
        env.sent.iter().filter(is_run).count()
    };
    assert_eq!(runs(&env), 0, "the folder is not known yet");
    env.app.state.host_status.root = "/work".into();
    env.update(AppEvent::Tick);
    env.update(AppEvent::Tick);
    assert_eq!(runs(&env), 1);
    env.answer(HostResponse::StatusLine { text: "own text".into() });
    assert!(env.text().contains("own text"), "{}", env.text());
    env.update(AppEvent::Tick);
    assert_eq!(runs(&env), 1, "nothing has changed");
    env.app.state.mode = PermissionMode::Plan;
    env.update(AppEvent::Tick);
    assert_eq!(runs(&env), 2);
}

#[test]
fn a_new_session_keeps_the_mode_that_the_screen_shows() {
    let mut env = TestApp::open();
    env.fact(Fact::ModeChanged { mode: PermissionMode::Plan });
    env.perform_command(UiCommand::NewSession);
    env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
    assert_eq!(env.ops(), [SessionOp::SetMode { mode: PermissionMode::Plan }]);
    assert_eq!(env.app.state().mode, PermissionMode::Plan);
}

#[test]
fn a_prompt_of_the_command_line_is_never_run() {
    for text in ["!touch x; cat @a.txt", "\n!touch @a.txt", "/clear @a.txt", "say @a.txt \\"] {
        let options = TuiOptions { prompt: Some(text.into()), ..TuiOptions::default() };
        let mut env = TestApp::with(options);
        let (attachments, warnings) = Default::default();
        env.answer(HostResponse::PreparedPrompt { attachments, warnings });
        env.answer(HostResponse::SessionOpened { session: session(), head: 0, model: None });
        let ops = env.ops();
        let [SessionOp::Prompt { text: sent, .. }] = &ops[..] else { panic!("{text}: {ops:?}") };
        assert_eq!(sent.trim(), text.trim());
    }
}

#[test]
fn the_wait_before_a_retry_is_counted_down() {
    let mut env = TestApp::open();
    env.start_turn();
    let fault = Fault::Network { message: "connection reset".into() };
    let (turn, step, attempt) = (1, 1, 1);
    env.fact(Fact::StepRetrying { turn, step, attempt, fault, wait_ms: 3_000, model: None });
    for (millis, shown) in
        [(0, "● retrying in 3 s"), (1_500, "retrying in 2 s"), (1_000, "● retrying in 1 s")]
    {
        env.now += millis;
        env.update(AppEvent::Tick);
        assert!(env.text().contains(shown), "{shown}: {}", env.text());
    }
    env.now += 1_000;
    env.update(AppEvent::Tick);
    let text = env.text();
    assert!(text.contains("● retrying ") && !text.contains("retrying in"), "{text}");
}

#[test]
fn the_size_of_the_context_is_not_shown_while_it_is_unknown() {
    let mut env = TestApp::open();
    env.start_turn();
    let usage = windlass_protocol::TokenUsage { input: 69_000, ..Default::default() };
    let finish_reason = windlass_protocol::FinishReason::Stop;
    let purpose = windlass_protocol::StepPurpose::Answer;
    env.fact(Fact::StepStarted { turn: 1, step: 1, model: "test/one".into(), purpose });
    env.fact(Fact::StepEnded { turn: 1, step: 1, finish_reason, usage, cost: None });
    assert!(env.text().contains("69k tokens"), "{}", env.text());
    let (summary, todos) = ("Done.".to_owned(), Vec::new());
    env.fact(Fact::ContextCompacted { through: 1, summary, todos, mode: None });
    assert!(!env.text().contains(" tokens"), "{}", env.text());
}
