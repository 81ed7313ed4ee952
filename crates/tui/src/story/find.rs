//! Finding a text in the session: one row at the foot, and marks in the story.
//!
//! The host says in which facts it stands, and how often; the story goes there, opens what hides it,
//! and marks what it sees. Where fewer are seen than were counted, the count is put right.

use super::Story;
use super::fold::Key;
use super::page::Want;
use super::rows::{self, Lay, Source};
use super::view::Spot;
use crate::asked::line::Line;
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::keys::{Command, Place as Where};
use crate::theme::Role;
use crate::wrap;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use std::ops::Range;
use windlass_protocol::find::BREAK;
use windlass_protocol::wire::Answered;
use windlass_protocol::{Fault, Needle, Place, Query, Reply, Seq};

/// What is looked for, and where it was found.
#[derive(Debug, Default)]
pub(super) struct Find {
    line: Line,
    needle: Option<Needle>,
    /// Grows with every other text, so that marks are known to be old.
    pub version: u64,
    /// What was asked, what for, and when.
    asked: Option<(u64, String, u64)>,
    /// Where it stands, the oldest first; none before an answer has come.
    places: Option<Vec<Place>>,
    /// The last fact that was looked at.
    through: Seq,
    /// Where the person was when they began, or went since.
    from: Seq,
    /// The place one is at, and which of those in it; the last for a number that is too large.
    at: Option<(Seq, usize)>,
    /// What was opened to show it, and is closed behind it.
    opened: Option<Key>,
}

/// A piece of something found: the row of a block, the part of the row, and which of those in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    row: usize,
    part: Range<usize>,
    which: usize,
}

/// Which way to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Older,
    Newer,
}

impl Find {
    /// Where one is among the places.
    fn index(&self) -> Option<usize> {
        let (seq, _) = self.at?;
        self.places.as_ref()?.binary_search_by_key(&seq, |place| place.seq).ok()
    }

    /// Which of all one is at, and how many there are.
    fn count(&self) -> (usize, usize) {
        let places = self.places.as_deref().unwrap_or_default();
        let sum = |places: &[Place]| places.iter().map(|place| place.count as usize).sum::<usize>();
        let Some((at, (_, which))) = self.index().zip(self.at) else { return (0, sum(places)) };
        let here = places.get(at).map_or(0, |place| place.count as usize);
        let before = sum(places.get(..at).unwrap_or_default());
        (before + which.saturating_add(1).min(here), sum(places))
    }

    /// The nearest place at or before where one is, or else the first behind.
    fn nearest(&self) -> Option<Place> {
        let places = self.places.as_ref()?;
        let behind = places.partition_point(|place| place.seq <= self.from);
        places.get(behind.saturating_sub(1)).copied()
    }

    /// The next one that way, if there is one.
    fn next(&self, way: Way) -> Option<(Seq, usize)> {
        let (seq, which) = self.at?;
        let (places, at) = (self.places.as_ref()?, self.index()?);
        let here = places.get(at)?.count as usize;
        match way {
            Way::Older if which > 0 => Some((seq, which - 1)),
            Way::Older => Some((places.get(at.checked_sub(1)?)?.seq, usize::MAX)),
            Way::Newer if which.saturating_add(1) < here => Some((seq, which + 1)),
            Way::Newer => Some((places.get(at + 1)?.seq, 0)),
        }
    }

    /// The marks of rows.
    pub fn marks(&self, rows: &[Row]) -> Vec<Mark> {
        self.needle.as_ref().map(|needle| marks(needle, rows)).unwrap_or_default()
    }

    /// How a mark of a block looks.
    pub fn style(&self, key: Key, mark: &Mark, look: &Look) -> Style {
        let here = self.at == Some((key.0, mark.which)) && key.1 == 0;
        let sign = if here { Modifier::REVERSED } else { Modifier::UNDERLINED };
        look.style(Role::Accent).add_modifier(sign)
    }
}

impl Mark {
    /// The part of a row that it marks, if it does.
    pub fn on(&self, row: usize) -> Option<Range<usize>> {
        (self.row == row).then(|| self.part.clone())
    }
}

