//! The screen as a whole, with a host that says what a test has it say.

use super::*;
use crate::keys::Command;
use crossterm::event::{KeyCode, KeyModifiers};
use windlass_protocol::wire::{Answered, Request, Standing, Up};
use windlass_protocol::{Event, Fact, Fault, Millis, Mode, Op, PromptId, Record, TurnEnd};

/// A screen, its host, and the time.
pub(crate) struct Stage {
    pub(crate) app: App,
    pub(crate) sent: Vec<Up>,
    pub(crate) acts: Vec<Act>,
    pub(crate) now: u64,
    seq: u64,
}

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(7))
}

impl Stage {
    fn new() -> Stage {
        Stage::with(Options::default())
    }

    fn with(options: Options) -> Stage {
        let (app, acts) = App::new(options, 0);
        let mut stage = Stage { app, sent: Vec::new(), acts: Vec::new(), now: 0, seq: 0 };
        stage.take(acts);
        let standing = Standing {
            model: Some("test/one".into()),
            mode: Mode::Ask,
            laxest: Mode::Full,
            agent: "build".into(),
            trust: windlass_protocol::wire::Trusted::Yes,
            ..Standing::default()
        };
        stage.answer(Answered::Standing { standing: Box::new(standing) });
        stage
    }

    /// One in which a session is open.
    fn open() -> Stage {
        let mut stage = Stage::new();
        stage.carry_out(Command::New);
        stage.answer(Answered::Opened { session: session(), head: 0 });
        stage.sent.clear();
        stage
    }

    fn take(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(up) => self.sent.push(*up),
                other => self.acts.push(other),
            }
        }
    }

    fn input(&mut self, input: Input) {
        let acts = self.app.update(input, self.now);
        self.take(acts);
    }

    fn carry_out(&mut self, command: Command) {
        let mut acts = Vec::new();
        self.app.carry_out(command, "", &mut acts);
        self.take(acts);
    }

    /// Answers the last request.
    fn answer(&mut self, answered: Answered) {
        let id = self.sent.last().unwrap().id;
        let down = Down::Answer { id, answer: Ok(answered) };
        self.input(Input::Down(Box::new(down)));
    }

    fn fail(&mut self, fault: Fault) {
        let id = self.sent.last().unwrap().id;
        self.input(Input::Down(Box::new(Down::Answer { id, answer: Err(fault) })));
    }

    fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let record = Record { session: session(), seq: self.seq, at: Millis(self.now), fact };
        let event = Box::new(Event::Fact(record));
        self.input(Input::Down(Box::new(Down::Event { event })));
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.input(Input::Key(KeyEvent::new(code, modifiers)));
    }

    fn type_in(&mut self, text: &str) {
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

    /// What was said to the session.
    fn ops(&self) -> Vec<Op> {
        let op = |up: &Up| match &up.request {
            Request::Do { op, .. } => Some(op.clone()),
            _ => None,
        };
        self.sent.iter().filter_map(op).collect()
    }

    /// The screen.
    fn text(&mut self) -> String {
        let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        let rows = buffer.content.chunks(80);
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    fn begin_turn(&mut self) {
        let prompt = PromptId(uuid::Uuid::from_u128(1));
        let (attachments, when) = (Vec::new(), Default::default());
        self.fact(Fact::Prompted { prompt, text: "do".into(), attachments, when });
        self.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
    }
}

#[test]
fn the_first_prompt_begins_a_session_and_is_said_in_it() {
    let mut stage = Stage::new();
    stage.type_in("hello");
    stage.enter();
    assert!(matches!(stage.sent.last().unwrap().request, Request::Begin { .. }));
    assert!(stage.ops().is_empty(), "nothing is said before there is a session");
    stage.answer(Answered::Opened { session: session(), head: 0 });
    let said = |op: &Op| matches!(op, Op::Prompt { text, .. } if text == "hello");
    assert_eq!(stage.ops().iter().filter(|op| said(op)).count(), 1, "{:?}", stage.ops());
}

#[test]
fn what_is_to_be_said_first_is_said_once_in_a_session_that_is_gone_on_with() {
    let options =
        Options { session: Some(session()), prompt: Some("go on".into()), ..Options::default() };
    let mut stage = Stage::with(options);
    assert!(matches!(stage.sent.last().unwrap().request, Request::Open { .. }));
    assert!(stage.ops().is_empty());
    stage.answer(Answered::Opened { session: session(), head: 12 });
    assert_eq!(stage.ops(), [Op::prompt("go on")]);
    let options = Options { prompt: Some("go on".into()), ..Options::default() };
    let mut stage = Stage::with(options);
    stage.answer(Answered::Opened { session: session(), head: 0 });
    assert_eq!(stage.ops(), [Op::prompt("go on")]);
}

#[test]
fn a_command_typed_while_the_model_works_is_kept() {
    let mut stage = Stage::open();
    stage.begin_turn();
    stage.type_in("!make");
    stage.enter();
    assert!(stage.ops().is_empty(), "{:?}", stage.ops());
    assert_eq!(stage.app.prompt.text(), "!make");
    assert!(stage.text().contains("it can run when the model is done"), "{}", stage.text());
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    stage.enter();
    assert_eq!(stage.ops(), [Op::shell("make")]);
}

#[test]
fn a_prompt_is_not_lost_when_no_session_can_be_begun() {
    let mut stage = Stage::new();
    stage.type_in("hello");
    stage.enter();
    assert!(stage.app.prompt.is_empty());
    stage.fail(Fault::Config { message: "no model is set".into() });
    assert_eq!(stage.app.prompt.text(), "hello");
}

#[test]
fn ctrl_c_clears_then_stops_then_leaves() {
    let mut stage = Stage::open();
    stage.type_in("half a thought");
    stage.begin_turn();
    stage.ctrl('c');
    assert!(stage.app.prompt.is_empty());
    assert!(stage.ops().is_empty(), "what was written goes first");
    stage.ctrl('c');
    assert_eq!(stage.ops(), [Op::Interrupt]);
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted });
    stage.now += 10_000;
    stage.ctrl('c');
    assert!(stage.acts.is_empty(), "once is not enough");
    stage.now += 5_000;
    stage.ctrl('c');
    assert!(stage.acts.is_empty(), "nor is twice with a long pause");
    stage.now += 500;
    stage.ctrl('c');
    assert_eq!(stage.acts, [Act::Quit]);
}

