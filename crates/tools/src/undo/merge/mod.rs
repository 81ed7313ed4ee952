//! Reverts an agent's changes to one file and keeps all others.
//!
//! A change is the content of the file before and after it. Reverting it is a three-way merge: the
//! current content and the content before the change are both descendants of the content that the
//! agent left. Changes by the user or other programs stay, before, between or after the agent's
//! changes.
//!
//! Consecutive agent changes are joined and reverted as one. Reverting all changes at once would be
//! simpler, but would also revert what others changed between them. So changes are reverted one by
//! one, the newest first. One with a conflict is postponed, because older ones may affect other
//! lines. At the end, the newest postponed change is marked in the file for the user to resolve.
//! Only one is marked, because nested markers would not help; the others stay as they are.
//!
//! Invariant: nothing that the user wrote is removed, and no file that the user removed comes back.

use super::diff3::{self, MergeChunk, MergeDeadline};
use std::time::Duration;

/// A change that an agent made to a file: the content before and after (`None`: no file).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AgentEdit<'a> {
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
}

/// The result of `undo_edits` for a file.
#[derive(Debug, PartialEq)]
pub(crate) enum UndoResult {
    /// Nothing is left to revert.
    Unchanged,
    /// The new content (`None`: remove the file).
    Content(Option<Vec<u8>>),
    /// The new content, with `conflicts` marked conflicts for the user to resolve. Everything that
    /// could be reverted without a conflict is; `unreverted` more changes could not be.
    Conflict { content: Vec<u8>, conflicts: usize, unreverted: usize },
    /// The file cannot be merged and stays as it is. `reason` follows the file name and a colon in
    /// a message.
    Unmergeable { reason: String },
}

/// Larger files are not merged.
const MAX_MERGE_BYTES: usize = 32 << 20;

/// Limits all merges of a file. Only large files with hardly a line in common reach it.
const MERGE_TIMEOUT: Duration = Duration::from_secs(3);

/// A zero byte within this many bytes marks a file as binary.
const BINARY_SNIFF_BYTES: usize = 8 * 1024;

const TOO_LARGE_REASON: &str =
    "it was edited since and is too large to merge. Undo the change by hand";

const CURRENT_LABEL: &str = "now";
const AFTER_AGENT_LABEL: &str = "after the agent's edit";
const BEFORE_AGENT_LABEL: &str = "before the agent's edit";

/// Reverts changes (oldest first) from the current content, and keeps what the user or other
/// programs changed between or after them.
pub(crate) fn undo_edits(current: Option<&[u8]>, edits: &[AgentEdit<'_>]) -> UndoResult {
    let mut content = current.map(<[u8]>::to_vec);
    let mut postponed = Vec::new();
    let deadline = MergeDeadline::after(MERGE_TIMEOUT);
    for edit in join_adjacent_edits(edits).into_iter().rev() {
        match undo_edit(content.as_deref(), edit, deadline) {
            SingleUndoResult::Clean(merged) => content = merged,
            SingleUndoResult::Conflict { .. } => postponed.push(edit),
            SingleUndoResult::Unmergeable(reason) => {
                return UndoResult::Unmergeable { reason: reason.to_owned() };
            }
        }
    }
    let mut postponed = postponed.into_iter();
    while let Some(edit) = postponed.next() {
        match undo_edit(content.as_deref(), edit, deadline) {
            SingleUndoResult::Clean(merged) => content = merged,
            SingleUndoResult::Conflict { content, conflicts } => {
                return UndoResult::Conflict { content, conflicts, unreverted: postponed.len() };
            }
            SingleUndoResult::Unmergeable(reason) => {
                return UndoResult::Unmergeable { reason: reason.to_owned() };
            }
        }
    }
    if content.as_deref() == current { UndoResult::Unchanged } else { UndoResult::Content(content) }
}

/// Joins changes whose `before` equals the `after` of the previous one.
fn join_adjacent_edits<'a>(edits: &[AgentEdit<'a>]) -> Vec<AgentEdit<'a>> {
    let mut joined: Vec<AgentEdit<'a>> = Vec::new();
    for edit in edits {
        match joined.last_mut() {
            Some(last) if last.after == edit.before => last.after = edit.after,
            Some(_) | None => joined.push(*edit),
        }
    }
    joined
}

