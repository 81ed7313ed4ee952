//! The only way for text to reach the screen: sanitized lines.
//!
//! A [`SafeLine`] is one line of cells with their styles. It is built only from text that
//! [`sanitize`] has cleaned. It keeps the invariant I-TEXT: no text of a model or file name can move
//! the cursor, change the title, write the clipboard or pass as a line of the UI.
//!
//! It also keeps widths exact. Terminals disagree on the width of some emoji: some count
//! characters, others the combined cluster. Clusters they would disagree on are written in a
//! simpler form, so that no row is wider or narrower than it was laid out for.

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;
use windlass_protocol::display_text::is_hidden_or_bidi;

/// The distance between tab stops, in columns.
pub const TAB_WIDTH: usize = 4;

/// The combining marks allowed on one letter. More of them reach into other lines.
const MAX_COMBINING_MARKS: usize = 4;

/// The largest width of one grapheme cluster, in columns.
const MAX_CLUSTER_WIDTH: usize = 8;

/// Replaces characters that [`SafeLine`] cannot show.
const REPLACEMENT_CHAR: char = '\u{fffd}';

/// One line of sanitized, styled text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SafeLine {
    text: String,
    /// Each style with the byte offset at which it ends.
    style_ends: Vec<(usize, Style)>,
    width: usize,
}

impl std::fmt::Debug for SafeLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.spans()).finish()
    }
}

impl SafeLine {
    /// Creates a line with one styled text.
    pub fn styled(style: Style, text: &str) -> SafeLine {
        SafeLine::default().with_text(style, text)
    }

    /// Returns the line with a text appended; see [`SafeLine::push_text`].
    #[must_use]
    pub fn with_text(mut self, style: Style, text: &str) -> SafeLine {
        self.push_text(style, text);
        self
    }

    /// Appends a text, cleaned by [`sanitize`].
    pub fn push_text(&mut self, style: Style, text: &str) {
        let start = self.text.len();
        let width = sanitize_into(text, self.width, &mut self.text);
        self.record_style(style, start, width);
    }

    /// Records the style and width of the text appended after byte `start`.
    fn record_style(&mut self, style: Style, start: usize, width: usize) {
        let end = self.text.len();
        if end == start {
            return;
        }
        self.width += width;
        match self.style_ends.last_mut() {
            Some((last_end, last_style)) if *last_style == style => *last_end = end,
            Some(_) | None => self.style_ends.push((end, style)),
        }
    }

    /// Appends another line with its styles.
    pub fn append(&mut self, other: &SafeLine) {
        for (style, text) in other.spans() {
            let start = self.text.len();
            self.text.push_str(text);
            self.record_style(style, start, 0);
        }
        self.width += other.width;
    }

    /// Pads the line with spaces up to `width`.
    pub fn pad_to(&mut self, style: Style, width: usize) {
        if self.width < width {
            self.push_text(style, &" ".repeat(width - self.width));
        }
    }

    /// Returns the part of the line in a byte range; the range must begin and end at boundaries of
    /// [`clusters`].
    pub(crate) fn slice(&self, range: Range<usize>) -> SafeLine {
        let mut row = SafeLine::default();
        let mut start = 0;
        for (end, style) in &self.style_ends {
            let (slice_start, slice_end) = (start.max(range.start), (*end).min(range.end));
            start = *end;
            if let Some(text) = self.text.get(slice_start..slice_end) {
                let appended_at = row.text.len();
                row.text.push_str(text);
                row.record_style(*style, appended_at, sanitized_width(text));
            }
        }
        row
    }

    /// Returns the style at a byte offset.
    pub(crate) fn style_at(&self, offset: usize) -> Style {
        let index = self.style_ends.partition_point(|(end, _)| *end <= offset);
        self.style_ends
            .get(index)
            .or(self.style_ends.last())
            .map(|(_, style)| *style)
            .unwrap_or_default()
    }

    /// Returns the width in columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns true if the line has no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the pieces of text, each with its `Style`.
    pub fn spans(&self) -> impl Iterator<Item = (Style, &str)> {
        let mut start = 0;
        self.style_ends.iter().map(move |(end, style)| {
            let text = self.text.get(start..*end).unwrap_or_default();
            start = *end;
            (*style, text)
        })
    }

    /// Returns a copy of the text without styles.
    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// Returns the text without styles.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the line with `base` as the base of all its styles.
    #[must_use]
    pub fn with_base_style(mut self, base: Style) -> SafeLine {
        for (_, style) in &mut self.style_ends {
            *style = base.patch(*style);
        }
        self
    }

    /// Returns the line with a style patched over a byte range, extended to whole clusters.
    #[must_use]
    pub(crate) fn with_range_style(&self, range: Range<usize>, patch: Style) -> SafeLine {
        let affected = clusters(&self.text)
            .filter(|(offset, text, _)| *offset < range.end && range.start < offset + text.len());
        let (mut start, mut end) = (usize::MAX, 0);
        for (offset, text, _) in affected {
            (start, end) = (start.min(offset), offset + text.len());
        }
        if end == 0 {
            return self.clone();
        }
        let mut row = self.slice(0..start);
        for (style, text) in self.slice(start..end).spans() {
            let appended_at = row.text.len();
            row.text.push_str(text);
            row.record_style(style.patch(patch), appended_at, sanitized_width(text));
        }
        row.append(&self.slice(end..self.text.len()));
        row
    }

    /// Draws the line into the first row of `area`, clipped to it.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let mut x = area.x;
        for (style, text) in self.spans() {
            let available = usize::from(area.right().saturating_sub(x));
            let (next_x, _) = buffer.set_stringn(x, area.y, text, available, style);
            if usize::from(next_x.saturating_sub(x)) < sanitized_width(text) {
                return;
            }
            x = next_x;
        }
    }
}

