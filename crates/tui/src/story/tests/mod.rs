//! A story, a host that serves its log, and frames as text.

mod find;
mod fold;
mod frames;
mod pictures;
mod scroll;

use super::*;
use crate::cx::Act;
use ratatui::buffer::Buffer;
use std::collections::VecDeque;
use windlass_protocol::wire::{Request, Standing, Trusted, Up};
use windlass_protocol::{
    Author, CallId, Cost, Delivery, Display, Finder, Finish, Millis, Mode, Needle, Outcome, Output,
    PromptId, Reply, TurnEnd, Usage,
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

/// A story on a screen of its own.
pub(super) struct Scene {
    pub story: Story,
    pub known: Known,
    pub look: Look,
    pub log: Vec<Record>,
    pub size: (u16, u16),
    pub now: u64,
    pub sent: VecDeque<Up>,
    next: u64,
}

impl Scene {
    pub fn new(size: (u16, u16)) -> Scene {
        let mut known = Known { mode: Mode::Ask, ..Known::default() };
        known.standing = Standing {
            version: "0.9.0".into(),
            workspace: "~/code/harbour".into(),
            branch: Some("main".into()),
            model: Some("test/one".into()),
            sandbox: "bubblewrap".into(),
            trust: Trusted::Yes,
            ..Standing::default()
        };
        Scene {
            story: Story::default(),
            known,
            look: Look::default(),
            log: Vec::new(),
            size,
            now: 1_000_000,
            sent: VecDeque::new(),
            next: 0,
        }
    }

    /// One in which a session is open that has nothing in it yet.
    pub fn open(size: (u16, u16)) -> Scene {
        let mut scene = Scene::new(size);
        scene.open_at(0);
        scene
    }

    /// One that goes on with a log.
    pub fn resumed(size: (u16, u16), log: Vec<Record>) -> Scene {
        let mut scene = Scene::new(size);
        let head = log.last().map_or(0, |record| record.seq);
        scene.log = log;
        scene.frame();
        scene.open_at(head);
        scene.serve();
        scene
    }

    fn open_at(&mut self, head: Seq) {
        self.known.session = Some(session());
        self.known.early = (head > 0).then(Vec::new);
        self.with(|story, cx| story.open(session(), head, cx));
    }

    pub fn with<T>(&mut self, work: impl FnOnce(&mut Story, &mut Cx<'_>) -> T) -> T {
        let (mut acts, mut commands) = (Vec::new(), Vec::new());
        let mut cx = Cx {
            look: &mut self.look,
            known: &self.known,
            now: self.now,
            commands: &mut commands,
            acts: &mut acts,
            next: &mut self.next,
        };
        let done = work(&mut self.story, &mut cx);
        self.sent.extend(acts.into_iter().filter_map(|act| match act {
            Act::Send(up) => Some(*up),
            _ => None,
        }));
        done
    }

    /// Answers everything that was asked, and what is asked because of that.
    pub fn serve(&mut self) {
        for _ in 0..1_000 {
            let Some(up) = self.sent.pop_front() else { return };
            self.answer(up);
        }
        panic!("it asks without end");
    }

    fn answer(&mut self, Up { id, request }: Up) {
        let reply = match request {
            Request::Query { query: Query::Events { after, most, .. } } => {
                let most = most.map_or(usize::MAX, |most| most as usize);
                let from = self.log.partition_point(|record| record.seq <= after);
                let events = self.log[from..].iter().take(most).cloned().collect();
                Reply::Events { events }
            }
            Request::Query { query: Query::Transcript { .. } } => {
                let mut transcript = windlass_protocol::Transcript::default();
                self.log.iter().for_each(|record| transcript.push(record.seq, &record.fact));
                Reply::Transcript { transcript: Box::new(transcript) }
            }
            Request::Query { query: Query::Find { text, .. } } => {
                let mut finder = Finder::new(Needle::new(&text).unwrap());
                self.log.iter().for_each(|record| finder.push(record));
                let through = self.log.last().map_or(0, |record| record.seq);
                Reply::Places { places: finder.places(), through }
            }
            other => panic!("nobody answers {other:?}"),
        };
        let answer = Ok(Answered::Reply { reply });
        if self.story.opens_with(id) {
            self.known.remember(&answer, self.now);
        }
        assert!(self.with(|story, cx| story.answer(id, &answer, cx)));
    }

    pub fn event(&mut self, event: Event) {
        self.known.hear(&event, self.now);
        self.with(|story, cx| story.hear(&event, cx));
    }

    /// Something happened, and was put on record.
    pub fn fact(&mut self, fact: Fact) {
        let seq = self.log.last().map_or(0, |record| record.seq) + 1;
        let record = Record { session: session(), seq, at: Millis(self.now), fact };
        self.log.push(record.clone());
        self.event(Event::Fact(record));
    }

    pub fn facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        facts.into_iter().for_each(|fact| self.fact(fact));
    }

    pub fn live(&mut self, live: Live) {
        let at = Millis(self.now);
        self.event(Event::Live(Glimpse { session: session(), at, live }));
    }

    pub fn write(&mut self, text: &str) {
        self.live(Live::Delta { stream: Stream::Text, text: text.into() });
    }

    pub fn think(&mut self, text: &str) {
        self.live(Live::Delta { stream: Stream::Reasoning, text: text.into() });
    }

    /// The beginning of a turn.
    pub fn ask(&mut self, number: u32, text: &str) {
        let id = prompt(number.into());
        self.fact(prompted(id, text));
        self.fact(Fact::TurnStarted { turn: number, prompt: Some(id) });
    }

    pub fn scroll(&mut self, scroll: Scroll) {
        self.with(|story, cx| story.scroll(scroll, cx));
    }

    /// Scrolls, and has everything that it takes come.
    pub fn go(&mut self, scroll: Scroll) {
        self.scroll(scroll);
        self.serve();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
    }

    /// The rows on the screen.
    pub fn lines(&mut self) -> Vec<String> {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.story.tick(self.now);
        self.story.draw(area, &mut buffer, &self.look, &self.known);
        let line = |y: u16| {
            let (mut text, mut x) = (String::new(), 0);
            while x < area.width {
                let symbol = buffer[(x, y)].symbol();
                text.push_str(symbol);
                x += u16::try_from(crate::ink::width(symbol).max(1)).unwrap();
            }
            text.trim_end().to_owned()
        };
        (0..area.height).map(line).collect()
    }

    pub fn frame(&mut self) -> String {
        self.lines().join("\n").trim_end().to_owned()
    }
}

pub(super) fn prompted(prompt: PromptId, text: &str) -> Fact {
    let (attachments, when) = (Vec::new(), Delivery::Steer);
    Fact::Prompted { prompt, text: text.into(), attachments, when }
}

pub(super) fn said(text: &str) -> Fact {
    Fact::Said { text: text.into(), seal: None }
}

pub(super) fn thought(text: &str) -> Fact {
    Fact::Reasoned { text: text.into(), seal: None }
}

pub(super) fn called(number: u128, tool: &str, arguments: &str) -> Fact {
    Fact::Called {
        call: call(number),
        reference: String::new(),
        tool: tool.into(),
        arguments: arguments.into(),
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    }
}

pub(super) fn asked(number: u128) -> Fact {
    Fact::Asked {
        call: call(number),
        accesses: Vec::new(),
        reason: "mode ask".into(),
        preview: None,
        offer: None,
        repaired: None,
    }
}

pub(super) fn started(number: u128) -> Fact {
    let (accesses, repaired) = (Vec::new(), None);
    Fact::Started { call: call(number), attempt: 1, accesses, read_only: true, repaired }
}

pub(super) fn settled(number: u128, outcome: Outcome) -> Fact {
    Fact::Settled { call: call(number), outcome, seen: Vec::new() }
}

pub(super) fn gave(text: &str) -> Outcome {
    Outcome::Completed { output: Output { text: text.into(), ..Output::default() } }
}

pub(super) fn changed(unified: &str) -> Outcome {
    let display = Display::Diff { unified: unified.into() };
    Outcome::Completed { output: Output { display, ..Output::default() } }
}

pub(super) fn exit(text: &str, code: i32) -> Outcome {
    let metadata = [("exit".to_owned(), code.into())].into_iter().collect();
    let display = Display::Terminal { coloured: None };
    Outcome::Completed {
        output: Output { text: text.into(), display, metadata, ..Output::default() },
    }
}

pub(super) fn step(turn: u32, step: u32) -> Fact {
    let model = "test/one".to_owned();
    Fact::StepStarted { turn, step, model, purpose: Default::default() }
}

pub(super) fn step_ended(turn: u32, step: u32) -> Fact {
    let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
    Fact::StepEnded { turn, step, finish: Finish::Stop, usage, cost: Some(Cost(12_000)) }
}

pub(super) fn done(turn: u32) -> Fact {
    Fact::TurnEnded { turn, end: TurnEnd::Done }
}
