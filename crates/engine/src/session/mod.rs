//! The session decides, without doing: inputs in, effects out, no I/O, no clock, no chance.
//!
//! Every decision that matters becomes a fact, and [`Session::record`] is the only way a fact
//! changes the state, whether it was just decided or read back from a log. So a crash is nothing
//! but a shorter log, and [`Input::Resume`] goes on from wherever it ends.

mod answer;
mod approve;
mod fold;
mod stop;
mod turn;
mod words;

pub use words::{Effect, Input, Stamp};

use approve::Approved;
use serde_json::json;
use turn::{Call, Question, Stage, Turn};
use windlass_protocol::files::UNDO;
use windlass_protocol::{
    Answer, Author, CallId, Change, Fact, Files, Finish, Live, Op, Outcome, PromptId, Record, Seq,
    Sight, Transcript, TurnEnd, Undo, Usage,
};
use windlass_toolkit::Intent;

/// Bounds on what one turn may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests to the model in one turn.
    pub steps: u32,
    /// Calls in one step; further ones are turned back.
    pub calls: usize,
    /// Bytes of one answer.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 5_000, calls: 64, answer: 8 << 20 }
    }
}

/// A session's state: the fold of its log, and what is under way right now.
#[derive(Clone, Debug)]
pub struct Session {
    model: String,
    limits: Limits,
    /// The first fact, until there is another reason to write.
    opening: Option<Fact>,
    head: Seq,
    transcript: Transcript,
    turns: u32,
    turn: Option<Turn>,
    approved: Approved,
    /// What the model is to be told before it is asked again.
    news: Vec<String>,
    files: Files,
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
    pub fn new(opening: Fact, model: String, limits: Limits) -> Session {
        Session::empty(Some(opening), model, limits)
    }

    fn empty(opening: Option<Fact>, model: String, limits: Limits) -> Session {
        Session {
            model,
            limits,
            opening,
            head: 0,
            transcript: Transcript::default(),
            turns: 0,
            turn: None,
            approved: Approved::default(),
            news: Vec::new(),
            files: Files::default(),
        }
    }

