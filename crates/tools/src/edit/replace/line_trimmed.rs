//! The same lines, but for white space at their ends.

use super::carry::{Place, settle};
use super::lines::trimmed;
use super::{Outcome, Scene};

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    let Some(change) = &scene.change else { return Outcome::Nothing };
    let found = scene.lines.places(&change.old, trimmed);
    let place = |first| Place::at(first, change.old.len());
    settle(scene, change, &found.into_iter().map(place).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Doubt, Miss, Strategy};

    #[test]
    fn white_space_at_the_ends_of_lines_does_not_matter() {
        for (text, old, new, after) in [
            (
                "f() {\n  a; \n  b;\n}\n",
                "f() {\n  a;\n  b;\n}",
                "f() {\n  a;\n  c;\n}",
                "f() {\n  a; \n  c;\n}\n",
            ),
            ("a\nb\nc\n", "a  \nb\t\n", "a  \nx\t\n", "a\nx\nc\n"),
            ("a\n\t\nb\n", "a\n\nb\n", "a\n\nc\n", "a\n\t\nc\n"),
            ("x\n a \nb", "a\nb\n", "a\nc\n", "x\n a \nc"),
            (
                "if a:  \n    b\n",
                "if a:\n    b\n",
                "if a:\n    b\n\n    c\n",
                "if a:  \n    b\n\n    c\n",
            ),
        ] {
            assert_eq!(applied(text, old, new, Count::One), (after.into(), Strategy::LineTrimmed));
        }
    }

    #[test]
    fn two_places_are_ambiguous_and_all_of_them_are_replaced_if_wanted() {
        let (text, old, new) = ("a \nb\n\n a \nb\n", "a\nb\n", "a\nc\n");
        let miss = refused(text, old, new, Count::One);
        let strategy = Strategy::LineTrimmed;
        assert_eq!(miss, Miss::Ambiguous { strategy, lines: vec![1, 4], count: Count::One });
        let (after, _) = applied("a \nb\n\na \nb\n", old, new, Count::All);
        assert_eq!(after, "a \nc\n\na \nc\n");
    }

    #[test]
    fn places_that_overlap_are_ambiguous_even_if_all_are_wanted() {
        let miss = refused("a \na \na \n", "a\na\n", "b\n", Count::All);
        let strategy = Strategy::LineTrimmed;
        assert_eq!(miss, Miss::Ambiguous { strategy, lines: vec![1, 2], count: Count::All });
    }

    #[test]
    fn a_place_that_is_not_certain_ends_the_search() {
        let text = "if alpha: \n    b\n";
        let miss = refused(text, " if alpha:\n b", " if alpha:\n b\n c", Count::One);
        let Miss::Uncertain { doubt, .. } = miss else { panic!("{miss:?}") };
        assert_eq!(doubt, Doubt::Indentation { line: 3 });
    }

    #[test]
    fn a_text_the_edit_would_not_change_is_told() {
        let miss = refused("a\nb\n", "a  \nb", "a\nb", Count::One);
        assert_eq!(miss, Miss::Already { first: 1 });
    }
}
