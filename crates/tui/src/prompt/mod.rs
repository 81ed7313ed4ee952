//! The prompt: where a person writes.
//!
//! [`buffer`] holds what is written, [`rows`] how it stands on the screen, [`history`] what was said
//! before, [`paste`] what may become of a paste, [`suggest`] the list above it. Here is what keys mean
//! and what Enter says.

mod buffer;
mod draw;
mod given;
mod history;
mod motion;
mod paste;
mod rows;
mod say;
mod stock;
mod suggest;
#[cfg(test)]
mod tests;

use crate::cx::{Cx, Look};
use crate::keys::{Command, Place};
use buffer::{Buffer, Reach};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use history::{History, Past};
use std::collections::BTreeMap;
use stock::What;
pub(crate) use suggest::command_name;
use suggest::{Kind, Opens, Suggest};
use windlass_protocol::wire::Answered;
use windlass_protocol::{Attachment, Delivery, Fault, Op, PromptRow, Query, Reply};

/// What became of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// It means nothing here.
    Unused,
    /// It was used.
    Used,
    /// Something is to be said.
    Say(Saying),
}

/// What a person says.
#[derive(Clone, Debug, PartialEq)]
pub enum Saying {
    /// Something to the model.
    Prompt {
        /// The text, with everything that was pasted in it.
        text: String,
        /// Pictures and documents.
        attachments: Vec<Attachment>,
        /// When a model that is at work hears of it.
        when: Delivery,
    },
    /// A command for the shell.
    Shell(String),
    /// One of our commands, and what stands behind it.
    Slash(Command, String),
    /// One of their own commands, and what stands behind it.
    Own {
        /// Its name.
        name: String,
        /// What it is given.
        arguments: String,
    },
}

impl Saying {
    /// Something to the model, without files, that it hears as soon as it can.
    pub fn prompt(text: String) -> Saying {
        Saying::Prompt { text, attachments: Vec::new(), when: Delivery::Steer }
    }

    /// What was typed to say this, and what came with it; nothing for what is done at once.
    pub fn written(&self) -> Option<(String, &[Attachment])> {
        match self {
            Saying::Prompt { text, attachments, .. } => Some((text.clone(), attachments)),
            Saying::Shell(command) => Some((format!("!{command}"), &[])),
            Saying::Own { name, arguments } => {
                Some((format!("/{name} {arguments}").trim_end().to_owned(), &[]))
            }
            Saying::Slash(..) => None,
        }
    }
}

/// What is being kept by the host and will be a chip.
#[derive(Clone, Debug, PartialEq)]
enum Keeping {
    /// A picture from the clipboard.
    Picture,
    /// A file whose path stands in the text as this.
    File(String),
}

/// Whether earlier prompts of this folder were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Older {
    #[default]
    Unasked,
    /// Under this number. One of them is to be shown when they come, if `shown`.
    Asked {
        id: u64,
        shown: bool,
    },
    Here,
}

/// Which way to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The prompt.
#[derive(Debug)]
pub struct Prompt {
    buffer: Buffer,
    history: History,
    older: Older,
    suggest: Suggest,
    /// The columns and rows there were when it was drawn last.
    limit: usize,
    screen: u16,
    /// The first row that is shown.
    top: usize,
    /// The column that going up and down keeps to.
    goal: Option<usize>,
    keeping: BTreeMap<u64, Keeping>,
    /// What the person should know until the next key.
    notice: Option<String>,
    /// It was sent, and waits for something that is not here yet.
    due: Option<Delivery>,
}

impl Default for Prompt {
    fn default() -> Prompt {
        Prompt {
            buffer: Buffer::default(),
            history: History::default(),
            older: Older::default(),
            suggest: Suggest::default(),
            limit: 77,
            screen: 24,
            top: 0,
            goal: None,
            keeping: BTreeMap::new(),
            notice: None,
            due: None,
        }
    }
}

