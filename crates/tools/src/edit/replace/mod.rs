//! Finds the place of an edit in a text and computes the change.
//!
//! This module opens no file. Nine strategies (`MatchStrategy`) run in order from exact to loose.
//! The first one that finds a match decides, and only if the match is unique. An exact match is
//! replaced literally. For any other match, the *difference* between the old and new text is
//! applied to the text of the file, and only where the file agrees with what the edit removes;
//! `apply_diff` implements that rule. A match that is not certain is reported, never guessed, and
//! no looser strategy runs after it.
//!
//! The work is bounded: see `work_limit`.

mod apply_diff;
mod block_anchor;
mod candidate_lines;
mod closest_match;
mod context_aware;
mod error;
mod escape_normalized;
mod exact;
mod indent;
mod indentation_flexible;
mod line_diff;
mod line_trimmed;
mod multi_occurrence;
mod similarity;
mod text_lines;
mod trimmed_boundary;
mod whitespace_normalized;
mod word_diff;
mod work_limit;

pub use error::{ClosestRegion, EditError, UnsafeMatchReason};

use crate::text::TextSplice;
use line_diff::LineDiff;
use std::fmt;
use std::ops::Range;
use text_lines::TextLines;

/// The strategy that found a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchStrategy {
    Exact,
    /// Same lines except for whitespace at their ends.
    LineTrimmed,
    /// Same first and last line, similar lines between them.
    BlockAnchor,
    /// Same words with different spacing.
    WhitespaceNormalized,
    /// Same lines with a different indentation.
    IndentationFlexible,
    /// Same text after unescaping.
    EscapeNormalized,
    /// Same text except for whitespace around it.
    TrimmedBoundary,
    /// Same first and last line, and half of the lines between them.
    ContextAware,
    /// Same text at several places, all replaced.
    MultiOccurrence,
}

impl fmt::Display for MatchStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MatchStrategy::Exact => "exact",
            MatchStrategy::LineTrimmed => "line-trimmed",
            MatchStrategy::BlockAnchor => "block anchor",
            MatchStrategy::WhitespaceNormalized => "whitespace-normalized",
            MatchStrategy::IndentationFlexible => "indentation-flexible",
            MatchStrategy::EscapeNormalized => "escape-normalized",
            MatchStrategy::TrimmedBoundary => "trimmed boundary",
            MatchStrategy::ContextAware => "context-aware",
            MatchStrategy::MultiOccurrence => "multi-occurrence",
        })
    }
}

/// The number of matches that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceCount {
    One,
    All,
}

/// The `TextSplice`s of an edit and the strategy that found them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReplacement {
    /// Sorted and disjoint.
    pub splices: Vec<TextSplice>,
    pub strategy: MatchStrategy,
}

/// A place where an edit fits, with its `TextSplice`s.
struct EditSite {
    /// 0-based.
    lines: Range<usize>,
    splices: Vec<TextSplice>,
}

/// The result of one strategy.
enum MatchOutcome {
    NoMatch,
    /// `EditSite`s that are all equally certain.
    Sites(Vec<EditSite>),
    /// A match where the edit cannot be applied safely.
    Uncertain {
        lines: Range<usize>,
        uncertainty: UnsafeMatchReason,
    },
    /// Too many matches; their first lines, 0-based.
    Ambiguous(Vec<usize>),
}

type StrategyFn = fn(&MatchStrategyInput<'_>) -> MatchOutcome;

/// The input of every `StrategyFn`.
struct MatchStrategyInput<'a> {
    lines: &'a TextLines<'a>,
    old: &'a str,
    new: &'a str,
    /// The edit as a line diff; `None` if it would join lines, which only an exact match may do.
    line_diff: Option<LineDiff<'a>>,
    count: ReplaceCount,
}

