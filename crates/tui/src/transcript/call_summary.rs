//! Short summaries of tool calls for the user: the action, its progress and its result.

use std::borrow::Cow;
use windlass_protocol::display_text::first_line_with_item;
use windlass_protocol::{
    CallDescription, CallOutcome, OutputDisplay, ToolOutput, USER_DENIAL_TEXT,
};

/// Returns the description of a call from its tool, or one from the name and the arguments if the
/// log has none.
pub(crate) fn describe_call<'a>(
    description: &'a CallDescription,
    tool: &str,
    arguments: &str,
) -> Cow<'a, CallDescription> {
    match description.verb.as_str() {
        "" => Cow::Owned(CallDescription::new(tool, &format!("calling {tool}"), arguments)),
        _ => Cow::Borrowed(description),
    }
}

/// Summarizes the output of a call; empty if there is nothing to say.
pub(super) fn summarize_output(output: &ToolOutput) -> String {
    match &output.display {
        OutputDisplay::Diff { unified_diff } => {
            let (added, removed) = count_changes(unified_diff);
            format!("+{added} −{removed}")
        }
        OutputDisplay::Text
        | OutputDisplay::Markdown
        | OutputDisplay::Terminal { .. }
        | OutputDisplay::Checklist { .. } => first_line(&output.title),
    }
}

/// Counts the lines that a unified diff adds and removes.
pub(super) fn count_changes(unified_diff: &str) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    // The lines that the hunk still has on each side; they must be counted, since a removed line
    // may look like a file header.
    let (mut old, mut new) = (0_usize, 0_usize);
    for line in unified_diff.lines() {
        if old == 0 && new == 0 {
            (old, new) = parse_hunk_header(line).unwrap_or_default();
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') => (added, new) = (added + 1, new.saturating_sub(1)),
            Some(b'-') => (removed, old) = (removed + 1, old.saturating_sub(1)),
            Some(b'\\') => {}
            _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
        }
    }
    (added, removed)
}

/// Parses the line counts of both sides from a hunk header: `@@ -1,3 +1,4 @@`.
fn parse_hunk_header(line: &str) -> Option<(usize, usize)> {
    let (sides, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = sides.split_once(" +")?;
    let count = |side: &str| match side.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}

/// Returns the first line of the text of a `Failed`, `Denied` or `Interrupted` call.
pub(super) fn failure_reason(outcome: &CallOutcome) -> String {
    first_line_with_item(&text_for_user(outcome))
}

/// Returns the text of an outcome, with a denial by the user worded for the user.
pub(crate) fn text_for_user(outcome: &CallOutcome) -> Cow<'_, str> {
    let is_denied = matches!(outcome, CallOutcome::Denied { .. });
    match outcome.text().strip_prefix(USER_DENIAL_TEXT).filter(|_| is_denied) {
        Some(rest) => Cow::Owned(format!("You denied this{rest}")),
        None => Cow::Borrowed(outcome.text()),
    }
}

/// Returns the first line of a text, with an ellipsis if more lines follow.
pub(super) fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first.to_owned(),
    }
}
