//! The same words, spaced differently.
//!
//! An edit of one line may be a part of a line; one of several lines is whole lines.

use super::budget::PLACES;
use super::carry::{Place, settle};
use super::lines::{collapsed, is_apart, occurrences};
use super::{Outcome, Scene, Site, Splice, words};

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    if !scene.old.contains('\n') && scene.old.trim() == scene.old {
        return part(scene);
    }
    let Some(change) = &scene.change else { return Outcome::Nothing };
    let found = scene.lines.places(&change.old, collapsed);
    let place = |first| Place::at(first, change.old.len());
    settle(scene, change, &found.into_iter().map(place).collect::<Vec<_>>())
}

/// A part of a line.
fn part(scene: &Scene<'_>) -> Outcome {
    let (old, new) = (scene.old, scene.new);
    let text = scene.lines.text();
    let folded = Folded::of(text);
    let needle = collapsed(old);
    let found = occurrences(&folded.text, &needle, PLACES + 1);
    if found.len() > PLACES {
        return Outcome::Many(found.iter().map(|at| scene.lines.at(folded.back(*at))).collect());
    }
    let mut sites = Vec::new();
    for at in found {
        // The end is that of the last character, since white space may follow it.
        let last = needle.chars().next_back().map_or(1, char::len_utf8);
        let range = folded.back(at)..folded.back(at + needle.len() - last) + last;
        if !is_apart(text, &range) {
            continue;
        }
        let lines = scene.lines.touched(&range);
        let there = text.get(range.clone()).unwrap_or_default();
        if new.contains('\n') || new.trim() != new || !keeps_words(old, new) {
            return Outcome::Doubtful { lines, doubt: super::Doubt::Spacing };
        }
        let splices = vec![Splice { range, new: words::carry(old, new, there) }];
        sites.push(Site { lines, splices });
    }
    if sites.is_empty() { Outcome::Nothing } else { Outcome::Sites(sites) }
}

/// Whether an edit of several words leaves some.
fn keeps_words(old: &str, new: &str) -> bool {
    old.split_whitespace().count() > 1 && !new.is_empty()
}

/// A text in which every run of white space within a line is one space.
struct Folded {
    text: String,
    /// Where a word begins here and in the original.
    words: Vec<(usize, usize)>,
}

impl Folded {
    fn of(text: &str) -> Folded {
        let mut folded = Folded { text: String::with_capacity(text.len()), words: Vec::new() };
        let (mut space, mut within) = (None, false);
        for (at, character) in text.char_indices() {
            if character.is_whitespace() {
                // A line end is what remains of a run that holds one.
                space = Some(if character == '\n' { '\n' } else { space.unwrap_or(' ') });
                within = false;
                continue;
            }
            folded.text.extend(space.take());
            if !within {
                folded.words.push((folded.text.len(), at));
                within = true;
            }
            folded.text.push(character);
        }
        folded
    }

    /// Where a byte of a word is in the original.
    fn back(&self, at: usize) -> usize {
        let word = self.words.partition_point(|(here, _)| *here <= at).saturating_sub(1);
        self.words.get(word).map_or(0, |(here, there)| there + at.saturating_sub(*here))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Miss, Strategy};

    #[test]
    fn words_change_and_the_spacing_of_the_file_stays() {
        for (text, old, new, after) in [
            ("x = f(a,  b);\n", "f(a, b)", "f(a, c)", "x = f(a,  c);\n"),
            (
                "int  é = 1;\n\n\tint b = 2;\n",
                "int é = 1;",
                "int é = 3;",
                "int  é = 3;\n\n\tint b = 2;\n",
            ),
            ("a  = 1\nb   = 2\n", "a = 1\nb = 2\n", "a = 1\nb = 3\n", "a  = 1\nb   = 3\n"),
            (
                "a  = 1\nb   = 2\n",
                "a = 1\nb = 2\n",
                "a = 1\nc = 3\nb = 2\n",
                "a  = 1\nc = 3\nb   = 2\n",
            ),
            ("  a  = 1\n", "a = 1", "a = 1 + 1", "  a  = 1 + 1\n"),
        ] {
            assert_eq!(
                applied(text, old, new, Count::One),
                (after.into(), Strategy::WhitespaceNormalised),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_part_of_a_longer_word_is_not_the_word() {
        for (text, old, new) in [
            ("max  = 15\n", "x = 1", "x = 2"),
            ("x  = 15\n", "x = 1", "x = 2"),
            ("max  = 1\n", "x = 1", "x = 2"),
            ("f(_a,  b)\n", "a, b", "c, b"),
            ("Maße  = 1\n", "e = 1", "e = 2"),
        ] {
            for count in [Count::One, Count::All] {
                let miss = refused(text, old, new, count);
                assert!(matches!(miss, Miss::Missing { .. }), "{text:?} {miss:?}");
            }
        }
        // Such a part is no other place either.
        let (after, _) = applied("max  = 1\nx   = 1\n", "x = 1", "x = 2", Count::One);
        assert_eq!(after, "max  = 1\nx   = 2\n");
    }

    #[test]
    fn words_in_two_lines_are_not_one_line() {
        let miss = refused("a\nb\n", "a b", "a c", Count::One);
        assert!(matches!(miss, Miss::Missing { .. }), "{miss:?}");
    }

    #[test]
    fn two_spacings_of_the_same_words_are_ambiguous() {
        let miss = refused("f(a,  b)\nf(a,   b)\n", "f(a, b)", "f(b, a)", Count::One);
        let strategy = Strategy::WhitespaceNormalised;
        assert_eq!(miss, Miss::Ambiguous { strategy, lines: vec![1, 2], count: Count::One });
    }
}
