//! Pages: what the window asks for when one comes near its ends, and what it lets go of.

use super::Story;
use super::fold::Key;
use super::view::Anchor;
use super::window::{PAGE, Window};
use crate::cx::Cx;
use windlass_protocol::wire::Answered;
use windlass_protocol::{Fault, Query, Record, Reply, Seq};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// The last page, when a session is opened.
    Opening,
    /// The page before.
    Before,
    /// The page behind.
    Behind,
    /// The first page, to go there.
    First,
    /// The last page, to go there.
    Last,
    /// A page with a position in its middle, to go there.
    Around(Seq),
    /// What all of it means, which is not for the story.
    Whole,
}

impl Want {
    /// True if it brings what lies around a position.
    pub fn is_around(self) -> bool {
        matches!(self, Want::Around(_))
    }

    /// True if it brings the end.
    pub fn is_end(self) -> bool {
        match self {
            Want::Opening | Want::Last => true,
            Want::Before | Want::Behind | Want::First | Want::Around(_) | Want::Whole => false,
        }
    }
}

/// An end of the window is near if fewer screens of blocks lie there, and fewer bytes.
const NEAR: usize = 2;
const NEAR_BYTES: usize = 128 << 10;
/// What lies further away may be let go.
const FAR: usize = 6;
const FAR_BYTES: usize = 512 << 10;

impl Story {
    /// Asks for a page, unless that was done.
    pub(super) fn want(&mut self, want: Want, cx: &mut Cx<'_>) {
        let Some(session) = self.session else { return };
        if self.wants.iter().any(|(_, asked)| *asked == want) {
            return;
        }
        let (first, last) = self.window.span().unwrap_or((self.window.head + 1, 0));
        let after = match want {
            Want::Opening | Want::Last => self.window.head.saturating_sub(PAGE),
            Want::Before => first.saturating_sub(PAGE + 1),
            Want::Behind => last,
            Want::Around(seq) => seq.saturating_sub(PAGE / 2),
            Want::First | Want::Whole => 0,
        };
        let most = (!want.is_end()).then_some(PAGE as u32);
        let id = cx.query(Query::Events { session, after, most });
        self.wants.push((id, want));
    }

    /// Takes in a page that was asked for.
    pub(super) fn take_page(
        &mut self,
        id: u64,
        answer: &Result<Answered, Fault>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some(at) = self.wants.iter().position(|(asked, _)| *asked == id) else { return false };
        let (_, want) = self.wants.remove(at);
        if want == Want::Whole {
            return true;
        }
        let events = match answer {
            Ok(Answered::Reply { reply: Reply::Events { events } }) => events,
            Ok(_) => return true,
            Err(fault) => {
                self.note(&format!("the session cannot be read: {}", crate::fault::told(fault)));
                return true;
            }
        };
        match want {
            Want::Opening | Want::Last => {
                self.replace(events);
                self.anchor = None;
            }
            Want::First => {
                self.replace(events.get(..events.len().min(PAGE as usize)).unwrap_or(events));
                self.left = self.window.head;
                self.anchor = Some(Anchor { key: Key(0, 0), row: 0 });
            }
            Want::Around(seq) => {
                self.replace(events.get(..events.len().min(PAGE as usize)).unwrap_or(events));
                self.left = self.window.head;
                self.anchor = Some(Anchor { key: Key(seq, 0), row: 0 });
            }
            Want::Before => {
                self.window.prepend(events);
            }
            Want::Behind => {
                for record in events.iter().take(PAGE as usize) {
                    self.window.push(record);
                }
            }
            Want::Whole => {}
        }
        self.fold.anew(&self.window);
        self.trim(cx);
        if let Want::Around(seq) = want {
            self.show_around(seq, cx);
        }
        match self.then.take() {
            Some(scroll) => self.scroll(scroll, cx),
            None => self.look_around(cx),
        }
        true
    }

    /// Holds these facts and no others.
    fn replace(&mut self, events: &[Record]) {
        let last = events.last().map_or(0, |record| record.seq);
        let head = self.window.head.max(last);
        self.window = Window::over(0);
        for record in events {
            self.window.push(record);
        }
        self.window.head = head;
        self.wants.retain(|(_, want)| *want == Want::Whole);
    }

    /// The place among the blocks that the screen is at, and how many of them it shows at most.
    fn place(&self) -> (usize, usize) {
        let height = usize::from(self.size.1).max(10);
        let blocks = self.fold.blocks.len();
        let at = match self.anchor {
            Some(anchor) => self.fold.find(anchor.key).unwrap_or_else(|near| near),
            None => blocks,
        };
        (at.min(blocks), height)
    }

    fn seq(&self, block: usize) -> Seq {
        self.fold.blocks.get(block).map_or(Seq::MAX, |block| block.key.0)
    }

    /// Asks for what one comes near to.
    pub(super) fn look_around(&mut self, cx: &mut Cx<'_>) {
        if self.window.span().is_none() {
            // Nothing is held: what there is has been asked for, or there is nothing.
            if !self.window.holds_end() && self.wants.is_empty() {
                self.want(Want::Last, cx);
            }
            return;
        }
        let (at, height) = self.place();
        let (before, _) = self.window.bytes_around(self.seq(at), NEAR_BYTES);
        let edge = at == 0 || before < NEAR_BYTES && at < (NEAR + 1) * height;
        if !self.window.holds_start() && (edge || self.then.is_some()) {
            self.want(Want::Before, cx);
        }
        let below = self.fold.blocks.len() - at;
        let (_, behind) = self.window.bytes_around(self.seq(at + height), NEAR_BYTES);
        let edge = below <= height || behind < NEAR_BYTES && below < (NEAR + 1) * height;
        if !self.window.holds_end() && (edge || self.then.is_some()) {
            self.want(Want::Behind, cx);
        }
    }

    /// Lets go of what lies far away, if there is too much.
    pub(super) fn trim(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
        if !self.window.is_full() {
            return;
        }
        let (at, height) = self.place();
        let (mut low, mut high) = (at.saturating_sub(FAR * height), at + (FAR + 1) * height);
        // Much closer where blocks are heavy, but never what can be seen at the next step.
        while low + height * (NEAR + 1) < at && self.weighs(low, at) {
            low += height;
        }
        while at + height * (NEAR + 1) < high && self.weighs(at, high) {
            high -= height;
        }
        let cut = low > 0 || high < self.fold.blocks.len();
        if low > 0 {
            self.window.drop_before(self.seq(low));
        }
        if high < self.fold.blocks.len() {
            // Up to the fact before the block that is let go.
            self.window.drop_behind(self.seq(high).saturating_sub(1));
        }
        if cut {
            self.fold.anew(&self.window);
            self.laid.retain(|key, _| self.fold.find(*key).is_ok());
            self.count_laid();
        }
    }

    fn weighs(&self, from: usize, to: usize) -> bool {
        let (_, behind) = self.window.bytes_around(self.seq(from), FAR_BYTES);
        let (_, beyond) = self.window.bytes_around(self.seq(to), FAR_BYTES);
        behind.saturating_sub(beyond) >= FAR_BYTES
    }
}
