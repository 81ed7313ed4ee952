//! Line wrapping to a display width: between words if possible, otherwise between grapheme
//! clusters.
//!
//! Words are separated by spaces. Scripts without spaces, such as Chinese and Japanese, break where
//! UAX #14 allows it, so no row begins with a closing bracket or a full stop. UAX #14 would also
//! break after hyphens and slashes; those breaks are not used, because they split options and
//! paths.

use crate::safe_line::{SafeLine, clusters};
use crate::ui_context::Appearance;
use ratatui::style::Style;
use std::ops::Range;

/// The smallest wrap width; a double-width character needs two columns.
const MIN_WRAP_WIDTH: usize = 2;

/// The positions at which `wrap` may break a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrapMode {
    /// Between words and wide characters, for prose.
    Words,
    /// Between any two grapheme clusters, for code and command output.
    Anywhere,
}

/// Wraps a row to a width. Continuation rows start with `indent` columns.
pub fn wrap(row: &SafeLine, width: usize, mode: WrapMode, indent: usize) -> Vec<SafeLine> {
    let width = width.max(MIN_WRAP_WIDTH);
    if row.width() <= width {
        return vec![row.clone()];
    }
    let indent = indent.min(width - MIN_WRAP_WIDTH);
    let margin = " ".repeat(indent);
    let mut rows = Vec::new();
    for range in row_ranges(row.as_str(), width, mode, indent) {
        let available = if rows.is_empty() { width } else { width - indent };
        let mut line = slice_to_fit(row, range, available);
        if !rows.is_empty() && indent > 0 {
            let mut indented = SafeLine::styled(Style::default(), &margin);
            indented.append(&line);
            line = indented;
        }
        rows.push(line);
    }
    if rows.is_empty() { vec![SafeLine::default()] } else { rows }
}

/// Slices a row, and substitutes U+FFFD for a cluster that is wider than any row.
fn slice_to_fit(row: &SafeLine, range: Range<usize>, width: usize) -> SafeLine {
    let slice = row.slice(range.clone());
    // Only a single cluster can be wider than the width it was wrapped for.
    if slice.width() > width {
        SafeLine::styled(row.style_at(range.start), "\u{fffd}")
    } else {
        slice
    }
}

/// Returns the byte offsets at which UAX #14 allows a break; empty for ASCII, which breaks only
/// after spaces.
pub(crate) fn break_offsets(text: &str) -> Vec<usize> {
    if text.is_ascii() {
        return Vec::new();
    }
    unicode_linebreak::linebreaks(text).map(|(offset, _)| offset).collect()
}

/// Computes the byte range of each wrapped row of `text`.
fn row_ranges(text: &str, width: usize, mode: WrapMode, indent: usize) -> Vec<Range<usize>> {
    let all_clusters: Vec<(usize, &str, usize)> = clusters(text).collect();
    let break_offsets = match mode {
        WrapMode::Words => break_offsets(text),
        WrapMode::Anywhere => Vec::new(),
    };
    let can_break = |offset: usize| break_offsets.binary_search(&offset).is_ok();
    let mut ranges = Vec::new();
    let (mut start, mut row_width, mut available) = (0, 0, width);
    // A possible break: the end of the current row, and the index of the cluster that would start
    // the next one.
    let mut break_point: Option<(usize, usize)> = None;
    // The end offset and the width of the last cluster that is not a space.
    let (mut end, mut last_width) = (0, 0);
    let mut index = 0;
    while let Some((offset, cluster, columns)) = all_clusters.get(index).copied() {
        if mode == WrapMode::Words && cluster == " " {
            (row_width, last_width, index) = (row_width + 1, 0, index + 1);
            continue;
        }
        // A word starts after a space, or beside a double-width character if UAX #14 allows it.
        if mode == WrapMode::Words
            && offset > start
            && (last_width == 0 || (last_width.max(columns) > 1 && can_break(offset)))
        {
            break_point = Some((end.max(start), index));
        }
        if row_width > 0 && row_width + columns > available {
            // Without a break opportunity the word is longer than a row; split it here.
            let (row_end, next_index) = break_point.take().unwrap_or((offset, index));
            if row_end > start {
                ranges.push(start..row_end);
                available = width - indent;
            }
            start = all_clusters.get(next_index).map_or(text.len(), |(offset, ..)| *offset);
            (row_width, last_width, index) = (0, 1, next_index);
            continue;
        }
        (row_width, end, last_width, index) =
            (row_width + columns, offset + cluster.len(), columns, index + 1);
    }
    if end > start {
        ranges.push(start..end);
    }
    ranges
}

