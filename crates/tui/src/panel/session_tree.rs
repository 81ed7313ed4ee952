//! The order of sessions in the session picker: a tree of forks and subagents, flattened to rows.

use std::collections::{BTreeSet, HashMap};
use windlass_protocol::{SessionId, SessionSummary};

/// A row of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTreeNode<'a> {
    pub(crate) summary: &'a SessionSummary,
    /// The number of sessions above it.
    pub(crate) depth: usize,
    pub(crate) subagent_count: usize,
}

/// Returns the rows of the tree. A tree stands where its newest session stands in `sessions`. Forks
/// are always shown, subagents only below the sessions in `expanded`.
pub(crate) fn flatten_tree<'a>(
    sessions: &'a [SessionSummary],
    expanded: &BTreeSet<SessionId>,
) -> Vec<SessionTreeNode<'a>> {
    let by_id: HashMap<SessionId, &SessionSummary> =
        sessions.iter().map(|summary| (summary.session, summary)).collect();
    let mut tree = SessionTree {
        children: HashMap::new(),
        expanded,
        placed: BTreeSet::new(),
        rows: Vec::new(),
    };
    for summary in sessions {
        let source = summary.parent.or(summary.forked_from);
        if let Some(source) = source.filter(|source| by_id.contains_key(source)) {
            tree.children.entry(source).or_default().push(summary);
        }
    }
    for summary in sessions {
        if let Some(root) = find_root(summary, &by_id) {
            tree.place(root, 0);
        }
    }
    tree.rows
}

/// Returns the topmost session that is listed; `None` for a subagent of a session that is not.
fn find_root<'a>(
    summary: &'a SessionSummary,
    by_id: &HashMap<SessionId, &'a SessionSummary>,
) -> Option<&'a SessionSummary> {
    let mut root = summary;
    // Each step goes to another session, unless the log of one was forged.
    for _ in 0..by_id.len() {
        let source = root.parent.or(root.forked_from);
        match source.and_then(|source| by_id.get(&source)) {
            Some(source) => root = source,
            None => break,
        }
    }
    root.parent.is_none().then_some(root)
}

struct SessionTree<'a, 'b> {
    children: HashMap<SessionId, Vec<&'a SessionSummary>>,
    expanded: &'b BTreeSet<SessionId>,
    placed: BTreeSet<SessionId>,
    rows: Vec<SessionTreeNode<'a>>,
}

impl<'a> SessionTree<'a, '_> {
    /// Appends a session and those below it, in order.
    fn place(&mut self, root: &'a SessionSummary, depth: usize) {
        let mut pending = vec![(root, depth)];
        while let Some((summary, depth)) = pending.pop() {
            if !self.placed.insert(summary.session) {
                continue;
            }
            let children = self.children.get(&summary.session).map_or(&[][..], Vec::as_slice);
            let is_subagent = |child: &&&SessionSummary| child.parent.is_some();
            let subagent_count = children.iter().filter(is_subagent).count();
            self.rows.push(SessionTreeNode { summary, depth, subagent_count });
            let is_expanded = self.expanded.contains(&summary.session);
            let shown = children.iter().filter(|child| is_expanded || child.parent.is_none());
            pending.extend(shown.rev().map(|child| (*child, depth + 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn summary(number: u128, parent: Option<u128>, forked_from: Option<u128>) -> SessionSummary {
        SessionSummary {
            parent: parent.map(id),
            forked_from: forked_from.map(id),
            ..SessionSummary::new(id(number))
        }
    }

    fn rows(sessions: &[SessionSummary], expanded: &[u128]) -> Vec<(u128, usize, usize)> {
        let expanded = expanded.iter().map(|number| id(*number)).collect();
        let nodes = flatten_tree(sessions, &expanded).into_iter();
        nodes
            .map(|node| (node.summary.session.0.as_u128(), node.depth, node.subagent_count))
            .collect()
    }

    #[test]
    fn forks_stand_below_their_source_and_subagents_are_hidden_until_expanded() {
        let sessions = [
            summary(5, None, Some(1)),
            summary(4, Some(1), None),
            summary(3, None, None),
            summary(2, None, Some(5)),
            summary(1, None, None),
        ];
        assert_eq!(rows(&sessions, &[]), [(1, 0, 1), (5, 1, 0), (2, 2, 0), (3, 0, 0)]);
        assert_eq!(rows(&sessions, &[1]), [(1, 0, 1), (5, 1, 0), (2, 2, 0), (4, 1, 0), (3, 0, 0)]);
    }

    #[test]
    fn a_source_that_is_gone_and_a_forged_circle_lose_no_session() {
        let sessions =
            [summary(1, None, Some(9)), summary(2, None, Some(3)), summary(3, None, Some(2))];
        let numbers: BTreeSet<u128> =
            rows(&sessions, &[]).into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, BTreeSet::from([1, 2, 3]));
        assert!(rows(&[summary(1, Some(9), None)], &[]).is_empty());
    }
}
