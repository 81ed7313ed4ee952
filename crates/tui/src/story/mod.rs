//! The story: what a session looks like, as much of it as is near the screen.
//!
//! It is a window over the log: blocks of what was said and done, folded from facts a page at a time.
//! Scrolled to where the window ends, it wants the next page; what lies far away is let go. So a
//! session of any length takes the same memory, and a frame the same time.
//!
//! [`window`] holds the facts, [`fold`] makes blocks of them, [`rows`] and [`call`] lay a block out,
//! [`view`] finds what is on the screen, [`page`] and [`picture`] ask for what is missing, and [`find`]
//! goes to where a text stands.

mod call;
mod find;
mod fold;
mod live;
mod page;
mod picture;
mod records;
mod rows;
#[cfg(test)]
mod tests;
mod view;
mod welcome;
mod window;
pub mod words;

use crate::cx::{Cx, Look};
use crate::known::Known;
use crate::theme::Theme;
use find::Find;
use fold::{Fold, Key, What};
use live::Now;
use page::Want;
use picture::Pictures;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use rows::Lay;
use std::collections::{HashMap, HashSet};
use view::{Anchor, Laid, Spot};
use windlass_protocol::wire::Answered;
use windlass_protocol::{Event, Fact, Fault, Glimpse, Live, Query, Record, Seq, SessionId, Stream};
use window::Window;

/// Where to scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// So many lines down; up if negative.
    Lines(i32),
    /// So many pages down; up if negative.
    Pages(i32),
    /// To the beginning of the session.
    Top,
    /// To the end, and along with it.
    End,
    /// To the prompt before.
    PreviousPrompt,
    /// To the next prompt.
    NextPrompt,
}

/// What is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// What stands in the middle of the screen.
    One,
    /// Everything.
    All,
}

/// The window over a session.
#[derive(Debug, Default)]
pub struct Story {
    session: Option<SessionId>,
    window: Window,
    fold: Fold,
    now: Now,
    /// What was asked for and has not come.
    wants: Vec<(u64, Want)>,
    /// A scrolling that goes on when the page has come.
    then: Option<Scroll>,
    /// Where the screen begins; at the end if nowhere.
    anchor: Option<Anchor>,
    /// The last position when the end was left.
    left: Seq,
    /// The size that was drawn last.
    size: (u16, u16),
    /// The blocks on the screen, a row each.
    shown: Vec<Key>,
    /// True if everything is open but what was closed; else everything closed but what was opened.
    all: bool,
    turned: HashSet<Key>,
    laid: HashMap<Key, Laid>,
    laid_rows: usize,
    /// What rows were laid out for.
    theme: (Theme, bool),
    /// The last answer.
    answer: Option<String>,
    find: Option<Find>,
    pictures: Pictures,
    /// Now, in milliseconds since 1970, as far as it was told.
    clock: u64,
}

impl Story {
    /// Begins with a session of this length: the last page is wanted.
    pub fn open(&mut self, session: SessionId, head: Seq, cx: &mut Cx<'_>) {
        let (first, size, clock) = (self.session.is_none(), self.size, self.clock);
        let before = std::mem::take(self);
        let fold = if first { Fold::with_notes_of(before.fold, head) } else { Fold::default() };
        let window = Window::over(head);
        *self = Story { session: Some(session), window, fold, size, clock, ..Story::default() };
        if head > 0 {
            self.want(Want::Opening, cx);
        }
        if head > window::PAGE {
            let id = cx.query(Query::Transcript { session });
            self.wants.push((id, Want::Whole));
        }
    }

    /// True if the answer to a request tells of what was before: the first page that is shown, or
    /// what all of it means.
    pub fn opens_with(&self, id: u64) -> bool {
        self.wants.contains(&(id, Want::Opening)) || self.wants.contains(&(id, Want::Whole))
    }

    /// Learns what time it is: calls that run say for how long.
    pub fn tick(&mut self, now: u64) {
        let seconds = std::mem::replace(&mut self.clock, now) / 1_000;
        if seconds != now / 1_000 {
            self.fold.stir_running();
        }
    }

    /// What rows are made for now.
    fn lay<'a>(&self, look: &'a Look, known: &'a Known) -> Lay<'a> {
        Lay { width: usize::from(self.size.0), look, known, now: self.clock }
    }

