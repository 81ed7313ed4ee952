//! I-INK: whatever a model, a tool or a file name says, it stays in its cells.
//!
//! Every text of a corpus goes into a screen by every way there is, is drawn as the bytes a terminal
//! would be sent, and read by an emulator: it must show exactly the cells that were laid out, and
//! nothing else may have happened to it.
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
use windlass_protocol::wire::{Answered, Down, Standing, Trusted};
use windlass_protocol::{
    Access, Author, CallId, Display, Event, Fact, Glimpse, Inquiry, Live, Millis, Outcome, Output,
    PromptId, Purpose, Record, SessionId, Stream, Suggestion,
};
use windlass_tui::{Act, App, Input, Options};

#[derive(serde::Deserialize)]
struct Hostile {
    name: String,
    text: String,
}

fn corpus() -> Vec<Hostile> {
    let lines = include_str!("escapes.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a terminal was made to do besides showing cells.
#[derive(Default)]
struct Deeds(Vec<String>);

impl vt100::Callbacks for Deeds {
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
    fn unhandled_char(&mut self, _: &mut vt100::Screen, sign: char) {
        self.0.push(format!("character {sign:?}"));
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
        // Colours of underlines are ours, and the emulator does not know them.
        if last != 'm' || !matches!(parameters, [[58 | 59, ..], ..]) {
            self.0.push(format!("sequence {parameters:?} {last}"));
        }
    }
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        self.0.push(format!("command {parameters:?}"));
    }
}

/// The emulator drops this sign, so another one stands in for it.
fn seen(text: &str) -> String {
    text.replace('\u{fffd}', "□")
}

/// Draws a frame, and has an emulator read it.
fn check(app: &mut App, (width, height): (u16, u16), about: &str) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    app.draw(&mut buffer);
    let mut bytes = Vec::new();
    let mut backend = CrosstermBackend::new(&mut bytes);
    backend.draw(Buffer::empty(area).diff(&buffer).into_iter()).unwrap();
    Backend::flush(&mut backend).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (rows, columns) = (height.try_into().unwrap(), width.try_into().unwrap());
    let mut terminal = vt100::Parser::new_with_callbacks(rows, columns, 0, Deeds::default());
    terminal.process(seen(&text).as_bytes());
    assert_eq!(terminal.callbacks().0, Vec::<String>::new(), "{about}");
    let screen = terminal.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{about}");
    assert!(!screen.bracketed_paste() && !screen.application_cursor(), "{about}");
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "{about}");
    for y in 0..height {
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            let columns = symbol.cell_width().max(1);
            let shown: String = (x..x + columns)
                .filter_map(|x| screen.cell(y, x))
                .map(|cell| if cell.has_contents() { cell.contents() } else { "" })
                .collect();
            let (shown, laid) = (shown.trim_end().to_owned(), seen(symbol).trim_end().to_owned());
            assert_eq!(shown, laid, "{about}: column {x}, row {y}");
            x += columns;
        }
    }
}

struct Stage {
    app: App,
    acts: Vec<Act>,
    now: u64,
    seq: u64,
}

const CALL: CallId = CallId(uuid::Uuid::from_u128(3));

impl Stage {
    fn open() -> Stage {
        let session = SessionId(uuid::Uuid::from_u128(7));
        let options = Options { session: Some(session), ..Options::default() };
        let (app, acts) = App::new(options, 0);
        let mut stage = Stage { app, acts, now: 10_000, seq: 0 };
        let standing = Standing {
            model: Some("test/one".into()),
            agent: "build".into(),
            trust: Trusted::Yes,
            ..Standing::default()
        };
        stage.answer(Answered::Standing { standing: Box::new(standing) });
        stage.answer(Answered::Opened { session, head: 0 });
        let prompt = PromptId(uuid::Uuid::from_u128(1));
        let (attachments, when) = (Vec::new(), Default::default());
        stage.fact(Fact::Prompted { prompt, text: "do".into(), attachments, when });
        stage.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
        let (model, purpose) = ("test/one".to_owned(), Purpose::Answer);
        stage.fact(Fact::StepStarted { turn: 1, step: 1, model, purpose });
        stage
    }

    fn down(&mut self, down: Down) {
        let acts = self.app.update(Input::Down(Box::new(down)), self.now);
        self.acts.extend(acts);
    }

    /// Answers the last request.
    fn answer(&mut self, answered: Answered) {
        let id = self.acts.iter().rev().find_map(|act| match act {
            Act::Send(up) => Some(up.id),
            _ => None,
        });
        self.down(Down::Answer { id: id.unwrap(), answer: Ok(answered) });
    }

    fn event(&mut self, event: Event) {
        self.down(Down::Event { event: Box::new(event) });
    }

    fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let (session, at) = (SessionId(uuid::Uuid::from_u128(7)), Millis(self.now));
        self.event(Event::Fact(Record { session, seq: self.seq, at, fact }));
    }

    fn live(&mut self, live: Live) {
        let (session, at) = (SessionId(uuid::Uuid::from_u128(7)), Millis(self.now));
        self.event(Event::Live(Glimpse { session, at, live }));
    }

    fn called(&mut self, tool: &str, arguments: String) {
        let (reference, tool) = ("r".to_owned(), tool.to_owned());
        let (by, repaired, seal) = (Author::Model, Vec::new(), None);
        self.fact(Fact::Called { call: CALL, reference, tool, arguments, by, repaired, seal });
    }

    fn settled(&mut self, output: Output) {
        let outcome = Outcome::Completed { output };
        self.fact(Fact::Settled { call: CALL, outcome, seen: Vec::new() });
    }
}

