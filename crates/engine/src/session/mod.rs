//! The session decides, without doing: inputs in, effects out, no I/O, no clock, no chance.
//!
//! Every decision that matters becomes a fact, and [`Session::record`] is the only way a fact
//! changes the state, whether it was just decided or read back from a log. So a crash is nothing
//! but a shorter log, and [`Input::Resume`] goes on from wherever it ends.

mod answer;
mod approve;
pub(crate) mod back;
mod compact;
mod doom;
mod fold;
mod gauge;
mod hooked;
mod inquire;
mod limits;
mod outline;
mod resume;
mod settle;
mod spawn;
mod steer;
mod stop;
mod terms;
mod told;
mod turn;
mod weigh;
mod words;

pub use spawn::Birth;
pub use terms::{Limits, Looping, Terms, Window};
pub use words::{Effect, Input, Stamp};

use crate::brief::Said;
use approve::Approved;
use back::Track;
use compact::Room;
use gauge::Gauge;
use outline::Outline;
use serde_json::json;
use turn::{Call, Question, Stage, Turn};
use windlass_protocol::files::UNDO;
use windlass_protocol::{
    Answer, Author, CallId, Fact, Files, Live, Millis, Op, Outcome, PromptId, Purpose, Record, Seq,
    Transcript, TurnEnd, Undo,
};
use windlass_toolkit::Intent;

/// A session's state: the fold of its log, and what is under way right now.
#[derive(Clone, Debug)]
pub struct Session {
    terms: Terms,
    /// The first fact, until there is another reason to write.
    opening: Option<Fact>,
    head: Seq,
    /// When the last fact was recorded, or the last input came.
    now: Millis,
    transcript: Transcript,
    turns: u32,
    turn: Option<Turn>,
    approved: Approved,
    /// What the model is to be told before it is asked again.
    news: Vec<String>,
    /// What it has been told besides the conversation, once that was looked up.
    told: Option<Said>,
    files: Files,
    /// Somebody gave it a title.
    named: bool,
    /// The model has not been told since the mode changed.
    mode_untold: bool,
    gauge: Gauge,
    outline: Outline,
    track: Track,
}

/// Effects in the making. Facts that follow each other share one append.
#[derive(Default)]
struct Out(Vec<Effect>);

impl Out {
    fn fact(&mut self, fact: Fact) {
        match self.0.last_mut() {
            Some(Effect::Append(facts)) => facts.push(fact),
            Some(_) | None => self.0.push(Effect::Append(vec![fact])),
        }
    }
}

/// A call's arguments, with what the log knows of them already.
fn arguments(call: &Call, files: &Files) -> String {
    let undoes = call.by == Author::Person && call.tool == UNDO;
    let undo = undoes.then(|| serde_json::from_str::<Undo>(&call.arguments).ok()).flatten();
    let whole = undo.and_then(|undo| files.undo(&undo.facts)).map(|undo| json!(undo).to_string());
    whole.unwrap_or_else(|| call.arguments.clone())
}

fn notice(text: &str, out: &mut Out) {
    out.0.push(Effect::Show(Live::Noticed { text: text.to_owned() }));
}

impl Session {
    /// A session that has no facts yet.
    pub fn new(opening: Fact, terms: Terms) -> Session {
        Session::empty(Some(opening), terms)
    }

    fn empty(opening: Option<Fact>, terms: Terms) -> Session {
        Session {
            terms,
            opening,
            head: 0,
            transcript: Transcript::default(),
            turns: 0,
            turn: None,
            approved: Approved::default(),
            news: Vec::new(),
            told: None,
            now: Millis(0),
            files: Files::default(),
            named: false,
            mode_untold: false,
            gauge: Gauge::default(),
            outline: Outline::default(),
            track: Track::default(),
        }
    }