/// Finds `old` in `text` and returns the splices that replace it by `new`.
///
/// `text` must use LF line endings; CRLF in `old` and `new` becomes LF.
pub fn replace(
    text: &str,
    old: &str,
    new: &str,
    count: ReplaceCount,
) -> Result<TextReplacement, EditError> {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err(EditError::EmptyOldText);
    }
    if old == new {
        return Err(EditError::OldEqualsNew);
    }
    if let Some(result) = replace_exact(text, &old, &new, count) {
        return result;
    }
    if old.trim().is_empty() {
        return Err(EditError::BlankOldText);
    }
    let lines = TextLines::new(text);
    let line_diff = LineDiff::compute(&old, &new);
    let context = MatchStrategyInput { lines: &lines, old: &old, new: &new, line_diff, count };
    let strategies: [(MatchStrategy, StrategyFn); 6] = [
        (MatchStrategy::LineTrimmed, line_trimmed::find),
        (MatchStrategy::BlockAnchor, block_anchor::find),
        (MatchStrategy::WhitespaceNormalized, whitespace_normalized::find),
        (MatchStrategy::EscapeNormalized, escape_normalized::find),
        (MatchStrategy::TrimmedBoundary, trimmed_boundary::find),
        (MatchStrategy::ContextAware, context_aware::find),
    ];
    for (strategy, find) in strategies {
        match find(&context) {
            MatchOutcome::NoMatch => {}
            MatchOutcome::Sites(sites) => return accept_sites(&context, strategy, sites),
            MatchOutcome::Uncertain { lines, uncertainty } => {
                let region = closest_match::build_region(context.lines, context.old, lines);
                return Err(EditError::Uncertain { strategy, uncertainty, region });
            }
            MatchOutcome::Ambiguous(lines) => {
                return Err(EditError::ambiguous(strategy, lines, count));
            }
        }
    }
    Err(EditError::NotFound { closest: closest_match::find_closest(&lines, &old) })
}

/// Returns the region of `text` that is most similar to `wanted`, which does not occur in it.
pub(crate) fn closest_match(text: &str, wanted: &str) -> Option<ClosestRegion> {
    closest_match::find_closest(&TextLines::new(text), wanted)
}

/// Replaces exact occurrences; `None` if there is none.
fn replace_exact(
    text: &str,
    old: &str,
    new: &str,
    count: ReplaceCount,
) -> Option<Result<TextReplacement, EditError>> {
    match count {
        ReplaceCount::One => exact::find(text, old, new),
        ReplaceCount::All => multi_occurrence::find(text, old, new),
    }
}

/// Accepts one site, or all of them for `ReplaceCount::All`; otherwise fails.
fn accept_sites(
    context: &MatchStrategyInput<'_>,
    strategy: MatchStrategy,
    sites: Vec<EditSite>,
) -> Result<TextReplacement, EditError> {
    let first_lines = || sites.iter().map(|site| site.lines.start).collect();
    let is_disjoint =
        sites.iter().zip(sites.iter().skip(1)).all(|(a, b)| a.lines.end <= b.lines.start);
    if sites.len() > 1 && (context.count == ReplaceCount::One || !is_disjoint) {
        return Err(EditError::ambiguous(strategy, first_lines(), context.count));
    }
    for site in &sites {
        // An unescaped old text has exactly the size of its match.
        let is_unescaped = strategy == MatchStrategy::EscapeNormalized;
        if let Some(matched_lines) =
            oversized_match_lines(context, &site.lines).filter(|_| !is_unescaped)
        {
            return Err(EditError::MatchTooLarge {
                strategy,
                first_line: site.lines.start + 1,
                last_line: site.lines.end,
                matched_lines,
            });
        }
    }
    let first_line = sites.first().map_or(0, |site| site.lines.start) + 1;
    let is_reindented = strategy == MatchStrategy::LineTrimmed
        && sites
            .iter()
            .all(|site| indentation_flexible::is_reindented_match(context, site.lines.start));
    let strategy = if is_reindented { MatchStrategy::IndentationFlexible } else { strategy };
    let text = context.lines.text();
    let mut splices: Vec<TextSplice> = sites.into_iter().flat_map(|site| site.splices).collect();
    trim_overlaps(&mut splices);
    let splices: Vec<TextSplice> = splices
        .into_iter()
        .filter(|splice| text.get(splice.range.clone()) != Some(splice.new_text.as_str()))
        .collect();
    if splices.is_empty() {
        return Err(EditError::AlreadyApplied { first_line });
    }
    Ok(TextReplacement { splices, strategy })
}

/// Shortens deletions that begin before the previous splice ends. Deleting the last line of a text
/// without a final line ending also removes the line ending before it, which the deletion of the
/// previous line may have removed already.
fn trim_overlaps(splices: &mut [TextSplice]) {
    let mut end = 0;
    for splice in splices {
        if splice.new_text.is_empty() {
            splice.range.start = splice.range.start.max(end).min(splice.range.end);
        }
        end = splice.range.end;
    }
}

/// Returns the line count of a match that has far more lines or characters than the old text.
fn oversized_match_lines(
    context: &MatchStrategyInput<'_>,
    matched: &Range<usize>,
) -> Option<usize> {
    let old = context.old.trim();
    let old_lines = old.lines().count();
    if matched.len() >= (old_lines + 3).max(old_lines * 2) {
        return Some(matched.len());
    }
    let length = context.lines.slice(matched).trim().len();
    let limit = (old.len() + 500).max(old.len() * 4);
    (matched.len() > 1 && length > limit).then_some(matched.len())
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
