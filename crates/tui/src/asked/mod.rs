//! Being asked: whether calls may be made, and what calls want to know. One question at a time, in
//! the order they came.
//!
//! It keeps the invariant I-TYPED: a key that was typed for the prompt answers nothing. A question has
//! the keys only when the prompt is empty and nothing was typed for a moment, or when the person went
//! to it; and no key that sends a prompt is ever a yes.

mod card;
pub(crate) mod choices;
mod form;
mod guard;
pub(crate) mod line;
mod paging;
mod permission;
pub(crate) mod sheet;
mod whole;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod tests;

use crate::cx::{Act, Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::panel::Panel;
use crate::theme::Role;
use card::{Card, Laid};
use choices::Keyed;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use form::Form;
use guard::Guard;
use line::Line;
use permission::{Heard, Permission, Told};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::collections::VecDeque;
use windlass_protocol::files::UNDO;
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{Answer, Author, CallId, Event, Fact, Fault, Op, Record, SessionId};

pub(crate) use guard::CALM;
pub(crate) use paging::{page, scroll};
pub(crate) use words::one_line;

/// A question that waits.
#[derive(Debug)]
struct Waiting {
    session: SessionId,
    call: CallId,
    posed: Posed,
    laid: Laid,
}

/// What is asked.
#[derive(Debug)]
enum Posed {
    /// Whether a call may be made.
    Permission(Box<Permission>),
    /// What a call wants to know.
    Inquiry(Box<Form>),
}

impl Posed {
    /// What is being written in it.
    fn line(&self) -> Option<&Line> {
        match self {
            Posed::Permission(permission) => permission.reason.as_ref(),
            Posed::Inquiry(form) => form.line.as_ref(),
        }
    }

    fn line_mut(&mut self) -> Option<&mut Line> {
        match self {
            Posed::Permission(permission) => permission.reason.as_mut(),
            Posed::Inquiry(form) => form.line.as_mut(),
        }
    }

    /// Takes in a key; the answer, if it is one.
    fn key(&mut self, key: &KeyEvent, call: CallId, look: &Look) -> Heard<Op> {
        match self {
            Posed::Permission(permission) => {
                permission.key(key, look).map(|answer| Op::Answer { call, answer })
            }
            Posed::Inquiry(form) => form.key(key, look).map(|replies| Op::Reply { call, replies }),
        }
    }
}

/// The questions that wait.
#[derive(Debug, Default)]
pub struct Asked {
    waiting: VecDeque<Waiting>,
    /// What was answered, until it is known that it was heard.
    sent: Vec<(u64, Waiting)>,
    /// How many were answered since there was none.
    done: usize,
    guard: Guard,
    /// Where the keys went when it was drawn last.
    keyed: Keyed,
    /// How many rows it wanted last, of at most how many.
    room: (usize, usize),
    /// A change that the person saw and said yes to, to be taken back by the next undo of theirs.
    agreed: Option<String>,
    /// The person's own call that takes changes back, while it goes on.
    undoing: Option<CallId>,
}

/// True if a key writes something or moves in what is written, as opposed to scrolling and the like.
pub fn writes(key: &KeyEvent) -> bool {
    match key.code {
        KeyCode::Char(_) => (key.modifiers - KeyModifiers::SHIFT).is_empty(),
        KeyCode::Enter
        | KeyCode::Backspace
        | KeyCode::Delete
        | KeyCode::Left
        | KeyCode::Right
        | KeyCode::Up
        | KeyCode::Down => true,
        _ => false,
    }
}

impl Asked {
    /// Takes in what happens: questions, answers, and what makes them pointless.
    pub fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        let Event::Fact(record) = event else { return };
        let front = self.waiting.front().map(|first| first.call);
        self.hear_fact(record, cx);
        if self.waiting.is_empty() {
            self.done = 0;
        }
        if self.waiting.front().map(|first| first.call) != front {
            self.guard.show(cx.now);
        }
    }

    /// The person has seen what taking changes back does to files, and said yes. Asked about exactly
    /// that, they are not asked twice.
    pub fn agree(&mut self, change: String) {
        self.agreed = Some(change);
    }

    /// True if a question is about what the person just said yes to: their own undo, as it was shown.
    fn is_agreed(&mut self, asked: CallId, preview: Option<&str>) -> bool {
        if self.undoing != Some(asked) {
            return false;
        }
        let agreed = self.agreed.take();
        agreed.is_some() && agreed.as_deref() == preview
    }

    fn hear_fact(&mut self, record: &Record, cx: &mut Cx<'_>) {
        let session = record.session;
        let ours = Some(session) == cx.known.session;
        let child = cx.known.children.get(&session);
        let agent = child.map_or("", |child| child.agent.as_str());
        let agent = (!ours).then_some(agent);
        match &record.fact {
            Fact::Called { call, tool, by: Author::Person, .. } if ours && tool == UNDO => {
                self.undoing = Some(*call);
            }
            Fact::Asked { call, preview, .. } if self.is_agreed(*call, preview.as_deref()) => {
                cx.op(Op::Answer { call: *call, answer: Answer::Once });
            }
            Fact::Asked { call, accesses, reason, preview, offer, repaired } => {
                let permission = Permission::new(&Told {
                    accesses,
                    reason,
                    preview: preview.as_deref(),
                    offer: offer.as_deref(),
                    repaired: repaired.as_ref(),
                    agent,
                });
                self.pose((session, *call), Posed::Permission(Box::new(permission)), cx);
            }
            Fact::Inquired { call, inquiries } => {
                let form = Form::new(inquiries, agent);
                self.pose((session, *call), Posed::Inquiry(Box::new(form)), cx);
            }
            Fact::Answered { call, .. }
            | Fact::Replied { call, .. }
            | Fact::Settled { call, .. } => {
                self.settle(*call);
            }
            Fact::Interrupted { .. } | Fact::TurnEnded { .. } | Fact::Reverted { .. } => {
                self.waiting.retain(|waiting| !ours && waiting.session != session);
                self.sent.retain(|(_, waiting)| !ours && waiting.session != session);
            }
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Pruned { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::Steered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Started { .. }
            | Fact::Spawned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }

    fn pose(&mut self, (session, call): (SessionId, CallId), posed: Posed, cx: &mut Cx<'_>) {
        let again = self.waiting.front().is_some_and(|first| first.call == call);
        self.settle(call);
        self.waiting.push_back(Waiting { session, call, posed, laid: Laid::default() });
        if again {
            // It may be about something else now.
            self.guard.show(cx.now);
        }
        if self.guard.is_away(cx.now) {
            cx.act(Act::Bell);
        }
    }

    fn settle(&mut self, call: CallId) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.call != call);
        self.done += before - self.waiting.len();
        self.sent.retain(|(_, waiting)| waiting.call != call);
    }

    /// Takes in whether an answer was heard; true if there is nothing more to say about it. One that
    /// nobody heard is asked for again.
    pub fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let Some(at) = self.sent.iter().position(|(sent, _)| *sent == id) else { return false };
        if answer.is_err() {
            let (_, waiting) = self.sent.remove(at);
            self.waiting.push_front(waiting);
            self.done = self.done.saturating_sub(1);
            self.guard.show(cx.now);
        }
        answer.is_ok()
    }

    /// True if there is one.
    pub fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Something was typed elsewhere.
    pub fn typed(&mut self, now: u64) {
        self.guard.typed(now);
    }

    /// True if keys go to it now.
    pub fn has_keys(&self, now: u64, prompt_is_empty: bool) -> bool {
        self.is_open() && self.guard.opens(now, prompt_is_empty || self.writes())
    }

    /// True if something is being written in it.
    fn writes(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.posed.line().is_some())
    }

    /// When it will have the keys by itself, if that is still to come.
    pub fn wakes(&self, now: u64) -> Option<u64> {
        self.guard.wakes(now).filter(|_| self.is_open())
    }

    /// Goes to it, or back to the prompt.
    pub fn turn_to(&mut self, now: u64, prompt_is_empty: bool) {
        self.guard.turn(now, prompt_is_empty || self.writes());
    }

    /// Learns where the keys go, for the next time it is drawn.
    pub fn stand(&mut self, now: u64, prompt_is_empty: bool, behind_a_panel: bool) {
        self.keyed = match self.has_keys(now, prompt_is_empty) {
            _ if behind_a_panel => Keyed::Behind,
            true => Keyed::Here,
            false => Keyed::Elsewhere,
        };
    }

    /// Takes in a key; false if it means nothing here.
    pub fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> bool {
        let Some(first) = self.waiting.front_mut() else { return false };
        let op = match first.posed.key(key, first.call, cx.look) {
            Heard::Unused => return false,
            Heard::Used => {
                if let Posed::Inquiry(_) = first.posed {
                    first.laid = Laid::default();
                }
                return true;
            }
            Heard::Whole => {
                cx.command(Command::Whole);
                return true;
            }
            Heard::Said(op) => op,
        };
        self.guard.answered(cx.now);
        if let (Some(session), Some(first)) = (cx.known.session, self.waiting.pop_front()) {
            let id = cx.ask(Request::Do { session, op });
            self.sent.push((id, first));
            self.done += 1;
            self.guard.show(cx.now);
        }
        true
    }

    /// Takes in what was pasted, if something is being written here; else it is for the prompt.
    pub fn paste(&mut self, text: &str, now: u64, prompt_is_empty: bool) -> bool {
        let here = self.has_keys(now, prompt_is_empty);
        let line = self.waiting.front_mut().and_then(|first| first.posed.line_mut());
        let Some(line) = line.filter(|_| here) else { return false };
        line.write(text);
        true
    }

    /// All of what the first one is about.
    pub fn whole(&self) -> Option<Box<dyn Panel>> {
        let (title, parts) = match &self.waiting.front()?.posed {
            Posed::Permission(permission) => {
                (permission.headline.clone(), permission.parts.clone())
            }
            Posed::Inquiry(form) => (form.headline(), form.parts()),
        };
        Some(Box::new(whole::Whole::new(title, parts)))
    }

    /// How many rows it wants, of at most so many.
    pub fn height(&mut self, width: u16, most: u16, look: &Look) -> u16 {
        let (rows, _) = self.rows(usize::from(width), usize::from(most), look);
        self.room = (rows.len(), usize::from(most));
        u16::try_from(rows.len()).unwrap_or(most)
    }

    /// Draws the first one, and says where the cursor stands if something can be written.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let _ = known;
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        // What it wanted it lays out as it did when it was asked.
        let most = if self.room.0 == height { self.room.1 } else { height };
        let (rows, cursor) = self.rows(width, most, look);
        for (row, place) in rows.iter().zip(area.rows()) {
            row.draw(place, buffer);
        }
        let (column, row) = cursor.filter(|_| self.keyed == Keyed::Here)?;
        let at =
            |start: u16, offset: usize| start + u16::try_from(offset).unwrap_or(u16::MAX - start);
        Some(Position::new(at(area.x, column), at(area.y, row)))
    }

    fn rows(
        &mut self,
        width: usize,
        most: usize,
        look: &Look,
    ) -> (Vec<crate::ink::Row>, Option<(usize, usize)>) {
        let all = self.done + self.waiting.len();
        let count = (all > 1).then(|| format!("{} of {all}", self.done + 1));
        let keyed = self.keyed;
        let Some(Waiting { posed, laid, .. }) = self.waiting.front_mut() else {
            return (Vec::new(), None);
        };
        let (card, parts) = match posed {
            Posed::Permission(posed) => {
                let card = Card {
                    headline: posed.headline.clone(),
                    role: if posed.alarm.is_some() { Role::Bad } else { Role::Accent },
                    alarm: posed.alarm,
                    count,
                    keyed,
                    options: (Vec::new(), 0),
                    note: None,
                    choices: posed.choices(look),
                    line: posed.reason.as_ref().map(|line| ("no", line)),
                };
                (card, laid.rows(&posed.parts, width, look))
            }
            Posed::Inquiry(form) => {
                let count: Vec<String> = form.pages().into_iter().chain(count).collect();
                let card = Card {
                    headline: form.headline(),
                    role: Role::Accent,
                    alarm: None,
                    count: (!count.is_empty()).then(|| count.join(", ")),
                    keyed,
                    options: (form.options(width, look), form.at()),
                    note: form.note(look),
                    choices: form.choices(look),
                    line: form.line.as_ref().map(|line| ("own", line)),
                };
                (card, laid.rows(&form.parts(), width, look))
            }
        };
        card.rows(parts, (width, most), look)
    }
}