#[test]
fn esc_stops_the_model_and_never_leaves() {
    let mut stage = Stage::open();
    stage.begin_turn();
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(stage.ops(), [Op::Interrupt]);
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted });
    for _ in 0..5 {
        stage.press(KeyCode::Esc, KeyModifiers::NONE);
    }
    assert!(stage.acts.is_empty());
}

#[test]
fn nothing_is_drawn_by_the_clock_while_nothing_goes_on() {
    let mut stage = Stage::open();
    assert_eq!(stage.app.wakes(), None);
    stage.now = 100;
    stage.begin_turn();
    assert_eq!(stage.app.wakes(), Some(1_100), "a second is counted");
    stage.now = 1_200;
    stage.input(Input::Tick);
    assert_eq!(stage.app.wakes(), Some(2_100));
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    assert_eq!(stage.app.wakes(), None);
}

#[test]
fn a_mode_that_was_chosen_before_the_first_prompt_holds_in_the_session() {
    let mut stage = Stage::new();
    assert_eq!(stage.app.known().mode, Mode::Ask);
    stage.press(KeyCode::BackTab, KeyModifiers::SHIFT);
    assert_eq!(stage.app.known().mode, Mode::Auto);
    stage.type_in("go");
    stage.enter();
    stage.answer(Answered::Opened { session: session(), head: 0 });
    let ops = stage.ops();
    assert_eq!(ops.first(), Some(&Op::Mode { mode: Mode::Auto }), "{ops:?}");
    assert!(matches!(ops.get(1), Some(Op::Prompt { .. })), "{ops:?}");
}

#[test]
fn the_mode_key_never_goes_beyond_what_the_machine_allows_nor_to_full() {
    let mut stage = Stage::new();
    let mut seen = Vec::new();
    for _ in 0..6 {
        stage.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        seen.push(stage.app.known().mode);
    }
    assert!(!seen.contains(&Mode::Full), "{seen:?}");
    stage.app.known.standing.laxest = Mode::Ask;
    for _ in 0..6 {
        stage.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert!(stage.app.known().mode <= Mode::Ask);
    }
}

#[test]
fn any_size_can_be_drawn() {
    let mut stage = Stage::open();
    stage.begin_turn();
    for (width, height) in [(80, 24), (40, 12), (1, 1), (2, 2), (200, 3), (3, 100), (0, 0)] {
        let area = ratatui::layout::Rect::new(0, 0, width, height);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        let cursor = stage.app.draw(&mut buffer);
        let inside = cursor.is_none_or(|at| area.contains(at) || area.is_empty());
        assert!(inside, "{width}x{height}: {cursor:?}");
    }
}