impl Prompt {
    /// Takes in a key.
    pub fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Heard {
        (self.notice, self.due) = (None, None);
        let command = cx.look.keys.find(Place::Prompt, key);
        if let Some(heard) = self.list_key(command, key, cx) {
            self.settle();
            return heard;
        }
        let mut opens = Opens::No;
        match command {
            Some(Command::Send) => return self.send(Delivery::Steer, cx),
            Some(Command::Queue) => return self.send(Delivery::Queue, cx),
            Some(Command::HistoryUp) => self.up(cx),
            Some(Command::HistoryDown) => self.down(),
            Some(Command::HistoryFind) => {
                self.need_older(cx);
                self.suggest.open_past(&self.history);
                return Heard::Used;
            }
            Some(command) => {
                if !self.edit(command, cx) {
                    return Heard::Unused;
                }
                if matches!(command, Command::DeleteLeft | Command::DeleteWordLeft) {
                    opens = Opens::Yes;
                }
                self.stay();
            }
            None => {
                let Some(letter) = typed(key) else { return Heard::Unused };
                self.buffer.insert(letter.encode_utf8(&mut [0; 4]));
                opens = Opens::Yes;
                self.stay();
            }
        }
        self.suggest.follow(&self.buffer, opens, cx);
        self.settle();
        Heard::Used
    }

    /// What a key means while a list is open, if it means something else then.
    fn list_key(
        &mut self,
        command: Option<Command>,
        key: &KeyEvent,
        cx: &mut Cx<'_>,
    ) -> Option<Heard> {
        let list = self.suggest.list.as_ref().filter(|_| self.is_listing())?;
        let past = list.kind == Kind::Past;
        match command {
            Some(Command::HistoryUp) => self.suggest.walk(-1),
            Some(Command::HistoryDown) => self.suggest.walk(1),
            Some(Command::HistoryFind) if past => self.suggest.walk(1),
            Some(Command::Complete) => self.take(cx),
            Some(Command::Send) if self.suggest.is_meant() => {
                let runs = list.kind == Kind::Slash;
                self.take(cx);
                if runs {
                    return Some(self.send(Delivery::Steer, cx));
                }
            }
            Some(Command::Send) if past => {
                self.suggest.close();
            }
            // What is only like a command is written out first.
            Some(Command::Send) if list.kind == Kind::Slash => {
                if !list.needle.is_empty() {
                    self.take(cx);
                }
            }
            Some(Command::DeleteLeft) if past => {
                let mut needle = list.needle.clone();
                needle.truncate(motion::left(&needle, needle.len()));
                self.suggest.find_past(needle, &self.history);
            }
            Some(Command::DeleteWordLeft | Command::DeleteToStart) if past => {
                self.suggest.find_past(String::new(), &self.history);
            }
            None if past => {
                let needle = list.needle.clone() + &String::from(typed(key)?);
                self.suggest.find_past(needle, &self.history);
            }
            Some(Command::Escape) => return None,
            // What would change a text that is not shown is not done.
            Some(command) if past && self.is_edit(command) => {}
            Some(_) | None => return None,
        }
        Some(Heard::Used)
    }

    fn is_edit(&self, command: Command) -> bool {
        crate::keys::TABLE
            .iter()
            .any(|entry| entry.command == command && entry.place == Place::Prompt)
    }

    /// Takes the row that is chosen.
    fn take(&mut self, cx: &mut Cx<'_>) {
        let Some(choice) = self.suggest.chosen() else { return };
        let name = choice.entry.name.clone();
        let gap = if self.buffer.behind().starts_with(char::is_whitespace) { "" } else { " " };
        match choice.entry.what {
            What::File | What::Agent => {
                let quote = if name.contains(char::is_whitespace) { "\"" } else { "" };
                let text = format!("@{quote}{name}{quote}{gap}");
                self.buffer.replace(self.suggest.start(), self.buffer.at(), &text);
            }
            What::Ours(_) | What::Own => {
                let raw = self.buffer.raw();
                let end = raw.find(char::is_whitespace).unwrap_or(raw.len());
                self.buffer.replace(0, end, &format!("/{name}"));
                if self.buffer.behind().is_empty() {
                    self.buffer.insert(" ");
                }
            }
            What::Past => {
                let files = self.history.last(&name).map(|past| past.files.clone());
                self.buffer.restore(&name, &files.unwrap_or_default());
            }
        }
        self.suggest.close();
        self.stay();
        self.suggest.follow(&self.buffer, Opens::No, cx);
    }

