//! Benchmark of the frame time while a transcript of 100,000 lines is scrolled.
//!
//! The screen is 120×40. The time of a frame covers a key, the pages it loads, drawing, the bytes
//! that differ from the previous frame, and a terminal emulator that parses them. `--check` fails
//! if the 99th percentile exceeds `MAX_P99_FRAME_MS`.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark measures time and prints it"
)]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Instant;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostMessage, HostResponse, HostStatus, TrustState,
};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, FactRecord, FinishReason, OutputDisplay, PromptId,
    QueryReply, SessionId, SessionQuery, TokenUsage, ToolOutput, Transcript, TurnEndReason,
    UnixMillis,
};
use windlass_tui::{App, AppEvent, TuiOptions, UiEffect};

const SIZE: (u16, u16) = (120, 40);
/// The maximum 99th percentile of frame times: one frame at 60 Hz.
const MAX_P99_FRAME_MS: f64 = 16.0;

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

/// Returns the status of a trusted folder with a model, so that keys go to the transcript.
fn status() -> HostStatus {
    let (model, trust) = (Some("test/one".to_owned()), TrustState::Trusted);
    HostStatus { version: "0.9".into(), model, trust, ..HostStatus::default() }
}

/// Builds a log whose transcript has at least `lines` lines.
fn build_log(lines: usize) -> Vec<FactRecord> {
    let mut log: Vec<FactRecord> = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(FactRecord::new(session(), seq, UnixMillis(seq * 100), fact));
    };
    push(Fact::session_opened("/w", "0.9"));
    let mut line_count = 0;
    for turn in 1_u32.. {
        if line_count >= lines {
            break;
        }
        line_count += push_turn(turn, &mut push);
    }
    log
}

