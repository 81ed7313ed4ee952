//! Runs the corpus and compares the results with `corpus.md`.

use super::super::tests::apply;
use super::super::{MatchStrategy, replace};
use super::mistakes::MISTAKE_KINDS;
use super::{CorpusCase, CorpusEdit, EDITS_PER_KIND, SAMPLE_LANGUAGES, SeededRng};
use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Results of the edits with one kind of mistake.
#[derive(Default)]
struct CorpusMistakeResults {
    by_strategy: BTreeMap<MatchStrategy, usize>,
    correct: usize,
    certain_correct: usize,
    certain: usize,
    correctly_refused: usize,
    needlessly_refused: usize,
    wrong: Vec<String>,
}

impl CorpusMistakeResults {
    fn count(&mut self, case: &CorpusCase) {
        self.certain += usize::from(case.is_certain);
        match replace(&case.text, &case.old, &case.new, case.count) {
            Ok(replaced) => {
                let after = apply(&case.text, &replaced.splices);
                if Some(&after) == case.expected.as_ref() {
                    *self.by_strategy.entry(replaced.strategy).or_default() += 1;
                    self.correct += 1;
                    self.certain_correct += usize::from(case.is_certain);
                    return;
                }
                let expected = case.expected.as_deref().unwrap_or("a refusal");
                let diff = similar::TextDiff::from_lines(expected, &after);
                let diff = diff.unified_diff().to_string();
                self.wrong.push(format!(
                    "{}\n--- old\n{}\n--- new\n{}\n--- diff\n{diff}",
                    replaced.strategy, case.old, case.new
                ));
            }
            Err(_) if case.is_certain => self.needlessly_refused += 1,
            Err(_) => self.correctly_refused += 1,
        }
    }
}

fn run_corpus() -> Vec<(&'static str, usize, CorpusMistakeResults)> {
    let mut rng = SeededRng(8);
    let mut all_results = Vec::new();
    for (name, min_percent, apply_mistake) in MISTAKE_KINDS {
        let mut results = CorpusMistakeResults::default();
        for (language, (language_name, ..)) in SAMPLE_LANGUAGES.iter().enumerate() {
            let mut count = 0;
            for _ in 0..20_000 {
                let base = CorpusEdit::generate(&mut rng, language);
                let case = base.and_then(|base| apply_mistake(&mut rng, &base));
                let Some(case) = case.filter(|case| case.old.trim() != "" && case.old != case.new)
                else {
                    continue;
                };
                results.count(&case);
                count += 1;
                if count == EDITS_PER_KIND {
                    break;
                }
            }
            assert!(count == EDITS_PER_KIND, "{name}: only {count} in {language_name}");
        }
        all_results.push((name, min_percent, results));
    }
    all_results
}

fn page(all_results: &[(&str, usize, CorpusMistakeResults)]) -> String {
    let mut page = String::from(
        "| mistake in the edit | edits | correct | correctly refused | needlessly refused | \
         wrong |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (name, _, results) in all_results {
        let CorpusMistakeResults { correct, correctly_refused, needlessly_refused, wrong, .. } =
            results;
        let wrong = wrong.len();
        let all = correct + correctly_refused + needlessly_refused + wrong;
        let _ = writeln!(
            page,
            "| {name} | {all} | {correct} | {correctly_refused} | {needlessly_refused} | {wrong} |"
        );
    }
    let strategies = [
        MatchStrategy::Exact,
        MatchStrategy::LineTrimmed,
        MatchStrategy::BlockAnchor,
        MatchStrategy::WhitespaceNormalized,
        MatchStrategy::IndentationFlexible,
        MatchStrategy::EscapeNormalized,
        MatchStrategy::TrimmedBoundary,
        MatchStrategy::ContextAware,
        MatchStrategy::MultiOccurrence,
    ];
    page.push_str("\n| applied correctly by |");
    strategies.iter().for_each(|strategy| page.push_str(&format!(" {strategy} |")));
    page.push_str(&format!("\n|---|{}\n", "--:|".repeat(strategies.len())));
    for (name, _, results) in all_results {
        let _ = write!(page, "| {name} |");
        for strategy in &strategies {
            let _ = write!(page, " {} |", results.by_strategy.get(strategy).copied().unwrap_or(0));
        }
        page.push('\n');
    }
    page
}

#[test]
fn no_edit_is_applied_wrongly_and_most_are_applied() {
    let all_results = run_corpus();
    let page = page(&all_results);
    println!("{page}");
    let wrong: Vec<String> = all_results
        .iter()
        .flat_map(|(name, _, results)| {
            results.wrong.iter().map(move |wrong| format!("{name}: {wrong}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
    for (name, min_percent, results) in &all_results {
        let percent = 100 * results.certain_correct / results.certain.max(1);
        assert!(
            results.certain == 0 || percent >= *min_percent,
            "{name}: {percent} % of the certain edits"
        );
    }
    expect_file!["../corpus.md"].assert_eq(&page);
}
