//! The `BlockAnchor` strategy: same first and last line, similar lines between them.

use super::apply_diff::apply_diff;
use super::candidate_lines::CandidateLines;
use super::line_diff::{LineDiff, align_runs};
use super::text_lines::TextLines;
use super::work_limit::{CompareStepBudget, MAX_COMPARED_BLOCKS};
use super::{EditSite, MatchOutcome, MatchStrategyInput, escape_normalized, similarity};
use std::collections::HashMap;
use std::ops::Range;

/// Minimum `score` of the lines between the anchors.
const MIN_MIDDLE_SIMILARITY: f64 = 0.65;

/// Minimum lead in `score` of the best block over any other.
const MIN_SCORE_LEAD: f64 = 0.1;

/// A block between two anchors with its similarity.
struct ScoredBlock {
    candidate: CandidateLines,
    score: f64,
}

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let Some(line_diff) = context.line_diff.as_ref().filter(|line_diff| has_middle(line_diff))
    else {
        return MatchOutcome::NoMatch;
    };
    if escape_normalized::matches_unescaped(context) {
        // Text that matches after unescaping is more than similar: `escape_normalized` handles it.
        return MatchOutcome::NoMatch;
    }
    let anchors = AnchorLineIds::new(context.lines, line_diff);
    let slack = line_diff.old_lines.len() / 4;
    let lengths = line_diff.old_lines.len() - slack..=line_diff.old_lines.len() + slack;
    let Some(ranges) = anchors.candidate_blocks(lengths) else {
        return MatchOutcome::Ambiguous(anchors.first_anchor_lines());
    };
    let mut work_limit = CompareStepBudget::new();
    let mut blocks = Vec::new();
    for range in ranges {
        match anchors.score_block(range, &mut work_limit) {
            Some(block) if block.score >= MIN_MIDDLE_SIMILARITY => blocks.push(block),
            Some(_) => {}
            None => return MatchOutcome::Ambiguous(anchors.first_anchor_lines()),
        }
    }
    choose_block(context, line_diff, &anchors, blocks)
}

/// Returns true if the old text has two non-blank anchor lines and at least one line between them.
pub(super) fn has_middle(line_diff: &LineDiff<'_>) -> bool {
    let anchors = [line_diff.old_lines.first(), line_diff.old_lines.last()];
    line_diff.old_lines.len() >= 3 && anchors.iter().flatten().all(|line| !line.trim().is_empty())
}

/// Chooses the block with the best `score`, unless a block with a close score would be changed
/// differently.
fn choose_block(
    context: &MatchStrategyInput<'_>,
    line_diff: &LineDiff<'_>,
    anchors: &AnchorLineIds<'_>,
    mut blocks: Vec<ScoredBlock>,
) -> MatchOutcome {
    blocks.sort_by(|a, b| b.score.total_cmp(&a.score));
    let Some(best) = blocks.first() else { return MatchOutcome::NoMatch };
    let lines = best.candidate.lines.clone();
    let splices = apply_diff(context.lines, line_diff, &best.candidate);
    for other in blocks.iter().skip(1).take_while(|other| best.score - other.score < MIN_SCORE_LEAD)
    {
        let shares_start = other.candidate.lines.start == lines.start && other.score < best.score;
        let result = apply_diff(context.lines, line_diff, &other.candidate);
        // A different end of the same block is not a second match if the edit has the same effect
        // there.
        let has_same_effect =
            if shares_start { result.is_err() || result == splices } else { result == splices };
        if !has_same_effect || (result.is_err() && !shares_start) {
            return MatchOutcome::Ambiguous(vec![lines.start, other.candidate.lines.start]);
        }
    }
    match splices {
        Ok(_) if !anchors.has_distinctive_line(&best.candidate) => MatchOutcome::NoMatch,
        Ok(splices) => MatchOutcome::Sites(vec![EditSite { lines, splices }]),
        Err(uncertainty) => MatchOutcome::Uncertain { lines, uncertainty },
    }
}

/// Ids of the lines of file and edit; equal trimmed lines have equal ids.
pub(super) struct AnchorLineIds<'a> {
    lines: &'a TextLines<'a>,
    line_diff: &'a LineDiff<'a>,
    old_ids: Vec<usize>,
    file_ids: Vec<usize>,
    /// Number of occurrences in the file, by id.
    occurrence_counts: HashMap<usize, usize>,
}