/// Pushes the facts of one turn and returns its minimum number of lines.
fn push_turn(turn: u32, push: &mut impl FnMut(Fact)) -> usize {
    let prompt = PromptId(uuid::Uuid::from_u128(turn.into()));
    let call = |number: u128| CallId(uuid::Uuid::from_u128(u128::from(turn) * 8 + number));
    let text = format!("Look at part {turn} and make it better, please.");
    push(Fact::PromptSubmitted {
        prompt,
        text,
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    });
    push(Fact::TurnStarted { turn, prompt: Some(prompt) });
    let model = "test/one".to_owned();
    push(Fact::StepStarted { turn, step: 1, model, purpose: Default::default() });
    push(Fact::ModelReasoning {
        text: "What is there, and what is wanted?".into(),
        provider_signature: None,
    });
    let paragraph =
        "The harbour is quiet at night, and **nothing** is loaded before `six`. ".repeat(5);
    let code: String =
        (0..8).map(|line| format!("    let part_{line} = work({turn}, \"x\");\n")).collect();
    let text = format!(
        "## Part {turn}\n\n{paragraph}\n\n- one thing\n- another thing\n\n```rust\nfn part() {{\n{code}}}\n```\n\n{paragraph}"
    );
    push(Fact::ModelText { text, provider_signature: None });
    let calls = [
        ("read", format!(r#"{{"filePath":"src/{turn}.rs"}}"#)),
        ("edit", format!(r#"{{"filePath":"src/{turn}.rs","oldString":"a","newString":"b"}}"#)),
        ("bash", r#"{"command":"cargo test --workspace"}"#.to_owned()),
    ];
    for (number, (tool, arguments)) in (0_u128..).zip(calls) {
        push(Fact::ToolCalled {
            description: windlass_protocol::CallDescription::default(),
            call: call(number),
            provider_call_id: String::new(),
            tool: tool.into(),
            arguments,
            author: CallAuthor::Model,
            repair: Vec::new(),
            provider_signature: None,
        });
    }
    let usage = TokenUsage::default();
    push(Fact::StepEnded {
        turn,
        step: 1,
        finish_reason: FinishReason::ToolCalls,
        usage,
        cost: None,
    });
    for number in 0..3 {
        push(Fact::CallStarted {
            call: call(number),
            attempt: 1,
            accesses: Vec::new(),
            read_only: true,
            repair: None,
        });
        let body: String =
            (0..5).map(|line| format!("-    old({line});\n+    new({line});\n")).collect();
        let unified_diff =
            format!("--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,7 +1,7 @@\n fn part() {{\n{body} }}\n");
        let display = match number {
            1 => OutputDisplay::Diff { unified_diff },
            _ => OutputDisplay::Text,
        };
        let text = "1: one line of what was read\n".repeat(100);
        let output = ToolOutput { text, display, ..ToolOutput::default() };
        let outcome = CallOutcome::Completed { output };
        push(Fact::CallSettled { call: call(number), outcome, seen_files: Vec::new() });
    }
    push(Fact::TurnEnded { turn, end: TurnEndReason::Completed });
    45
}

struct ScrollBench {
    app: App,
    log: Vec<FactRecord>,
    current_frame: Buffer,
    terminal: vt100::Parser,
    frame_millis: Vec<f64>,
}

impl ScrollBench {
    fn new(log: Vec<FactRecord>) -> ScrollBench {
        let options = TuiOptions { session: Some(session()), ..TuiOptions::default() };
        let (app, ui_effects) = App::new(options, 0);
        let current_frame = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
        let terminal =
            vt100::Parser::new(SIZE.1.try_into().unwrap(), SIZE.0.try_into().unwrap(), 0);
        let mut bench = ScrollBench { app, log, current_frame, terminal, frame_millis: Vec::new() };
        bench.answer_requests(ui_effects);
        bench.draw();
        bench
    }

    /// Answers requests and returns the time in milliseconds, without the time of the host.
    fn answer_requests(&mut self, ui_effects: Vec<UiEffect>) -> f64 {
        let mut elapsed_millis = 0.0;
        let mut ui_effects: std::collections::VecDeque<UiEffect> = ui_effects.into();
        while let Some(effect) = ui_effects.pop_front() {
            let UiEffect::Send(message) = effect else { continue };
            let head = self.log.len() as u64;
            let response = match message.request {
                FrontendRequest::Status { .. } => {
                    HostResponse::Status { status: Box::new(status()) }
                }
                FrontendRequest::OpenSession { session, .. } => {
                    HostResponse::SessionOpened { session, head, model: None }
                }
                FrontendRequest::Query { query: SessionQuery::Events { after, limit, .. } } => {
                    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
                    let events = self.log[after as usize..].iter().take(limit).cloned().collect();
                    HostResponse::Reply { reply: QueryReply::Events { events } }
                }
                FrontendRequest::Query { query: SessionQuery::Transcript { .. } } => {
                    let transcript = Box::new(Transcript::default());
                    HostResponse::Reply { reply: QueryReply::Transcript { transcript } }
                }
                _ => HostResponse::Done,
            };
            let response_message = HostMessage::Response { id: message.id, response: Ok(response) };
            let start = Instant::now();
            ui_effects
                .extend(self.app.update(AppEvent::HostMessage(Box::new(response_message)), 0));
            elapsed_millis += start.elapsed().as_secs_f64() * 1e3;
        }
        elapsed_millis
    }

    /// Draws a frame and sends its changes to the terminal emulator.
    fn draw(&mut self) {
        let mut next = Buffer::empty(self.current_frame.area);
        self.app.draw(&mut next);
        let mut bytes = Vec::new();
        CrosstermBackend::new(&mut bytes).draw(self.current_frame.diff(&next).into_iter()).unwrap();
        self.terminal.process(&bytes);
        self.current_frame = next;
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let start = Instant::now();
        let ui_effects = self.app.update(AppEvent::Key(KeyEvent::new(code, modifiers)), 0);
        let key_millis = start.elapsed().as_secs_f64() * 1e3;
        let page_millis = self.answer_requests(ui_effects);
        let start = Instant::now();
        self.draw();
        self.frame_millis.push(key_millis + page_millis + start.elapsed().as_secs_f64() * 1e3);
    }

    /// Presses a key until the screen no longer changes, at most `times` times, and returns the
    /// 99th percentile of frame times.
    fn run(&mut self, name: &str, (code, modifiers): (KeyCode, KeyModifiers), times: usize) -> f64 {
        self.frame_millis.clear();
        let mut unchanged_frames = 0;
        for _ in 0..times {
            let before = self.current_frame.clone();
            self.press(code, modifiers);
            unchanged_frames = if before == self.current_frame { unchanged_frames + 1 } else { 0 };
            if unchanged_frames > 3 {
                break;
            }
        }
        let count = self.frame_millis.len();
        assert!(count >= 1_000, "{name}: only {count} frames; the transcript was not scrolled");
        self.frame_millis.sort_by(f64::total_cmp);
        let percentile =
            |fraction: f64| self.frame_millis[((count as f64 - 1.0) * fraction) as usize];
        let (p50, p99, worst) = (percentile(0.5), percentile(0.99), percentile(1.0));
        println!("{name}: {count} frames, p50 {p50:.2} ms, p99 {p99:.2} ms, worst {worst:.2} ms");
        p99
    }
}

fn main() {
    let log = build_log(100_000);
    println!("{} facts", log.len());
    let mut bench = ScrollBench::new(log);
    let initial_screen = bench.terminal.screen().contents();
    assert!(
        initial_screen.contains("Part") || initial_screen.contains("harbour"),
        "{initial_screen}"
    );
    let runs = [
        ("up by line", (KeyCode::Up, KeyModifiers::CONTROL), 4_000),
        ("up by page", (KeyCode::PageUp, KeyModifiers::NONE), usize::MAX),
        ("down by page", (KeyCode::PageDown, KeyModifiers::NONE), usize::MAX),
        ("up by prompt", (KeyCode::Up, KeyModifiers::ALT), 1_000),
    ];
    let worst_p99 = runs.map(|(name, key, times)| bench.run(name, key, times));
    let worst_p99 = worst_p99.into_iter().fold(0.0, f64::max);
    if std::env::args().any(|argument| argument == "--check") {
        assert!(
            worst_p99 < MAX_P99_FRAME_MS,
            "p99 is {worst_p99:.2} ms; the limit is {MAX_P99_FRAME_MS} ms"
        );
    }
}
