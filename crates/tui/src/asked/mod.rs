//! Being asked: whether calls may be made, and what calls want to know. One question at a time, in
//! the order they came.
//!
//! It keeps the invariant I-TYPED: a key that was typed for the prompt answers nothing. A question has
//! the keys only when the prompt is empty and nothing was typed for a moment, or when the person went
//! to it; and no key that sends a prompt is ever a yes.

mod card;
pub(crate) mod choices;
pub(crate) mod form;
mod guard;
pub(crate) mod line;
mod paging;
pub(crate) mod permission;
pub(crate) mod queue;
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
use guard::Guard;
use line::Line;
use permission::Heard;
use queue::{Agreed, News, Posed, Queue};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use sheet::{Part, Source};
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{Answer, CallId, Event, Fault, Op, SessionId};

pub(crate) use guard::CALM;
pub(crate) use paging::{page, scroll};

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
    queue: Queue,
    guard: Guard,
    /// The first one as it was laid out.
    laid: Laid,
    /// Where the keys went when it was drawn last.
    keyed: Keyed,
    /// How many rows it wanted last, of at most how many.
    room: (usize, usize),
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
        let before = self.queue.number();
        match self.queue.hear(record, cx.known) {
            News::None => {}
            News::Agreed(call) => cx.op(Op::Answer { call, answer: Answer::Once }),
            News::Posed => {
                if self.guard.is_away(cx.now) {
                    cx.act(Act::Bell);
                }
            }
        }
        self.show(before, cx.now);
    }

    /// A session has stopped by itself: nobody would hear what is answered.
    pub fn stop(&mut self, session: SessionId, cx: &Cx<'_>) {
        let before = self.queue.number();
        self.queue.stop(session, cx.known);
        self.show(before, cx.now);
    }

    /// Another question than before is on the screen from now on, if it is.
    fn show(&mut self, before: Option<u64>, now: u64) {
        if self.queue.number() != before {
            self.guard.show(now);
            self.laid = Laid::default();
        }
    }

    /// The person has said yes to something before it is asked about.
    pub(crate) fn agree(&mut self, agreed: Agreed) {
        self.queue.agree(agreed);
    }

    /// Takes in whether an answer was heard; true if there is nothing more to say about it. One that
    /// nobody heard is asked for again.
    pub fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let before = self.queue.number();
        let ours = self.queue.heard(id, answer);
        self.show(before, cx.now);
        ours && answer.is_ok()
    }

    /// True if there is one.
    pub fn is_open(&self) -> bool {
        self.queue.first().is_some()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.queue.len()
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
        self.queue.first().is_some_and(|first| first.posed.line().is_some())
    }

    /// When it will have the keys by itself, if that is still to come.
    pub fn wakes(&self, now: u64) -> Option<u64> {
        self.guard.wakes(now).filter(|_| self.is_open())
    }

    /// Goes to it, or back to the prompt.
    pub fn turn_to(&mut self, now: u64, prompt_is_empty: bool) {
        self.guard.turn(now, prompt_is_empty || self.writes());
    }

    /// Learns where the keys go, for the next time it is drawn; behind a panel or a list, to that.
    pub fn stand(&mut self, now: u64, prompt_is_empty: bool, behind: bool) {
        self.keyed = match self.has_keys(now, prompt_is_empty) {
            _ if behind => Keyed::Behind,
            true => Keyed::Here,
            false => Keyed::Elsewhere,
        };
    }

    /// Takes in a key; false if it means nothing here.
    pub fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> bool {
        let before = self.queue.number();
        let Some(first) = self.queue.first_mut() else { return false };
        let op = match first.posed.key(key, first.call, cx.look) {
            Heard::Unused => return false,
            Heard::Used => {
                if let Posed::Inquiry(_) = first.posed {
                    self.laid = Laid::default();
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
        if let Some(session) = cx.known.session {
            self.queue.answered(cx.ask(Request::Do { session, op }));
            self.show(before, cx.now);
        }
        true
    }

    /// Takes in what was pasted, if something is being written here; else it is for the prompt.
    pub fn paste(&mut self, text: &str, now: u64, prompt_is_empty: bool) -> bool {
        let here = self.has_keys(now, prompt_is_empty);
        let line = self.queue.first_mut().and_then(|first| first.posed.line_mut());
        let Some(line) = line.filter(|_| here) else { return false };
        line.write(text);
        true
    }

    /// All of what the first one is about.
    pub fn whole(&self) -> Option<Box<dyn Panel>> {
        let (title, parts) = match &self.queue.first()?.posed {
            Posed::Permission(permission) => {
                (permission.headline.clone(), permission.parts.clone())
            }
            Posed::Inquiry(form) => {
                let options = Part::new("", Source::Words(form.listed()));
                (form.headline(), form.parts().into_iter().chain([options]).collect())
            }
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
        let (count, keyed) = (self.queue.place(), self.keyed);
        let Some(first) = self.queue.first_mut() else { return (Vec::new(), None) };
        let laid = &mut self.laid;
        let (card, parts) = match &mut first.posed {
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