/// Where something stands in rows; what was broken to fit is one.
fn marks(needle: &Needle, rows: &[Row]) -> Vec<Mark> {
    let mut text = String::new();
    // Where each row begins in it, and how many bytes of the row are left out before.
    let mut begins = Vec::with_capacity(rows.len());
    for row in rows {
        let shown = row.as_str().trim_end();
        let bare = shown.trim_start();
        begins.push((text.len(), shown.len() - bare.len(), bare.len()));
        text.push_str(bare);
        text.push(BREAK);
    }
    let mut marks = Vec::new();
    for (which, found) in needle.find(&text).into_iter().enumerate() {
        let first = begins.partition_point(|(begin, ..)| *begin <= found.start).saturating_sub(1);
        for (row, (begin, margin, length)) in begins.iter().enumerate().skip(first) {
            if *begin >= found.end {
                break;
            }
            let from = found.start.max(*begin) - begin;
            let to = found.end.min(begin + length) - begin;
            if from < to {
                marks.push(Mark { row, part: margin + from..margin + to, which });
            }
        }
    }
    marks
}

impl Story {
    /// Begins to look for a text.
    pub fn find(&mut self, text: &str, cx: &mut Cx<'_>) {
        if self.find.is_none() {
            let seen = self.shown.last().map_or(Seq::MAX, |key| key.0);
            let from = if self.anchor.is_none() { Seq::MAX } else { seen };
            self.find = Some(Find { from, ..Find::default() });
        }
        if let Some(find) = &mut self.find {
            find.line.write(text);
        }
        self.look_for(cx);
    }

    /// True while a text is looked for: keys are for that.
    pub fn finds(&self) -> bool {
        self.find.is_some()
    }

    /// Stays where it was found.
    pub fn find_no_more(&mut self) {
        self.find = None;
    }

    /// Takes in a key while a text is looked for; false if it means nothing there.
    pub fn find_key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> bool {
        let Some(find) = &mut self.find else { return false };
        match cx.look.keys.find(Where::Panel, key) {
            Some(Command::Escape | Command::Interrupt) => self.find_no_more(),
            Some(Command::Choose | Command::Up | Command::Find) => self.go(Way::Older, cx),
            Some(Command::Down) => self.go(Way::Newer, cx),
            _ if find.line.key(key, cx.look) => self.look_for(cx),
            _ => return false,
        }
        true
    }

    /// Looks for what is written now. One request is under way at a time.
    fn look_for(&mut self, cx: &mut Cx<'_>) {
        let Some(find) = &mut self.find else { return };
        let needle = Needle::new(&find.line.text());
        if needle == find.needle {
            return;
        }
        find.version += 1;
        (find.needle, find.places, find.at) = (needle, None, None);
        self.ask_where(cx);
    }

    fn ask_where(&mut self, cx: &mut Cx<'_>) {
        let (Some(find), Some(session)) = (&mut self.find, self.session) else { return };
        if find.needle.is_some() && find.asked.is_none() {
            let text = find.line.text();
            let id = cx.query(Query::Find { session, text: text.clone() });
            find.asked = Some((id, text, cx.now));
        }
    }

    /// Takes in where it stands, if that was asked.
    pub(super) fn take_places(
        &mut self,
        id: u64,
        answer: &Result<Answered, Fault>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some(find) = &mut self.find else { return false };
        let Some((_, text, _)) = find.asked.take_if(|(asked, ..)| *asked == id) else {
            return false;
        };
        if text != find.line.text() {
            self.ask_where(cx);
            return true;
        }
        match answer {
            Ok(Answered::Reply { reply: Reply::Places { places, through } }) => {
                (find.places, find.through) = (Some(places.clone()), *through);
                if find.index().is_none() {
                    find.at = find.nearest().map(|place| (place.seq, usize::MAX));
                }
                self.show_found(cx);
            }
            Ok(_) => {}
            Err(fault) => {
                find.places = Some(Vec::new());
                self.note(&format!(
                    "the session cannot be searched: {}",
                    crate::fault::told(fault)
                ));
            }
        }
        true
    }

    fn go(&mut self, way: Way, cx: &mut Cx<'_>) {
        let head = self.window.head;
        let Some(find) = &mut self.find else { return };
        let stale = find.through < head;
        if let Some(next) = find.next(way) {
            (find.at, find.from) = (Some(next), next.0);
            self.show_found(cx);
        }
        // What was said since is found, too.
        if stale {
            self.ask_where(cx);
        }
    }

