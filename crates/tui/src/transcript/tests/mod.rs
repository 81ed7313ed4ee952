//! Tests of `TranscriptView`, with a host that serves a log and frames as text.

mod blocks;
mod find;
mod frames;
mod images;
mod scroll;
mod selection;
mod short_rows;

use super::*;
use crate::ui_context::UiEffect;
use ratatui::buffer::Buffer;
use std::collections::VecDeque;
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostStatus, TrustState,
};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Cost, FinishReason, LogTextFinder, OutputDisplay,
    PermissionMode, PromptDelivery, PromptId, QueryReply, SearchPattern, TokenUsage, ToolOutput,
    TurnEndReason, UnixMillis,
};

pub(super) fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(7))
}

pub(super) fn call(number: u128) -> CallId {
    CallId(uuid::Uuid::from_u128(1_000 + number))
}

pub(super) fn prompt(number: u128) -> PromptId {
    PromptId(uuid::Uuid::from_u128(5_000 + number))
}

/// A `TranscriptView` with its session state, log, screen size and sent requests.
pub(super) struct TestTranscript {
    pub transcript: TranscriptView,
    pub state: SessionState,
    pub appearance: Appearance,
    pub log: Vec<FactRecord>,
    pub size: (u16, u16),
    pub now: u64,
    pub sent: VecDeque<FrontendRequestMessage>,
    next_request_id: u64,
}

impl TestTranscript {
    pub fn new(size: (u16, u16)) -> TestTranscript {
        let mut state = SessionState { mode: PermissionMode::Ask, ..SessionState::default() };
        state.host_status = HostStatus {
            version: "0.9.0".into(),
            workspace: "~/code/harbour".into(),
            branch: Some("main".into()),
            model: Some("test/one".into()),
            sandbox: "bubblewrap".into(),
            trust: TrustState::Trusted,
            ..HostStatus::default()
        };
        TestTranscript {
            transcript: TranscriptView::default(),
            state,
            appearance: Appearance::default(),
            log: Vec::new(),
            size,
            now: 1_000_000,
            sent: VecDeque::new(),
            next_request_id: 0,
        }
    }

    /// Returns a transcript of an open session with an empty log.
    pub fn open(size: (u16, u16)) -> TestTranscript {
        let mut env = TestTranscript::new(size);
        env.open_at(0);
        env
    }

    /// Returns a transcript of a resumed session with this log.
    pub fn resumed(size: (u16, u16), log: Vec<FactRecord>) -> TestTranscript {
        let mut env = TestTranscript::new(size);
        let head = log.last().map_or(0, |record| record.seq);
        env.log = log;
        env.frame();
        env.open_at(head);
        env.answer_requests();
        env
    }

    fn open_at(&mut self, head: LogSeq) {
        self.state.session = Some(session());
        self.state.early_records = (head > 0).then(Vec::new);
        self.with(|transcript, cx| transcript.open(session(), head, cx));
    }

    pub fn with<T>(
        &mut self,
        action: impl FnOnce(&mut TranscriptView, &mut UiContext<'_>) -> T,
    ) -> T {
        let (mut ui_effects, mut commands) = (Vec::new(), Vec::new());
        let mut cx = UiContext {
            appearance: &mut self.appearance,
            state: &self.state,
            now: self.now,
            commands: &mut commands,
            effects: &mut ui_effects,
            next_request_id: &mut self.next_request_id,
        };
        let result = action(&mut self.transcript, &mut cx);
        self.sent.extend(ui_effects.into_iter().filter_map(|effect| match effect {
            UiEffect::Send(message) => Some(*message),
            _ => None,
        }));
        result
    }

    /// Answers all requests, including those that the responses cause.
    pub fn answer_requests(&mut self) {
        for _ in 0..1_000 {
            let Some(message) = self.sent.pop_front() else { return };
            self.answer(message);
        }
        panic!("the transcript keeps sending requests");
    }

    fn answer(&mut self, FrontendRequestMessage { id, request }: FrontendRequestMessage) {
        let reply = match request {
            FrontendRequest::Query { query: SessionQuery::Events { after, limit, .. } } => {
                let limit = limit.map_or(usize::MAX, |limit| limit as usize);
                let start = self.log.partition_point(|record| record.seq <= after);
                let events = self.log[start..].iter().take(limit).cloned().collect();
                QueryReply::Events { events }
            }
            FrontendRequest::Query { query: SessionQuery::Transcript { .. } } => {
                let mut transcript = windlass_protocol::Transcript::default();
                self.log.iter().for_each(|record| transcript.push(record.seq, &record.fact));
                QueryReply::Transcript { transcript: Box::new(transcript) }
            }
            FrontendRequest::Query { query: SessionQuery::FindText { text, .. } } => {
                let mut finder = LogTextFinder::new(SearchPattern::new(&text).unwrap());
                self.log.iter().for_each(|record| finder.push(record));
                let through = self.log.last().map_or(0, |record| record.seq);
                QueryReply::TextMatches { matches: finder.into_matches(), through }
            }
            other => panic!("unexpected request: {other:?}"),
        };
        let response = Ok(HostResponse::Reply { reply });
        if self.transcript.is_opening_request(id) {
            self.state.on_history_response(&response, self.now);
        }
        assert!(self.with(|transcript, cx| transcript.on_response(id, &response, cx)));
    }

    pub fn event(&mut self, event: Event) {
        self.state.on_event(&event, self.now);
        self.with(|transcript, cx| transcript.on_event(&event, cx));
    }

    /// Appends a fact to the log and delivers it as an event.
    pub fn fact(&mut self, fact: Fact) {
        let seq = self.log.last().map_or(0, |record| record.seq) + 1;
        let record = FactRecord::new(session(), seq, UnixMillis(self.now), fact);
        self.log.push(record.clone());
        self.event(Event::Fact(record));
    }

    pub fn facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        facts.into_iter().for_each(|fact| self.fact(fact));
    }

