//! Where a cursor can stand: between grapheme clusters, words and lines.
//!
//! A chip (a long paste, a picture) stands in the text as one character that nothing else uses, and
//! is a cluster of its own whatever stands beside it.

use unicode_segmentation::UnicodeSegmentation;

/// The first of the characters that stand for chips; nobody types or pastes one.
const FIRST: u32 = 0x10_0000;

/// The character of a chip, by its number.
pub(super) fn mark(number: usize) -> Option<char> {
    let number = u32::try_from(number).ok()?;
    char::from_u32(FIRST.checked_add(number)?).filter(|mark| *mark < '\u{10fffe}')
}

/// The number of the chip that a character stands for, if it does.
pub(super) fn chip(character: char) -> Option<usize> {
    (character as u32).checked_sub(FIRST).and_then(|number| usize::try_from(number).ok())
}

/// The clusters of a text, with their places.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true).flat_map(|(at, cluster)| {
        // What would join with a chip does not.
        let apart = cluster.chars().any(|character| chip(character).is_some());
        let whole = (!apart).then_some((at, cluster));
        let characters = cluster.char_indices().take(if apart { usize::MAX } else { 0 });
        let single = characters.filter_map(move |(offset, character)| {
            let part = cluster.get(offset..offset + character.len_utf8())?;
            Some((at + offset, part))
        });
        whole.into_iter().chain(single)
    })
}

fn before(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or(text)
}

fn behind(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Where the line begins that a place is in.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    before(text, at).rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line ends that a place is in.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    behind(text, at).find('\n').map_or(text.len(), |newline| at + newline)
}

/// The first place at or behind this one where a cursor can stand.
pub(super) fn snap(text: &str, at: usize) -> usize {
    let start = line_start(text, text.floor_char_boundary(at));
    clusters(behind(text, start))
        .map(|(offset, _)| start + offset)
        .find(|place| *place >= at)
        .unwrap_or(text.len())
}

/// The place one cluster to the left.
pub(super) fn left(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    if start == at {
        return at.saturating_sub(1);
    }
    let line = text.get(start..at).unwrap_or_default();
    clusters(line).last().map_or(at, |(offset, _)| start + offset)
}

/// The place one cluster to the right.
pub(super) fn right(text: &str, at: usize) -> usize {
    clusters(behind(text, at)).next().map_or(at, |(_, cluster)| at + cluster.len())
}

/// What a cluster is to a motion by words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Sign,
    Chip,
}

fn kind(cluster: &str) -> Kind {
    match cluster.chars().next() {
        Some(first) if chip(first).is_some() => Kind::Chip,
        Some(first) if first.is_whitespace() => Kind::Space,
        Some(first) if first.is_alphanumeric() || first == '_' => Kind::Word,
        Some(_) | None => Kind::Sign,
    }
}

/// The place where the word to the left begins.
pub(super) fn word_left(text: &str, at: usize) -> usize {
    let all: Vec<(usize, Kind)> = clusters(before(text, at)).map(|(at, c)| (at, kind(c))).collect();
    let mut left = all.into_iter().rev().skip_while(|(_, kind)| *kind == Kind::Space);
    let Some((first, kind)) = left.next() else { return 0 };
    if kind == Kind::Chip {
        return first;
    }
    left.take_while(|(_, other)| *other == kind).last().map_or(first, |(at, _)| at)
}

/// The place where the word to the right ends.
pub(super) fn word_right(text: &str, at: usize) -> usize {
    let places = clusters(behind(text, at)).map(|(offset, c)| (at + offset + c.len(), kind(c)));
    let mut right = places.skip_while(|(_, kind)| *kind == Kind::Space);
    let Some((first, kind)) = right.next() else { return text.len() };
    if kind == Kind::Chip {
        return first;
    }
    right.take_while(|(_, other)| *other == kind).last().map_or(first, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_one_step_whatever_it_is_made_of() {
        let text = "e\u{301}👨‍👩‍👧🇩🇪語";
        let mut at = 0;
        let mut steps = Vec::new();
        while at < text.len() {
            at = right(text, at);
            steps.push(at);
        }
        assert_eq!(steps.len(), 4);
        for step in steps.iter().rev().skip(1) {
            at = left(text, at);
            assert_eq!(at, *step);
        }
    }

    #[test]
    fn a_chip_joins_with_nothing() {
        let text = format!("{}\u{301}x", mark(0).unwrap());
        assert_eq!(clusters(&text).count(), 3);
    }

    #[test]
    fn words_are_letters_signs_or_chips() {
        let text = format!("let x_1 == foo();  {}y", mark(3).unwrap());
        let mut at = 0;
        let mut ends = Vec::new();
        while at < text.len() {
            let next = word_right(&text, at);
            ends.push(text[at..next].trim().to_owned());
            at = next;
        }
        let chip = mark(3).unwrap().to_string();
        assert_eq!(ends, ["let", "x_1", "==", "foo", "();", &chip, "y"]);
        assert_eq!(word_left(&text, text.len()), text.len() - 1);
        assert_eq!(word_left(&text, text.len() - 1), text.find(&chip).unwrap());
        assert_eq!(word_left("  ", 2), 0);
    }
}