    /// A session as its log tells it.
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a Record>, terms: Terms) -> Session {
        let mut session = Session::empty(None, terms);
        session.read_on(log);
        session
    }

    /// When the last thing happened in it.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Takes in what the log tells further on.
    pub(crate) fn read_on<'a>(&mut self, log: impl IntoIterator<Item = &'a Record>) {
        for record in log {
            self.now = record.at;
            self.record(&record.fact);
        }
    }

    /// What the log means so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What it knows of files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The last position in the log.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// True if a turn is under way.
    pub fn busy(&self) -> bool {
        self.turn.is_some()
    }

    /// True if the turn under way is about a prompt.
    pub(crate) fn is_prompted(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.prompted)
    }

    /// Takes in what happened and says what to do about it.
    pub fn apply(&mut self, stamp: Stamp, input: Input) -> Vec<Effect> {
        let mut out = Out::default();
        if input == Input::Resume {
            self.skip_to(stamp.at);
        }
        self.now = stamp.at;
        match input {
            Input::Op(op) => self.op(stamp, op, &mut out),
            Input::Resume => self.resume(&mut out),
            Input::Model { turn, step, event } => {
                let open = |t: &Turn| t.number == turn && t.steps == step && t.step_open;
                if self.turn.as_ref().is_some_and(open) {
                    self.model(stamp, event, &mut out);
                }
            }
            Input::Intended { turn, call, intent } => self.intended(turn, call, intent, &mut out),
            Input::Looked { turn, call, preview } => self.looked(turn, call, preview, &mut out),
            Input::Unchanged { turn, call } => self.unchanged(turn, call, &mut out),
            Input::Settled { turn, call, outcome, seen } => {
                self.settled(turn, call, (outcome, seen), &mut out);
            }
            Input::Changing { turn, call, changes } => {
                self.changing(turn, call, changes, &mut out);
            }
            Input::Inquired { turn, call, inquiries, stake } => {
                self.inquired((turn, call), inquiries, stake, &mut out);
            }
            Input::Spawning { turn, birth } => self.spawning(turn, birth, &mut out),
            Input::Broke { turn, step, what } => self.broke(turn, step, what, &mut out),
            Input::Another { model, window, price } => {
                (self.terms.model, self.terms.window, self.terms.price) = (model, window, price);
            }
            Input::Told { text } => self.hear_of(vec![text], &mut out),
            Input::Hooked { call, firings } => self.hooked(call, firings, &mut out),
            Input::Briefing { text, firings } => {
                self.hooked(None, firings, &mut out);
                self.terms.brief = text;
            }
            Input::Prompted { text, attachments, when, firings, context } => {
                self.hooked(None, firings, &mut out);
                self.hear_of(context, &mut out);
                self.op(stamp, Op::Prompt { text, attachments, when }, &mut out);
            }
            Input::Withheld { text, end, firings } => {
                self.hooked(None, firings, &mut out);
                self.withhold(stamp, text, end, &mut out);
            }
            Input::Woke { turn, step } => {
                let waits = |t: &Turn| t.number == turn && t.steps == step && !t.step_open;
                if self.turn.as_ref().is_some_and(|t| waits(t) && t.failures > 0) {
                    self.go_on(&mut out);
                }
            }
            Input::Rang { turn } => self.rang(turn, &mut out),
            Input::Titled { title, usage } => self.titled(title, usage, &mut out),
        }
        out.0
    }

    fn op(&mut self, stamp: Stamp, op: Op, out: &mut Out) {
        match op {
            Op::Prompt { text, attachments, when } => {
                let prompt = PromptId(stamp.id);
                self.decide(Fact::Prompted { prompt, text, attachments, when }, out);
                self.start_next(out);
            }
            Op::Call { tool, .. } if tool == UNDO => {
                notice("Changes are taken back by `windlass session undo`.", out);
            }
            Op::Call { tool, arguments } => self.call(stamp, tool, arguments, out),
            Op::Undo { facts } => match self.files.undo(&facts) {
                // The log has the changes already.
                Some(_) => {
                    let arguments = json!({ "facts": facts }).to_string();
                    self.call(stamp, UNDO.to_owned(), arguments, out);
                }
                None => notice("What was to be taken back no longer stands. Look again.", out),
            },
            Op::Answer { call, answer } => self.answered(call, answer, out),
            Op::Reply { call, replies } => self.replied(call, replies, out),
            Op::Compact => self.compact(out),
            Op::Mode { mode } => self.change_mode(mode, out),
            Op::Interrupt => self.interrupt(out),
            Op::Withdraw { prompt } => self.withdraw(prompt, out),
            Op::Back { to } => self.step_back(to, out),
            Op::EndJob { job } => out.0.push(Effect::EndJob { job }),
            Op::Rename { title } => self.decide(Fact::renamed(title), out),
        }
    }

    /// Makes a call for a person.
    fn call(&mut self, stamp: Stamp, tool: String, arguments: String, out: &mut Out) {
        if self.turn.is_some() {
            return notice("A turn is under way; the call was not made.", out);
        }
        let turn = self.turns + 1;
        self.decide(Fact::TurnStarted { turn, prompt: None }, out);
        let (call, by) = (CallId(stamp.id), Author::Person);
        let reference = format!("call_{}", stamp.id.simple());
        let (repaired, seal) = (Vec::new(), None);
        let called = Fact::Called { call, reference, tool, arguments, by, repaired, seal };
        self.decide(called, out);
        self.launch(out);
    }

    /// Begins the next turn, if a prompt waits and none is under way.
    fn start_next(&mut self, out: &mut Out) {
        if self.turn.is_some() {
            return;
        }
        let Some(prompt) = self.transcript.waiting.first().map(|prompt| prompt.id) else { return };
        let turn = self.turns + 1;
        self.decide(Fact::TurnStarted { turn, prompt: Some(prompt) }, out);
        self.ask_model(out);
        if self.turns == turn {
            self.arm(out);
        }
    }

    /// Asks the model again, for what it was asked last.
    fn go_on(&mut self, out: &mut Out) {
        match self.turn.as_ref().map(|turn| turn.prompted) {
            Some(true) => self.ask_model(out),
            Some(false) => self.compact_on(out),
            None => {}
        }
    }

    /// Asks the model to go on with the conversation, or first to sum it up.
    fn ask_model(&mut self, out: &mut Out) {
        let Some(turn) = &self.turn else { return };
        let most = self.terms.limits.steps;
        let requests = || format!("the limit of {most} requests in one turn");
        let over = (turn.steps >= most).then(requests).or_else(|| self.over());
        if let Some(what) = over {
            return self.end(TurnEnd::Limit { what }, out);
        }
        // What was lost with the process is asked for again as it was.
        let again = turn.steps > 0 && turn.finish.is_none();
        self.brief(out);
        if !again {
            self.steer(out);
            self.tell_mode(out);
        }
        self.tell_changes(out);
        self.tell_todos(out);
        self.tell_news(out);
        match self.make_room(out) {
            Room::Enough => {
                let messages = self.transcript.for_model();
                self.start_step(Purpose::Answer, messages, out);
            }
            Room::Made => {}
            Room::None => self.too_long(out),
        }
    }

    /// Puts on record what the model is told before everything else, once.
    fn brief(&mut self, out: &mut Out) {
        if self.transcript.brief.is_none() && !self.terms.brief.is_empty() {
            self.decide(Fact::Briefed { text: self.terms.brief.to_string() }, out);
        }
    }

    /// Puts on record what happened besides the conversation, where the model reads it next.
    fn tell_news(&mut self, out: &mut Out) {
        for text in std::mem::take(&mut self.news) {
            self.decide(Fact::ContextChanged { text }, out);
        }
    }

    /// Sends the calls of the step down the road.
    fn launch(&mut self, out: &mut Out) {
        self.find_loops();
        let denies = self.terms.looping == Looping::Deny;
        let Some(turn) = &mut self.turn else { return };
        if denies && turn.calls.iter().any(|call| call.looping.is_some()) {
            let text = "Not run: the same was done again and again.".to_owned();
            return self.stop_calls(&Outcome::Denied { text }, out);
        }
        let (number, most) = (turn.number, self.terms.limits.calls);
        let settled = turn.settled;
        for (index, call) in (settled..).zip(turn.open_mut()) {
            if matches!(call.stage, Stage::Checked | Stage::Done(_)) {
                continue;
            }
            if index >= most {
                let text = format!("Not run: more than {most} calls at once. Make fewer.");
                call.stage = Stage::Done(Outcome::Failed { text });
                continue;
            }
            call.stage = Stage::Launched;
            out.0.push(Effect::CallTool {
                turn: number,
                call: call.id,
                tool: call.tool.clone(),
                arguments: arguments(call, &self.files),
                by: call.by,
            });
        }
        self.pump(out);
    }

    fn intended(&mut self, turn: u32, id: CallId, mut intent: Intent, out: &mut Out) {
        let asks = self.terms.looping == Looping::Ask;
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) = open.call(id).filter(|call| matches!(call.stage, Stage::Launched)) else {
            return;
        };
        if let Some(circle) = call.looping.as_ref().filter(|_| asks) {
            let why = intent.asking.take().map(|why| format!("{why}; ")).unwrap_or_default();
            intent.asking = Some(format!("{why}{circle}, with the same result"));
            (intent.coverable, intent.offer) = (false, None);
        }
        if let Some(why) = call.doubt.as_ref().filter(|_| intent.asking.is_none()) {
            // A hook wanted that before a crash; that still stands.
            (intent.asking, intent.coverable, intent.offer) = (Some(why.clone()), false, None);
        }
        let refused = call.answered(&intent).filter(|answer| !answer.is_yes()).cloned();
        (call.stage, call.question) = (Stage::Intended(intent), Question::Unasked);
        if let Some(answer) = refused {
            // Somebody said no before a crash; that still stands.
            out.0.push(Effect::Answer { call: id, answer });
        }
        self.pump(out);
    }

    /// Settles what ended, in the order of the calls, and starts what may start.
    fn pump(&mut self, out: &mut Out) {
        if self.turn.as_ref().is_some_and(|turn| turn.calls.iter().any(Call::ends_the_turn)) {
            let text = "Not run: the person said no to another call of this step.".to_owned();
            self.turn_back(&Outcome::Denied { text }, out);
        }
        while let Some(turn) = &self.turn {
            let Some(first) = turn.open().first() else {
                return self.calls_settled(out);
            };
            let Stage::Done(outcome) = &first.stage else { break };
            let (call, outcome, seen) = (first.id, outcome.clone(), first.seen.clone());
            self.decide(Fact::Settled { call, outcome, seen }, out);
        }
        self.ask_next(out);
        while let Some(turn) = &mut self.turn {
            if turn.stopping() {
                return;
            }
            let Some(call) = turn.startable() else { return };
            let Stage::Intended(intent) = &call.stage else { return };
            let (intent, id, attempt) = (intent.clone(), call.id, call.attempts + 1);
            let answer = call.answer.clone().filter(Answer::is_yes).unwrap_or(Answer::Once);
            call.stage = Stage::Running(intent.clone());
            let Intent { accesses, read_only, repaired, .. } = intent;
            self.decide(Fact::Started { call: id, attempt, accesses, read_only, repaired }, out);
            out.0.push(Effect::Answer { call: id, answer });
        }
    }

    /// Has the first call that is not settled say what it would do, if somebody must be asked. The
    /// calls before it are done, so what is shown is what will be.
    fn ask_next(&mut self, out: &mut Out) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.stopping()) else { return };
        let Some(call) = turn.open_mut().first_mut() else { return };
        let Stage::Intended(intent) = &call.stage else { return };
        let unasked = call.question == Question::Unasked;
        if !unasked || !call.in_question(intent) || call.answered(intent).is_some() {
            return;
        }
        let id = call.id;
        // An answer to another question about this call is the person's to give again.
        let open = call.asked.is_none() || call.answer.is_none();
        if open && self.approved.covers(intent) {
            return self.cover(id, out);
        }
        call.question = Question::Looking;
        out.0.push(Effect::Look { call: id });
    }

    /// All calls of the step are settled: on to the next step, or the end.
    fn calls_settled(&mut self, out: &mut Out) {
        let Some(turn) = &self.turn else { return };
        let denied = |call: &Call| call.denied && !turn.prompted;
        if turn.interrupted {
            self.end(TurnEnd::Interrupted, out);
        } else if let Some(end) = self.expired() {
            self.end(end, out);
        } else if let Some(what) = self.looped() {
            self.end(TurnEnd::Looped { what }, out);
        } else if turn.calls.iter().any(|call| call.ends_the_turn() || denied(call)) {
            self.end(TurnEnd::Denied, out);
        } else if turn.prompted {
            self.ask_model(out);
        } else {
            self.end(TurnEnd::Done, out);
        }
    }

    fn end(&mut self, end: TurnEnd, out: &mut Out) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.number) else { return };
        self.decide(Fact::TurnEnded { turn, end }, out);
        self.tell_news(out);
        self.start_next(out);
    }

    /// Makes a fact: into the state and into the log.
    fn decide(&mut self, fact: Fact, out: &mut Out) {
        if let Some(opening) = self.opening.take() {
            self.record(&opening);
            out.fact(opening);
        }
        self.record(&fact);
        out.fact(fact);
    }
}

#[cfg(test)]
mod tests;