    /// Shows where one is; a page is wanted if that is not held.
    pub(super) fn show_found(&mut self, cx: &mut Cx<'_>) {
        let Some((seq, _)) = self.find.as_ref().and_then(|find| find.at) else { return };
        match self.fold.find(Key(seq, 0)) {
            Ok(item) => self.show_item(item, cx),
            // One page at a time: when it comes, one may be somewhere else.
            Err(_) if self.wants.iter().any(|(_, want)| want.is_around()) => {}
            Err(_) => self.want(Want::Around(seq), cx),
        }
    }

    /// A page around a place has come.
    pub(super) fn show_around(&mut self, seq: Seq, cx: &mut Cx<'_>) {
        let meant = self.find.as_ref().and_then(|find| find.at).is_some_and(|(at, _)| at == seq);
        let held = self.fold.find(Key(seq, 0)).is_ok();
        // Who went on meanwhile is somewhere else; what is not there at all is not asked for again.
        if held || !meant {
            self.show_found(cx);
        }
    }

    fn show_item(&mut self, item: usize, cx: &mut Cx<'_>) {
        let look = cx.look.clone();
        let lay = self.lay(&look, cx.known);
        self.notice_look(&look);
        let key = self.key(item);
        self.unhide(item, &lay);
        let height = self.height(item, &lay);
        let (Some(find), Some(laid)) = (&mut self.find, self.laid.get_mut(&key)) else { return };
        let marks = laid.marks(find);
        let seen = marks.last().map_or(1, |mark| mark.which + 1);
        let which = find.at.map_or(0, |(_, which)| which).min(seen - 1);
        let row = marks.iter().find(|mark| mark.which == which).map_or(0, |mark| mark.row);
        find.at = Some((key.0, which));
        if let (Some(at), Some(places)) = (find.index(), &mut find.places)
            && let Some(place) = places.get_mut(at)
        {
            place.count = u32::try_from(seen).unwrap_or(u32::MAX);
        }
        let rows = laid.len();
        let spot = Spot { item, row: height.saturating_sub(rows) + row };
        self.bring_into_sight(spot, &lay);
        self.look_around(cx);
    }

    /// Opens a block if more is found in it open, and closes the one that was opened before.
    fn unhide(&mut self, item: usize, lay: &Lay<'_>) {
        let (key, block) = (self.key(item), self.fold.blocks.get(item).cloned());
        let (Some(find), Some(block)) = (&mut self.find, block) else { return };
        if let Some(before) = find.opened.take_if(|before| *before != key)
            && !self.turned.remove(&before)
        {
            self.turned.insert(before);
        }
        if !block.what.opens() || self.is_open(key) {
            return;
        }
        let Some(find) = &mut self.find else { return };
        let from = Source { window: &self.window, now: &self.now, pictures: &self.pictures };
        let count = |open: bool| {
            let marks = find.marks(&rows::rows(&block, open, from, lay));
            marks.last().map_or(0, |mark| mark.which + 1)
        };
        if count(true) > count(false) {
            find.opened = Some(key);
            if !self.turned.remove(&key) {
                self.turned.insert(key);
            }
        }
    }

    /// Scrolls so that a row is on the screen, unless it is.
    fn bring_into_sight(&mut self, spot: Spot, lay: &Lay<'_>) {
        let height = isize::try_from(self.size.1).unwrap_or_default().max(1);
        let top = self.top(lay);
        let (bottom, _) = self.walk(top, height - 1, lay);
        if spot < top || bottom < spot {
            let (top, _) = self.walk(spot, -(height / 3), lay);
            self.go_to(top, lay);
        }
    }

    /// When the row at the foot looks different because time passed.
    pub fn wakes(&self, now: u64) -> Option<u64> {
        let (_, _, since) = self.find.as_ref()?.asked.as_ref()?;
        Some(since + (now.saturating_sub(*since) / 1_000 + 1) * 1_000)
    }