/// Returns the ellipsis: `…`, or `...` in ASCII mode.
pub fn ellipsis(appearance: &Appearance) -> &'static str {
    if appearance.ascii { "..." } else { "…" }
}

/// Truncates a row to a width, and appends the `ellipsis` if something was cut.
pub fn truncate(row: &SafeLine, width: usize, appearance: &Appearance) -> SafeLine {
    if row.width() <= width {
        return row.clone();
    }
    let marker = ellipsis(appearance);
    let marker_width = marker.chars().count().min(width);
    let available = width - marker_width;
    let mut used_width = 0;
    let fits = |(_, _, columns): &(usize, &str, usize)| {
        used_width += columns;
        used_width <= available
    };
    let end = clusters(row.as_str())
        .take_while(fits)
        .last()
        .map_or(0, |(offset, text, _)| offset + text.len());
    let mut truncated = row.slice(0..end);
    truncated.push_text(row.style_at(end), &marker.chars().take(marker_width).collect::<String>());
    truncated
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::{Color, Modifier};

    fn row(text: &str) -> SafeLine {
        SafeLine::styled(Style::default(), text)
    }

    fn wrapped(text: &str, width: usize, mode: WrapMode, indent: usize) -> Vec<String> {
        wrap(&row(text), width, mode, indent).iter().map(SafeLine::text).collect()
    }

    #[test]
    fn prose_breaks_between_words_and_loses_only_the_spaces_there() {
        let rows = wrapped("the quick brown  fox jumps", 11, WrapMode::Words, 0);
        assert_eq!(rows, ["the quick", "brown  fox", "jumps"]);
        assert_eq!(wrapped("the quick brown", 9, WrapMode::Words, 2), ["the quick", "  brown"]);
        assert_eq!(wrapped("", 5, WrapMode::Words, 0), [""]);
        assert_eq!(wrapped("      ", 4, WrapMode::Words, 0), [""]);
        assert_eq!(wrapped("aaa   ", 4, WrapMode::Words, 0), ["aaa"]);
    }

    #[test]
    fn a_word_longer_than_a_row_breaks_where_the_row_ends() {
        assert_eq!(
            wrapped("see abcdefghij k", 4, WrapMode::Words, 0),
            ["see", "abcd", "efgh", "ij k"]
        );
        assert_eq!(wrapped("abcdefgh", 4, WrapMode::Words, 2), ["abcd", "  ef", "  gh"]);
    }

    #[test]
    fn code_breaks_anywhere_and_keeps_its_spaces() {
        assert_eq!(wrapped("ab  cd  ef", 4, WrapMode::Anywhere, 0), ["ab  ", "cd  ", "ef"]);
        assert_eq!(wrapped("abcdef", 4, WrapMode::Anywhere, 1), ["abcd", " ef"]);
    }

    #[test]
    fn a_wide_character_is_never_split() {
        assert_eq!(wrapped("漢字漢字", 5, WrapMode::Words, 0), ["漢字", "漢字"]);
        assert_eq!(wrapped("a漢字b", 3, WrapMode::Anywhere, 0), ["a漢", "字b"]);
        assert_eq!(wrapped("漢字", 0, WrapMode::Words, 7), ["漢", "字"]);
        let truncated = |width, ascii| {
            truncate(&row("漢字漢字"), width, &Appearance { ascii, ..Appearance::default() }).text()
        };
        assert_eq!(
            [truncated(6, false), truncated(1, false), truncated(0, false)],
            ["漢字…", "…", ""]
        );
        assert_eq!(
            [truncated(6, true), truncated(5, true), truncated(2, true)],
            ["漢...", "漢...", ".."]
        );
    }

    #[test]
    fn closing_punctuation_stays_with_its_word() {
        assert_eq!(wrapped("漢字漢字。漢字", 8, WrapMode::Words, 0), ["漢字漢", "字。漢字"]);
        assert_eq!(wrapped("漢字漢「字」漢", 8, WrapMode::Words, 0), ["漢字漢", "「字」漢"]);
        assert_eq!(
            wrapped("漢字（a.rs）漢字", 8, WrapMode::Words, 0),
            ["漢字", "（a.rs）", "漢字"]
        );
        assert_eq!(
            wrapped("see --long-option", 10, WrapMode::Words, 0),
            ["see", "--long-opt", "ion"]
        );
    }

    #[test]
    fn styles_stay_with_their_words() {
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let row = row("plain ").with_text(bold, "bold words").with_text(Style::default(), " end");
        let rows = wrap(&row, 11, WrapMode::Words, 0);
        let spans: Vec<Vec<(Style, &str)>> = rows.iter().map(|row| row.spans().collect()).collect();
        let plain = Style::default();
        assert_eq!(
            spans,
            [vec![(plain, "plain "), (bold, "bold")], vec![(bold, "words"), (plain, " end")]]
        );
        let red = Style::default().fg(Color::Red);
        let appearance = Appearance::default();
        assert_eq!(
            truncate(&SafeLine::styled(red, "abcdef"), 3, &appearance),
            SafeLine::styled(red, "ab…")
        );
        assert_eq!(truncate(&SafeLine::styled(red, "abcdef"), 0, &appearance), SafeLine::default());
    }

    fn without_spaces(text: &str) -> String {
        text.chars().filter(|character| *character != ' ').collect()
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_requested_and_only_spaces_are_lost(
            text in "([a-zé漢🙂ｶﾞक्ष \u{301}]|[a-z]{1,9} |\\PC){0,60}",
            width in 8_usize..40,
            indent in 0_usize..12,
        ) {
            let row = row(&text);
            for mode in [WrapMode::Words, WrapMode::Anywhere] {
                let indent = if mode == WrapMode::Words { indent } else { 0 };
                let rows = wrap(&row, width + WIDE, mode, indent.min(width));
                for row in &rows {
                    prop_assert!(row.width() <= width + WIDE, "{row:?}");
                }
                let joined: String = rows.iter().map(SafeLine::text).collect();
                match mode {
                    WrapMode::Words => {
                        prop_assert_eq!(without_spaces(&joined), without_spaces(&row.text()));
                    }
                    WrapMode::Anywhere => prop_assert_eq!(joined, row.text()),
                }
            }
        }

        #[test]
        fn no_row_begins_with_closing_punctuation_or_splits_a_cluster(
            text in "([漢字かな한글]{1,4}[。、，！？：；）」』】〉》]{0,2}|[「『（【][漢字]{1,3}[」』）】]|👨‍👩‍👧|🏳️‍🌈|👍🏽|🇩🇪|[a-z]{1,8}[,.!?]? ){1,80}",
            width in 41_usize..=120,
        ) {
            use unicode_segmentation::UnicodeSegmentation as _;
            let rows = wrap(&row(&text), width, WrapMode::Words, 0);
            for row in &rows {
                let first = row.text().chars().next().unwrap_or(' ');
                prop_assert!(!"。、，！？：；）」』】〉》,.!?".contains(first), "{rows:?}");
                prop_assert!(row.width() <= width);
            }
            let clusters_of = |text: &str| -> Vec<String> {
                text.graphemes(true).filter(|cluster| *cluster != " ").map(str::to_owned).collect()
            };
            let wrapped: Vec<String> = rows.iter().flat_map(|row| clusters_of(&row.text())).collect();
            prop_assert_eq!(wrapped, clusters_of(&row(&text).text()));
        }

        #[test]
        fn the_width_is_kept_in_very_narrow_rows(
            text in "\\PC{0,40}",
            width in 0_usize..8,
            indent in 0_usize..9,
        ) {
            for mode in [WrapMode::Words, WrapMode::Anywhere] {
                for row in wrap(&row(&text), width, mode, indent) {
                    prop_assert!(row.width() <= width.max(MIN_WRAP_WIDTH), "{row:?}");
                }
            }
            for ascii in [true, false] {
                let appearance = Appearance { ascii, ..Appearance::default() };
                prop_assert!(truncate(&row(&text), width, &appearance).width() <= width);
            }
        }
    }

    /// The width of the widest cluster, so that no cluster is replaced.
    const WIDE: usize = 8;
}
