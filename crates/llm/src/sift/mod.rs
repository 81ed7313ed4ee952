//! Thoughts and calls that a model wrote into its text, told apart from it.
//!
//! Servers of local models often hand on whatever the model wrote. [`Sift`] sits behind a wire
//! format and reads the tags models were trained on. It repairs nothing and runs nothing, and it
//! keeps the invariant that how a text was cut into pieces changes nothing but when it is handed
//! on. A call counts only if the answer ended properly; otherwise what it was written as is text.
//! Start reading at [`Sift::take`]; `marks` says what is looked for, `call` reads what was found.

mod call;
mod json;
mod marks;
#[cfg(test)]
mod tests;
mod whole;

use crate::ModelEvent;
use call::{End, Gather, Step, Written};
use marks::{Lines, MARKS, Mark};
use whole::Whole;
use windlass_protocol::Finish;

/// How many bytes of calls are held back in all.
const MOST_BYTES: usize = 8 << 20;

/// How many calls an answer may make.
const MOST_CALLS: usize = 1_000;

/// Tells the thoughts and calls in the text of one answer apart from the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sift {
    think: bool,
    /// The offered tools, folded, if calls are looked for.
    tools: Option<Vec<String>>,
    place: Place,
    /// What may become a mark.
    held: String,
    lines: Lines,
    answer: Answer,
    /// A thought was seen.
    thought: bool,
    gap: Gap,
    calls: Calls,
    /// The server has made a call itself.
    native: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Text,
    Thought { close: &'static str, begun: bool },
    Call(Gather),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// So far it is this whitespace.
    Blank(String),
    /// It may be nothing but a call.
    Whole(Whole),
    Begun,
}

/// What the whitespace we are in belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Text,
    Thought,
    Call,
}

/// The calls so far.
#[derive(Clone, Debug, Default, PartialEq)]
struct Calls {
    written: Vec<Written>,
    /// All that they were written as.
    raw: String,
    /// No more are taken.
    full: bool,
}

/// Events, with neighbours of one kind joined.
#[derive(Default)]
struct Out(Vec<ModelEvent>);

impl Out {
    fn text(&mut self, c: char) {
        match self.0.last_mut() {
            Some(ModelEvent::Text(text)) => text.push(c),
            _ => self.0.push(ModelEvent::Text(c.into())),
        }
    }

    fn reasoning(&mut self, c: char) {
        match self.0.last_mut() {
            Some(ModelEvent::Reasoning(text)) => text.push(c),
            _ => self.0.push(ModelEvent::Reasoning(c.into())),
        }
    }
}

impl Sift {
    /// A sift for one answer. With `think`, thoughts in tags are separated; with the names of the
    /// offered `tools`, calls written as text are.
    pub fn new(think: bool, tools: Option<Vec<String>>) -> Sift {
        Sift {
            think,
            tools: tools.map(|tools| tools.iter().map(|tool| whole::folded(tool)).collect()),
            place: Place::Text,
            held: String::new(),
            lines: Lines::default(),
            answer: Answer::Blank(String::new()),
            thought: false,
            gap: Gap::Text,
            calls: Calls::default(),
            native: false,
        }
    }

    /// Takes an event in, hands on what it means. What is held back when a step fails is dropped.
    pub fn take(&mut self, event: ModelEvent, out: &mut Vec<ModelEvent>) {
        if !self.think && self.tools.is_none() {
            out.push(event);
            return;
        }
        let mut fresh = Out::default();
        match event {
            ModelEvent::Text(text) => {
                for c in text.chars() {
                    self.feed(c, &mut fresh);
                }
            }
            ModelEvent::Reasoning(_) | ModelEvent::Sealed(_) => {
                self.release(&mut fresh);
                fresh.0.push(event);
            }
            ModelEvent::Call { .. } => {
                self.native = true;
                self.release(&mut fresh);
                self.begin_text(&mut fresh);
                fresh.0.push(event);
            }
            ModelEvent::Ended { finish, usage } => {
                let finish = self.end(finish, &mut fresh);
                fresh.0.push(ModelEvent::Ended { finish, usage });
            }
            ModelEvent::Failed(_) => fresh.0.push(event),
        }
        out.append(&mut fresh.0);
    }

    fn feed(&mut self, c: char, out: &mut Out) {
        match &mut self.place {
            Place::Thought { close, .. } => {
                let close = *close;
                self.think_on(c, close, out);
            }
            Place::Call(_) => self.gather(c, out),
            Place::Text => match &mut self.answer {
                Answer::Whole(whole) => {
                    if !whole.take(c) {
                        self.unwrap_whole(out);
                    }
                }
                Answer::Blank(_) | Answer::Begun => self.look(c, out),
            },
        }
    }