    /// Draws the row at the foot, and says where the cursor stands in it.
    pub(super) fn draw_find(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        lay: &Lay<'_>,
    ) -> Option<Position> {
        let find = self.find.as_ref()?;
        let (edge, dim) = (lay.look.style(Role::Border), lay.look.style(Role::Dim));
        let rule = lay.sign("─", "-");
        let mut row = Row::of(edge, &format!("{} ", rule.repeat(2)))
            .and(lay.look.style(Role::Strong), "Find ");
        let (up, down) = (lay.key(Command::Up), lay.key(Command::Down));
        let mut keys = match find.at {
            Some(_) => format!(" · {up} older · {down} newer"),
            None => String::new(),
        };
        keys.push_str(&format!(" · {} closes", lay.key(Command::Escape)));
        if lay.width < 60 {
            keys.clear();
        }
        let said = lay.ours(&format!(" {}{keys} ", find.says(lay.now))).into_owned();
        let said = Row::of(dim, &said);
        let room = lay.width.saturating_sub(row.width() + said.width() + 4).max(4);
        let (line, column) = find.line.row(room, lay.look);
        let x = area.x + u16::try_from(row.width() + column).unwrap_or(u16::MAX);
        row.extend(&wrap::cut(&line, room, lay.look));
        let free = lay.width.saturating_sub(row.width() + 1 + said.width() + 2);
        row.push(edge, &format!(" {}", rule.repeat(free)));
        row.extend(&said);
        row.push(edge, &rule.repeat(2));
        wrap::cut(&row, lay.width, lay.look).draw(area, buffer);
        Some(Position { x, y: area.y })
    }
}

impl Find {
    /// How far it is.
    fn says(&self, now: u64) -> String {
        let (_, all) = self.count();
        let (at, waits) = (self.at.is_some(), self.asked.as_ref());
        let seconds = waits.map(|(_, _, since)| now.saturating_sub(*since) / 1_000);
        match (seconds, &self.places) {
            _ if self.needle.is_none() => "type what to find".to_owned(),
            (_, Some(_)) if at => format!("{} of {all}", self.count().0),
            (_, Some(_)) => "nothing found".to_owned(),
            (None | Some(0), None) => "looking".to_owned(),
            (Some(seconds), None) => format!("looking, {seconds} s"),
        }
    }
}

/// A row with its marks.
pub(super) fn marked(mut row: Row, parts: impl Iterator<Item = (Range<usize>, Style)>) -> Row {
    for (part, style) in parts {
        row = row.painted(part, style);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::clusters;

    fn found(needle: &str, rows: &[&str]) -> Vec<(usize, usize, String)> {
        let laid: Vec<Row> = rows.iter().map(|row| Row::of(Style::default(), row)).collect();
        let marks = marks(&Needle::new(needle).unwrap(), &laid);
        let text = |mark: &Mark| laid[mark.row].as_str()[mark.part.clone()].to_owned();
        marks.iter().map(|mark| (mark.which, mark.row, text(mark))).collect()
    }

    #[test]
    fn what_was_broken_to_fit_is_found_and_marked_in_both_rows() {
        let row = |which, row, text: &str| (which, row, text.to_owned());
        assert_eq!(
            found("crane stands", &["  the crane", "  stands, the crane stands"]),
            [row(0, 0, "crane"), row(0, 1, "stands"), row(1, 1, "crane stands")]
        );
        assert_eq!(found("harbour", &["  har", "  bour"]), [row(0, 0, "har"), row(0, 1, "bour")]);
        assert_eq!(found("港湾", &["  港", "", "  湾 港湾"]), [row(0, 2, "港湾")]);
    }

    #[test]
    fn a_letter_is_marked_with_what_stands_above_it() {
        let row = Row::of(Style::default(), "ae\u{301}b漢字");
        let style = Style::default().add_modifier(Modifier::REVERSED);
        let marked = |part| {
            let row = row.painted(part, style);
            assert_eq!(row.width(), 7);
            let pieces = row.pieces().filter(|(own, _)| *own == style);
            pieces.map(|(_, text)| text.to_owned()).collect::<String>()
        };
        assert_eq!(marked(1..2), "e\u{301}");
        assert_eq!(marked(5..8), "漢");
        assert_eq!(marked(0..0), "");
        assert_eq!(clusters(row.as_str()).count(), 5);
    }
}
