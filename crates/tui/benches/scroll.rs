//! How long a frame takes while a transcript of 100,000 lines is scrolled.
//!
//! The screen is 120×40. Each frame is a key, the pages that it takes, drawing, what differs from the
//! frame before as bytes, and a terminal that reads them. `--check` fails if one frame in a hundred
//! takes longer than a screen shows one.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark measures time and tells"
)]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Instant;
use windlass_protocol::wire::{Answered, Down, Request, Standing, Trusted};
use windlass_protocol::{
    Author, CallId, Display, Fact, Finish, Millis, Outcome, Output, PromptId, Query, Record, Reply,
    SessionId, Transcript, TurnEnd, Usage,
};
use windlass_tui::{Act, App, Input, Options};

const SIZE: (u16, u16) = (120, 40);
/// What one frame in a hundred may take at most, in milliseconds.
const MOST: f64 = 16.0;

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

/// A folder in which nothing is left to be asked, so that keys mean the story.
fn standing() -> Standing {
    let (model, trust) = (Some("test/one".to_owned()), Trusted::Yes);
    Standing { version: "0.9".into(), model, trust, ..Standing::default() }
}

/// A log whose story has at least so many lines.
fn log(lines: usize) -> Vec<Record> {
    let mut log: Vec<Record> = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(Record { session: session(), seq, at: Millis(seq * 100), fact });
    };
    push(Fact::opened("/w", "0.9"));
    let mut written = 0;
    for turn in 1_u32.. {
        if written >= lines {
            break;
        }
        written += turn_of(turn, &mut push);
    }
    log
}