/// The result of reverting one `AgentEdit`.
enum SingleUndoResult {
    Clean(Option<Vec<u8>>),
    Conflict { content: Vec<u8>, conflicts: usize },
    Unmergeable(&'static str),
}

fn undo_edit(
    current: Option<&[u8]>,
    edit: AgentEdit<'_>,
    deadline: MergeDeadline,
) -> SingleUndoResult {
    let AgentEdit { before, after } = edit;
    if before == after {
        return SingleUndoResult::Clean(current.map(<[u8]>::to_vec));
    }
    if current == after || current == before {
        return SingleUndoResult::Clean(before.map(<[u8]>::to_vec));
    }
    match (current, before, after) {
        (None, _, _) => SingleUndoResult::Unmergeable(
            "it was deleted since, so it was not restored. To get it back, restore it from \
             version control or write it again",
        ),
        (Some(_), None, _) => SingleUndoResult::Unmergeable(
            "the agent created this file and it was edited since; deleting it would lose those \
             edits. Delete it by hand if nothing in it is needed",
        ),
        (Some(_), Some(_), None) => SingleUndoResult::Unmergeable(
            "the agent deleted this file and another one now exists at its path. Move that one \
             away first, then undo again",
        ),
        (Some(current), Some(before), Some(after)) => merge_undo(current, before, after, deadline),
    }
}

/// Reverts one change in a file that others have changed too.
fn merge_undo(
    current: &[u8],
    before: &[u8],
    after: &[u8],
    deadline: MergeDeadline,
) -> SingleUndoResult {
    let contents = [current, before, after];
    if contents.iter().any(|content| content.len() > MAX_MERGE_BYTES) {
        return SingleUndoResult::Unmergeable(TOO_LARGE_REASON);
    }
    let mut encodings = contents
        .iter()
        .filter(|content| !content.is_empty())
        .map(|content| MergeEncoding::detect(content));
    let encoding = encodings.next().unwrap_or(MergeEncoding::Text);
    if encodings.any(|other| other.line_feed() != encoding.line_feed()) {
        return SingleUndoResult::Unmergeable(
            "it was edited since and its encoding has changed, so it cannot be merged. Undo the \
             change by hand",
        );
    }
    let [ours, theirs, ancestor] =
        contents.map(|content| diff3::split_lines(content, encoding.line_feed()));
    let Some(chunks) = diff3::merge_three_way(&ancestor, &ours, &theirs, deadline) else {
        return SingleUndoResult::Unmergeable(TOO_LARGE_REASON);
    };
    let conflicts =
        chunks.iter().filter(|chunk| matches!(chunk, MergeChunk::Conflict { .. })).count();
    if conflicts > 0
        && contents.iter().any(|content| MergeEncoding::detect(content) != MergeEncoding::Text)
    {
        return SingleUndoResult::Unmergeable(
            "it was edited since in the same places, and conflicts cannot be marked in this kind \
             of file. Undo the change by hand",
        );
    }
    let mut output =
        MergeOutput { content: Vec::with_capacity(current.len()), line_ending: line_ending(&ours) };
    for chunk in chunks {
        match chunk {
            MergeChunk::Resolved(lines) => output.push_lines(lines),
            MergeChunk::Conflict { ancestor, ours, theirs } => {
                output.push_marker("<<<<<<<", CURRENT_LABEL);
                output.push_lines(ours);
                output.push_marker("|||||||", AFTER_AGENT_LABEL);
                output.push_lines(ancestor);
                output.push_marker("=======", "");
                output.push_lines(theirs);
                output.push_marker(">>>>>>>", BEFORE_AGENT_LABEL);
            }
        }
    }
    match conflicts {
        0 => SingleUndoResult::Clean(Some(output.content)),
        _ => SingleUndoResult::Conflict { content: output.content, conflicts },
    }
}

/// The kind of content, as far as lines and conflict markers are concerned.
#[derive(Clone, Copy, PartialEq)]
enum MergeEncoding {
    Text,
    /// UTF-16, little-endian (`Utf16Le`) or big-endian (`Utf16Be`).
    Utf16Le,
    Utf16Be,
    Binary,
}

impl MergeEncoding {
    fn detect(content: &[u8]) -> MergeEncoding {
        match content {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] if !content.len().is_multiple_of(2) => {
                MergeEncoding::Binary
            }
            [0xff, 0xfe, ..] => MergeEncoding::Utf16Le,
            [0xfe, 0xff, ..] => MergeEncoding::Utf16Be,
            _ if content.iter().take(BINARY_SNIFF_BYTES).any(|byte| *byte == 0) => {
                MergeEncoding::Binary
            }
            _ => MergeEncoding::Text,
        }
    }

    fn line_feed(self) -> &'static [u8] {
        match self {
            MergeEncoding::Text | MergeEncoding::Binary => b"\n",
            MergeEncoding::Utf16Le => b"\n\0",
            MergeEncoding::Utf16Be => b"\0\n",
        }
    }
}

/// Returns the line ending of the first line as that of the file.
fn line_ending(lines: &[&[u8]]) -> &'static [u8] {
    let is_crlf = lines.first().is_some_and(|line| line.ends_with(b"\r\n"));
    if is_crlf { b"\r\n" } else { b"\n" }
}

/// The content of the merged file so far.
struct MergeOutput {
    content: Vec<u8>,
    line_ending: &'static [u8],
}

impl MergeOutput {
    fn push_lines(&mut self, lines: &[&[u8]]) {
        lines.iter().for_each(|line| self.content.extend_from_slice(line));
    }

    /// Appends a conflict marker on a line of its own, after ending an unfinished line.
    fn push_marker(&mut self, marker: &str, label: &str) {
        if self.content.last().is_some_and(|byte| *byte != b'\n') {
            self.content.extend_from_slice(self.line_ending);
        }
        self.content.extend_from_slice(marker.as_bytes());
        if !label.is_empty() {
            self.content.push(b' ');
            self.content.extend_from_slice(label.as_bytes());
        }
        self.content.extend_from_slice(self.line_ending);
    }
}

#[cfg(test)]
mod tests;
