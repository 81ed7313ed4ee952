//! A call: one line that says what is done and what came of it, and what it opens to.

use super::fold::Call;
use super::rows::{Lay, MARGIN, Source, inset};
use super::words::{self, Words};
use super::{picture, records};
use crate::ink::Row;
use crate::keys::Command;
use crate::lay;
use crate::theme::Role;
use crate::wrap;
use windlass_protocol::text::{counted, duration};
use windlass_protocol::{Author, Display, Fact, Outcome, Record};

/// How many rows of a change, and of what a running command prints, are shown while it is closed.
const CHANGE: usize = 12;
const PRINTED: usize = 6;
/// How many lines of what a person's own command printed are.
const ENDING: usize = 20;
/// How many lines are laid out at most when it is opened.
const OPENED: usize = 2_000;
/// Calls that took at least so long, in milliseconds, say so.
const LONG: u64 = 1_000;

/// How a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Coming,
    Runs,
    Done,
    Failed,
    Denied,
    Stopped,
    Unknown,
}

impl State {
    fn of(call: &Call, outcome: Option<&Outcome>, from: Source<'_>) -> State {
        match outcome {
            Some(Outcome::Completed { .. }) => State::Done,
            Some(Outcome::Failed { .. }) => State::Failed,
            Some(Outcome::Denied { .. }) => State::Denied,
            Some(Outcome::Interrupted { .. }) => State::Stopped,
            Some(Outcome::Unknown) => State::Unknown,
            // How it ended lies beyond the window.
            None if !from.window.holds_end() => State::Coming,
            None if call.waits() => State::Waits,
            None if call.started.is_some() => State::Runs,
            None => State::Coming,
        }
    }

    fn mark(self, lay: &Lay<'_>) -> (&'static str, Role) {
        match self {
            State::Waits => ("?", Role::Warn),
            State::Coming => (lay.sign("·", "."), Role::Dim),
            State::Runs => (lay.sign("·", "."), Role::Accent),
            State::Done => (lay.sign("✓", "+"), Role::Good),
            State::Failed => (lay.sign("✗", "x"), Role::Bad),
            State::Denied => (lay.sign("⊘", "-"), Role::Warn),
            State::Stopped => (lay.sign("⊘", "-"), Role::Dim),
            State::Unknown => ("!", Role::Warn),
        }
    }
}

/// A call as rows.
pub(super) fn rows(
    call: &Call,
    record: &Record,
    open: bool,
    from: Source<'_>,
    lay: &Lay<'_>,
) -> Vec<Row> {
    let Fact::Called { tool, arguments, by, .. } = &record.fact else { return Vec::new() };
    let settled = call.settled.and_then(|seq| from.window.get(seq));
    let outcome = settled.and_then(|settled| {
        let Fact::Settled { outcome, .. } = &settled.fact else { return None };
        Some(outcome)
    });
    let state = State::of(call, outcome, from);
    let words = words::words(tool, arguments, &lay.known.standing.root);
    let took = took(call, settled, from);
    let behind = behind(call, tool, &words, (state, outcome, took), from, lay.now);
    let mut rows = vec![line(&words, *by, state, &behind, lay)];
    rows.extend(match outcome {
        Some(outcome) => came_of_it((*by, tool, arguments), outcome, open, from, lay),
        None => going_on(call, arguments, (state, open), from, lay),
    });
    if open && let Some(child) = call.child.and_then(|child| from.now.children.get(&child)) {
        for line in &child.lines {
            let row = Row::of(lay.look.style(Role::Dim), line);
            rows.extend(inset(vec![wrap::cut(&row, lay.wide(), lay.look)], 2 * MARGIN));
        }
    }
    rows
}

fn took(call: &Call, settled: Option<&Record>, from: Source<'_>) -> Option<u64> {
    let started = call.started.and_then(|seq| from.window.get(seq))?;
    Some(settled?.at.0.saturating_sub(started.at.0))
}

/// How long a call has run that has not ended, in milliseconds.
fn runs(call: &Call, from: Source<'_>, now: u64) -> Option<u64> {
    let started = call.started.and_then(|seq| from.window.get(seq))?;
    now.checked_sub(started.at.0)
}

/// The line itself.
fn line(words: &Words, by: Author, state: State, behind: &str, lay: &Lay<'_>) -> Row {
    let look = lay.look;
    let (mark, role) = state.mark(lay);
    let verb = match by {
        Author::Model => words.verb.clone(),
        Author::Person => format!("You: {}", words.verb),
    };
    let dim = look.style(Role::Dim);
    let mut row = Row::of(look.style(role), mark).and(dim, " ");
    row.push(look.style(Role::Call), &verb);
    let behind = lay.ours(behind);
    if !words.object.is_empty() {
        // What came of it is worth more than the end of a long command.
        let kept = behind.chars().count().min(lay.width / 2);
        let room = lay.width.saturating_sub(row.width() + 1 + kept).max(8);
        let object = wrap::cut(&Row::of(look.style(Role::Text), &words.object), room, look);
        row.push(dim, " ");
        row.extend(&object);
    }
    row.push(dim, &behind);
    wrap::cut(&row, lay.width, look)
}