/// One turn; says how many lines it has at least.
fn turn_of(turn: u32, push: &mut impl FnMut(Fact)) -> usize {
    let prompt = PromptId(uuid::Uuid::from_u128(turn.into()));
    let call = |number: u128| CallId(uuid::Uuid::from_u128(u128::from(turn) * 8 + number));
    let text = format!("Look at part {turn} and make it better, please.");
    push(Fact::Prompted { prompt, text, attachments: Vec::new(), when: Default::default() });
    push(Fact::TurnStarted { turn, prompt: Some(prompt) });
    let model = "test/one".to_owned();
    push(Fact::StepStarted { turn, step: 1, model, purpose: Default::default() });
    push(Fact::Reasoned { text: "What is there, and what is wanted?".into(), seal: None });
    let paragraph =
        "The harbour is quiet at night, and **nothing** is loaded before `six`. ".repeat(5);
    let code: String =
        (0..8).map(|line| format!("    let part_{line} = work({turn}, \"x\");\n")).collect();
    let text = format!(
        "## Part {turn}\n\n{paragraph}\n\n- one thing\n- another thing\n\n```rust\nfn part() {{\n{code}}}\n```\n\n{paragraph}"
    );
    push(Fact::Said { text, seal: None });
    let calls = [
        ("read", format!(r#"{{"filePath":"src/{turn}.rs"}}"#)),
        ("edit", format!(r#"{{"filePath":"src/{turn}.rs","oldString":"a","newString":"b"}}"#)),
        ("bash", r#"{"command":"cargo test --workspace"}"#.to_owned()),
    ];
    for (number, (tool, arguments)) in (0_u128..).zip(calls) {
        push(Fact::Called {
            call: call(number),
            reference: String::new(),
            tool: tool.into(),
            arguments,
            by: Author::Model,
            repaired: Vec::new(),
            seal: None,
        });
    }
    let usage = Usage::default();
    push(Fact::StepEnded { turn, step: 1, finish: Finish::Calls, usage, cost: None });
    for number in 0..3 {
        let (accesses, repaired) = (Vec::new(), None);
        push(Fact::Started { call: call(number), attempt: 1, accesses, read_only: true, repaired });
        let body: String =
            (0..5).map(|line| format!("-    old({line});\n+    new({line});\n")).collect();
        let unified =
            format!("--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,7 +1,7 @@\n fn part() {{\n{body} }}\n");
        let display = match number {
            1 => Display::Diff { unified },
            _ => Display::Text,
        };
        let text = "1: one line of what was read\n".repeat(100);
        let output = Output { text, display, ..Output::default() };
        let outcome = Outcome::Completed { output };
        push(Fact::Settled { call: call(number), outcome, seen: Vec::new() });
    }
    push(Fact::TurnEnded { turn, end: TurnEnd::Done });
    45
}

struct Bench {
    app: App,
    log: Vec<Record>,
    shown: Buffer,
    terminal: vt100::Parser,
    /// Milliseconds of each frame.
    frames: Vec<f64>,
}

impl Bench {
    fn new(log: Vec<Record>) -> Bench {
        let options = Options { session: Some(session()), ..Options::default() };
        let (app, acts) = App::new(options, 0);
        let shown = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
        let terminal =
            vt100::Parser::new(SIZE.1.try_into().unwrap(), SIZE.0.try_into().unwrap(), 0);
        let mut bench = Bench { app, log, shown, terminal, frames: Vec::new() };
        bench.serve(acts);
        bench.draw();
        bench
    }

    /// Answers what is asked. What the host takes is not the screen's time.
    fn serve(&mut self, acts: Vec<Act>) -> f64 {
        let mut took = 0.0;
        let mut acts: std::collections::VecDeque<Act> = acts.into();
        while let Some(act) = acts.pop_front() {
            let Act::Send(up) = act else { continue };
            let head = self.log.len() as u64;
            let answered = match up.request {
                Request::Standing => Answered::Standing { standing: Box::new(standing()) },
                Request::Open { session } => Answered::Opened { session, head },
                Request::Query { query: Query::Events { after, most, .. } } => {
                    let most = most.map_or(usize::MAX, |most| most as usize);
                    let events = self.log[after as usize..].iter().take(most).cloned().collect();
                    Answered::Reply { reply: Reply::Events { events } }
                }
                Request::Query { query: Query::Transcript { .. } } => {
                    let transcript = Box::new(Transcript::default());
                    Answered::Reply { reply: Reply::Transcript { transcript } }
                }
                _ => Answered::Done,
            };
            let down = Down::Answer { id: up.id, answer: Ok(answered) };
            let began = Instant::now();
            acts.extend(self.app.update(Input::Down(Box::new(down)), 0));
            took += began.elapsed().as_secs_f64() * 1e3;
        }
        took
    }

    /// Draws a frame, and has the terminal read it.
    fn draw(&mut self) {
        let mut next = Buffer::empty(self.shown.area);
        self.app.draw(&mut next);
        let mut bytes = Vec::new();
        CrosstermBackend::new(&mut bytes).draw(self.shown.diff(&next).into_iter()).unwrap();
        self.terminal.process(&bytes);
        self.shown = next;
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let began = Instant::now();
        let acts = self.app.update(Input::Key(KeyEvent::new(code, modifiers)), 0);
        let key = began.elapsed().as_secs_f64() * 1e3;
        let pages = self.serve(acts);
        let began = Instant::now();
        self.draw();
        self.frames.push(key + pages + began.elapsed().as_secs_f64() * 1e3);
    }

    /// Presses a key until the screen no longer changes, at most so often.
    fn run(&mut self, name: &str, (code, modifiers): (KeyCode, KeyModifiers), times: usize) -> f64 {
        self.frames.clear();
        let mut still = 0;
        for _ in 0..times {
            let before = self.shown.clone();
            self.press(code, modifiers);
            still = if before == self.shown { still + 1 } else { 0 };
            if still > 3 {
                break;
            }
        }
        let count = self.frames.len();
        assert!(count >= 1_000, "{name}: only {count} frames, so nothing was scrolled");
        self.frames.sort_by(f64::total_cmp);
        let at = |part: f64| self.frames[((count as f64 - 1.0) * part) as usize];
        let (half, most, worst) = (at(0.5), at(0.99), at(1.0));
        println!("{name}: {count} frames, p50 {half:.2} ms, p99 {most:.2} ms, worst {worst:.2} ms");
        most
    }
}

fn main() {
    let log = log(100_000);
    println!("{} facts", log.len());
    let mut bench = Bench::new(log);
    let begin = bench.terminal.screen().contents();
    assert!(begin.contains("Part") || begin.contains("harbour"), "{begin}");
    let runs = [
        ("up by line", (KeyCode::Up, KeyModifiers::CONTROL), 4_000),
        ("up by page", (KeyCode::PageUp, KeyModifiers::NONE), usize::MAX),
        ("down by page", (KeyCode::PageDown, KeyModifiers::NONE), usize::MAX),
        ("up by prompt", (KeyCode::Up, KeyModifiers::ALT), 1_000),
    ];
    let worst = runs.map(|(name, key, times)| bench.run(name, key, times));
    let worst = worst.into_iter().fold(0.0, f64::max);
    if std::env::args().any(|argument| argument == "--check") {
        assert!(worst < MOST, "one frame in a hundred takes {worst:.2} ms; {MOST} are allowed");
    }
}