impl<'a> AnchorLineIds<'a> {
    pub(super) fn new(lines: &'a TextLines<'a>, line_diff: &'a LineDiff<'a>) -> AnchorLineIds<'a> {
        let mut ids: HashMap<&str, usize> = HashMap::new();
        let mut id_of = |line: &'a str| {
            let next = ids.len();
            *ids.entry(line.trim()).or_insert(next)
        };
        let file_ids: Vec<usize> = lines.iter().map(&mut id_of).collect();
        let old_ids = line_diff.old_lines.iter().map(|line| id_of(line)).collect();
        let mut occurrence_counts = HashMap::new();
        for id in &file_ids {
            *occurrence_counts.entry(*id).or_default() += 1;
        }
        AnchorLineIds { lines, line_diff, old_ids, file_ids, occurrence_counts }
    }

    /// Returns the lines where a block could start.
    pub(super) fn first_anchor_lines(&self) -> Vec<usize> {
        self.lines_with_id(self.old_ids.first())
    }

    fn lines_with_id(&self, id: Option<&usize>) -> Vec<usize> {
        let lines = self.file_ids.iter().enumerate();
        lines.filter(|(_, line_id)| Some(*line_id) == id).map(|(index, _)| index).collect()
    }

    /// Returns the blocks of the given lengths between the first and last line of the edit; `None`
    /// if there are more than `MAX_COMPARED_BLOCKS`.
    pub(super) fn candidate_blocks(
        &self,
        lengths: std::ops::RangeInclusive<usize>,
    ) -> Option<Vec<Range<usize>>> {
        let last_anchors = self.lines_with_id(self.old_ids.last());
        let mut blocks = Vec::new();
        for start in self.first_anchor_lines() {
            let skipped = last_anchors.partition_point(|last| last + 1 < start + lengths.start());
            let possible_ends = last_anchors.iter().skip(skipped);
            for last in possible_ends.take_while(|last| *last < &(start + lengths.end())) {
                if blocks.len() == MAX_COMPARED_BLOCKS {
                    return None;
                }
                blocks.push(start..last + 1);
            }
        }
        Some(blocks)
    }

    /// Scores the similarity of a block; `None` if the `CompareStepBudget` is exhausted.
    fn score_block(
        &self,
        block: Range<usize>,
        work_limit: &mut CompareStepBudget,
    ) -> Option<ScoredBlock> {
        let block_ids = self.file_ids.get(block.clone())?;
        let size = self.old_ids.len() + block_ids.len();
        work_limit.spend(size * size.min(400))?;
        let mut line_matches = vec![None; self.old_ids.len()];
        let mut sum = 0.0;
        for (is_equal, old, new) in align_runs(&self.old_ids, block_ids) {
            if old.len() != new.len() {
                continue;
            }
            for (old, new) in old.zip(new) {
                let line = block.start + new;
                sum += if is_equal { 1.0 } else { self.line_similarity(old, line, work_limit)? };
                if let Some(line_match) = line_matches.get_mut(old) {
                    *line_match = Some(line);
                }
            }
        }
        // The anchors always match; only the lines between them count.
        let middle = self.old_ids.len().max(block_ids.len()).saturating_sub(2).max(1);
        let score = (sum - 2.0).max(0.0) / middle as f64;
        Some(ScoredBlock { candidate: CandidateLines { lines: block, line_matches }, score })
    }

    fn line_similarity(
        &self,
        old: usize,
        line: usize,
        work_limit: &mut CompareStepBudget,
    ) -> Option<f64> {
        let old = self.line_diff.old_lines.get(old).copied().unwrap_or_default();
        work_limit.similarity(old.trim(), self.lines.get(line).trim())
    }

    /// Returns true if old line `old` and file line `line` are equal after trimming.
    pub(super) fn is_same_line(&self, old: usize, line: usize) -> bool {
        self.old_ids.get(old).is_some_and(|id| self.file_ids.get(line) == Some(id))
    }

    /// Returns true if a matching line is unique in the file and distinctive: braces alone do not
    /// identify a block.
    pub(super) fn has_distinctive_line(&self, candidate: &CandidateLines) -> bool {
        candidate.line_matches.iter().enumerate().any(|(old, line_match)| {
            let Some(line) = line_match.filter(|line| self.is_same_line(old, *line)) else {
                return false;
            };
            let is_unique =
                self.file_ids.get(line).and_then(|id| self.occurrence_counts.get(id)) == Some(&1);
            is_unique && similarity::is_distinctive(self.lines.get(line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount, UnsafeMatchReason};

    const TEXT: &str = "fn area(w: u32) {\n    let wide = w + 1;\n    let tall = wide * 2;\n    \
                        show(tall);\n    save(tall);\n}\n";

    #[test]
    fn an_outdated_middle_line_keeps_the_text_of_the_file() {
        let old = "fn area(w: u32) {\n    let wide = w + 2;\n    let tall = wide * 2;\n    \
                   show(tall);\n    save(tall);\n}";
        for (from, to) in
            [("    save(tall);\n", ""), ("show(tall)", "show(wide)"), ("}", "    end();\n}")]
        {
            let (offset, _) = old.rmatch_indices(from).next().unwrap();
            let mut new = old.to_owned();
            new.replace_range(offset..offset + from.len(), to);
            let (offset, _) = TEXT.rmatch_indices(from).next().unwrap();
            let mut after = TEXT.to_owned();
            after.replace_range(offset..offset + from.len(), to);
            assert_eq!(
                apply_edit(TEXT, old, &new, ReplaceCount::One),
                (after, MatchStrategy::BlockAnchor)
            );
        }
    }

    #[test]
    fn an_outdated_line_is_not_overwritten() {
        let old = TEXT.replace("w + 1", "w + 2");
        let error = edit_error(TEXT, &old, &old.replace("w + 2", "w + 3"), ReplaceCount::One);
        let EditError::Uncertain { uncertainty, .. } = error else { panic!("{error:?}") };
        assert_eq!(uncertainty, UnsafeMatchReason::LineDiffers { line: 2 });
    }

    #[test]
    fn two_similar_blocks_are_ambiguous() {
        let twin = TEXT.replace("w + 1", "w + 3");
        let text = format!("{TEXT}\n{twin}");
        let old = TEXT.replace("w + 1", "w + 2");
        let new = old.replace("save(tall);", "save(wide);");
        let error = edit_error(&text, &old, &new, ReplaceCount::One);
        let EditError::Ambiguous { strategy, mut lines, .. } = error else { panic!("{error:?}") };
        lines.sort();
        assert_eq!((strategy, lines), (MatchStrategy::BlockAnchor, vec![1, 8]));
    }

    #[test]
    fn unknown_lines_are_kept_unless_the_edit_inserts_next_to_them() {
        let old = TEXT
            .replace("    let tall = wide * 2;\n", "")
            .replace("}\n", "    x();\n    y();\n    z();\n}\n");
        let text = TEXT.replace("}\n", "    x();\n    y();\n    z();\n}\n");
        let (after, _) = apply_edit(&text, &old, &old.replace("y()", "why()"), ReplaceCount::One);
        assert_eq!(after, text.replace("y()", "why()"));
        let error = edit_error(
            &text,
            &old,
            &old.replace("    show", "    q();\n    show"),
            ReplaceCount::One,
        );
        assert!(
            matches!(
                error,
                EditError::Uncertain { uncertainty: UnsafeMatchReason::UnmatchedNeighbor, .. }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn braces_alone_do_not_identify_a_block() {
        let text = "{\n  a();\n  b();\n  c1();\n}\n";
        let error = edit_error(
            text,
            "{\n  a();\n  b();\n  c2();\n}",
            "{\n  x();\n  a();\n  b();\n  c2();\n}",
            ReplaceCount::One,
        );
        assert!(
            matches!(
                error,
                EditError::Uncertain { uncertainty: UnsafeMatchReason::TooDifferent, .. }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn a_different_middle_is_not_found() {
        let old = "fn area(w: u32) {\n    something();\n    entirely(different);\n    from(it);\n    all();\n}";
        let error = edit_error(TEXT, old, &old.replace("}", "    x();\n}"), ReplaceCount::One);
        assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
    }
}