#[test]
fn what_is_looked_for_answers_no_question_and_is_not_said() {
    let mut stage = Stage::open();
    stage.fact(Fact::TurnStarted { turn: 1, prompt: None });
    stage.ctrl('f');
    stage.now += 60_000;
    stage.fact(crate::asked::tests::asks(1, Vec::new()));
    stage.now += 60_000;
    stage.type_in("yes");
    stage.enter();
    stage.now += 60_000;
    stage.type_in("y");
    assert_eq!(stage.ops(), []);
    let screen = stage.text();
    assert!(screen.contains("Find yesy"), "{screen}");
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    stage.type_in("y");
    assert_eq!(stage.ops(), [], "a key right behind it is one of its own");
    assert!(!stage.text().contains("Find"), "{}", stage.text());
}

#[test]
fn a_command_that_fails_is_put_back_unless_something_else_is_written() {
    for (meanwhile, written) in [("", "/init"), ("and now", "and now")] {
        let mut stage = Stage::open();
        stage.type_in("/init ");
        stage.enter();
        assert!(matches!(stage.sent.last().unwrap().request, Request::Command { .. }));
        assert_eq!(stage.app.prompt.text(), "");
        stage.type_in(meanwhile);
        let up = stage.sent.iter().rfind(|up| matches!(up.request, Request::Command { .. }));
        let (id, message) = (up.unwrap().id, "no such thing".to_owned());
        let down = Down::Answer { id, answer: Err(Fault::Config { message }) };
        stage.input(Input::Down(Box::new(down)));
        assert_eq!(stage.app.prompt.text(), written);
        assert!(stage.text().contains("no such thing"), "{}", stage.text());
    }
}

#[test]
fn that_a_folder_is_not_trusted_is_said_once_and_quietly() {
    let empty = || Answered::Trust { would: Vec::new(), since: None };
    for resumed in [false, true] {
        let options = Options { session: resumed.then(session), ..Options::default() };
        let (app, acts) = App::new(options, 0);
        let mut stage = Stage { app, sent: Vec::new(), acts: Vec::new(), now: 0, seq: 0 };
        stage.take(acts);
        let standing = Standing {
            version: "0.9".into(),
            model: Some("test/one".into()),
            ..Standing::default()
        };
        stage.answer(Answered::Standing { standing: Box::new(standing) });
        let trust = stage.sent.iter().position(|up| up.request == Request::LookAtTrust).unwrap();
        let up = stage.sent.remove(trust);
        let down = Down::Answer { id: up.id, answer: Ok(empty()) };
        stage.input(Input::Down(Box::new(down)));
        if resumed {
            stage.answer(Answered::Opened { session: session(), head: 0 });
            stage.fact(Fact::Said { text: "Long ago.".into(), seal: None });
        }
        let said = |stage: &mut Stage| stage.text().matches("/trust").count();
        assert_eq!(said(&mut stage), 1, "{}", stage.text());
        stage.now += 10_000;
        stage.input(Input::Tick);
        assert_eq!(said(&mut stage), usize::from(!resumed), "{}", stage.text());
    }
}

#[test]
fn what_a_second_press_would_do_is_said_while_it_would_do_it() {
    let said = |stage: &mut Stage| stage.text().contains("once more goes back");
    let mut stage = Stage::open();
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(said(&mut stage), "{}", stage.text());
    stage.now += 1_500;
    stage.input(Input::Tick);
    assert!(!said(&mut stage), "{}", stage.text());
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(said(&mut stage), "{}", stage.text());
    stage.type_in("go");
    stage.enter();
    assert!(!said(&mut stage), "{}", stage.text());
}

#[test]
fn a_prompt_waits_for_the_choice_of_a_model() {
    let mut stage = Stage::new();
    stage.app.known.standing.model = None;
    stage.sent.clear();
    stage.type_in("hello");
    stage.enter();
    let began = |up: &Up| matches!(up.request, Request::Begin { .. });
    assert!(!stage.sent.iter().any(began), "{:?}", stage.sent);
    let screen = stage.text();
    assert!(screen.contains("Welcome to Windlass") && screen.contains("› hello"), "{screen}");
}
