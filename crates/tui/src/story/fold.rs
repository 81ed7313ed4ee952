//! The fold: facts become blocks, each of which is drawn by itself.
//!
//! A block holds no texts of its own but the positions of the facts it is made of, so that folding a
//! window anew costs next to nothing. It is named by the fact that made it, and blocks stand in the
//! order of those.

use super::window::Window;
use std::collections::HashMap;
use std::rc::Rc;
use windlass_protocol::{
    Attachment, CallId, Cost, Fact, Finish, Millis, Mode, PromptId, Record, Seq, SessionId,
    TurnEnd, Verdict,
};

/// Names a block: the position of the fact that made it, and a number for what came right after it
/// and is no fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(pub Seq, pub u32);

/// Something that stands in the story.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub key: Key,
    pub what: What,
    /// Grows whenever it looks different.
    pub stamp: u64,
}

impl Block {
    /// Has it drawn anew. Positions do not come near to this half of the numbers.
    fn stir(&mut self) {
        self.stamp = (self.stamp | (1 << 63)).wrapping_add(1 << 32);
    }
}

/// What a person asked.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub text: String,
    pub attachments: Vec<Attachment>,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// A prompt, where the model heard of it; its words, unless they lie outside of the window.
    Prompt { asked: Option<Rc<Asked>>, steered: bool },
    /// The model's text.
    Said,
    /// The model's thoughts.
    Thought,
    /// A call.
    Call(Box<Call>),
    /// A turn ended: after how long, if that is known, and at what cost.
    End { took: Option<u64>, cost: Cost },
    /// The mode changed.
    Mode(Mode),
    /// The conversation was summed up.
    Compacted,
    /// What came before was copied.
    Forked,
    /// What came after this was taken back.
    Back,
    /// A hook said no.
    Hooked,
    /// A request is made again.
    Retrying,
    /// What the model had said was lost.
    Lost,
    /// The model was told something.
    Told,
    /// Something that is not part of the session.
    Note(Rc<str>),
}

/// What is known of a call, as positions of facts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub id: CallId,
    pub asked: Option<Seq>,
    pub answered: Option<Seq>,
    pub started: Option<Seq>,
    pub inquired: Option<Seq>,
    pub replied: Option<Seq>,
    pub settled: Option<Seq>,
    pub child: Option<SessionId>,
}

impl Call {
    fn new(id: CallId) -> Call {
        Call {
            id,
            asked: None,
            answered: None,
            started: None,
            inquired: None,
            replied: None,
            settled: None,
            child: None,
        }
    }

    /// True while it waits for a person.
    pub fn waits(&self) -> bool {
        let open = self.asked > self.answered || self.inquired > self.replied;
        open && self.settled.is_none()
    }
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    number: u32,
    began: Millis,
    cost: Cost,
}

/// The blocks of a window.
#[derive(Debug, Default)]
pub(super) struct Fold {
    pub blocks: Vec<Block>,
    calls: HashMap<CallId, Key>,
    turn: Option<Turn>,
    /// Prompts by their names, as far as they were seen.
    asked: HashMap<PromptId, Rc<Asked>>,
    /// Positions that no longer count: after the first, up to the second.
    void: Vec<(Seq, Seq)>,
    /// What is not part of the session, in order.
    notes: Vec<(Key, Rc<str>)>,
}

/// How many notes are kept.
const NOTES: usize = 100;
/// How many prompts that stand nowhere are remembered.
const PROMPTS: usize = 400;

impl Fold {
    /// The same window anew: other facts came before, or went.
    pub fn anew(&mut self, window: &Window) {
        self.blocks.clear();
        self.calls.clear();
        self.turn = None;
        let notes = std::mem::take(&mut self.notes);
        let (first, last) = window.span().unwrap_or_default();
        // A note stands where it was said: not at the edge of a window that does not reach there.
        let near = |key: Key| key.0 + 1 >= first && (key.0 <= last || window.holds_end());
        let mut waiting = notes.into_iter().peekable();
        for record in window.iter() {
            while let Some((key, text)) = waiting.next_if(|(key, _)| key.0 < record.seq) {
                self.keep_note(key, text, near(key));
            }
            self.push(record);
        }
        for (key, text) in waiting {
            self.keep_note(key, text, near(key));
        }
        if self.asked.len() > PROMPTS {
            self.asked.retain(|_, asked| Rc::strong_count(asked) > 1);
        }
    }