/// What stands behind the words, dim.
fn behind(
    call: &Call,
    tool: &str,
    words: &Words,
    (state, outcome, took): (State, Option<&Outcome>, Option<u64>),
    from: Source<'_>,
    now: u64,
) -> String {
    let mut parts = vec![words.note.clone()];
    let saying = from.now.calls.get(&call.id);
    match state {
        State::Waits => parts.push("waits for your answer".to_owned()),
        State::Runs | State::Coming => {
            let child = call.child.and_then(|child| from.now.children.get(&child));
            match child {
                Some(child) if child.calls > 0 => {
                    parts.push(counted(child.calls as usize, "call"));
                    parts.push(child.doing.clone());
                }
                // What a command prints stands below it.
                _ if tool == "bash" => {}
                _ => parts.extend(saying.map(|saying| words::first_line(&saying.progress))),
            }
            parts.extend(runs(call, from, now).filter(|ran| *ran >= LONG).map(duration));
            let refused = saying.and_then(|saying| saying.refused.as_deref());
            parts.extend(refused.map(|host| format!("{host} not reached")));
        }
        State::Stopped => parts.push("interrupted".to_owned()),
        State::Unknown => parts.push("how it ended is not known".to_owned()),
        State::Done | State::Failed | State::Denied => {}
    }
    parts.extend(took.filter(|took| *took >= LONG).map(duration));
    if let Some(Outcome::Completed { output }) = outcome {
        parts.push(words::gist(tool, output));
        let child = call.child.and_then(|child| from.now.children.get(&child));
        let calls = child.map(|child| counted(child.calls as usize, "call"));
        parts.extend(calls);
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => String::new(),
        // The lines that were read belong to the name of the file.
        [first, rest @ ..] if *first == words.note && tool == "read" => {
            let rest: String = rest.iter().map(|part| format!(" · {part}")).collect();
            format!(" {first}{rest}")
        }
        parts => parts.iter().map(|part| format!(" · {part}")).collect(),
    }
}

/// What is shown below a call that has ended.
fn came_of_it(
    (by, tool, arguments): (Author, &str, &str),
    outcome: &Outcome,
    open: bool,
    from: Source<'_>,
    lay: &Lay<'_>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    match outcome {
        Outcome::Completed { output } => {
            match &output.display {
                Display::Diff { unified } => rows.extend(change(unified, open, lay)),
                Display::Checklist { items } => {
                    let list = lay::checklist(items, lay.wide(), lay.look);
                    rows.extend(cut(inset(list, 2 * MARGIN), items.len(), open, lay));
                }
                Display::Terminal { coloured } if open => {
                    let text = coloured.as_deref().unwrap_or(&output.text);
                    rows.extend(opened("bash", arguments, text, lay));
                }
                // Who types a command wants to see what it says.
                Display::Terminal { coloured } if by == Author::Person => {
                    let text = coloured.as_deref().unwrap_or(&output.text);
                    rows.extend(ending(text, output.exit(), lay));
                }
                Display::Text if open => {
                    rows.extend(match records::table(output, lay.wide(), lay.look) {
                        Some(table) => inset(table, 2 * MARGIN),
                        None => opened(tool, arguments, &output.text, lay),
                    })
                }
                Display::Text | Display::Terminal { .. } => {}
            }
            for one in &output.attachments {
                rows.extend(inset(picture::rows(one, open, from, lay), MARGIN));
            }
        }
        Outcome::Failed { text } | Outcome::Denied { text } | Outcome::Interrupted { text } => {
            let role = match outcome {
                Outcome::Failed { .. } => Role::Bad,
                Outcome::Denied { .. } => Role::Warn,
                Outcome::Completed { .. } | Outcome::Interrupted { .. } | Outcome::Unknown => {
                    Role::Dim
                }
            };
            if open {
                rows.extend(opened(tool, arguments, text, lay));
            } else if role != Role::Dim {
                let reason = Row::of(lay.look.style(role), &words::reason(outcome));
                rows.extend(inset(vec![wrap::cut(&reason, lay.wide(), lay.look)], 2 * MARGIN));
            }
        }
        Outcome::Unknown => {}
    }
    rows
}