type Way = (&'static str, fn(&mut Stage, &str));

/// The ways by which a text gets into a screen.
const WAYS: [Way; 16] = [
    ("said", |stage, text| stage.fact(Fact::Said { text: text.into(), seal: None })),
    ("reasoned", |stage, text| stage.fact(Fact::Reasoned { text: text.into(), seal: None })),
    ("writing", |stage, text| {
        for stream in [Stream::Reasoning, Stream::Text] {
            // In two pieces, so that a sequence comes apart.
            let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
            stage.live(Live::Delta { stream, text: one.into() });
            stage.live(Live::Delta { stream, text: other.into() });
        }
    }),
    ("prompted", |stage, text| {
        let prompt = PromptId(uuid::Uuid::from_u128(2));
        let (attachments, when) = (Vec::new(), Default::default());
        stage.fact(Fact::Prompted { prompt, text: text.into(), attachments, when });
        stage.fact(Fact::Steered { turn: 1, prompt });
    }),
    ("tool and arguments", |stage, text| {
        stage.called(text, serde_json::json!({ "path": text, "command": text }).to_string());
    }),
    ("path of an edit", |stage, text| {
        stage.called("edit", serde_json::json!({ "path": text, "filePath": text }).to_string());
    }),
    ("command", |stage, text| {
        stage.called(
            "bash",
            serde_json::json!({ "command": text, "description": text }).to_string(),
        );
    }),
    ("printing", |stage, text| {
        stage.live(Live::Output { call: CALL, text: text.into() });
        stage.live(Live::Progress { call: CALL, text: text.into() });
    }),
    ("output", |stage, text| {
        stage.settled(Output { title: text.into(), text: text.into(), ..Output::default() });
    }),
    ("diff", |stage, text| {
        stage.called("edit", "{}".into());
        let body = text.replace('\n', "\n+");
        let unified = format!("--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@ {text}\n-{text}\n+{body}\n");
        let display = Display::Diff { unified };
        stage.settled(Output { title: "edit".into(), display, ..Output::default() });
    }),
    ("failure", |stage, text| {
        stage.called("bash", "{}".into());
        let outcome = Outcome::Failed { text: text.into() };
        stage.fact(Fact::Settled { call: CALL, outcome, seen: Vec::new() });
    }),
    ("question", |stage, text| {
        stage.called("bash", serde_json::json!({ "command": text }).to_string());
        let run = Access::Run { command: text.into(), folder: text.into() };
        stage.fact(Fact::Asked {
            call: CALL,
            accesses: vec![run, Access::Edit { path: text.into() }],
            reason: text.into(),
            preview: Some(text.into()),
            offer: Some(text.into()),
            repaired: None,
        });
    }),
    ("inquiry", |stage, text| {
        stage.fact(Fact::Answered { call: CALL, answer: windlass_protocol::Answer::Once });
        let options = vec![Suggestion { label: text.into(), description: text.into() }];
        let (header, question) = (text.to_owned(), text.to_owned());
        let inquiry = Inquiry { header, question, options, multiple: false, custom: true };
        stage.fact(Fact::Inquired { call: CALL, inquiries: vec![inquiry] });
    }),
    ("title", |stage, text| stage.fact(Fact::renamed(text.into()))),
    ("note", |stage, text| {
        stage.down(Down::Note { text: text.into() });
        stage.live(Live::Noticed { text: text.into() });
    }),
    ("pasted", |stage, text| {
        let acts = stage.app.update(Input::Paste(text.into()), stage.now);
        stage.acts.extend(acts);
    }),
];

/// Goes all ways, and looks at the screen after every so many of them.
fn all_ways(size: (u16, u16), every: usize) {
    for hostile in corpus() {
        let mut stage = Stage::open();
        for (at, (way, put)) in WAYS.into_iter().enumerate() {
            put(&mut stage, &hostile.text);
            if at % every > 0 {
                continue;
            }
            check(&mut stage.app, size, &format!("{} as {way}", hostile.name));
            let did =
                |act: &Act| matches!(act, Act::Copy(_) | Act::Edit(_) | Act::Quit | Act::Picture);
            assert!(!stage.acts.iter().any(did), "{} as {way}", hostile.name);
        }
    }
}

#[test]
fn the_corpus_is_large_and_every_text_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<String> =
        corpus().into_iter().map(|hostile| hostile.name).collect();
    assert_eq!(names.len(), corpus().len());
    assert!(names.len() >= 200);
}

#[test]
fn no_text_leaves_its_cells_in_a_usual_window() {
    all_ways((80, 24), 3);
}

#[test]
fn no_text_leaves_its_cells_in_a_narrow_window() {
    all_ways((40, 12), 1);
}

#[test]
fn a_dialog_that_a_model_writes_takes_no_answer() {
    for hostile in corpus().into_iter().filter(|hostile| hostile.name.starts_with("fake ")) {
        let mut stage = Stage::open();
        stage.fact(Fact::Said { text: hostile.text.clone(), seal: None });
        stage.now += 10_000;
        for key in [KeyCode::Char('y'), KeyCode::Char('1'), KeyCode::Char('a'), KeyCode::Enter] {
            let key = Input::Key(KeyEvent::new(key, KeyModifiers::NONE));
            let acts = stage.app.update(key, stage.now);
            stage.acts.extend(acts);
        }
        let answers = |act: &Act| match act {
            Act::Send(up) => format!("{up:?}").contains("op: Answer"),
            _ => false,
        };
        assert!(!stage.acts.iter().any(answers), "{}", hostile.name);
    }
}
