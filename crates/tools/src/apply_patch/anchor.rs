//! Which lines of a file the `@@` lines of a hunk may name.

use super::Refusal;
use super::seek::View;
use super::shift::indent;
use std::collections::BTreeSet;

/// Every line that the last `@@` line may mean, from top to bottom, each of them searched below the
/// one before; or the one that is not there.
pub(super) fn follow<'a>(
    view: &View<'_>,
    anchors: &'a [String],
) -> Result<Result<Vec<usize>, &'a str>, Refusal> {
    let mut named: Option<Vec<usize>> = None;
    for anchor in anchors {
        let above = named.as_ref().and_then(|named| named.first());
        let from = above.map_or(0, |line| line + 1);
        let found = view.seek(&[anchor.as_str()], from, usize::MAX)?;
        let found = found.map(|(_, places)| places).unwrap_or_default();
        let next = match named {
            None => found,
            Some(outer) => within(view, &outer, &found)?,
        };
        if next.is_empty() {
            return Ok(Err(anchor));
        }
        named = Some(next);
    }
    Ok(Ok(named.unwrap_or_default()))
}

/// For each outer line the first inner one below it, and every further one in its block: an outer
/// line does not tell those apart.
fn within(view: &View<'_>, outer: &[usize], inner: &[usize]) -> Result<Vec<usize>, Refusal> {
    let mut named = BTreeSet::new();
    for line in outer {
        let below = inner.get(inner.partition_point(|at| at <= line)..).unwrap_or_default();
        let Some((first, further)) = below.split_first() else { break };
        named.insert(*first);
        if !further.is_empty() {
            let end = block_end(view, *line);
            view.spend(end - line)?;
            named.extend(further.iter().take_while(|at| **at < end));
        }
    }
    Ok(named.into_iter().collect())
}

/// The first line that is no deeper than the one that opens a block. A brace that stands alone
/// below that one belongs to it.
fn block_end(view: &View<'_>, opening: usize) -> usize {
    let depth = |line: &str| indent(line).chars().count();
    let most = view.lines.get(opening).map_or(0, |line| depth(line));
    let brace = |at: usize, line: &str| at == opening + 1 && !line.contains(char::is_alphanumeric);
    let ends = |(at, line): &(usize, &&str)| {
        !line.trim().is_empty() && depth(line) <= most && !brace(*at, line)
    };
    let end = view.lines.iter().enumerate().skip(opening + 1).find(ends);
    end.map_or(view.lines.len(), |(at, _)| at)
}
