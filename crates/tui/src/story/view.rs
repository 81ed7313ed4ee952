//! What of the story is on the screen: where it begins, and the rows from there on.
//!
//! The screen hangs on an anchor, the block and the row at its top; or it follows the end. Everything
//! else is found by walking from there, so that only what is near is ever laid out.

use super::Story;
use super::find::{self, Find, Mark};
use super::fold::{Key, What};
use super::rows::{self, Lay, MARGIN, Source};
use crate::ink::Row;
use crate::keys::Command;
use crate::theme::Role;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::ops::Range;

/// Where the screen begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub key: Key,
    /// The row of the block; before the first one is the space that keeps it from the one before.
    pub row: isize,
}

/// A row of the story: the place of its item, and the row in it, its space counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub item: usize,
    pub row: usize,
}

/// Rows that were laid out.
#[derive(Debug)]
pub(super) struct Laid {
    stamp: u64,
    width: usize,
    open: bool,
    rows: Vec<Row>,
    /// Where something was found in them, and by which version of what is looked for.
    marks: (u64, Vec<Mark>),
}

impl Laid {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Where something is found in them.
    pub(super) fn marks(&mut self, find: &Find) -> &[Mark] {
        if self.marks.0 != find.version {
            self.marks = (find.version, find.marks(&self.rows));
        }
        &self.marks.1
    }
}

/// How many rows are kept laid out, where there is a choice.
const ROWS: usize = 10_000;
/// Where what is no fact stands: behind all of them.
const TAIL: u64 = u64::MAX;

/// What kind of thing stands before another, which says whether there is a space between.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prompt,
    Text,
    Call,
    Remark,
    Waiting,
}

impl Story {
    /// How many things there are to show.
    pub(super) fn items(&self, lay: &Lay<'_>) -> usize {
        match self.window.holds_end() {
            true => self.fold.blocks.len() + self.now.drafts.len() + lay.known.waiting.len(),
            false => self.fold.blocks.len(),
        }
    }

    fn kind(&self, item: usize) -> Kind {
        let blocks = self.fold.blocks.len();
        match self.fold.blocks.get(item).map(|block| &block.what) {
            Some(What::Prompt { .. }) => Kind::Prompt,
            Some(What::Said) => Kind::Text,
            Some(What::Call(_) | What::Thought) => Kind::Call,
            Some(
                What::End { .. }
                | What::Mode(_)
                | What::Compacted
                | What::Forked
                | What::Back
                | What::Hooked
                | What::Retrying
                | What::Lost
                | What::Told
                | What::Note(_),
            ) => Kind::Remark,
            None => match self.now.drafts.get(item - blocks).map(|writing| writing.stream) {
                Some(windlass_protocol::Stream::Text) => Kind::Text,
                Some(windlass_protocol::Stream::Reasoning) => Kind::Call,
                None => Kind::Waiting,
            },
        }
    }

    /// How many empty rows stand before an item.
    fn space(&self, item: usize) -> usize {
        let Some(before) = item.checked_sub(1) else { return 0 };
        match (self.kind(before), self.kind(item)) {
            (Kind::Call, Kind::Call) | (Kind::Remark, Kind::Remark) => 0,
            (Kind::Waiting, Kind::Waiting) => 0,
            _ => 1,
        }
    }

    pub(super) fn key(&self, item: usize) -> Key {
        let blocks = self.fold.blocks.len();
        match self.fold.blocks.get(item) {
            Some(block) => block.key,
            None => Key(TAIL, u32::try_from(item - blocks).unwrap_or(u32::MAX)),
        }
    }

    pub(super) fn is_open(&self, key: Key) -> bool {
        self.all ^ self.turned.contains(&key)
    }

