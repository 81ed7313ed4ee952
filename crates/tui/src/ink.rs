//! Ink: the one way by which a text gets onto the screen.
//!
//! A [`Row`] is one line of cells with their styles. It can only be made from texts that were made
//! [`harmless`], so that nothing a model or a file name says can move the cursor, change the title,
//! write the clipboard or look like a line of ours: I-INK.
//!
//! It also keeps widths honest. Terminals do not agree on how wide some emoji are: they count
//! characters or what the characters mean together. What they would not agree on is written in a
//! simpler way, so that no row is ever wider or narrower than it was laid out for.

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;
use windlass_protocol::text::hides;

/// How many columns a tab leads to a multiple of.
pub const TAB: usize = 4;

/// How many marks may stand above and below one letter. More of them reach into other lines.
const MARKS: usize = 4;

/// How wide letters that are written as one may be together.
const WIDEST: usize = 8;

/// What stands where something was that cannot be shown.
const LOST: char = '\u{fffd}';

/// A line of text as it stands on the screen.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Row {
    text: String,
    /// Where each style ends.
    styles: Vec<(usize, Style)>,
    width: usize,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.pieces()).finish()
    }
}

impl Row {
    /// A row that begins with a text.
    pub fn of(style: Style, text: &str) -> Row {
        Row::default().and(style, text)
    }

    /// The same with a text behind it.
    #[must_use]
    pub fn and(mut self, style: Style, text: &str) -> Row {
        self.push(style, text);
        self
    }

    /// Adds a text.
    pub fn push(&mut self, style: Style, text: &str) {
        let before = self.text.len();
        let width = neutralise(text, self.width, &mut self.text);
        self.settle(style, before, width);
    }

    /// So much of the text was added in this style.
    fn settle(&mut self, style: Style, before: usize, width: usize) {
        let end = self.text.len();
        if end == before {
            return;
        }
        self.width += width;
        match self.styles.last_mut() {
            Some((last, same)) if *same == style => *last = end,
            Some(_) | None => self.styles.push((end, style)),
        }
    }

    /// Adds another row.
    pub fn extend(&mut self, other: &Row) {
        for (style, text) in other.pieces() {
            let before = self.text.len();
            self.text.push_str(text);
            self.settle(style, before, 0);
        }
        self.width += other.width;
    }

    /// Fills it up to a width.
    pub fn fill(&mut self, style: Style, width: usize) {
        if self.width < width {
            self.push(style, &" ".repeat(width - self.width));
        }
    }

    /// A part of it, from one cluster to another.
    pub(crate) fn part(&self, part: Range<usize>) -> Row {
        let mut row = Row::default();
        let mut begin = 0;
        for (end, style) in &self.styles {
            let (from, to) = (begin.max(part.start), (*end).min(part.end));
            begin = *end;
            if let Some(text) = self.text.get(from..to) {
                let before = row.text.len();
                row.text.push_str(text);
                row.settle(*style, before, measure(text));
            }
        }
        row
    }

    /// Its style at a place in its text.
    pub(crate) fn style_at(&self, at: usize) -> Style {
        let after = self.styles.partition_point(|(end, _)| *end <= at);
        self.styles.get(after).or(self.styles.last()).map(|(_, style)| *style).unwrap_or_default()
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Its pieces.
    pub fn pieces(&self) -> impl Iterator<Item = (Style, &str)> {
        let mut begin = 0;
        self.styles.iter().map(move |(end, style)| {
            let text = self.text.get(begin..*end).unwrap_or_default();
            begin = *end;
            (*style, text)
        })
    }

    /// Its text without styles.
    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// Its text, to look at.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lays a style under all of it.
    #[must_use]
    pub fn over(mut self, under: Style) -> Row {
        for (_, style) in &mut self.styles {
            *style = under.patch(*style);
        }
        self
    }

    /// The same with a style over a part of it, as far as whole clusters reach.
    #[must_use]
    pub(crate) fn painted(&self, part: Range<usize>, over: Style) -> Row {
        let touched = clusters(&self.text)
            .filter(|(at, text, _)| *at < part.end && part.start < at + text.len());
        let (mut begin, mut end) = (usize::MAX, 0);
        for (at, text, _) in touched {
            (begin, end) = (begin.min(at), at + text.len());
        }
        if end == 0 {
            return self.clone();
        }
        let mut row = self.part(0..begin);
        for (style, text) in self.part(begin..end).pieces() {
            let before = row.text.len();
            row.text.push_str(text);
            row.settle(style.patch(over), before, measure(text));
        }
        row.extend(&self.part(end..self.text.len()));
        row
    }

    /// Draws it at the top of an area, and nothing beyond it.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let mut x = area.x;
        for (style, text) in self.pieces() {
            let left = usize::from(area.right().saturating_sub(x));
            let (after, _) = buffer.set_stringn(x, area.y, text, left, style);
            if usize::from(after.saturating_sub(x)) < measure(text) {
                return;
            }
            x = after;
        }
    }
}

