//! The same first and last line, and a middle that is similar.

use super::budget::{BLOCKS, Budget};
use super::carry::{Place, carry};
use super::change::{Change, aligned};
use super::lines::Lines;
use super::{Outcome, Scene, Site, drift, escape_normalised};
use std::collections::HashMap;
use std::ops::Range;

/// How alike the middle must be.
const ALIKE: f64 = 0.65;

/// How much better the best block must be than any other.
const AHEAD: f64 = 0.1;

/// A block between two anchors, and how alike it is.
struct Block {
    place: Place,
    score: f64,
}

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    let Some(change) = scene.change.as_ref().filter(|change| has_middle(change)) else {
        return Outcome::Nothing;
    };
    if escape_normalised::stands(scene) {
        // What is there once its escapes are read is not merely similar.
        return Outcome::Nothing;
    }
    let anchors = Anchors::of(scene.lines, change);
    let slack = change.old.len() / 4;
    let lengths = change.old.len() - slack..=change.old.len() + slack;
    let Some(ranges) = anchors.blocks(lengths) else { return Outcome::Many(anchors.firsts()) };
    let mut budget = Budget::new();
    let mut blocks = Vec::new();
    for range in ranges {
        match anchors.compare(range, &mut budget) {
            Some(block) if block.score >= ALIKE => blocks.push(block),
            Some(_) => {}
            None => return Outcome::Many(anchors.firsts()),
        }
    }
    choose(scene, change, &anchors, blocks)
}

/// Whether an edit has lines to hold on to, and some between them.
pub(super) fn has_middle(change: &Change<'_>) -> bool {
    let ends = [change.old.first(), change.old.last()];
    change.old.len() >= 3 && ends.iter().flatten().all(|line| !line.trim().is_empty())
}

/// The best block, if nothing comes close that would be changed in another way.
fn choose(
    scene: &Scene<'_>,
    change: &Change<'_>,
    anchors: &Anchors<'_>,
    mut blocks: Vec<Block>,
) -> Outcome {
    blocks.sort_by(|a, b| b.score.total_cmp(&a.score));
    let Some(best) = blocks.first() else { return Outcome::Nothing };
    let lines = best.place.lines.clone();
    let splices = carry(scene.lines, change, &best.place);
    for other in blocks.iter().skip(1).take_while(|other| best.score - other.score < AHEAD) {
        let nested = other.place.lines.start == lines.start && other.score < best.score;
        let result = carry(scene.lines, change, &other.place);
        // Another end of the same block is no other place, if the edit does the same with it.
        let same = if nested { result.is_err() || result == splices } else { result == splices };
        if !same || (result.is_err() && !nested) {
            return Outcome::Many(vec![lines.start, other.place.lines.start]);
        }
    }
    match splices {
        Ok(_) if !anchors.is_telling(&best.place) => Outcome::Nothing,
        Ok(splices) => Outcome::Sites(vec![Site { lines, splices }]),
        Err(doubt) => Outcome::Doubtful { lines, doubt },
    }
}

/// The lines of a file and of an edit as numbers, equal where the trimmed lines are.
pub(super) struct Anchors<'a> {
    lines: &'a Lines<'a>,
    change: &'a Change<'a>,
    old: Vec<usize>,
    file: Vec<usize>,
    /// How often a line occurs in the file.
    times: HashMap<usize, usize>,
}