    /// Lays an item out, if it is not yet, and says how many rows it takes with its space.
    pub(super) fn height(&mut self, item: usize, lay: &Lay<'_>) -> usize {
        let space = self.space(item);
        let key = self.key(item);
        let open = self.is_open(key);
        let Some(block) = self.fold.blocks.get(item) else {
            let draft = item - self.fold.blocks.len();
            return space
                + match self.now.drafts.get_mut(draft) {
                    Some(writing) => rows::writing_height(writing, open, lay),
                    None => 1,
                };
        };
        let fits = |laid: &&Laid| {
            laid.stamp == block.stamp && laid.width == lay.width && laid.open == open
        };
        if let Some(laid) = self.laid.get(&key).filter(fits) {
            return space + laid.rows.len();
        }
        let from = Source { window: &self.window, now: &self.now, pictures: &self.pictures };
        let rows = rows::rows(block, open, from, lay);
        let (stamp, width, count) = (block.stamp, lay.width, rows.len());
        let old = self.laid.insert(key, Laid { stamp, width, open, rows, marks: (0, Vec::new()) });
        let gone = old.map_or(0, |old| old.rows.len());
        self.laid_rows = (self.laid_rows + count).saturating_sub(gone);
        space + count
    }

    /// Some rows of an item, its space counted.
    fn item_rows(&mut self, item: usize, wanted: Range<usize>, lay: &Lay<'_>) -> Vec<Row> {
        let space = self.space(item);
        let spaces = space.saturating_sub(wanted.start).min(wanted.len());
        let inner = wanted.start.saturating_sub(space)..wanted.end.saturating_sub(space);
        let key = self.key(item);
        let open = self.is_open(key);
        let rows = match self.laid.get_mut(&key).filter(|_| item < self.fold.blocks.len()) {
            Some(laid) => match &self.find {
                None => laid.rows.get(inner).map(<[Row]>::to_vec).unwrap_or_default(),
                Some(find) => {
                    let marks = laid.marks(find).to_vec();
                    let row = |at: usize| {
                        let parts = marks.iter().filter_map(|mark| {
                            Some((mark.on(at)?, find.style(key, mark, lay.look)))
                        });
                        Some(find::marked(laid.rows.get(at)?.clone(), parts))
                    };
                    inner.filter_map(row).collect()
                }
            },
            None => {
                let draft = item - self.fold.blocks.len();
                let waiting = draft.checked_sub(self.now.drafts.len());
                let waiting = waiting.and_then(|at| lay.known.waiting.get(at));
                match (self.now.drafts.get_mut(draft), waiting) {
                    (Some(writing), _) => rows::writing(writing, open, lay, inner),
                    (None, Some(prompt)) => {
                        let rows = rows::waiting(&prompt.text, prompt.when, lay);
                        rows.into_iter().skip(inner.start).take(inner.len()).collect()
                    }
                    (None, None) => Vec::new(),
                }
            }
        };
        std::iter::repeat_n(Row::default(), spaces).chain(rows).collect()
    }

    /// A row further down, or up if negative; as far as there are any. Says how many rows were
    /// missing.
    pub(super) fn walk(&mut self, from: Spot, by: isize, lay: &Lay<'_>) -> (Spot, usize) {
        let items = self.items(lay);
        let mut spot = from;
        let mut left = by.unsigned_abs();
        while left > 0 && by < 0 {
            let step = left.min(spot.row);
            spot.row -= step;
            left -= step;
            if left > 0 {
                if spot.item == 0 {
                    break;
                }
                spot.item -= 1;
                spot.row = self.height(spot.item, lay);
            }
        }
        while left > 0 && by > 0 {
            let height = self.height(spot.item, lay);
            if spot.row + left < height {
                spot.row += left;
                return (spot, 0);
            }
            if spot.item + 1 >= items {
                left -= height.saturating_sub(1 + spot.row);
                spot.row = height.saturating_sub(1);
                break;
            }
            left -= height - spot.row;
            spot = Spot { item: spot.item + 1, row: 0 };
        }
        (spot, left)
    }

    /// The first row of a screen of this height that shows the end.
    pub(super) fn last_screen(&mut self, height: usize, lay: &Lay<'_>) -> Spot {
        let Some(last) = self.items(lay).checked_sub(1) else { return Spot { item: 0, row: 0 } };
        let end = Spot { item: last, row: self.height(last, lay) };
        self.walk(end, -isize::try_from(height).unwrap_or(isize::MAX), lay).0
    }

    /// The first row on the screen.
    pub(super) fn top(&mut self, lay: &Lay<'_>) -> Spot {
        let end = self.last_screen(usize::from(self.size.1), lay);
        let Some(anchor) = self.anchor else { return end };
        let item = match anchor.key.0 {
            TAIL => self.fold.blocks.len() + anchor.key.1 as usize,
            _ => self.fold.find(anchor.key).unwrap_or_else(|near| near),
        };
        let item = item.min(self.items(lay).saturating_sub(1));
        let height = self.height(item, lay);
        let row = isize::try_from(self.space(item)).unwrap_or_default() + anchor.row;
        let row = usize::try_from(row).unwrap_or_default().min(height.saturating_sub(1));
        Spot { item, row }
    }

