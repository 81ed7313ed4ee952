//! Breaking rows to a width: between words where it can be, between clusters where it must.

use crate::cx::Look;
use crate::ink::{Row, clusters};
use ratatui::style::Style;
use std::ops::Range;

/// The least width there is: a wide sign needs it.
const LEAST: usize = 2;

/// Where a row may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Between words: prose.
    Words,
    /// Anywhere between clusters: code and outputs.
    Anywhere,
}

/// A row in as many rows as it takes at this width. A row that goes on begins with `indent` columns.
pub fn wrap(row: &Row, width: usize, at: Break, indent: usize) -> Vec<Row> {
    let width = width.max(LEAST);
    if row.width() <= width {
        return vec![row.clone()];
    }
    let indent = indent.min(width - LEAST);
    let margin = " ".repeat(indent);
    let mut rows = Vec::new();
    for part in parts(row.as_str(), width, at, indent) {
        let room = if rows.is_empty() { width } else { width - indent };
        let mut part = fitting(row, part, room);
        if !rows.is_empty() && indent > 0 {
            let mut begun = Row::of(Style::default(), &margin);
            begun.extend(&part);
            part = begun;
        }
        rows.push(part);
    }
    if rows.is_empty() { vec![Row::default()] } else { rows }
}

/// A part of a row, with a sign instead of a cluster that no row is wide enough for.
fn fitting(row: &Row, part: Range<usize>, width: usize) -> Row {
    let part_of = row.part(part.clone());
    // Only a cluster that stands alone can be wider than what it was broken for.
    if part_of.width() > width { Row::of(row.style_at(part.start), "\u{fffd}") } else { part_of }
}

/// Where the rows begin and end in a text.
fn parts(text: &str, width: usize, at: Break, indent: usize) -> Vec<Range<usize>> {
    let signs: Vec<(usize, &str, usize)> = clusters(text).collect();
    let mut parts = Vec::new();
    let (mut begin, mut wide, mut room) = (0, 0, width);
    // Where the row under way could end, and the sign that the next one would begin with.
    let mut chance: Option<(usize, usize)> = None;
    // Where the last sign ends that is not a space, and how wide it is.
    let (mut end, mut last) = (0, 0);
    let mut next = 0;
    while let Some((place, cluster, columns)) = signs.get(next).copied() {
        if at == Break::Words && cluster == " " {
            (wide, last, next) = (wide + 1, 0, next + 1);
            continue;
        }
        // A word begins behind a space; signs of two columns are words of their own.
        if at == Break::Words && place > begin && (last == 0 || last.max(columns) > 1) {
            chance = Some((end.max(begin), next));
        }
        if wide > 0 && wide + columns > room {
            // Else it is a word that is longer than a row.
            let (stop, from) = chance.take().unwrap_or((place, next));
            if stop > begin {
                parts.push(begin..stop);
                room = width - indent;
            }
            begin = signs.get(from).map_or(text.len(), |(place, ..)| *place);
            (wide, last, next) = (0, 1, from);
            continue;
        }
        (wide, end, last, next) = (wide + columns, place + cluster.len(), columns, next + 1);
    }
    if end > begin {
        parts.push(begin..end);
    }
    parts
}

/// The sign for what was left out.
pub fn more(look: &Look) -> &'static str {
    if look.ascii { "..." } else { "…" }
}

