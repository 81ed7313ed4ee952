//! Tests of I-TEXT: text from a model, a tool or a file name never controls the terminal.
//!
//! Every text of a corpus enters the screen through every input path. The frame is written as
//! terminal bytes and parsed by an emulator, which must show exactly the cells of the buffer and
//! report no other effect.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use windlass_protocol::frontend_messages::{HostMessage, HostResponse, HostStatus, TrustState};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Event, Fact, FactRecord, LiveEvent, LiveEventRecord,
    ModelStreamKind, OpError, OutputDisplay, PromptId, QuestionOption, SessionId, StepPurpose,
    ToolAccess, ToolOutput, UnixMillis, UserQuestion,
};
use windlass_tui::{App, AppEvent, TuiOptions, UiEffect};

#[derive(serde::Deserialize)]
struct HostileTextCase {
    name: String,
    text: String,
}

fn corpus() -> Vec<HostileTextCase> {
    let lines = include_str!("escapes.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The effects on the emulator other than drawn cells.
#[derive(Default)]
struct TestTerminalEffects(Vec<String>);

impl vt100::Callbacks for TestTerminalEffects {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("rang".into());
    }
    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("flashed".into());
    }
    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.0.push("resized".into());
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.0.push(format!("icon {name:?}"));
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(format!("title {title:?}"));
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], text: &[u8]) {
        self.0.push(format!("clipboard {text:?}"));
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("clipboard asked".into());
    }
    fn unhandled_char(&mut self, _: &mut vt100::Screen, character: char) {
        self.0.push(format!("character {character:?}"));
    }
    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.0.push(format!("control {byte:02x}"));
    }
    fn unhandled_escape(&mut self, _: &mut vt100::Screen, a: Option<u8>, b: Option<u8>, last: u8) {
        self.0.push(format!("escape {a:?} {b:?} {last:02x}"));
    }
    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        // The TUI sets underline colors, which the emulator does not support.
        if last != 'm' || !matches!(parameters, [[58 | 59, ..], ..]) {
            self.0.push(format!("sequence {parameters:?} {last}"));
        }
    }
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        self.0.push(format!("command {parameters:?}"));
    }
}

/// Replaces U+FFFD, which the emulator drops, with a character that it shows.
fn replace_dropped_character(text: &str) -> String {
    text.replace('\u{fffd}', "□")
}

/// Draws a frame and asserts that the emulator shows exactly its cells and has no other effect.
fn assert_only_cells(app: &mut App, (width, height): (u16, u16), context: &str) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    app.draw(&mut buffer);
    let mut bytes = Vec::new();
    let mut backend = CrosstermBackend::new(&mut bytes);
    backend.draw(Buffer::empty(area).diff(&buffer).into_iter()).unwrap();
    Backend::flush(&mut backend).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (rows, columns) = (height.try_into().unwrap(), width.try_into().unwrap());
    let mut terminal =
        vt100::Parser::new_with_callbacks(rows, columns, 0, TestTerminalEffects::default());
    terminal.process(replace_dropped_character(&text).as_bytes());
    assert_eq!(terminal.callbacks().0, Vec::<String>::new(), "{context}");
    let screen = terminal.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{context}");
    assert!(!screen.bracketed_paste() && !screen.application_cursor(), "{context}");
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "{context}");
    for y in 0..height {
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            let columns = symbol.cell_width().max(1);
            let shown: String = (x..x + columns)
                .filter_map(|x| screen.cell(y, x))
                .map(|cell| if cell.has_contents() { cell.contents() } else { "" })
                .collect();
            let (shown, expected) = (
                shown.trim_end().to_owned(),
                replace_dropped_character(symbol).trim_end().to_owned(),
            );
            assert_eq!(shown, expected, "{context}: column {x}, row {y}");
            x += columns;
        }
    }
}

struct TestScreen {
    app: App,
    ui_effects: Vec<UiEffect>,
    now: u64,
    seq: u64,
}

const CALL: CallId = CallId(uuid::Uuid::from_u128(3));