    /// Adds something that is not part of the session, behind a position.
    pub fn note(&mut self, behind: Seq, text: &str) {
        let last = self.notes.last().filter(|(key, _)| key.0 >= behind);
        let key = last.map_or(Key(behind, 1), |(key, _)| Key(key.0, key.1 + 1));
        self.keep_note(key, text.into(), true);
        if self.notes.len() > NOTES {
            let (old, _) = self.notes.remove(0);
            self.blocks.retain(|block| block.key != old);
        }
    }

    fn keep_note(&mut self, key: Key, text: Rc<str>, shown: bool) {
        if shown {
            self.add(key, What::Note(text.clone()));
        }
        self.notes.push((key, text));
    }

    /// What is not part of the session.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(|(_, text)| text.as_ref())
    }

    /// Takes the notes along into another session, behind a position.
    pub fn with_notes_of(other: Fold, behind: Seq) -> Fold {
        let mut fold = Fold::default();
        for (_, text) in other.notes {
            fold.note(behind, &text);
        }
        fold
    }

    /// True if a fact no longer counts.
    fn is_void(&self, seq: Seq) -> bool {
        self.void.iter().any(|(to, by)| *to < seq && seq < *by)
    }

    fn add(&mut self, key: Key, what: What) {
        self.blocks.push(Block { key, what, stamp: key.0 });
    }

    fn last(&mut self) -> Option<&mut Block> {
        self.blocks.last_mut()
    }

    /// The place of a block.
    pub fn find(&self, key: Key) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&key, |block| block.key)
    }

    fn touch(&mut self, id: CallId, seq: Seq, change: impl FnOnce(&mut Call)) {
        let Some(at) = self.calls.get(&id).and_then(|key| self.find(*key).ok()) else { return };
        let Some(block) = self.blocks.get_mut(at) else { return };
        block.stamp = seq;
        if let What::Call(call) = &mut block.what {
            change(call);
        }
    }

    /// Has a call drawn anew, since something was heard of it that is no fact.
    pub fn stir(&mut self, id: CallId) {
        let Some(at) = self.calls.get(&id).and_then(|key| self.find(*key).ok()) else { return };
        if let Some(block) = self.blocks.get_mut(at) {
            block.stir();
        }
    }

    /// Has the calls that run drawn anew.
    pub fn stir_running(&mut self) {
        for block in &mut self.blocks {
            if let What::Call(call) = &block.what
                && call.started.is_some()
                && call.settled.is_none()
            {
                block.stir();
            }
        }
    }

    /// Takes in the next fact.
    pub fn push(&mut self, record: &Record) {
        let (seq, key) = (record.seq, Key(record.seq, 0));
        if let Fact::Prompted { prompt, text, attachments, .. } = &record.fact {
            let asked = || Rc::new(Asked { text: text.clone(), attachments: attachments.clone() });
            self.asked.entry(*prompt).or_insert_with(asked);
        }
        if self.is_void(seq) {
            return;
        }
        match &record.fact {
            Fact::ModeChanged { mode } => match self.last() {
                Some(Block { what: What::Mode(last), stamp, .. }) => {
                    (*last, *stamp) = (*mode, seq);
                }
                _ => self.add(key, What::Mode(*mode)),
            },
            Fact::Forked { .. } => self.add(key, What::Forked),
            Fact::Compacted { .. } => self.add(key, What::Compacted),
            Fact::Reverted { to } => self.revert(key, *to),
            Fact::TurnStarted { turn, prompt } => {
                self.turn = Some(Turn { number: *turn, began: record.at, cost: Cost::default() });
                if let Some(prompt) = prompt {
                    let asked = self.asked.get(prompt).cloned();
                    self.add(key, What::Prompt { asked, steered: false });
                }
            }
            Fact::Steered { prompt, .. } => {
                let asked = self.asked.get(prompt).cloned();
                self.add(key, What::Prompt { asked, steered: true });
            }
            Fact::StepEnded { finish, cost, .. } => {
                if let (Some(turn), Some(cost)) = (&mut self.turn, cost) {
                    turn.cost += *cost;
                }
                if *finish == Finish::Lost {
                    self.add(key, What::Lost);
                }
            }
            Fact::Retrying { .. } => match self.last() {
                // Only the last try is worth a line.
                Some(block) if block.what == What::Retrying => {
                    self.blocks.pop();
                    self.add(key, What::Retrying);
                }
                _ => self.add(key, What::Retrying),
            },
            Fact::TurnEnded { turn, end } => self.end(record, *turn, end),
            Fact::Said { text, .. } if !text.trim().is_empty() => self.add(key, What::Said),
            Fact::Reasoned { text, .. } if !text.trim().is_empty() => self.add(key, What::Thought),
            Fact::Hooked { call: None, verdict, .. } => match verdict {
                Verdict::Refused { .. } | Verdict::Failed { .. } => self.add(key, What::Hooked),
                Verdict::Passed | Verdict::Rewrote | Verdict::Asks { .. } => {}
            },
            Fact::ContextChanged { .. } => self.add(key, What::Told),
            Fact::Called { call, .. } => {
                self.calls.insert(*call, key);
                self.add(key, What::Call(Box::new(Call::new(*call))));
            }
            Fact::Asked { call, .. } => self.touch(*call, seq, |call| call.asked = Some(seq)),
            Fact::Answered { call, .. } => self.touch(*call, seq, |call| call.answered = Some(seq)),
            Fact::Started { call, .. } => self.touch(*call, seq, |call| call.started = Some(seq)),
            Fact::Inquired { call, .. } => self.touch(*call, seq, |call| call.inquired = Some(seq)),
            Fact::Replied { call, .. } => self.touch(*call, seq, |call| call.replied = Some(seq)),
            Fact::Settled { call, .. } => self.touch(*call, seq, |call| call.settled = Some(seq)),
            Fact::Spawned { call, session, .. } => {
                self.touch(*call, seq, |call| call.child = Some(*session));
            }
            // What a hook said of a call is told by what became of it.
            Fact::Hooked { call: Some(_), .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::Renamed { .. }
            | Fact::Pruned { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::StepStarted { .. }
            | Fact::Interrupted { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. } => {}
        }
    }

    fn revert(&mut self, key: Key, to: Seq) {
        if !self.void.contains(&(to, key.0)) {
            self.void.push((to, key.0));
        }
        self.blocks.retain(|block| block.key.0 <= to);
        self.notes.retain(|(note, _)| note.0 <= to);
        self.calls.retain(|_, call| call.0 <= to);
        self.turn = None;
        self.add(key, What::Back);
    }

    fn end(&mut self, record: &Record, number: u32, end: &TurnEnd) {
        let turn = self.turn.take().filter(|turn| turn.number == number);
        let took = turn.map(|turn| record.at.0.saturating_sub(turn.began.0));
        let cost = turn.map_or(Cost::default(), |turn| turn.cost);
        let quiet = took.is_none_or(|took| took < super::rows::LONG);
        if *end != TurnEnd::Done || !quiet {
            self.add(Key(record.seq, 0), What::End { took, cost });
        }
    }
}

impl What {
    /// True for what a person asked.
    pub fn is_prompt(&self) -> bool {
        matches!(self, What::Prompt { .. })
    }

    /// True if there is more of it than is shown while it is closed.
    pub fn opens(&self) -> bool {
        match self {
            What::Call(_) | What::Thought | What::Compacted | What::Told => true,
            What::Prompt { asked, .. } => {
                let more = |asked: &Rc<Asked>| {
                    asked.text.lines().count() > 8 || !asked.attachments.is_empty()
                };
                asked.as_ref().is_some_and(more)
            }
            What::Said
            | What::End { .. }
            | What::Mode(_)
            | What::Forked
            | What::Back
            | What::Hooked
            | What::Retrying
            | What::Lost
            | What::Note(_) => false,
        }
    }
}
