//! Resolves the `@@` lines of a hunk to lines of the file.

use super::PatchError;
use super::line_search::HunkSearchText;
use super::reindent::leading_whitespace;
use std::collections::BTreeSet;

/// Returns every line that the last `@@` line may refer to, from top to bottom, or the first anchor
/// that is not in the file. Each anchor is searched below the one before it.
pub(super) fn resolve_anchors<'a>(
    text: &HunkSearchText<'_>,
    anchors: &'a [String],
) -> Result<Result<Vec<usize>, &'a str>, PatchError> {
    let mut candidates: Option<Vec<usize>> = None;
    for anchor in anchors {
        let previous = candidates.as_ref().and_then(|candidates| candidates.first());
        let from = previous.map_or(0, |line| line + 1);
        let found = text.find_lines(&[anchor.as_str()], from, usize::MAX)?;
        let found = found.map(|(_, lines)| lines).unwrap_or_default();
        let next = match candidates {
            None => found,
            Some(outer) => find_nested_lines(text, &outer, &found)?,
        };
        if next.is_empty() {
            return Ok(Err(anchor));
        }
        candidates = Some(next);
    }
    Ok(Ok(candidates.unwrap_or_default()))
}

/// Returns, for each outer line, the first inner line below it and every further one in its block,
/// because the outer line does not tell those apart.
fn find_nested_lines(
    text: &HunkSearchText<'_>,
    outer: &[usize],
    inner: &[usize],
) -> Result<Vec<usize>, PatchError> {
    let mut lines = BTreeSet::new();
    for line in outer {
        let below =
            inner.get(inner.partition_point(|candidate| candidate <= line)..).unwrap_or_default();
        let Some((first, further)) = below.split_first() else { break };
        lines.insert(*first);
        if !further.is_empty() {
            let end = block_end(text, *line);
            text.spend_steps(end - line)?;
            lines.extend(further.iter().take_while(|candidate| **candidate < end));
        }
    }
    Ok(lines.into_iter().collect())
}

/// Returns the first line that is not indented deeper than `opening`. A brace alone on the line
/// right below `opening` belongs to the block.
fn block_end(text: &HunkSearchText<'_>, opening: usize) -> usize {
    let depth = |line: &str| leading_whitespace(line).chars().count();
    let opening_depth = text.lines.get(opening).map_or(0, |line| depth(line));
    let is_lone_brace =
        |index: usize, line: &str| index == opening + 1 && !line.contains(char::is_alphanumeric);
    let ends_block = |(index, line): &(usize, &&str)| {
        !line.trim().is_empty() && depth(line) <= opening_depth && !is_lone_brace(*index, line)
    };
    let end = text.lines.iter().enumerate().skip(opening + 1).find(ends_block);
    end.map_or(text.lines.len(), |(index, _)| index)
}