    pub fn live(&mut self, live: LiveEvent) {
        let at = UnixMillis(self.now);
        self.event(Event::Live(LiveEventRecord { session: session(), at, event: live }));
    }

    pub fn stream_text(&mut self, text: &str) {
        self.live(LiveEvent::ModelDelta { stream: ModelStreamKind::Text, text: text.into() });
    }

    pub fn stream_reasoning(&mut self, text: &str) {
        self.live(LiveEvent::ModelDelta { stream: ModelStreamKind::Reasoning, text: text.into() });
    }

    /// Submits a prompt and starts its turn.
    pub fn start_turn(&mut self, number: u32, text: &str) {
        let id = prompt(number.into());
        self.fact(prompt_submitted(id, text));
        self.fact(Fact::TurnStarted { turn: number, prompt: Some(id) });
    }

    pub fn scroll(&mut self, target: ScrollTarget) {
        self.with(|transcript, cx| transcript.scroll(target, cx));
    }

    /// Scrolls and answers the requests that scrolling causes.
    pub fn scroll_and_load(&mut self, scroll: ScrollTarget) {
        self.scroll(scroll);
        self.answer_requests();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
    }

    /// Draws a frame and returns its rows as text.
    pub fn lines(&mut self) -> Vec<String> {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.transcript.tick(self.now);
        self.transcript.draw(area, &mut buffer, &self.appearance, &self.state);
        let row_text = |y: u16| {
            let (mut text, mut x) = (String::new(), 0);
            while x < area.width {
                let symbol = buffer[(x, y)].symbol();
                text.push_str(symbol);
                x += u16::try_from(crate::safe_line::display_width(symbol).max(1)).unwrap();
            }
            text.trim_end().to_owned()
        };
        (0..area.height).map(row_text).collect()
    }

    pub fn frame(&mut self) -> String {
        self.lines().join("\n").trim_end().to_owned()
    }
}

pub(super) fn prompt_submitted(prompt: PromptId, text: &str) -> Fact {
    Fact::PromptSubmitted {
        prompt,
        text: text.into(),
        attachments: Vec::new(),
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    }
}

pub(super) fn model_text(text: &str) -> Fact {
    Fact::ModelText { text: text.into(), provider_signature: None }
}

pub(super) fn model_reasoning(text: &str) -> Fact {
    Fact::ModelReasoning { text: text.into(), provider_signature: None }
}

pub(super) fn tool_called(number: u128, tool: &str, arguments: &str) -> Fact {
    Fact::ToolCalled {
        description: crate::test_call_descriptions::describe(tool, arguments),
        call: call(number),
        provider_call_id: String::new(),
        tool: tool.into(),
        arguments: arguments.into(),
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    }
}

pub(super) fn permission_asked(number: u128) -> Fact {
    Fact::PermissionAsked {
        danger: Default::default(),
        call: call(number),
        accesses: Vec::new(),
        reason: "mode ask".into(),
        preview: None,
        approval_kind: None,
        repair: None,
    }
}

pub(super) fn call_started(number: u128) -> Fact {
    Fact::CallStarted {
        call: call(number),
        attempt: 1,
        accesses: Vec::new(),
        read_only: true,
        repair: None,
    }
}

pub(super) fn call_settled(number: u128, outcome: CallOutcome) -> Fact {
    Fact::CallSettled { call: call(number), outcome, seen_files: Vec::new() }
}

pub(super) fn text_outcome(text: &str) -> CallOutcome {
    CallOutcome::Completed { output: ToolOutput { text: text.into(), ..ToolOutput::default() } }
}

/// Returns a text output with its result in a few words.
pub(super) fn titled_outcome(title: &str, text: &str) -> CallOutcome {
    let (title, text) = (title.into(), text.into());
    CallOutcome::Completed { output: ToolOutput { title, text, ..ToolOutput::default() } }
}

pub(super) fn diff_outcome(unified: &str) -> CallOutcome {
    let display = OutputDisplay::Diff { unified_diff: unified.into() };
    CallOutcome::Completed { output: ToolOutput { display, ..ToolOutput::default() } }
}

pub(super) fn command_outcome(text: &str, code: i32) -> CallOutcome {
    let metadata = [("exit".to_owned(), code.into())].into_iter().collect();
    let display = OutputDisplay::Terminal { colored_text: None };
    let (title, text) = (format!("exit {code}"), text.into());
    CallOutcome::Completed {
        output: ToolOutput { title, text, display, metadata, ..ToolOutput::default() },
    }
}

pub(super) fn step_started(turn: u32, step: u32) -> Fact {
    let model = "test/one".to_owned();
    Fact::StepStarted { turn, step, model, purpose: Default::default() }
}

pub(super) fn step_ended(turn: u32, step: u32) -> Fact {
    let usage = TokenUsage { input: 1_000, output: 100, ..TokenUsage::default() };
    Fact::StepEnded {
        turn,
        step,
        finish_reason: FinishReason::Stop,
        usage,
        cost: Some(Cost(12_000)),
    }
}

pub(super) fn turn_completed(turn: u32) -> Fact {
    Fact::TurnEnded { turn, end: TurnEndReason::Completed }
}
