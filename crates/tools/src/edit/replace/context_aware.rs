//! The same first and last line, as many lines, and half of the middle the same.

use super::block_anchor::{Anchors, has_middle};
use super::carry::{Place, settle};
use super::{Outcome, Scene};

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    let Some(change) = scene.change.as_ref().filter(|change| has_middle(change)) else {
        return Outcome::Nothing;
    };
    let (anchors, length) = (Anchors::of(scene.lines, change), change.old.len());
    let Some(blocks) = anchors.blocks(length..=length) else {
        return Outcome::Many(anchors.firsts());
    };
    let half = |start: usize| {
        let middle =
            (1..length - 1).filter(|at| !change.old.get(*at).is_none_or(|l| l.trim().is_empty()));
        let (same, all) = middle.fold((0, 0), |(same, all), at| {
            (same + usize::from(anchors.same(at, start + at)), all + 1)
        });
        all > 0 && same * 2 >= all
    };
    let blocks = blocks.into_iter().filter(|block| half(block.start));
    let places: Vec<Place> = blocks.map(|block| Place::at(block.start, length)).collect();
    if places.iter().any(|place| !anchors.is_telling(place)) {
        return Outcome::Nothing;
    }
    settle(scene, change, &places)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Doubt, Miss, Strategy};

    const TEXT: &str = "def load(path):\n    data = open(path).read()\n    rows = parse(data)\n    \
                        return rows\n";

    #[test]
    fn half_of_the_middle_finds_a_place_but_does_not_make_it_certain() {
        let old = TEXT.replace("data = open(path).read()", "with fetch(url) as reply: x");
        let miss = refused(TEXT, &old, &old.replace("(data)", "(text)"), Count::One);
        let Miss::Uncertain { strategy, doubt, region } = miss else { panic!("{miss:?}") };
        assert_eq!((strategy, doubt), (Strategy::ContextAware, Doubt::Drifted));
        assert_eq!((region.first, region.last), (1, 4));
    }

    #[test]
    fn a_short_middle_with_one_other_word_is_certain() {
        let text = "begin section\n  x = a\n  shown = b\nfinish section\n";
        let old = text.replace("x = a", "an_extraordinarily_long_name = a");
        let after = text.replace("shown = b", "shown = c");
        let found = applied(text, &old, &old.replace("shown = b", "shown = c"), Count::One);
        assert_eq!(found, (after, Strategy::ContextAware));
    }

    #[test]
    fn two_blocks_that_are_half_the_same_are_ambiguous() {
        let text = format!("{TEXT}\n{}", TEXT.replace("open(path)", "curl(path, 1, 2, 3)"));
        let old = "def load(path):\n    with fetch(url) as reply: x\n    rows = parse(data)\n    return rows\n";
        let miss = refused(&text, old, &old.replace("(data)", "(text)"), Count::One);
        assert!(!matches!(miss, Miss::Uncertain { .. }), "{miss:?}");
    }

    #[test]
    fn less_than_half_is_nothing() {
        let old = "def load(path):\n    one(1)\n    two(2)\n    return rows\n";
        let miss = refused(TEXT, old, &old.replace("return rows", "return 1"), Count::One);
        assert!(matches!(miss, Miss::Missing { .. }), "{miss:?}");
    }
}