    /// A session as its log tells it.
    pub fn replay<'a>(
        log: impl IntoIterator<Item = &'a Record>,
        model: String,
        limits: Limits,
    ) -> Session {
        let mut session = Session::empty(None, model, limits);
        for record in log {
            session.record(&record.fact);
        }
        session
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

    /// Takes in what happened and says what to do about it.
    pub fn apply(&mut self, stamp: Stamp, input: Input) -> Vec<Effect> {
        let mut out = Out::default();
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
            Input::Told { text } => {
                self.news.push(text);
                if self.turn.is_none() {
                    self.tell_news(&mut out);
                }
            }
            Input::Woke { turn, step } => {
                let waits = |t: &Turn| t.number == turn && t.steps == step && !t.step_open;
                if self.turn.as_ref().is_some_and(|t| waits(t) && t.failures > 0) {
                    self.ask_model(&mut out);
                }
            }
        }
        out.0
    }

    fn op(&mut self, stamp: Stamp, op: Op, out: &mut Out) {
        match op {
            Op::Prompt { text, attachments } => {
                let prompt = PromptId(stamp.id);
                self.decide(Fact::Prompted { prompt, text, attachments }, out);
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
            Op::Interrupt => self.interrupt(out),
            Op::Rename { title } => self.decide(Fact::Renamed { title }, out),
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

    /// Goes on from wherever the log ends.
    fn resume(&mut self, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return self.start_next(out) };
        if turn.step_open {
            let (turn, step) = (turn.number, turn.steps);
            let (finish, usage) = (Finish::Lost, Usage::default());
            self.decide(Fact::StepEnded { turn, step, finish, usage }, out);
            return self.resume(out);
        }
        for call in turn.calls.iter_mut().filter(|call| !call.settled) {
            // What may have changed something is not run again; what only looked is.
            if call.attempts > 0 && !call.read_only {
                call.stage = Stage::Checked;
                let (accesses, changes) = (call.accesses.clone(), call.changing.concat());
                let (turn, call) = (turn.number, call.id);
                out.0.push(Effect::Reconcile { turn, call, accesses, changes });
            }
        }
        if turn.interrupted {
            return self.abandon(out);
        }
        if turn.calls.is_empty() {
            // Between two steps, or behind the last one.
            return match turn.finish.clone() {
                Some(finish) if turn.failures == 0 => self.conclude(finish, out),
                // It was waiting to try again, perhaps because it was told to: it still does.
                Some(_) => {
                    let (turn, step, after_ms) = (turn.number, turn.steps, turn.wait_ms);
                    out.0.push(Effect::Wake { turn, step, after_ms });
                }
                None => self.ask_model(out),
            };
        }
        self.launch(out);
    }

    /// Begins the next turn, if a prompt waits and none is under way.
    fn start_next(&mut self, out: &mut Out) {
        if self.turn.is_some() {
            return;
        }
        let Some(prompt) = self.transcript.waiting.first().map(|prompt| prompt.id) else { return };
        self.decide(Fact::TurnStarted { turn: self.turns + 1, prompt: Some(prompt) }, out);
        self.ask_model(out);
    }

    fn ask_model(&mut self, out: &mut Out) {
        let Some(turn) = &self.turn else { return };
        if turn.steps >= self.limits.steps {
            let what = format!("the limit of {} requests in one turn", self.limits.steps);
            return self.end(TurnEnd::Limit { what }, out);
        }
        let (turn, step) = (turn.number, turn.steps + 1);
        self.tell_news(out);
        self.decide(Fact::StepStarted { turn, step, model: self.model.clone() }, out);
        let messages = self.transcript.for_model();
        out.0.push(Effect::CallModel { turn, step, messages });
    }

    /// Puts on record what happened besides the conversation, where the model reads it next.
    fn tell_news(&mut self, out: &mut Out) {
        for text in std::mem::take(&mut self.news) {
            self.decide(Fact::ContextChanged { text }, out);
        }
    }

    /// Sends the calls of the step down the road.
    fn launch(&mut self, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let (number, most) = (turn.number, self.limits.calls);
        for (index, call) in turn.calls.iter_mut().enumerate() {
            if call.settled || matches!(call.stage, Stage::Checked | Stage::Done(_)) {
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

    fn intended(&mut self, turn: u32, id: CallId, intent: Intent, out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) = open.call(id).filter(|call| matches!(call.stage, Stage::Launched)) else {
            return;
        };
        let refused = call.answered(&intent).filter(|answer| !answer.is_yes()).cloned();
        (call.stage, call.question) = (Stage::Intended(intent), Question::Unasked);
        if let Some(answer) = refused {
            // Somebody said no before a crash; that still stands.
            out.0.push(Effect::Answer { call: id, answer });
        }
        self.pump(out);
    }

    /// Lets a call change files once that is on record. One that was told to stop may not begin.
    fn changing(&mut self, turn: u32, id: CallId, changes: Vec<Change>, out: &mut Out) {
        let Some(open) = self.turn.as_mut() else { return };
        let may = open.number == turn && !open.interrupted;
        let runs = |call: &mut Call| matches!(&call.stage, Stage::Running(i) if !i.read_only);
        if may && open.call(id).is_some_and(runs) {
            self.decide(Fact::Changing { call: id, changes }, out);
            out.0.push(Effect::Recorded { call: id });
        }
    }

    /// What was put on record last did not happen.
    fn unchanged(&mut self, turn: u32, id: CallId, out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let runs =
            |call: &mut Call| matches!(call.stage, Stage::Running(_)) && !call.changing.is_empty();
        if open.call(id).is_some_and(runs) {
            self.decide(Fact::Unchanged { call: id }, out);
        }
    }

    /// What was found out about a call that was changing files when the process died.
    fn checked(&mut self, id: CallId, outcome: &Outcome, out: &mut Out) {
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) else { return };
        match outcome {
            Outcome::Completed { .. } => {
                let after = |change: &Change| {
                    let digest = change.after.as_ref()?.copy.clone();
                    Some(Sight { path: change.path.clone(), digest })
                };
                call.seen = call.changing.iter().flatten().filter_map(after).collect();
            }
            Outcome::Failed { .. } => {
                for _ in 0..call.changing.len() {
                    self.decide(Fact::Unchanged { call: id }, out);
                }
            }
            Outcome::Denied { .. } | Outcome::Interrupted { .. } | Outcome::Unknown => {}
        }
    }

    fn settled(&mut self, turn: u32, id: CallId, end: (Outcome, Vec<Sight>), out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) = open.call(id) else { return };
        let (outcome, seen) = end;
        match call.stage {
            Stage::Checked => {
                call.stage = Stage::Done(outcome.clone());
                self.checked(id, &outcome, out);
                self.pump(out);
            }
            Stage::Launched | Stage::Intended(_) | Stage::Running(_) => {
                // What was not given to the model was not seen by it.
                let given = matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. });
                call.seen = if given { seen } else { Vec::new() };
                call.stage = Stage::Done(outcome);
                self.pump(out);
            }
            Stage::Away | Stage::Done(_) => {}
        }
    }

    /// Settles what ended, in the order of the calls, and starts what may start.
    fn pump(&mut self, out: &mut Out) {
        if self.turn.as_ref().is_some_and(|turn| turn.calls.iter().any(Call::ends_the_turn)) {
            let text = "Not run: the person said no to another call of this step.".to_owned();
            self.turn_back(&Outcome::Denied { text }, out);
        }
        while let Some(turn) = &self.turn {
            let Some(first) = turn.calls.iter().find(|call| !call.settled) else {
                return self.calls_settled(out);
            };
            let Stage::Done(outcome) = &first.stage else { break };
            let (call, outcome, seen) = (first.id, outcome.clone(), first.seen.clone());
            self.decide(Fact::Settled { call, outcome, seen }, out);
        }
        self.ask_next(out);
        while let Some(turn) = &mut self.turn {
            if turn.interrupted {
                return;
            }
            let Some(call) = turn.startable().and_then(|index| turn.calls.get_mut(index)) else {
                return;
            };
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
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.interrupted) else { return };
        let Some(call) = turn.calls.iter_mut().find(|call| !call.settled) else { return };
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
