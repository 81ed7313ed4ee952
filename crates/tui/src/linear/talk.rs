//! What is said and what happens, as lines.

use crate::app::Options;
use crate::asked::queue::{Agreed, Queue};
use crate::cx::Act;
use crate::ink;
use crate::known::Known;
use crate::story::words::{Words, words};
use std::collections::HashMap;
use windlass_protocol::text::{counted, duration};
use windlass_protocol::wire::{Answered, Down, Request, Standing, Trusted, Up};
use windlass_protocol::{
    CallId, Event, Fact, Fault, Live, Op, Outcome, Reply, SessionId, Stream, TurnEnd,
};

/// More lines of one thing are not read out; it is said how many there are.
pub(super) const MOST: usize = 12;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The person typed a line.
    Line(String),
    /// The host said something.
    Down(Box<Down>),
    /// Ctrl-C.
    Interrupt,
    /// There will be no more lines.
    End,
}

/// What is asked for in a session once it is open.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    Nothing,
    Do(Op),
    /// A command of the shell, as it was typed.
    Run(String),
    /// One of the person's own commands.
    Own {
        name: String,
        arguments: String,
    },
}

/// What an answer is waited for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Awaited {
    Standing,
    /// A session that was begun or opened; then this is asked of it.
    Opened(Next),
    /// One of the person's own commands.
    Own,
    /// Only a failure is told.
    Done,
    /// This is said when it is done.
    Then(String),
    Path,
    /// The end of a session that was opened.
    Lately,
    /// Something to be read out.
    Shown,
    /// What taking back would change.
    Undo,
    /// What there is to work with.
    Doctor,
}

/// Everything as lines.
#[derive(Debug, Default)]
pub struct Linear {
    pub(super) known: Known,
    next: u64,
    awaited: HashMap<u64, Awaited>,
    pub(super) lines: Vec<String>,
    pub(super) acts: Vec<Act>,
    pub(super) questions: Queue,
    /// The sessions that were listed last.
    pub(super) listed: Vec<SessionId>,
    /// What would be taken back, and what that would change, once the person says yes.
    pub(super) undo: Option<(Vec<u64>, String)>,
    calls: HashMap<CallId, String>,
    /// What the model writes, and how much of it was read out.
    stream: String,
    read: usize,
    /// True if what the model wrote was the last that was read out.
    speaking: bool,
    /// A line that goes on in the next.
    begun: String,
    leaving: bool,
    begin: Option<SessionId>,
    first: Option<String>,
}

impl Linear {
    /// The mode, and what it says and asks for first.
    pub fn new(options: Options) -> (Linear, (Vec<String>, Vec<Act>)) {
        let Options { session, prompt, notes, .. } = options;
        let mut linear = Linear { begin: session, first: prompt, ..Linear::default() };
        for note in notes {
            linear.say(&note);
        }
        linear.ask(Request::Standing, Awaited::Standing);
        let told = linear.told();
        (linear, told)
    }