/// Returns the text on one line, without anything that could control a terminal.
pub fn sanitize(text: &str) -> String {
    let mut sanitized = String::with_capacity(text.len());
    sanitize_into(text, 0, &mut sanitized);
    sanitized
}

/// Returns the width of a text in columns after [`sanitize`].
pub fn display_width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { sanitized_width(&sanitize(text)) }
}

/// Returns the grapheme clusters of a sanitized text with their byte offsets and widths.
pub(crate) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    text.grapheme_indices(true)
        .map(|(offset, cluster)| (offset, cluster, usize::from(cluster.cell_width())))
}

fn sanitized_width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { clusters(text).map(|(_, _, width)| width).sum() }
}

/// Returns true for printable ASCII, which every terminal shows as it is, one column per byte.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Appends the sanitized text to `out`, starting at `column` because of tabs, and returns its
/// width.
fn sanitize_into(text: &str, column: usize, out: &mut String) -> usize {
    if is_plain(text) {
        out.push_str(text);
        return text.len();
    }
    let start = out.len();
    let (mut width, mut changed) = sanitize_clusters(text, column, out);
    // A character that was removed or replaced changes where clusters begin and end, so the text
    // is sanitized again until it stays the same. Each pass shortens the text or replaces
    // characters by ones that are never replaced, so this ends.
    while changed {
        let text = out.split_off(start);
        (width, _) = sanitize_clusters(&text, column, out);
        changed = out.get(start..) != Some(text.as_str());
    }
    width
}

/// Sanitizes each cluster of a text. Returns the width, and true if a cluster was changed.
fn sanitize_clusters(text: &str, column: usize, out: &mut String) -> (usize, bool) {
    let mut width = 0;
    let mut changed = false;
    for cluster in text.graphemes(true) {
        width += match cluster {
            "\t" => {
                let spaces = TAB_WIDTH - (column + width) % TAB_WIDTH;
                out.extend(std::iter::repeat_n(' ', spaces));
                spaces
            }
            cluster if is_plain(cluster) => {
                out.push_str(cluster);
                cluster.len()
            }
            cluster => {
                let start = out.len();
                let width = sanitize_cluster(cluster, out);
                changed |= out.get(start..) != Some(cluster);
                width
            }
        };
    }
    (width, changed)
}

/// Sanitizes a cluster so that nothing of it is hidden and every terminal gives it the same width.
fn sanitize_cluster(cluster: &str, out: &mut String) -> usize {
    let mut sanitized = String::with_capacity(cluster.len());
    let mut marks = 0;
    let mut previous = None;
    let mut remaining = cluster.chars().peekable();
    while let Some(character) = remaining.next() {
        // Terminals disagree on the width of the half-width marks; the combining marks mean the
        // same.
        let character = match character {
            '\u{ff9e}' if previous.is_some() => '\u{3099}',
            '\u{ff9f}' if previous.is_some() => '\u{309a}',
            other => other,
        };
        let is_visible = character.width().unwrap_or(0) > 0;
        let replacement = match character {
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32),
            '\u{7f}' => Some('\u{2421}'),
            '\u{80}'..='\u{9f}' => Some(REPLACEMENT_CHAR),
            // Joined emoji are written side by side.
            '\u{200d}' if remaining.peek().is_some_and(|next| is_emoji_part(*next)) => None,
            '\u{fe00}'..='\u{fe0f}'
            | '\u{180b}'..='\u{180d}'
            | '\u{180f}'
            | '\u{e0100}'..='\u{e01ef}' => {
                let keycap = remaining.peek() == Some(&'\u{20e3}');
                let fits = previous.is_some_and(|previous: char| !previous.is_ascii() || keycap);
                (!fits).then_some(REPLACEMENT_CHAR)
            }
            '\u{1f3fb}'..='\u{1f3ff}' => {
                previous.is_none_or(|base| !is_emoji_part(base)).then_some(REPLACEMENT_CHAR)
            }
            '\u{ff9e}' | '\u{ff9f}' => Some(REPLACEMENT_CHAR),
            // Some terminals draw these dashes over two or three columns.
            '\u{2e3a}' | '\u{2e3b}' => Some('\u{2014}'),
            other if is_hidden_or_bidi(other) || other.width().unwrap_or(0) > 2 => {
                Some(REPLACEMENT_CHAR)
            }
            other if is_visible => Some(other),
            _ if previous.is_none() => Some(REPLACEMENT_CHAR),
            other => {
                marks += 1;
                match marks.cmp(&(MAX_COMBINING_MARKS + 1)) {
                    std::cmp::Ordering::Less => Some(other),
                    std::cmp::Ordering::Equal => Some(REPLACEMENT_CHAR),
                    std::cmp::Ordering::Greater => None,
                }
            }
        };
        // A variation selector applies only to a visible character, and only once.
        previous = Some(if is_visible { character } else { '\0' });
        sanitized.extend(replacement);
    }
    let mut width = 0;
    for cluster in sanitized.graphemes(true) {
        let cell_width = usize::from(cluster.cell_width());
        if cell_width == sum_char_widths(cluster) && (1..=MAX_CLUSTER_WIDTH).contains(&cell_width) {
            out.push_str(cluster);
            width += cell_width;
        } else {
            out.push(REPLACEMENT_CHAR);
            width += 1;
        }
    }
    width
}

/// Returns the width of a cluster in a terminal that counts characters.
fn sum_char_widths(cluster: &str) -> usize {
    cluster.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Returns true for characters that may be part of an emoji joined with `U+200D`.
fn is_emoji_part(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests;