    fn feed_all(&mut self, text: &str, out: &mut Out) {
        for c in text.chars() {
            self.feed(c, out);
        }
    }

    /// Reads an answer that is not only a call like any other.
    fn unwrap_whole(&mut self, out: &mut Out) {
        if let Answer::Whole(whole) = std::mem::replace(&mut self.answer, Answer::Begun) {
            self.feed_all(&whole.into_text(), out);
        }
    }

    /// Looks for a mark.
    fn look(&mut self, c: char, out: &mut Out) {
        if self.held.is_empty() {
            if !marks::begins(c) {
                return self.plain(c, out);
            }
            self.lines.settle();
        }
        self.held.push(c);
        let mut possible = false;
        for (text, mark) in MARKS {
            if text.starts_with(&self.held) && self.allows(*mark) {
                if text.len() == self.held.len() {
                    self.held.clear();
                    return self.begin(text, *mark, out);
                }
                possible = true;
            }
        }
        if !possible {
            let held = std::mem::take(&mut self.held);
            let mut chars = held.chars();
            if let Some(first) = chars.next() {
                self.plain(first, out);
            }
            self.feed_all(chars.as_str(), out);
        }
    }

    /// True if a mark means something here.
    fn allows(&self, mark: Mark) -> bool {
        let first = matches!(self.answer, Answer::Blank(_)) || self.lines.at_start();
        let here = match mark {
            Mark::Think(_) => self.think && first,
            Mark::Unthink => self.think && !self.thought,
            Mark::Call(_) => self.tools.is_some() && !self.calls.full,
            Mark::Stray => self.gap == Gap::Call && self.calls.raw.len() < MOST_BYTES,
        };
        here && !self.lines.in_code() && !self.lines.is_quoted()
    }

    fn begin(&mut self, text: &str, mark: Mark, out: &mut Out) {
        let blank = match &mut self.answer {
            Answer::Blank(blank) => std::mem::take(blank),
            Answer::Whole(_) | Answer::Begun => String::new(),
        };
        match mark {
            Mark::Think(close) => {
                self.thought = true;
                self.place = Place::Thought { close, begun: false };
            }
            Mark::Unthink => {
                self.thought = true;
                // All before was a thought, and a call in a thought is not made.
                self.unwrite(out);
                self.answer = Answer::Blank(String::new());
                self.resume(Gap::Thought);
            }
            Mark::Call(form) => {
                self.answer = Answer::Begun;
                self.place = Place::Call(Gather::new(form, blank, text));
            }
            Mark::Stray => self.calls.raw.push_str(text),
        }
    }

    /// Shows the calls so far as the text they were.
    fn unwrite(&mut self, out: &mut Out) {
        self.calls.written.clear();
        let raw = std::mem::take(&mut self.calls.raw);
        self.show_all(&raw, out);
    }

    /// Goes back to text, as if a line began.
    fn resume(&mut self, gap: Gap) {
        self.place = Place::Text;
        self.lines = Lines::default();
        self.gap = gap;
    }

    /// Takes in a character that is no mark.
    fn plain(&mut self, c: char, out: &mut Out) {
        if c.is_whitespace() {
            match self.gap {
                Gap::Thought => return,
                Gap::Call if self.calls.raw.len() < MOST_BYTES => return self.calls.raw.push(c),
                Gap::Call | Gap::Text => {}
            }
        }
        self.gap = Gap::Text;
        if let Answer::Blank(blank) = &mut self.answer {
            if c.is_whitespace() && blank.len() < whole::LONGEST {
                return blank.push(c);
            }
            if self.tools.is_some()
                && let Some(whole) = Whole::new(blank, c)
            {
                self.answer = Answer::Whole(whole);
                return;
            }
            self.begin_text(out);
        }
        self.show(c, out);
    }

    /// Hands on the whitespace an answer began with: it is text.
    fn begin_text(&mut self, out: &mut Out) {
        if let Answer::Blank(blank) = std::mem::replace(&mut self.answer, Answer::Begun) {
            self.show_all(&blank, out);
        }
    }

    fn show(&mut self, c: char, out: &mut Out) {
        self.lines.take(c);
        out.text(c);
    }

    fn show_all(&mut self, text: &str, out: &mut Out) {
        for c in text.chars() {
            self.show(c, out);
        }
    }

    /// Takes in a character of a thought.
    fn think_on(&mut self, c: char, close: &'static str, out: &mut Out) {
        if self.held.is_empty() && !close.starts_with(c) {
            return self.muse(c, out);
        }
        self.held.push(c);
        if close == self.held {
            self.held.clear();
            self.resume(Gap::Thought);
        } else if !close.starts_with(&self.held) {
            let held = std::mem::take(&mut self.held);
            let mut chars = held.chars();
            if let Some(first) = chars.next() {
                self.muse(first, out);
            }
            self.feed_all(chars.as_str(), out);
        }
    }