impl TestScreen {
    fn open() -> TestScreen {
        let session = SessionId(uuid::Uuid::from_u128(7));
        let options = TuiOptions { session: Some(session), ..TuiOptions::default() };
        let (app, ui_effects) = App::new(options, 0);
        let mut env = TestScreen { app, ui_effects, now: 10_000, seq: 0 };
        let status = HostStatus {
            model: Some("test/one".into()),
            agent: "build".into(),
            trust: TrustState::Trusted,
            ..HostStatus::default()
        };
        env.answer(HostResponse::Status { status: Box::new(status) });
        env.answer(HostResponse::SessionOpened { session, head: 0, model: None });
        let prompt = PromptId(uuid::Uuid::from_u128(1));
        env.fact(Fact::PromptSubmitted {
            prompt,
            text: "do".into(),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        });
        env.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
        let (model, purpose) = ("test/one".to_owned(), StepPurpose::Answer);
        env.fact(Fact::StepStarted { turn: 1, step: 1, model, purpose });
        env
    }

    fn deliver(&mut self, message: HostMessage) {
        let ui_effects = self.app.update(AppEvent::HostMessage(Box::new(message)), self.now);
        self.ui_effects.extend(ui_effects);
    }

    /// Answers the last request.
    fn answer(&mut self, response: HostResponse) {
        let id = self.ui_effects.iter().rev().find_map(|effect| match effect {
            UiEffect::Send(message) => Some(message.id),
            _ => None,
        });
        self.deliver(HostMessage::Response { id: id.unwrap(), response: Ok(response) });
    }

    fn event(&mut self, event: Event) {
        self.deliver(HostMessage::Event { event: Box::new(event) });
    }

    fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let (session, at) = (SessionId(uuid::Uuid::from_u128(7)), UnixMillis(self.now));
        self.event(Event::Fact(FactRecord::new(session, self.seq, at, fact)));
    }

    fn live(&mut self, live: LiveEvent) {
        let (session, at) = (SessionId(uuid::Uuid::from_u128(7)), UnixMillis(self.now));
        self.event(Event::Live(LiveEventRecord { session, at, event: live }));
    }

    fn tool_called(&mut self, tool: &str, arguments: String) {
        self.fact(Fact::ToolCalled {
            description: windlass_protocol::CallDescription::default(),
            call: CALL,
            provider_call_id: "r".to_owned(),
            tool: tool.to_owned(),
            arguments,
            author: CallAuthor::Model,
            repair: Vec::new(),
            provider_signature: None,
        });
    }

    fn call_settled(&mut self, output: ToolOutput) {
        let outcome = CallOutcome::Completed { output };
        self.fact(Fact::CallSettled { call: CALL, outcome, seen_files: Vec::new() });
    }
}

