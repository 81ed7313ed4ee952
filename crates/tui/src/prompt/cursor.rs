//! Cursor positions: boundaries of grapheme clusters, words and lines.
//!
//! A chip (a long paste, an image) is one reserved character in the text. It is always a cluster of
//! its own, whatever is next to it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// The first reserved chip character. It is in a private-use plane; typed and pasted text never
/// contains one.
const FIRST_CHIP_CHAR: u32 = 0x10_0000;

/// Returns the placeholder character of a chip.
pub(super) fn chip_char(number: usize) -> Option<char> {
    let number = u32::try_from(number).ok()?;
    char::from_u32(FIRST_CHIP_CHAR.checked_add(number)?)
        .filter(|character| *character < '\u{10fffe}')
}

/// Returns the chip number of a placeholder character; `None` for other characters.
pub(super) fn chip_number(character: char) -> Option<usize> {
    (character as u32).checked_sub(FIRST_CHIP_CHAR).and_then(|number| usize::try_from(number).ok())
}

/// Iterates over the grapheme clusters of a text with their offsets.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true).flat_map(|(start, cluster)| {
        // Split a cluster that contains a chip, so that nothing combines with the chip.
        let has_chip = cluster.chars().any(|character| chip_number(character).is_some());
        let unsplit = (!has_chip).then_some((start, cluster));
        let characters = cluster.char_indices().take(if has_chip { usize::MAX } else { 0 });
        let split = characters.filter_map(move |(offset, character)| {
            let character_text = cluster.get(offset..offset + character.len_utf8())?;
            Some((start + offset, character_text))
        });
        unsplit.into_iter().chain(split)
    })
}

fn text_before(text: &str, offset: usize) -> &str {
    text.get(..offset).unwrap_or(text)
}

fn text_after(text: &str, offset: usize) -> &str {
    text.get(offset..).unwrap_or_default()
}

pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text_before(text, offset).rfind('\n').map_or(0, |newline| newline + 1)
}

pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text_after(text, offset).find('\n').map_or(text.len(), |newline| offset + newline)
}

/// Returns the first cluster boundary at or after an offset.
pub(super) fn snap_to_cluster(text: &str, position: usize) -> usize {
    let start = line_start(text, text.floor_char_boundary(position));
    clusters(text_after(text, start))
        .map(|(offset, _)| start + offset)
        .find(|boundary| *boundary >= position)
        .unwrap_or(text.len())
}

pub(super) fn cluster_left(text: &str, position: usize) -> usize {
    let start = line_start(text, position);
    if start == position {
        return position.saturating_sub(1);
    }
    let line = text.get(start..position).unwrap_or_default();
    clusters(line).last().map_or(position, |(offset, _)| start + offset)
}

pub(super) fn cluster_right(text: &str, offset: usize) -> usize {
    clusters(text_after(text, offset)).next().map_or(offset, |(_, cluster)| offset + cluster.len())
}

/// Class of a cluster for `word_left` and `word_right`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphemeClusterKind {
    Space,
    Word,
    Punctuation,
    Chip,
}

pub(super) fn cluster_kind(cluster: &str) -> GraphemeClusterKind {
    match cluster.chars().next() {
        Some(first) if chip_number(first).is_some() => GraphemeClusterKind::Chip,
        Some(first) if first.is_whitespace() => GraphemeClusterKind::Space,
        Some(first) if first.is_alphanumeric() || first == '_' => GraphemeClusterKind::Word,
        Some(_) | None => GraphemeClusterKind::Punctuation,
    }
}

/// Returns the start of the word to the left.
pub(super) fn word_left(text: &str, position: usize) -> usize {
    let kinds: Vec<(usize, GraphemeClusterKind)> = clusters(text_before(text, position))
        .map(|(position, c)| (position, cluster_kind(c)))
        .collect();
    let mut left =
        kinds.into_iter().rev().skip_while(|(_, kind)| *kind == GraphemeClusterKind::Space);
    let Some((first, kind)) = left.next() else { return 0 };
    if kind == GraphemeClusterKind::Chip {
        return first;
    }
    left.take_while(|(_, other)| *other == kind).last().map_or(first, |(position, _)| position)
}

/// Returns the end of the word to the right.
pub(super) fn word_right(text: &str, position: usize) -> usize {
    let ends = clusters(text_after(text, position))
        .map(|(offset, c)| (position + offset + c.len(), cluster_kind(c)));
    let mut right = ends.skip_while(|(_, kind)| *kind == GraphemeClusterKind::Space);
    let Some((first, kind)) = right.next() else { return text.len() };
    if kind == GraphemeClusterKind::Chip {
        return first;
    }
    right.take_while(|(_, other)| *other == kind).last().map_or(first, |(position, _)| position)
}

/// Returns the character that a key types, if any.
pub(super) fn typed_char(key: &KeyEvent) -> Option<char> {
    let KeyCode::Char(character) = key.code else { return None };
    let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    (is_plain && !character.is_control() && chip_number(character).is_none()).then_some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grapheme_cluster_is_one_step() {
        let text = "e\u{301}👨‍👩‍👧🇩🇪語";
        let mut at = 0;
        let mut steps = Vec::new();
        while at < text.len() {
            at = cluster_right(text, at);
            steps.push(at);
        }
        assert_eq!(steps.len(), 4);
        for step in steps.iter().rev().skip(1) {
            at = cluster_left(text, at);
            assert_eq!(at, *step);
        }
    }

    #[test]
    fn a_chip_is_a_cluster_of_its_own() {
        let text = format!("{}\u{301}x", chip_char(0).unwrap());
        assert_eq!(clusters(&text).count(), 3);
    }

    #[test]
    fn a_word_is_letters_or_punctuation_or_a_chip() {
        let text = format!("let x_1 == foo();  {}y", chip_char(3).unwrap());
        let mut at = 0;
        let mut words = Vec::new();
        while at < text.len() {
            let next = word_right(&text, at);
            words.push(text[at..next].trim().to_owned());
            at = next;
        }
        let chip = chip_char(3).unwrap().to_string();
        assert_eq!(words, ["let", "x_1", "==", "foo", "();", &chip, "y"]);
        assert_eq!(word_left(&text, text.len()), text.len() - 1);
        assert_eq!(word_left(&text, text.len() - 1), text.find(&chip).unwrap());
        assert_eq!(word_left("  ", 2), 0);
    }
}