/// A text without anything that could steer a terminal, on one line.
pub fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    neutralise(text, 0, &mut harmless);
    harmless
}

/// How many columns a text takes once it is harmless.
pub fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { measure(&harmless(text)) }
}

/// The signs of a harmless text, each with its place and its width.
pub(crate) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    text.grapheme_indices(true)
        .map(|(at, cluster)| (at, cluster, usize::from(cluster.cell_width())))
}

fn measure(text: &str) -> usize {
    if is_plain(text) { text.len() } else { clusters(text).map(|(_, _, width)| width).sum() }
}

/// True for what every terminal shows as it is, one column a byte.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Writes what a text shows behind another one, which ends in a column, and says how wide it is.
fn neutralise(text: &str, column: usize, out: &mut String) -> usize {
    if is_plain(text) {
        out.push_str(text);
        return text.len();
    }
    let mut width = 0;
    for cluster in text.graphemes(true) {
        width += match cluster {
            "\t" => {
                let blank = TAB - (column + width) % TAB;
                out.extend(std::iter::repeat_n(' ', blank));
                blank
            }
            other if is_plain(other) => {
                out.push_str(other);
                other.len()
            }
            other => simplify(other, out),
        };
    }
    width
}

/// Writes a cluster so that it shows all that it is, and every terminal gives it the same width.
fn simplify(cluster: &str, out: &mut String) -> usize {
    let mut shown = String::with_capacity(cluster.len());
    let mut marks = 0;
    let mut before = None;
    let mut rest = cluster.chars().peekable();
    while let Some(character) = rest.next() {
        let wide = character.width().unwrap_or(0) > 0;
        let sign = match character {
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32),
            '\u{7f}' => Some('\u{2421}'),
            '\u{80}'..='\u{9f}' => Some(LOST),
            // Emoji that are written as one stand beside each other.
            '\u{200d}' if rest.peek().is_some_and(|next| is_picture(*next)) => None,
            '\u{fe00}'..='\u{fe0f}'
            | '\u{180b}'..='\u{180d}'
            | '\u{180f}'
            | '\u{e0100}'..='\u{e01ef}' => {
                let keycap = rest.peek() == Some(&'\u{20e3}');
                let fits = before.is_some_and(|before: char| !before.is_ascii() || keycap);
                (!fits).then_some(LOST)
            }
            '\u{1f3fb}'..='\u{1f3ff}' => {
                before.is_none_or(|base| !is_picture(base)).then_some(LOST)
            }
            // Half a column for some, none for others: the marks that combine mean the same.
            '\u{ff9e}' if before.is_some() => Some('\u{3099}'),
            '\u{ff9f}' if before.is_some() => Some('\u{309a}'),
            '\u{ff9e}' | '\u{ff9f}' => Some(LOST),
            // Dashes that some draw over two or three columns.
            '\u{2e3a}' | '\u{2e3b}' => Some('\u{2014}'),
            other if hides(other) || other.width().unwrap_or(0) > 2 => Some(LOST),
            other if wide => Some(other),
            _ if before.is_none() => Some(LOST),
            other => {
                marks += 1;
                match marks.cmp(&(MARKS + 1)) {
                    std::cmp::Ordering::Less => Some(other),
                    std::cmp::Ordering::Equal => Some(LOST),
                    std::cmp::Ordering::Greater => None,
                }
            }
        };
        // Only what has a shape can be chosen a form of, and once.
        before = Some(if wide { character } else { '\0' });
        shown.extend(sign);
    }
    let mut width = 0;
    for cluster in shown.graphemes(true) {
        let together = usize::from(cluster.cell_width());
        if together == apart(cluster) && (1..=WIDEST).contains(&together) {
            out.push_str(cluster);
            width += together;
        } else {
            out.push(LOST);
            width += 1;
        }
    }
    width
}

/// How wide a cluster is for a terminal that counts characters.
fn apart(cluster: &str) -> usize {
    cluster.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// True for what may be part of a joined emoji.
fn is_picture(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests;