    fn told(&mut self) -> (Vec<String>, Vec<Act>) {
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.acts))
    }

    /// Takes in what happened; says what is to be read and done.
    pub fn update(&mut self, said: Said) -> (Vec<String>, Vec<Act>) {
        let leaving = std::mem::take(&mut self.leaving);
        match said {
            Said::Line(line) => self.line(&line),
            Said::Down(down) => self.down(*down),
            Said::End => self.acts.push(Act::Quit),
            Said::Interrupt if self.known.busy() => {
                self.op(Op::Interrupt);
                self.say("stopping");
            }
            Said::Interrupt if leaving => self.acts.push(Act::Quit),
            Said::Interrupt => {
                self.begun.clear();
                self.leaving = true;
                self.say("once more leaves; so does /quit");
            }
        }
        self.told()
    }

    /// A line of ours.
    pub(super) fn say(&mut self, text: &str) {
        self.speaking = false;
        self.lines.extend(text.lines().map(ink::harmless));
    }

    /// A text of others: two columns to the right, and no more of it than can be listened to.
    pub(super) fn quote(&mut self, text: &str, most: usize) {
        let all = text.lines().count();
        let lines = text.lines().take(most).map(|line| format!("  {}", ink::harmless(line)));
        self.lines.extend(lines);
        if all > most {
            self.lines.push(format!("({})", counted(all - most, "more line")));
        }
    }

    pub(super) fn ask(&mut self, request: Request, awaited: Awaited) {
        self.send(request, awaited);
    }

    /// The same, and says under which number its answer will come.
    pub(super) fn send(&mut self, request: Request, awaited: Awaited) -> u64 {
        self.next += 1;
        let id = self.next;
        self.acts.push(Act::Send(Box::new(Up { id, request })));
        self.awaited.insert(id, awaited);
        id
    }

    pub(super) fn op(&mut self, op: Op) {
        self.go_on(Next::Do(op));
    }

    /// Asks for something in the session; if there is none, one is begun first.
    pub(super) fn go_on(&mut self, next: Next) {
        let Some(session) = self.known.session else { return self.begin(next) };
        match next {
            Next::Nothing => self.say("ready"),
            Next::Do(op) => self.ask(Request::Do { session, op }, Awaited::Done),
            Next::Run(command) => {
                let op = Op::shell(&command);
                self.questions.agree(Agreed::Command(command));
                self.ask(Request::Do { session, op }, Awaited::Done);
            }
            Next::Own { name, arguments } => {
                self.ask(Request::Command { name, arguments }, Awaited::Own);
            }
        }
    }

    /// Begins a session.
    pub(super) fn begin(&mut self, next: Next) {
        self.ask(self.known.begin(), Awaited::Opened(next));
    }

    fn line(&mut self, line: &str) {
        if let Some(begun) = line.strip_suffix('\\') {
            self.begun.push_str(begun);
            self.begun.push('\n');
            return;
        }
        let line = std::mem::take(&mut self.begun) + line;
        let text = line.trim();
        if text.is_empty() {
            return self.repeat();
        }
        if let Some(command) = text.strip_prefix('!') {
            if self.known.busy() {
                return self.say("the model is at work; type it again when it is done");
            }
            return self.go_on(Next::Run(command.trim().to_owned()));
        }
        // A line that begins with a space is said as it is.
        if !line.starts_with(' ')
            && let Some(name) = crate::prompt::command_name(text).filter(|name| !name.is_empty())
        {
            let behind = text.get(name.len() + 1..).unwrap_or_default().trim();
            return self.command(name, behind);
        }
        if self.undo.is_some() {
            return self.confirm(text);
        }
        if self.questions.first().is_some() {
            return self.answer_question(text);
        }
        self.prompt(text);
    }

    pub(super) fn prompt(&mut self, text: &str) {
        if self.known.busy() {
            self.say("the model hears it before its next step");
        }
        self.op(Op::prompt(text));
    }

    fn down(&mut self, down: Down) {
        match down {
            Down::Event { event } => self.event(&event),
            Down::Answer { id, answer } => {
                let again = self.questions.heard(id, &answer) && answer.is_err();
                if let Some(awaited) = self.awaited.remove(&id) {
                    self.answer(awaited, answer);
                }
                if again {
                    self.repeat();
                }
            }
            Down::Note { text } => self.say(&format!("note: {text}")),
            Down::Stopped { session, fault } => {
                let before = self.questions.number();
                self.questions.stop(session, &self.known);
                if Some(session) == self.known.session {
                    self.known.turn = None;
                    self.fault(&fault);
                }
                self.next_question(before);
            }
        }
    }

    fn fault(&mut self, fault: &Fault) {
        self.say(&crate::fault::told(fault));
    }

    fn answer(&mut self, awaited: Awaited, answer: Result<Answered, Fault>) {
        let answered = match answer {
            Ok(answered) => answered,
            Err(fault) => {
                self.fault(&fault);
                match awaited {
                    Awaited::Own => self.say("to say it as it is, begin the line with a space"),
                    Awaited::Lately => self.say("ready"),
                    _ => {}
                }
                return;
            }
        };
        match (awaited, answered) {
            (Awaited::Standing, Answered::Standing { standing }) => self.stand(*standing),
            (Awaited::Opened(next), Answered::Opened { session, head }) => {
                self.open(session, head, next);
            }
            (Awaited::Own, Answered::Prompt { text }) => self.prompt(&text),
            (Awaited::Lately, Answered::Reply { reply: Reply::Events { events } }) => {
                self.lately(&events);
                self.say("ready");
            }
            (Awaited::Path, Answered::Path { path }) => self.say(&format!("written to {path}")),
            (Awaited::Then(text), answered) => {
                if let Answered::Standing { standing } = answered {
                    self.known.model = standing.model.clone().unwrap_or_default();
                    self.known.standing = *standing;
                }
                self.say(&text);
            }
            (awaited, answered) => self.listed(&awaited, answered),
        }
    }

    fn stand(&mut self, standing: Standing) {
        let model = standing.model.clone().unwrap_or_else(|| "no model yet".to_owned());
        self.say(&format!("windlass {} in {}", standing.version, standing.workspace));
        self.say(&format!("{model}, mode {}. /help lists commands", standing.mode));
        for note in &standing.notes {
            self.say(&format!("note: {note}"));
        }
        if standing.model.is_none() {
            self.say("no model is chosen. /model lists those that can be asked; `windlass --help` says how to keep a key");
        }
        match standing.trust {
            Trusted::Unasked | Trusted::Changed => {
                self.say("this folder is not trusted: nothing it brings is run. /trust shows what it would run");
            }
            Trusted::Yes | Trusted::No => {}
        }
        (self.known.mode, self.known.agent) = (standing.mode, standing.agent.clone());
        self.known.model = standing.model.clone().unwrap_or_default();
        self.known.standing = standing;
        match (self.begin.take(), self.first.take()) {
            (Some(session), first) => {
                let next = first.map_or(Next::Nothing, |text| Next::Do(Op::prompt(text)));
                self.ask(Request::Open { session }, Awaited::Opened(next));
            }
            (None, Some(text)) => self.prompt(&text),
            (None, None) => self.say("ready"),
        }
    }

    fn open(&mut self, session: SessionId, head: u64, next: Next) {
        let standing = std::mem::take(&mut self.known.standing);
        let (mode, agent) = (self.known.mode, self.known.agent.clone());
        let model = standing.model.clone().unwrap_or_default();
        let other = mode != standing.mode && head == 0;
        self.known = Known {
            standing,
            session: Some(session),
            head,
            mode,
            agent,
            model,
            ..Known::default()
        };
        (self.questions, self.undo) = (Queue::default(), None);
        if head > 0 {
            self.say(&format!("a session with {head} entries is open"));
        }
        if other {
            self.op(Op::Mode { mode });
        }
        match next {
            Next::Nothing if head > 0 => self.look_back(session, head),
            next => self.go_on(next),
        }
    }

    fn event(&mut self, event: &Event) {
        self.known.hear(event, 0);
        match event {
            Event::Fact(record) => {
                if Some(record.session) == self.known.session {
                    self.fact(&record.fact);
                }
                self.questions_of(record);
            }
            Event::Live(glimpse) if Some(glimpse.session) == self.known.session => {
                self.glimpse(&glimpse.live);
            }
            Event::Live(_) => {}
        }
    }

    fn glimpse(&mut self, live: &Live) {
        match live {
            Live::Delta { stream: Stream::Text, text } => {
                self.stream.push_str(text);
                let fresh = self.stream.get(self.read..).unwrap_or_default();
                if let Some(end) = fresh.rfind("\n\n") {
                    let whole = fresh.get(..end).unwrap_or_default().to_owned();
                    self.read += end + 2;
                    self.model(&whole);
                }
            }
            Live::Noticed { text } => self.say(&format!("note: {text}")),
            Live::Reached { host, refused: Some(why), .. } => {
                self.say(&format!("refused: {host}, {why}"));
            }
            Live::Delta { stream: Stream::Reasoning, .. }
            | Live::Reached { refused: None, .. }
            | Live::Progress { .. }
            | Live::Output { .. }
            | Live::Job { .. }
            | Live::Hooked { .. } => {}
        }
    }

    /// What the model wrote. It is read out whole.
    fn model(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if !self.speaking {
            self.say("model:");
        }
        self.quote(text.trim_matches('\n'), usize::MAX);
        self.speaking = true;
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::StepStarted { .. } => (self.stream, self.read) = (String::new(), 0),
            Fact::Said { text, .. } => {
                let read = self.stream.get(..self.read).unwrap_or_default();
                let rest = text.strip_prefix(read).unwrap_or(text).to_owned();
                self.model(&rest);
                (self.stream, self.read) = (String::new(), 0);
            }
            Fact::Called { call, tool, arguments, .. } => {
                let line = call_line(tool, arguments, &self.known.standing.root);
                self.say(&format!("call: {line}"));
                self.calls.insert(*call, line);
            }
            Fact::Settled { call, outcome, .. } => self.settled(*call, outcome),
            Fact::Renamed { title, .. } => self.say(&format!("title: {title}")),
            Fact::ModeChanged { mode } => self.say(&format!("mode: {mode}")),
            Fact::Compacted { .. } => self.say("the conversation was summed up"),
            Fact::Spawned { agent, .. } => self.say(&format!("the agent {agent} is at work")),
            Fact::Retrying { attempt, fault, wait_ms, .. } => {
                let again = format!("trying again in {}", duration(*wait_ms));
                match attempt {
                    0 | 1 => self.say(&format!("{fault}; {again}")),
                    _ => self.say(&again),
                }
            }
            Fact::TurnEnded { end, .. } => self.ended(end),
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::Forked { .. }
            | Fact::Pruned { .. }
            | Fact::Reverted { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::Steered { .. }
            | Fact::StepEnded { .. }
            | Fact::Interrupted { .. }
            | Fact::Reasoned { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }

    fn settled(&mut self, call: CallId, outcome: &Outcome) {
        let line = self.calls.remove(&call).unwrap_or_else(|| "a call".to_owned());
        let how = match outcome {
            Outcome::Completed { .. } => "done",
            Outcome::Failed { .. } => "failed",
            Outcome::Denied { .. } => "not allowed",
            Outcome::Interrupted { .. } => "stopped",
            Outcome::Unknown => "its result was lost",
        };
        self.say(&format!("{how}: {line}"));
        self.quote(outcome.text(), MOST);
    }

    fn ended(&mut self, end: &TurnEnd) {
        match end {
            TurnEnd::Done => {}
            TurnEnd::Denied => self.say("the turn ended, because the answer was no"),
            TurnEnd::Interrupted => self.say("stopped"),
            TurnEnd::Looped { what } | TurnEnd::Limit { what } => {
                self.say(&format!("the turn ended: {what}"));
            }
            TurnEnd::Failed { fault } => self.fault(fault),
        }
        self.say("ready");
    }
}

/// A call on one line, in the words that the screen has for it.
fn call_line(tool: &str, arguments: &str, root: &str) -> String {
    let Words { verb, object, note } = words(tool, arguments, root);
    let note = if note.is_empty() { note } else { format!(", {note}") };
    let line = format!("{verb} {object}");
    windlass_protocol::text::beginning(&format!("{}{note}", line.trim_end()), 200)
}