    fn muse(&mut self, c: char, out: &mut Out) {
        if let Place::Thought { begun, .. } = &mut self.place {
            *begun |= !c.is_whitespace();
            if *begun {
                out.reasoning(c);
            }
        }
    }

    /// Takes in a character of a call.
    fn gather(&mut self, c: char, out: &mut Out) {
        let Place::Call(gather) = &mut self.place else { return };
        let step = gather.take(c);
        let full = self.calls.raw.len() + gather.len() > MOST_BYTES;
        if step == Step::More && !full {
            return;
        }
        let Place::Call(gather) = std::mem::replace(&mut self.place, Place::Text) else { return };
        self.gap = Gap::Text;
        if full {
            self.calls.full = true;
            self.show_all(&gather.into_raw(), out);
        } else if step == Step::Closed {
            self.keep(gather, End::Written, out);
        } else {
            let (mark, body) = gather.split();
            self.show_all(&mark, out);
            self.feed_all(&body, out);
        }
    }

    /// Keeps a call for the end of the answer, or shows it if it cannot be read.
    fn keep(&mut self, gather: Gather, end: End, out: &mut Out) {
        let calls = gather.calls(end);
        let raw = gather.into_raw();
        match calls {
            Some(calls) if self.calls.written.len() + calls.len() <= MOST_CALLS => {
                self.calls.written.extend(calls);
                self.calls.raw.push_str(&raw);
                self.resume(Gap::Call);
            }
            Some(_) => {
                self.calls.full = true;
                self.show_all(&raw, out);
            }
            None => self.show_all(&raw, out),
        }
    }

    /// Hands on what is held back because of what might have followed.
    fn release(&mut self, out: &mut Out) {
        while matches!(self.answer, Answer::Whole(_)) {
            self.unwrap_whole(out);
        }
        let held = std::mem::take(&mut self.held);
        if matches!(self.place, Place::Thought { .. }) {
            held.chars().for_each(|c| self.muse(c, out));
            return;
        }
        if !held.is_empty() {
            self.gap = Gap::Text;
            self.begin_text(out);
            self.show_all(&held, out);
        }
        if let Answer::Blank(blank) = &mut self.answer {
            let blank = std::mem::take(blank);
            self.show_all(&blank, out);
        }
    }

    /// Takes in that the answer ended, and says how it really did.
    fn end(&mut self, finish: Finish, out: &mut Out) -> Finish {
        if !matches!(finish, Finish::Stop | Finish::Calls) {
            self.release(out);
            let raw = std::mem::take(&mut self.calls.raw);
            self.show_all(&raw, out);
            if let Place::Call(gather) = std::mem::replace(&mut self.place, Place::Text) {
                self.show_all(&gather.into_raw(), out);
            }
            return finish;
        }
        if let (Answer::Whole(whole), Some(tools)) = (&self.answer, &self.tools)
            && let Some(calls) = whole.calls(tools)
            && self.calls.written.len() + calls.len() <= MOST_CALLS
        {
            self.answer = Answer::Begun;
            self.calls.written.extend(calls);
        }
        self.release(out);
        while let Place::Call(gather) = std::mem::replace(&mut self.place, Place::Text) {
            self.end_call(gather, out);
            self.release(out);
        }
        // A server that makes calls of the text itself may leave the text where it was.
        if self.native {
            self.unwrite(out);
        }
        let written = std::mem::take(&mut self.calls.written);
        let finish = if written.is_empty() { finish } else { Finish::Calls };
        out.0.extend(written.into_iter().enumerate().map(|(at, call)| ModelEvent::Call {
            reference: format!("text_call_{at}"),
            tool: call.tool,
            arguments: call.arguments,
            seal: None,
            repaired: vec!["the call was written as text".into()],
        }));
        finish
    }

    /// Takes in that the answer ended inside a call. If it cannot be read as a whole, a closing tag
    /// that seemed to be part of an argument was none after all.
    fn end_call(&mut self, gather: Gather, out: &mut Out) {
        self.gap = Gap::Text;
        if gather.calls(End::Missing).is_some() {
            return self.keep(gather, End::Missing, out);
        }
        match gather.split_at_doubt() {
            (gather, Some(rest)) => {
                self.keep(gather, End::Written, out);
                // What follows may be quoted, so nothing in it is a call.
                self.show_all(&rest, out);
            }
            (gather, None) => self.show_all(&gather.into_raw(), out),
        }
    }
}