    /// Hangs the screen on a row.
    pub(super) fn hang(&mut self, spot: Spot) {
        let space = isize::try_from(self.space(spot.item)).unwrap_or_default();
        let row = isize::try_from(spot.row).unwrap_or_default() - space;
        self.anchor = Some(Anchor { key: self.key(spot.item), row });
    }

    /// True if a screen that begins there shows the end.
    pub(super) fn reaches_end(&mut self, spot: Spot, lay: &Lay<'_>) -> bool {
        self.window.holds_end() && spot >= self.last_screen(usize::from(self.size.1), lay)
    }

    /// Draws the rows that are visible.
    pub(super) fn draw_rows(&mut self, area: Rect, buffer: &mut Buffer, lay: &Lay<'_>) {
        let top = self.top(lay);
        if self.anchor.is_some() && self.reaches_end(top, lay) {
            self.anchor = None;
        }
        let follows = self.anchor.is_none();
        let top = if follows { self.last_screen(usize::from(area.height), lay) } else { top };
        // The row that says where one is gives way to the one that finds.
        let place = !follows && self.find.is_none();
        let bottom = area.bottom().saturating_sub(u16::from(place));
        self.shown.clear();
        self.look_away();
        let (mut y, items) = (area.y, self.items(lay));
        let mut spot = top;
        while y < bottom && spot.item < items {
            self.see_pictures(spot.item, lay);
            let height = self.height(spot.item, lay);
            let room = usize::from(bottom - y);
            let wanted = spot.row..height.min(spot.row + room);
            for row in self.item_rows(spot.item, wanted, lay) {
                self.shown.push(self.key(spot.item));
                row.draw(Rect { y, height: 1, ..area }, buffer);
                y = y.saturating_add(1);
            }
            spot = Spot { item: spot.item + 1, row: 0 };
        }
        if place {
            self.draw_place(Rect { y: bottom, height: 1, ..area }.intersection(area), buffer, lay);
        }
        self.let_go(top.item);
    }

    /// The line that says where one is, while that is not the end.
    fn draw_place(&self, area: Rect, buffer: &mut Buffer, lay: &Lay<'_>) {
        let key = self.anchor.map_or(0, |anchor| anchor.key.0).min(self.window.head);
        let percent = (100 * key).checked_div(self.window.head).unwrap_or_default();
        let from = self.fold.blocks.partition_point(|block| block.key.0 <= self.left);
        let new = match (self.fold.blocks.len() - from, self.window.holds_end()) {
            _ if self.left >= self.window.head => String::new(),
            (_, false) => " · more below".to_owned(),
            (0, true) => String::new(),
            (new, true) => format!(" · ↓ {new} new"),
        };
        let end = lay.key(Command::End);
        let text = lay.ours(&format!(" {percent} %{new} · {end} goes to the end ")).into_owned();
        let rule = lay.sign("─", "-");
        let (style, width) = (lay.look.style(Role::Border), usize::from(area.width));
        let words = Row::of(lay.look.style(Role::Dim), &text);
        let before = width.saturating_sub(words.width() + MARGIN);
        let mut row = Row::of(style, &rule.repeat(before));
        row.extend(&words);
        row.push(style, &rule.repeat(MARGIN));
        row.draw(area, buffer);
    }

    /// Lets go of rows that lie far from the screen.
    fn let_go(&mut self, top: usize) {
        if self.laid_rows < ROWS && self.laid.len() < ROWS / 8 {
            return;
        }
        let near = 3 * usize::from(self.size.1);
        let (first, last) = (top.saturating_sub(near), top.saturating_add(near));
        let (first, last) = (self.key(first), self.key(last.min(self.fold.blocks.len())));
        self.laid.retain(|key, _| (first..=last).contains(key));
        self.count_laid();
    }

    /// Counts the rows that are kept laid out.
    pub(super) fn count_laid(&mut self) {
        self.laid_rows = self.laid.values().map(|laid| laid.rows.len()).sum();
    }
}