    /// The mark beside the text follows it: it shows the first letter where that means something.
    fn settle(&mut self) {
        match self.sign() {
            Some(_) => self.buffer.hide_sign(),
            None => self.buffer.show_sign(),
        }
    }

    /// The first letter, where it decides what Enter does.
    fn sign(&self) -> Option<char> {
        let raw = self.buffer.raw();
        if raw.starts_with('!') {
            return Some('!');
        }
        let name = suggest::command_name(raw)?;
        let whole = raw.len() > name.len() + 1;
        let stock = &self.suggest.stock;
        let known = if whole { stock.command(name).is_some() } else { stock.begins_command(name) };
        known.then_some('/')
    }

    /// From now on what stands there is a draft, and the column is the cursor's.
    fn stay(&mut self) {
        self.history.stay();
        self.goal = None;
    }

    /// Carries out a command that changes the text or moves the cursor; false if it is none.
    fn edit(&mut self, command: Command, cx: &mut Cx<'_>) -> bool {
        let (text, at) = (self.buffer.raw(), self.buffer.at());
        match command {
            Command::Newline => self.buffer.insert("\n"),
            // The screen does these, as if they had been typed behind `/`.
            Command::Editor | Command::Paste => cx.command(command),
            Command::Left => self.buffer.go(motion::left(text, at)),
            Command::Right => self.buffer.go(motion::right(text, at)),
            Command::WordLeft => self.buffer.go(motion::word_left(text, at)),
            Command::WordRight => self.buffer.go(motion::word_right(text, at)),
            Command::LineStart => self.buffer.go(motion::line_start(text, at)),
            Command::LineEnd => self.buffer.go(motion::line_end(text, at)),
            Command::DeleteLeft => self.buffer.delete(Reach::Left),
            Command::DeleteRight => self.buffer.delete(Reach::Right),
            Command::DeleteWordLeft => self.buffer.delete(Reach::WordLeft),
            Command::DeleteWordRight => self.buffer.delete(Reach::WordRight),
            Command::DeleteToStart => self.buffer.delete(Reach::LineStart),
            Command::DeleteToEnd => self.buffer.delete(Reach::LineEnd),
            Command::Yank => self.buffer.yank(),
            Command::UndoEdit => self.buffer.undo(),
            _ => return false,
        }
        true
    }

    /// Up a row; from the first one, the prompt before. Where nothing is written, a prompt that waits
    /// is taken back.
    fn up(&mut self, cx: &mut Cx<'_>) {
        if self.is_empty()
            && !self.history.walks()
            && let Some(prompt) = cx.known.waiting.last()
        {
            cx.op(Op::Withdraw { prompt: prompt.id });
            self.buffer.restore(&paste::clean(&prompt.text), &prompt.attachments);
            return;
        }
        if self.history.walks() || !self.row(Way::Up) {
            self.need_older(cx);
            match self.history.up(self.buffer.raw()) {
                Some(past) => self.buffer.restore(&past.text, &past.files),
                None if self.history.walks() => {}
                None => {
                    self.buffer.go(0);
                    if let Older::Asked { shown, .. } = &mut self.older {
                        *shown = self.buffer.raw().is_empty();
                    }
                }
            }
        }
    }

    /// Asks for earlier prompts of this folder, once.
    fn need_older(&mut self, cx: &mut Cx<'_>) {
        if self.older == Older::Unasked {
            let id = cx.query(Query::Prompts { session: None, most: Some(200) });
            self.older = Older::Asked { id, shown: false };
        }
    }

