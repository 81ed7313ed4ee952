//! What becomes of the corpus: counted, and kept as a page.

use super::super::tests::apply;
use super::super::{Strategy, replace};
use super::{Base, Case, Dice, EACH, KINDS, LANGUAGES};
use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What became of the edits of one kind.
#[derive(Default)]
struct Tally {
    by: BTreeMap<Strategy, usize>,
    right: usize,
    certain_right: usize,
    certain: usize,
    rightly: usize,
    needlessly: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, case: &Case) {
        self.certain += usize::from(case.certain);
        match replace(&case.text, &case.old, &case.new, case.count) {
            Ok(replaced) => {
                let after = apply(&case.text, &replaced.splices);
                if Some(&after) == case.after.as_ref() {
                    *self.by.entry(replaced.strategy).or_default() += 1;
                    self.right += 1;
                    self.certain_right += usize::from(case.certain);
                    return;
                }
                let expected = case.after.as_deref().unwrap_or("a refusal");
                let diff = similar::TextDiff::from_lines(expected, &after);
                let diff = diff.unified_diff().to_string();
                self.wrong.push(format!(
                    "{}\n--- old\n{}\n--- new\n{}\n--- diff\n{diff}",
                    replaced.strategy, case.old, case.new
                ));
            }
            Err(_) if case.certain => self.needlessly += 1,
            Err(_) => self.rightly += 1,
        }
    }
}

fn tallies() -> Vec<(&'static str, usize, Tally)> {
    let mut dice = Dice(8);
    let mut tallies = Vec::new();
    for (name, floor, spoil) in KINDS {
        let mut tally = Tally::default();
        for (language, (spoken, ..)) in LANGUAGES.iter().enumerate() {
            let mut made = 0;
            for _ in 0..20_000 {
                let base = Base::make(&mut dice, language);
                let case = base.and_then(|base| spoil(&mut dice, &base));
                let Some(case) = case.filter(|case| case.old.trim() != "" && case.old != case.new)
                else {
                    continue;
                };
                tally.count(&case);
                made += 1;
                if made == EACH {
                    break;
                }
            }
            assert!(made == EACH, "{name}: only {made} in {spoken}");
        }
        tallies.push((name, floor, tally));
    }
    tallies
}

fn page(tallies: &[(&str, usize, Tally)]) -> String {
    let mut page = String::from(
        "| mistake in the edit | edits | right | refused rightly | refused needlessly | wrong |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (name, _, tally) in tallies {
        let Tally { right, rightly, needlessly, wrong, .. } = tally;
        let wrong = wrong.len();
        let all = right + rightly + needlessly + wrong;
        let _ = writeln!(page, "| {name} | {all} | {right} | {rightly} | {needlessly} | {wrong} |");
    }
    let strategies = [
        Strategy::Exact,
        Strategy::LineTrimmed,
        Strategy::BlockAnchor,
        Strategy::WhitespaceNormalised,
        Strategy::IndentationFlexible,
        Strategy::EscapeNormalised,
        Strategy::TrimmedBoundary,
        Strategy::ContextAware,
        Strategy::MultiOccurrence,
    ];
    page.push_str("\n| applied right by |");
    strategies.iter().for_each(|strategy| page.push_str(&format!(" {strategy} |")));
    page.push_str(&format!("\n|---|{}\n", "--:|".repeat(strategies.len())));
    for (name, _, tally) in tallies {
        let _ = write!(page, "| {name} |");
        for strategy in &strategies {
            let _ = write!(page, " {} |", tally.by.get(strategy).copied().unwrap_or(0));
        }
        page.push('\n');
    }
    page
}

#[test]
fn no_edit_is_applied_wrong_and_most_are_applied() {
    let tallies = tallies();
    let page = page(&tallies);
    println!("{page}");
    let wrong: Vec<String> = tallies
        .iter()
        .flat_map(|(name, _, tally)| {
            tally.wrong.iter().map(move |wrong| format!("{name}: {wrong}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
    for (name, floor, tally) in &tallies {
        let share = 100 * tally.certain_right / tally.certain.max(1);
        assert!(tally.certain == 0 || share >= *floor, "{name}: {share} % of the certain edits");
    }
    expect_file!["../corpus.md"].assert_eq(&page);
}