impl<'a> Anchors<'a> {
    pub(super) fn of(lines: &'a Lines<'a>, change: &'a Change<'a>) -> Anchors<'a> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut number = |line: &'a str| {
            let next = numbers.len();
            *numbers.entry(line.trim()).or_insert(next)
        };
        let file: Vec<usize> = lines.iter().map(&mut number).collect();
        let old = change.old.iter().map(|line| number(line)).collect();
        let mut times = HashMap::new();
        for line in &file {
            *times.entry(*line).or_default() += 1;
        }
        Anchors { lines, change, old, file, times }
    }

    /// The lines where a block could begin.
    pub(super) fn firsts(&self) -> Vec<usize> {
        self.positions(self.old.first())
    }

    fn positions(&self, wanted: Option<&usize>) -> Vec<usize> {
        let lines = self.file.iter().enumerate();
        lines.filter(|(_, line)| Some(*line) == wanted).map(|(at, _)| at).collect()
    }

    /// The blocks of some lengths between the first and the last line of the edit, unless there are
    /// too many.
    pub(super) fn blocks(
        &self,
        lengths: std::ops::RangeInclusive<usize>,
    ) -> Option<Vec<Range<usize>>> {
        let ends = self.positions(self.old.last());
        let mut blocks = Vec::new();
        for start in self.firsts() {
            let skipped = ends.partition_point(|last| last + 1 < start + lengths.start());
            let within = ends.iter().skip(skipped);
            for last in within.take_while(|last| *last < &(start + lengths.end())) {
                if blocks.len() == BLOCKS {
                    return None;
                }
                blocks.push(start..last + 1);
            }
        }
        Some(blocks)
    }

    /// How alike a block is, unless that would take too long to say.
    fn compare(&self, block: Range<usize>, budget: &mut Budget) -> Option<Block> {
        let there = self.file.get(block.clone())?;
        let size = self.old.len() + there.len();
        budget.take(size * size.min(400))?;
        let mut partners = vec![None; self.old.len()];
        let mut sum = 0.0;
        for (same, old, new) in aligned(&self.old, there) {
            if old.len() != new.len() {
                continue;
            }
            for (old, new) in old.zip(new) {
                let line = block.start + new;
                sum += if same { 1.0 } else { self.similarity(old, line, budget)? };
                if let Some(partner) = partners.get_mut(old) {
                    *partner = Some(line);
                }
            }
        }
        // The anchors agree anyway; only the middle counts.
        let middle = self.old.len().max(there.len()).saturating_sub(2).max(1);
        let score = (sum - 2.0).max(0.0) / middle as f64;
        Some(Block { place: Place { lines: block, partners }, score })
    }

    fn similarity(&self, old: usize, line: usize, budget: &mut Budget) -> Option<f64> {
        let old = self.change.old.get(old).copied().unwrap_or_default();
        budget.similarity(old.trim(), self.lines.get(line).trim())
    }

    /// Whether an old line and its partner are the same.
    pub(super) fn same(&self, old: usize, line: usize) -> bool {
        self.old.get(old).is_some_and(|number| self.file.get(line) == Some(number))
    }

    /// Whether a line agrees that stands nowhere else in the file and says something: braces alone
    /// are no reason to believe that this is the block.
    pub(super) fn is_telling(&self, place: &Place) -> bool {
        place.partners.iter().enumerate().any(|(old, partner)| {
            let Some(line) = partner.filter(|line| self.same(old, *line)) else { return false };
            let alone = self.file.get(line).and_then(|number| self.times.get(number)) == Some(&1);
            alone && drift::says_something(self.lines.get(line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Doubt, Miss, Strategy};

    const TEXT: &str = "fn area(w: u32) {\n    let wide = w + 1;\n    let tall = wide * 2;\n    \
                        show(tall);\n    save(tall);\n}\n";

    #[test]
    fn a_middle_line_that_drifted_is_kept_as_it_is_in_the_file() {
        let old = "fn area(w: u32) {\n    let wide = w + 2;\n    let tall = wide * 2;\n    \
                   show(tall);\n    save(tall);\n}";
        for (from, to) in
            [("    save(tall);\n", ""), ("show(tall)", "show(wide)"), ("}", "    end();\n}")]
        {
            let (at, _) = old.rmatch_indices(from).next().unwrap();
            let mut new = old.to_owned();
            new.replace_range(at..at + from.len(), to);
            let (at, _) = TEXT.rmatch_indices(from).next().unwrap();
            let mut after = TEXT.to_owned();
            after.replace_range(at..at + from.len(), to);
            assert_eq!(applied(TEXT, old, &new, Count::One), (after, Strategy::BlockAnchor));
        }
    }

    #[test]
    fn a_line_that_drifted_is_not_overwritten() {
        let old = TEXT.replace("w + 1", "w + 2");
        let miss = refused(TEXT, &old, &old.replace("w + 2", "w + 3"), Count::One);
        let Miss::Uncertain { doubt, .. } = miss else { panic!("{miss:?}") };
        assert_eq!(doubt, Doubt::Differs { line: 2 });
    }

    #[test]
    fn of_two_blocks_that_are_nearly_the_same_none_is_chosen() {
        let twin = TEXT.replace("w + 1", "w + 3");
        let text = format!("{TEXT}\n{twin}");
        let old = TEXT.replace("w + 1", "w + 2");
        let new = old.replace("save(tall);", "save(wide);");
        let miss = refused(&text, &old, &new, Count::One);
        let Miss::Ambiguous { strategy, mut lines, .. } = miss else { panic!("{miss:?}") };
        lines.sort();
        assert_eq!((strategy, lines), (Strategy::BlockAnchor, vec![1, 8]));
    }

    #[test]
    fn lines_the_edit_does_not_know_are_kept_unless_it_changes_something_beside_them() {
        let old = TEXT
            .replace("    let tall = wide * 2;\n", "")
            .replace("}\n", "    x();\n    y();\n    z();\n}\n");
        let text = TEXT.replace("}\n", "    x();\n    y();\n    z();\n}\n");
        let (after, _) = applied(&text, &old, &old.replace("y()", "why()"), Count::One);
        assert_eq!(after, text.replace("y()", "why()"));
        let miss = refused(&text, &old, &old.replace("    show", "    q();\n    show"), Count::One);
        assert!(matches!(miss, Miss::Uncertain { doubt: Doubt::Gap, .. }), "{miss:?}");
    }

    #[test]
    fn braces_alone_are_no_reason_to_believe() {
        let text = "{\n  a();\n  b();\n  c1();\n}\n";
        let miss = refused(
            text,
            "{\n  a();\n  b();\n  c2();\n}",
            "{\n  x();\n  a();\n  b();\n  c2();\n}",
            Count::One,
        );
        assert!(matches!(miss, Miss::Uncertain { doubt: Doubt::Drifted, .. }), "{miss:?}");
    }

    #[test]
    fn a_middle_that_is_another_one_is_not_found() {
        let old = "fn area(w: u32) {\n    something();\n    entirely(different);\n    from(it);\n    all();\n}";
        let miss = refused(TEXT, old, &old.replace("}", "    x();\n}"), Count::One);
        assert!(matches!(miss, Miss::Missing { .. }), "{miss:?}");
    }
}