    fn take_older(&mut self, answer: &Result<Answered, Fault>) {
        let shown = matches!(self.older, Older::Asked { shown: true, .. });
        self.older = Older::Here;
        if let Ok(Answered::Reply { reply: Reply::Prompts { prompts } }) = answer {
            let past = |row: &PromptRow| Past {
                text: paste::clean(&row.text),
                files: row.attachments.clone(),
            };
            self.history.older(prompts.iter().rev().map(past));
        }
        if let Some(list) = &self.suggest.list
            && list.kind == Kind::Past
        {
            self.suggest.find_past(list.needle.clone(), &self.history);
        } else if shown
            && self.is_empty()
            && let Some(past) = self.history.up("")
        {
            self.buffer.restore(&past.text, &past.files);
        }
    }

    /// Down a row; from the last one, the next prompt.
    fn down(&mut self) {
        if self.history.walks() {
            if let Some(past) = self.history.down() {
                self.buffer.restore(&past.text, &past.files);
            }
        } else if !self.row(Way::Down) {
            self.buffer.go(self.buffer.raw().len());
        }
    }

    /// Goes a row up or down; false if there is none.
    fn row(&mut self, way: Way) -> bool {
        let rows = rows::lay(&self.buffer, self.limit);
        let (row, column) = rows::find(&self.buffer, &rows, self.limit);
        let goal = self.goal.unwrap_or(column);
        let next = match way {
            Way::Up => row.checked_sub(1),
            Way::Down => Some(row + 1),
        };
        let place =
            next.and_then(|next| rows::place(&self.buffer, &rows, (next, goal), self.limit));
        if let Some(place) = place {
            self.buffer.go(place);
            self.goal = Some(goal);
        }
        place.is_some()
    }

    /// The text, as it would be said.
    pub fn text(&self) -> String {
        self.buffer.said()
    }

    /// Puts another text in.
    pub fn set(&mut self, text: &str) {
        self.due = None;
        // Ctrl-C while something is looked for brings the draft back.
        let looked_for = self.is_finding() && self.suggest.close();
        if looked_for && text.is_empty() {
            return;
        }
        self.stay();
        self.suggest.list = None;
        self.buffer.set(&paste::clean(text));
        self.settle();
    }

    /// Puts a prompt in that was said, with what came with it.
    pub fn restore(&mut self, text: &str, files: &[Attachment]) {
        self.due = None;
        self.stay();
        self.suggest.list = None;
        self.buffer.restore(&paste::clean(text), files);
        self.settle();
    }

    /// True while an earlier prompt is looked for.
    fn is_finding(&self) -> bool {
        self.suggest.list.as_ref().is_some_and(|list| list.kind == Kind::Past)
    }

    /// True while there is a list above it to choose from.
    pub fn is_listing(&self) -> bool {
        let list = self.suggest.list.as_ref();
        list.is_some_and(|list| !list.rows.is_empty() || list.kind == Kind::Past)
    }

    /// True if nothing is written.
    pub fn is_empty(&self) -> bool {
        self.buffer.raw().is_empty() && !self.is_finding()
    }

    /// Closes a list that is open above it; false if there is none.
    pub fn close(&mut self) -> bool {
        self.suggest.close()
    }

    /// Says how many rows the screen has: the prompt takes a third of them at most.
    pub fn fit(&mut self, screen: u16) {
        self.screen = screen;
    }

    /// How many rows it takes, with a list that is open above it.
    pub fn height(&self, width: u16, look: &Look) -> u16 {
        let _ = look;
        self.text_height(width).saturating_add(self.list_height())
    }
}

/// The letter that a key types, if it does.
fn typed(key: &KeyEvent) -> Option<char> {
    let KeyCode::Char(letter) = key.code else { return None };
    let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    (plain && !letter.is_control() && motion::chip(letter).is_none()).then_some(letter)
}