/// The beginning of a row that fits, with that sign if there is more.
pub fn cut(row: &Row, width: usize, look: &Look) -> Row {
    if row.width() <= width {
        return row.clone();
    }
    let sign = more(look);
    let signs = sign.chars().count().min(width);
    let room = width - signs;
    let mut wide = 0;
    let fits = |(_, _, columns): &(usize, &str, usize)| {
        wide += columns;
        wide <= room
    };
    let end =
        clusters(row.as_str()).take_while(fits).last().map_or(0, |(at, text, _)| at + text.len());
    let mut begun = row.part(0..end);
    begun.push(row.style_at(end), &sign.chars().take(signs).collect::<String>());
    begun
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::{Color, Modifier};

    fn row(text: &str) -> Row {
        Row::of(Style::default(), text)
    }

    fn broken(text: &str, width: usize, at: Break, indent: usize) -> Vec<String> {
        wrap(&row(text), width, at, indent).iter().map(Row::text).collect()
    }

    #[test]
    fn prose_breaks_between_words_and_loses_only_the_spaces_there() {
        let rows = broken("the quick brown  fox jumps", 11, Break::Words, 0);
        assert_eq!(rows, ["the quick", "brown  fox", "jumps"]);
        assert_eq!(broken("the quick brown", 9, Break::Words, 2), ["the quick", "  brown"]);
        assert_eq!(broken("", 5, Break::Words, 0), [""]);
        assert_eq!(broken("      ", 4, Break::Words, 0), [""]);
        assert_eq!(broken("aaa   ", 4, Break::Words, 0), ["aaa"]);
    }

    #[test]
    fn a_word_longer_than_a_row_breaks_where_the_row_ends() {
        assert_eq!(broken("see abcdefghij k", 4, Break::Words, 0), ["see", "abcd", "efgh", "ij k"]);
        assert_eq!(broken("abcdefgh", 4, Break::Words, 2), ["abcd", "  ef", "  gh"]);
    }

    #[test]
    fn code_breaks_anywhere_and_keeps_its_spaces() {
        assert_eq!(broken("ab  cd  ef", 4, Break::Anywhere, 0), ["ab  ", "cd  ", "ef"]);
        assert_eq!(broken("abcdef", 4, Break::Anywhere, 1), ["abcd", " ef"]);
    }

    #[test]
    fn a_wide_sign_is_never_halved() {
        assert_eq!(broken("漢字漢字", 5, Break::Words, 0), ["漢字", "漢字"]);
        assert_eq!(broken("a漢字b", 3, Break::Anywhere, 0), ["a漢", "字b"]);
        assert_eq!(broken("漢字", 0, Break::Words, 7), ["漢", "字"]);
        let cut =
            |width, ascii| cut(&row("漢字漢字"), width, &Look { ascii, ..Look::default() }).text();
        assert_eq!([cut(6, false), cut(1, false), cut(0, false)], ["漢字…", "…", ""]);
        assert_eq!([cut(6, true), cut(5, true), cut(2, true)], ["漢...", "漢...", ".."]);
    }

    #[test]
    fn styles_stay_with_their_words() {
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let row = row("plain ").and(bold, "bold words").and(Style::default(), " end");
        let rows = wrap(&row, 11, Break::Words, 0);
        let pieces: Vec<Vec<(Style, &str)>> =
            rows.iter().map(|row| row.pieces().collect()).collect();
        let plain = Style::default();
        assert_eq!(
            pieces,
            [vec![(plain, "plain "), (bold, "bold")], vec![(bold, "words"), (plain, " end")]]
        );
        let red = Style::default().fg(Color::Red);
        let look = Look::default();
        assert_eq!(cut(&Row::of(red, "abcdef"), 3, &look), Row::of(red, "ab…"));
        assert_eq!(cut(&Row::of(red, "abcdef"), 0, &look), Row::default());
    }

    fn spaceless(text: &str) -> String {
        text.chars().filter(|sign| *sign != ' ').collect()
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_asked_and_nothing_but_spaces_is_lost(
            text in "([a-zé漢🙂ｶﾞक्ष \u{301}]|[a-z]{1,9} |\\PC){0,60}",
            width in 8_usize..40,
            indent in 0_usize..12,
        ) {
            let row = row(&text);
            for at in [Break::Words, Break::Anywhere] {
                let indent = if at == Break::Words { indent } else { 0 };
                let rows = wrap(&row, width + WIDE, at, indent.min(width));
                for row in &rows {
                    prop_assert!(row.width() <= width + WIDE, "{row:?}");
                }
                let joined: String = rows.iter().map(Row::text).collect();
                match at {
                    Break::Words => prop_assert_eq!(spaceless(&joined), spaceless(&row.text())),
                    Break::Anywhere => prop_assert_eq!(joined, row.text()),
                }
            }
        }

        #[test]
        fn even_the_narrowest_row_is_kept_to(text in "\\PC{0,40}", width in 0_usize..8, indent in 0_usize..9) {
            for at in [Break::Words, Break::Anywhere] {
                for row in wrap(&row(&text), width, at, indent) {
                    prop_assert!(row.width() <= width.max(LEAST), "{row:?}");
                }
            }
            for ascii in [true, false] {
                let look = Look { ascii, ..Look::default() };
                prop_assert!(cut(&row(&text), width, &look).width() <= width);
            }
        }
    }

    /// The widest cluster there is, so that none is replaced.
    const WIDE: usize = 8;
}