/// What is shown below a call that has not ended.
fn going_on(
    call: &Call,
    arguments: &str,
    (state, open): (State, bool),
    from: Source<'_>,
    lay: &Lay<'_>,
) -> Vec<Row> {
    let saying = from.now.calls.get(&call.id).filter(|_| state == State::Runs);
    let printed = saying.map(|saying| saying.output.as_str()).filter(|text| !text.is_empty());
    match printed {
        Some(text) => {
            let rows = lay::terminal(text.trim_end(), lay.wide(), lay.look);
            let hidden = if open { 0 } else { rows.len().saturating_sub(PRINTED) };
            inset(rows.into_iter().skip(hidden).collect(), 2 * MARGIN)
        }
        None if open => {
            let text = pretty(arguments);
            inset(lay::plain(&text, lay.wide(), Role::Dim, lay.look), 2 * MARGIN)
        }
        None => Vec::new(),
    }
}

/// A change. While it is closed, only as much is laid out as is shown.
fn change(unified: &str, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let lines = unified.lines().count();
    let most = if open { OPENED } else { 3 * CHANGE };
    let shown = head(unified, most);
    let mut rows = inset(lay::diff(shown, lay.wide(), lay.look), MARGIN);
    // Which file it is, and how much of it, the call's own line says.
    let alone = unified.starts_with("--- ") && unified.matches("\n+++ ").count() == 1;
    if alone && !rows.is_empty() {
        rows.remove(0);
    }
    cut(rows, lines.saturating_sub(if alone { 3 } else { 0 }), open, lay)
}

/// The first rows, and how much more there is.
fn cut(mut rows: Vec<Row>, lines: usize, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    if open {
        return rows;
    }
    // A cut that hides next to nothing is none.
    if rows.len() > CHANGE + 2 {
        rows.truncate(CHANGE);
        let (more, key) = (lines.saturating_sub(CHANGE).max(1), lay.key(Command::Details));
        let text = format!("… {}, {key} opens", counted(more, "more line"));
        rows.extend(inset(lay.quiet(Role::Dim, &text), MARGIN));
    }
    rows
}

/// The end of what a command printed, without how it ended where its own line says all of that.
fn ending(text: &str, exit: Option<i64>, lay: &Lay<'_>) -> Vec<Row> {
    let mut lines: Vec<&str> = text.trim_end().lines().collect();
    let ended = exit.map(|code| format!("(exit code {code}"));
    lines.pop_if(|last| {
        let rest = ended.as_deref().and_then(|ended| last.strip_prefix(ended));
        rest.is_some_and(|rest| rest.ends_with(')') && !rest.contains(';'))
    });
    if lines == ["(no output)"] {
        return Vec::new();
    }
    let above = lines.len().saturating_sub(ENDING);
    let shown = lines.get(above..).unwrap_or_default().join("\n");
    let mut rows = Vec::new();
    if above > 0 {
        let (count, key) = (counted(above, "line"), lay.key(Command::Details));
        let text = format!("… {count} above, {key} opens");
        rows.extend(inset(lay.quiet(Role::Dim, &text), MARGIN));
    }
    let printed = lay::terminal(&shown, lay.wide(), lay.look);
    let hidden = printed.len().saturating_sub(2 * ENDING);
    rows.extend(inset(printed.into_iter().skip(hidden).collect(), 2 * MARGIN));
    rows
}

/// What a call opens to: what it was given, where that is more than its line says, and what it gave.
fn opened(tool: &str, arguments: &str, text: &str, lay: &Lay<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let command = value.get("command").and_then(serde_json::Value::as_str);
    match (tool, command) {
        ("bash", Some(command)) if command.trim().contains('\n') => {
            rows.extend(lay::code(command.trim(), "sh", lay.wide(), lay.look));
        }
        ("bash" | "read" | "grep" | "glob", _) => {}
        _ => rows.extend(lay::plain(&pretty(arguments), lay.wide(), Role::Dim, lay.look)),
    }
    let shown = head(text.trim_end(), OPENED);
    rows.extend(match tool {
        "bash" => lay::terminal(shown, lay.wide(), lay.look),
        "task" | "webfetch" | "skill" => lay::markdown(shown, lay.wide(), lay.look),
        _ => lay::plain(shown, lay.wide(), Role::Dim, lay.look),
    });
    if shown.len() < text.trim_end().len() {
        let more = text.lines().count().saturating_sub(OPENED);
        rows.extend(lay.quiet(Role::Dim, &format!("… {more} more lines; /export has all")));
    }
    inset(rows, 2 * MARGIN)
}

/// Arguments as a person reads them: a line for each.
fn pretty(arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let Some(fields) = value.as_object() else { return arguments.to_owned() };
    let line = |(name, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The first lines of a text.
fn head(text: &str, lines: usize) -> &str {
    let mut ends = text.match_indices('\n').map(|(at, _)| at);
    let cut = ends.nth(lines.saturating_sub(1)).unwrap_or(text.len());
    text.get(..cut).unwrap_or(text)
}