type HostileTextRoute = (&'static str, fn(&mut TestScreen, &str));

/// The paths by which a text enters the screen, with their names.
const INPUT_PATHS: [HostileTextRoute; 16] = [
    ("model text", |env, text| {
        env.fact(Fact::ModelText { text: text.into(), provider_signature: None })
    }),
    ("reasoning", |env, text| {
        env.fact(Fact::ModelReasoning { text: text.into(), provider_signature: None })
    }),
    ("streamed text", |env, text| {
        for stream in [ModelStreamKind::Reasoning, ModelStreamKind::Text] {
            // Two pieces split an escape sequence.
            let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
            env.live(LiveEvent::ModelDelta { stream, text: first.into() });
            env.live(LiveEvent::ModelDelta { stream, text: second.into() });
        }
    }),
    ("prompt", |env, text| {
        let prompt = PromptId(uuid::Uuid::from_u128(2));
        env.fact(Fact::PromptSubmitted {
            prompt,
            text: text.into(),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        });
        env.fact(Fact::PromptSteered { turn: 1, prompt });
    }),
    ("tool and arguments", |env, text| {
        env.tool_called(text, serde_json::json!({ "path": text, "command": text }).to_string());
    }),
    ("path of an edit", |env, text| {
        env.tool_called("edit", serde_json::json!({ "path": text, "filePath": text }).to_string());
    }),
    ("command", |env, text| {
        env.tool_called(
            "bash",
            serde_json::json!({ "command": text, "description": text }).to_string(),
        );
    }),
    ("command output", |env, text| {
        env.live(LiveEvent::CommandOutput { call: CALL, text: text.into() });
        env.live(LiveEvent::CallProgress { call: CALL, text: text.into() });
    }),
    ("output", |env, text| {
        env.call_settled(ToolOutput {
            title: text.into(),
            text: text.into(),
            ..ToolOutput::default()
        });
    }),
    ("diff", |env, text| {
        env.tool_called("edit", "{}".into());
        let body = text.replace('\n', "\n+");
        let unified = format!("--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@ {text}\n-{text}\n+{body}\n");
        let display = OutputDisplay::Diff { unified_diff: unified };
        env.call_settled(ToolOutput { title: "edit".into(), display, ..ToolOutput::default() });
    }),
    ("failure", |env, text| {
        env.tool_called("bash", "{}".into());
        let outcome = CallOutcome::Failed { text: text.into() };
        env.fact(Fact::CallSettled { call: CALL, outcome, seen_files: Vec::new() });
    }),
    ("permission request", |env, text| {
        env.tool_called("bash", serde_json::json!({ "command": text }).to_string());
        let run = ToolAccess::RunCommand { command: text.into(), folder: text.into() };
        env.fact(Fact::PermissionAsked {
            danger: Default::default(),
            call: CALL,
            accesses: vec![run, ToolAccess::Edit { path: text.into() }],
            reason: text.into(),
            preview: Some(text.into()),
            approval_kind: Some(windlass_protocol::ApprovalKind::Commands { pattern: text.into() }),
            repair: None,
        });
    }),
    ("user question", |env, text| {
        env.fact(Fact::PermissionAnswered {
            call: CALL,
            answer: windlass_protocol::PermissionAnswer::Once,
        });
        let options = vec![QuestionOption { label: text.into(), description: text.into() }];
        let (header, question) = (text.to_owned(), text.to_owned());
        let user_question = UserQuestion {
            header,
            question,
            options,
            allow_multiple: false,
            allow_custom: true,
            asker: None,
            is_permission: false,
        };
        env.fact(Fact::QuestionAsked { call: CALL, questions: vec![user_question] });
    }),
    ("title", |env, text| env.fact(Fact::SessionRenamed { title: text.into() })),
    ("note", |env, text| {
        env.deliver(HostMessage::Notice { text: text.into() });
        let error = OpError::Invalid { text: text.into() };
        env.deliver(HostMessage::Response {
            id: u64::MAX,
            response: Ok(HostResponse::OpRejected { error }),
        });
    }),
    ("paste", |env, text| {
        let ui_effects = env.app.update(AppEvent::Paste(text.into()), env.now);
        env.ui_effects.extend(ui_effects);
    }),
];

/// Sends every text through all input paths and checks the screen after every `interval` of them.
fn check_all_input_paths(size: (u16, u16), interval: usize) {
    for hostile in corpus() {
        let mut env = TestScreen::open();
        for (index, (path_name, send)) in INPUT_PATHS.into_iter().enumerate() {
            send(&mut env, &hostile.text);
            if index % interval > 0 {
                continue;
            }
            assert_only_cells(&mut env.app, size, &format!("{} as {path_name}", hostile.name));
            let is_forbidden = |effect: &UiEffect| {
                matches!(
                    effect,
                    UiEffect::CopyToClipboard(_)
                        | UiEffect::OpenEditor(_)
                        | UiEffect::Quit
                        | UiEffect::ReadClipboardImage
                )
            };
            assert!(!env.ui_effects.iter().any(is_forbidden), "{} as {path_name}", hostile.name);
        }
    }
}

#[test]
fn the_corpus_is_large_and_every_text_has_a_unique_name() {
    let names: std::collections::BTreeSet<String> =
        corpus().into_iter().map(|hostile| hostile.name).collect();
    assert_eq!(names.len(), corpus().len());
    assert!(names.len() >= 200);
}

#[test]
fn no_text_leaves_its_cells_in_a_usual_window() {
    check_all_input_paths((80, 24), 3);
}

#[test]
fn no_text_leaves_its_cells_in_a_narrow_window() {
    check_all_input_paths((40, 12), 1);
}

#[test]
fn a_dialog_written_by_the_model_takes_no_answer() {
    for hostile in corpus().into_iter().filter(|hostile| hostile.name.starts_with("fake ")) {
        let mut env = TestScreen::open();
        env.fact(Fact::ModelText { text: hostile.text.clone(), provider_signature: None });
        env.now += 10_000;
        for code in [KeyCode::Char('y'), KeyCode::Char('1'), KeyCode::Char('a'), KeyCode::Enter] {
            let key = AppEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
            let ui_effects = env.app.update(key, env.now);
            env.ui_effects.extend(ui_effects);
        }
        let is_answer = |effect: &UiEffect| match effect {
            UiEffect::Send(message) => format!("{message:?}").contains("op: Answer"),
            _ => false,
        };
        assert!(!env.ui_effects.iter().any(is_answer), "{}", hostile.name);
    }
}