    /// Takes in what happens.
    pub fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        self.tick(cx.now);
        match event {
            Event::Fact(record) if Some(record.session) == self.session => {
                self.hear_fact(record, cx);
            }
            Event::Fact(record) => {
                if let Some(call) =
                    self.now.child(record.session, &record.fact, &cx.known.standing.root)
                {
                    self.fold.stir(call);
                }
            }
            Event::Live(glimpse) if Some(glimpse.session) == self.session => self.glimpse(glimpse),
            Event::Live(_) => {}
        }
    }

    fn hear_fact(&mut self, record: &Record, cx: &mut Cx<'_>) {
        self.become_fact(record);
        let known = self.window.span().is_some_and(|(_, last)| record.seq <= last);
        let wanted = self.wants.iter().any(|(_, want)| want.is_end());
        if known || (wanted && self.window.span().is_none()) {
            self.window.head = self.window.head.max(record.seq);
            return;
        }
        let reverts = matches!(record.fact, Fact::Reverted { .. });
        if self.window.push(record) {
            self.fold.push(record);
            if reverts {
                self.laid.clear();
                self.laid_rows = 0;
            }
            self.trim(cx);
        }
        self.look_around(cx);
    }

    /// What was seen as it happened is now on record.
    fn become_fact(&mut self, record: &Record) {
        let stream = if let Fact::Said { text, .. } = &record.fact {
            self.answer = Some(text.clone());
            Stream::Text
        } else if let Fact::Reasoned { .. } = &record.fact {
            Stream::Reasoning
        } else {
            let over = |fact| {
                matches!(
                    fact,
                    &Fact::StepStarted { .. } | Fact::StepEnded { .. } | Fact::TurnEnded { .. }
                )
            };
            if over(&record.fact) {
                self.now.drafts.clear();
            }
            if let Fact::Settled { call, .. } = &record.fact {
                self.now.calls.remove(call);
            }
            if let Fact::Spawned { call, session, .. } = &record.fact {
                self.now.children.entry(*session).or_default().call = Some(*call);
            }
            return;
        };
        let Some(draft) = self.now.written(stream, record.seq) else { return };
        // Who reads what is being written goes on reading when it is written.
        if let Some(anchor) = &mut self.anchor
            && anchor.key.0 == Seq::MAX
        {
            match (anchor.key.1 as usize).cmp(&draft) {
                std::cmp::Ordering::Equal => anchor.key = Key(record.seq, 0),
                std::cmp::Ordering::Greater => anchor.key.1 -= 1,
                std::cmp::Ordering::Less => {}
            }
        }
    }

    fn glimpse(&mut self, Glimpse { at, live, .. }: &Glimpse) {
        match live {
            Live::Delta { stream, text } => self.now.write(*stream, text, *at),
            Live::Progress { call, text } => {
                self.now.calls.entry(*call).or_default().progress.clone_from(text);
                self.fold.stir(*call);
            }
            Live::Output { call, text } => {
                self.now.print(*call, text);
                self.fold.stir(*call);
            }
            Live::Reached { call, host, refused: Some(_) } => {
                self.now.calls.entry(*call).or_default().refused = Some(host.clone());
                self.fold.stir(*call);
            }
            Live::Noticed { text } => self.note(text),
            Live::Reached { .. } | Live::Job { .. } | Live::Hooked { .. } => {}
        }
    }

    /// Takes in an answer, if it is to a request of its own.
    pub fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        self.take_places(id, answer, cx)
            || self.take_picture(id, answer)
            || self.take_page(id, answer, cx)
    }

    /// Says something that is not part of the session, such as a hint.
    pub fn note(&mut self, text: &str) {
        self.fold.note(self.window.head, text);
    }

    /// Scrolls; near the end of the window, another page is wanted.
    pub fn scroll(&mut self, scroll: Scroll, cx: &mut Cx<'_>) {
        // What was scrolled before, and waits for a page, is part of it.
        let owed = match self.then.take() {
            Some(Scroll::Lines(lines)) => lines,
            Some(_) | None => 0,
        };
        let look = cx.look.clone();
        let lay = self.lay(&look, cx.known);
        self.notice_look(&look);
        let page = i32::from(self.size.1.saturating_sub(2).max(1));
        match scroll {
            Scroll::Lines(lines) => self.scroll_by(lines.saturating_add(owed), &lay),
            Scroll::Pages(pages) => {
                self.scroll_by(pages.saturating_mul(page).saturating_add(owed), &lay);
            }
            Scroll::Top if self.window.holds_start() => self.go_to(Spot { item: 0, row: 0 }, &lay),
            Scroll::Top => self.want(Want::First, cx),
            Scroll::End if self.window.holds_end() => self.anchor = None,
            Scroll::End => self.want(Want::Last, cx),
            Scroll::PreviousPrompt => {
                let top = self.top(&lay);
                let before = self.fold.blocks.iter().take(top.item + usize::from(top.row > 1));
                let found = before.enumerate().rev().find(|(_, block)| block.what.is_prompt());
                match found.map(|(item, _)| item) {
                    Some(item) => self.go_to_item(item, &lay),
                    None if self.window.holds_start() => {
                        self.go_to(Spot { item: 0, row: 0 }, &lay);
                    }
                    None => self.then = Some(scroll),
                }
            }
            Scroll::NextPrompt => {
                let top = self.top(&lay);
                let behind = self.fold.blocks.iter().enumerate().skip(top.item + 1);
                let found = behind.into_iter().find(|(_, block)| block.what.is_prompt());
                match found.map(|(item, _)| item) {
                    _ if self.anchor.is_none() => {}
                    Some(item) => self.go_to_item(item, &lay),
                    None if self.window.holds_end() => self.anchor = None,
                    None => self.then = Some(scroll),
                }
            }
        }
        self.look_around(cx);
    }

    fn scroll_by(&mut self, lines: i32, lay: &Lay<'_>) {
        if self.items(lay) == 0 || (lines > 0 && self.anchor.is_none()) {
            return;
        }
        let top = self.top(lay);
        let (spot, left) = self.walk(top, isize::try_from(lines).unwrap_or_default(), lay);
        if spot != top {
            self.go_to(spot, lay);
        }
        let left = i32::try_from(left).unwrap_or(i32::MAX);
        let edge = if lines < 0 { self.window.holds_start() } else { self.window.holds_end() };
        if left > 0 && !edge {
            self.then = Some(Scroll::Lines(left * lines.signum()));
        }
    }

    /// Shows the first row of an item at the top, without its space.
    fn go_to_item(&mut self, item: usize, lay: &Lay<'_>) {
        self.hang(Spot { item, row: 0 });
        if let Some(anchor) = &mut self.anchor {
            anchor.row = 0;
        }
        let spot = self.top(lay);
        self.go_to(spot, lay);
    }

    fn go_to(&mut self, spot: Spot, lay: &Lay<'_>) {
        if self.anchor.is_none() {
            self.left = self.window.head;
        }
        if self.items(lay) == 0 || self.reaches_end(spot, lay) {
            self.anchor = None;
        } else {
            self.hang(spot);
        }
    }

    /// Opens or closes details.
    pub fn toggle(&mut self, details: Details) {
        let openable = |key: &&Key| self.opens(**key);
        let key = match details {
            Details::All => {
                self.all = !self.all;
                self.turned.clear();
                return;
            }
            Details::One if self.anchor.is_none() => {
                let drafts =
                    (0..self.now.drafts.len()).map(|at| self.key(self.fold.blocks.len() + at));
                let keys: Vec<Key> =
                    self.fold.blocks.iter().map(|block| block.key).chain(drafts).collect();
                keys.iter().rev().find(openable).copied()
            }
            Details::One => {
                let middle = self.shown.len() / 2;
                let near = self.shown.iter().enumerate().filter(|(_, key)| openable(key));
                near.min_by_key(|(at, _)| at.abs_diff(middle)).map(|(_, key)| *key)
            }
        };
        if let Some(key) = key
            && !self.turned.remove(&key)
        {
            self.turned.insert(key);
        }
    }

    /// True if a block can be opened.
    fn opens(&self, key: Key) -> bool {
        let block = self.fold.find(key).ok().and_then(|at| self.fold.blocks.get(at));
        match block {
            Some(block) => block.what.opens(),
            None => self
                .now
                .drafts
                .get(key.1 as usize)
                .is_some_and(|writing| key.0 == Seq::MAX && writing.stream == Stream::Reasoning),
        }
    }

    /// True if it shows the end, and goes along with it.
    pub fn follows(&self) -> bool {
        self.anchor.is_none() && self.window.holds_end()
    }

    /// The text of the last answer, to be copied.
    pub fn last_answer(&self) -> Option<String> {
        let held = || {
            self.window.iter().rev().find_map(|record| {
                let Fact::Said { text, .. } = &record.fact else { return None };
                Some(text.clone())
            })
        };
        self.answer.clone().or_else(held)
    }

    /// Draws what is visible, and says where the cursor stands if something is written here.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let foot = u16::from(self.find.is_some() && area.height > 1);
        let whole = area;
        let area = Rect { height: area.height - foot, ..area };
        self.size = (area.width, area.height);
        self.notice_look(look);
        if area.is_empty() {
            return None;
        }
        let lay = self.lay(look, known);
        let facts = self.fold.blocks.iter().any(|block| !matches!(block.what, What::Note(_)));
        match facts || self.items(&lay) > self.fold.blocks.len() || self.window.head > 0 {
            true => self.draw_rows(area, buffer, &lay),
            false => self.draw_welcome(area, buffer, &lay),
        }
        let foot = Rect { y: area.bottom(), height: foot, ..whole };
        self.draw_find(foot, buffer, &lay)
    }

    /// Rows that were laid out in other colours are laid out anew.
    fn notice_look(&mut self, look: &Look) {
        if self.theme.0 != look.theme || self.theme.1 != look.ascii {
            self.theme = (look.theme.clone(), look.ascii);
            self.laid.clear();
            self.laid_rows = 0;
        }
    }
}
