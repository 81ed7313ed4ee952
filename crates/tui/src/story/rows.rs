//! Blocks as rows.

use super::call;
use super::fold::{Asked, Block, What};
use super::live::{Now, Writing};
use super::picture::{self, Pictures};
use super::window::Window;
use super::words;
use crate::app::status::money;
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::Command;
use crate::known::Known;
use crate::lay;
use crate::theme::Role;
use crate::wrap::{self, Break};
use std::borrow::Cow;
use windlass_protocol::text::{counted, duration};
use windlass_protocol::{Delivery, Fact, Fault, Record, Stream, TurnEnd, Verdict};

/// A turn that took at least so long, in milliseconds, says so.
pub(super) const LONG: u64 = 10_000;
/// Prose is easier to read in lines that are not longer.
const PROSE: usize = 100;
/// The columns that text keeps from the left edge.
pub(super) const MARGIN: usize = 2;
/// How many rows of a prompt are shown while it is closed.
const PROMPT: usize = 16;

/// What rows are made for.
#[derive(Clone, Copy)]
pub(super) struct Lay<'a> {
    pub width: usize,
    pub look: &'a Look,
    pub known: &'a Known,
    /// Now, in milliseconds since 1970.
    pub now: u64,
}

/// Where rows are made from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub window: &'a Window,
    pub now: &'a Now,
    pub pictures: &'a Pictures,
}

impl Lay<'_> {
    /// The width of prose.
    pub fn prose(&self) -> usize {
        self.width.saturating_sub(MARGIN).clamp(1, PROSE)
    }

    /// The width of prose that stands below something.
    pub fn inner(&self) -> usize {
        self.prose().saturating_sub(MARGIN).max(1)
    }

    /// The width of what is shown as it is.
    pub fn wide(&self) -> usize {
        self.width.saturating_sub(2 * MARGIN).max(1)
    }

    /// One of two signs: ours, or what stands for it where there is nothing but ASCII.
    pub fn sign(&self, sign: &'static str, ascii: &'static str) -> &'static str {
        if self.look.ascii { ascii } else { sign }
    }

    /// A text of ours, as far as possible in ASCII where there is nothing else.
    pub fn ours<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.look.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '·' | '–' | '−' | '─' => plain.push('-'),
                '…' => plain.push_str("..."),
                '→' => plain.push_str("->"),
                '↓' => plain.push('v'),
                '×' => plain.push('x'),
                '¢' => plain.push('c'),
                other => plain.push(other),
            }
        }
        Cow::Owned(plain)
    }

    /// One row of ours that says something quietly.
    pub fn quiet(&self, role: Role, text: &str) -> Vec<Row> {
        let row = Row::of(self.look.style(role), &self.ours(text));
        inset(wrap::wrap(&row, self.prose(), Break::Words, 0), MARGIN)
    }

    /// The key of a command, for a hint.
    pub fn key(&self, command: Command) -> String {
        self.look.keys.hint(command)
    }
}

/// Rows that keep from the left edge.
pub(super) fn inset(rows: Vec<Row>, columns: usize) -> Vec<Row> {
    let space = " ".repeat(columns);
    let rows = rows.into_iter().map(|row| {
        if row.width() == 0 {
            return Row::default();
        }
        let mut moved = Row::of(Default::default(), &space);
        moved.extend(&row);
        moved
    });
    rows.collect()
}

/// A block as rows.
pub(super) fn rows(block: &Block, open: bool, from: Source<'_>, lay: &Lay<'_>) -> Vec<Row> {
    let fact = from.window.get(block.key.0);
    let rows = match &block.what {
        What::Note(text) => note(text, lay),
        What::Prompt { asked, steered } => prompt(asked.as_deref(), *steered, open, from, lay),
        What::Mode(mode) => lay.quiet(Role::Dim, &format!("mode: {mode}")),
        What::Back => lay.quiet(Role::Dim, "went back to here; what came after is left out"),
        What::Lost => {
            lay.quiet(Role::Warn, "what the model said here was lost: windlass was ended")
        }
        What::Forked => lay.quiet(Role::Dim, "goes on here in a copy of another session"),
        What::Call(call) => {
            fact.map(|fact| call::rows(call, fact, open, from, lay)).unwrap_or_default()
        }
        What::End { took, cost } => {
            fact.map(|fact| end(fact, *took, *cost, lay)).unwrap_or_default()
        }
        What::Said => fact.map(|fact| said(fact, lay)).unwrap_or_default(),
        What::Thought => fact
            .map(|fact| {
                let took = from.now.thought.get(&fact.seq).copied();
                thought(fact, took, open, lay)
            })
            .unwrap_or_default(),
        What::Compacted => fact.map(|fact| compacted(fact, open, lay)).unwrap_or_default(),
        What::Hooked => fact.map(|fact| hooked(fact, lay)).unwrap_or_default(),
        What::Retrying => fact.map(|fact| retrying(fact, lay)).unwrap_or_default(),
        What::Told => fact.map(|fact| told(fact, open, lay)).unwrap_or_default(),
    };
    // A block without rows could not be stood on.
    if rows.is_empty() { vec![Row::default()] } else { rows }
}

fn said(record: &Record, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::Said { text, .. } = &record.fact else { return Vec::new() };
    inset(lay::markdown(text, lay.prose(), lay.look), MARGIN)
}

fn compacted(record: &Record, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::Compacted { summary, .. } = &record.fact else { return Vec::new() };
    let count = counted(summary.split_whitespace().count(), "word");
    let opens = lay.key(Command::Details);
    let mut rows = lay.quiet(Role::Dim, &format!("summed up in {count} · {opens} opens"));
    if open {
        rows.extend(inset(lay::markdown(summary, lay.inner(), lay.look), 2 * MARGIN));
    }
    rows
}

fn hooked(record: &Record, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::Hooked { hook, point, verdict, .. } = &record.fact else { return Vec::new() };
    let said = match verdict {
        Verdict::Refused { reason } => format!("the hook {hook} refused ({point}): {reason}"),
        Verdict::Failed { reason } => format!("the hook {hook} did not work ({point}): {reason}"),
        Verdict::Passed | Verdict::Rewrote | Verdict::Asks { .. } => return Vec::new(),
    };
    lay.quiet(Role::Warn, &said)
}

fn retrying(record: &Record, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::Retrying { attempt, fault, wait_ms, .. } = &record.fact else { return Vec::new() };
    let text = format!("{fault} · try {} after {}", attempt.saturating_add(1), duration(*wait_ms));
    lay.quiet(Role::Warn, &text)
}

fn told(record: &Record, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::ContextChanged { text } = &record.fact else { return Vec::new() };
    if !open {
        let brief = format!("told the model: {}", words::first_line(text));
        let row = Row::of(lay.look.style(Role::Dim), &lay.ours(&brief));
        return inset(vec![wrap::cut(&row, lay.prose(), lay.look)], MARGIN);
    }
    let mut rows = lay.quiet(Role::Dim, "told the model:");
    rows.extend(inset(lay::plain(text, lay.inner(), Role::Dim, lay.look), 2 * MARGIN));
    rows
}

/// Something that is not part of the session.
pub(super) fn note(text: &str, lay: &Lay<'_>) -> Vec<Row> {
    inset(lay::plain(text, lay.prose(), Role::Warn, lay.look), MARGIN)
}

fn prompt(
    asked: Option<&Asked>,
    steered: bool,
    open: bool,
    from: Source<'_>,
    lay: &Lay<'_>,
) -> Vec<Row> {
    let mark = if steered { lay.sign("↳ ", "+>") } else { lay.sign("› ", "> ") };
    let Some(asked) = asked else {
        let row = Row::of(lay.look.style(Role::Dim), "(asked earlier: further up)");
        return marked(mark, vec![row], lay);
    };
    let mut rows = lay::plain(asked.text.trim_end(), lay.prose(), Role::Person, lay.look);
    let (all, opens) = (rows.len(), lay.key(Command::Details));
    if !open && all > PROMPT {
        rows.truncate(PROMPT - 2);
        let more = format!("… {} more lines, {opens} opens", all.saturating_sub(rows.len()));
        rows.push(Row::of(lay.look.style(Role::Dim), &lay.ours(&more)));
    }
    let mut rows = marked(mark, rows, lay);
    for file in &asked.attachments {
        rows.extend(picture::rows(file, open, from, lay));
    }
    rows
}

/// Rows with a mark in the margin of the first.
fn marked(mark: &str, rows: Vec<Row>, lay: &Lay<'_>) -> Vec<Row> {
    let mut rows = rows.into_iter();
    let mut first = Row::of(lay.look.style(Role::Accent), mark);
    first.extend(&rows.next().unwrap_or_default());
    std::iter::once(first).chain(inset(rows.collect(), MARGIN)).collect()
}

fn thought(record: &Record, took: Option<u64>, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let Fact::Reasoned { text, .. } = &record.fact else { return Vec::new() };
    let count = counted(text.split_whitespace().count(), "word");
    let long = took.filter(|took| *took >= 1000).map(|took| format!(" for {}", duration(took)));
    let head = format!("thought{} · {count}", long.unwrap_or_default());
    let mut rows = lay.quiet(Role::Reasoning, &head);
    if open {
        let text = lay::plain(text.trim(), lay.inner(), Role::Reasoning, lay.look);
        rows.extend(inset(text, 2 * MARGIN));
    }
    rows
}

fn end(
    record: &Record,
    took: Option<u64>,
    cost: windlass_protocol::Cost,
    lay: &Lay<'_>,
) -> Vec<Row> {
    let Fact::TurnEnded { end, .. } = &record.fact else { return Vec::new() };
    let cost = Some(cost).filter(|cost| cost.0 > 0).map(money);
    let sums: Vec<String> = took.map(duration).into_iter().chain(cost).collect();
    let sums = sums.join(" · ");
    match end {
        TurnEnd::Done => lay.quiet(Role::Dim, &sums),
        TurnEnd::Denied => lay.quiet(Role::Warn, "stopped here: the answer was no"),
        TurnEnd::Interrupted => {
            let text = format!("interrupted{}{sums}", if sums.is_empty() { "" } else { " · " });
            lay.quiet(Role::Warn, &text)
        }
        TurnEnd::Looped { what } => {
            let text = format!("stopped, because the model did the same again and again: {what}");
            lay.quiet(Role::Warn, &text)
        }
        TurnEnd::Limit { what } => {
            lay.quiet(Role::Warn, &format!("stopped at a limit: {what}. Say “go on” to go on."))
        }
        TurnEnd::Failed { fault } => failed(fault, lay),
    }
}

/// What went wrong, and what to do next.
fn failed(fault: &Fault, lay: &Lay<'_>) -> Vec<Row> {
    let mark = lay.sign("✗ ", "x ");
    let said = lay::plain(&fault.to_string(), lay.prose(), Role::Bad, lay.look);
    let mut rows = marked(mark, said, lay);
    rows.extend(lay.quiet(Role::Dim, crate::fault::hint(fault)));
    rows
}

/// What is being written.
pub(super) fn writing(
    writing: &mut Writing,
    open: bool,
    lay: &Lay<'_>,
    wanted: std::ops::Range<usize>,
) -> Vec<Row> {
    match writing.stream {
        Stream::Text => inset(writing.draft.rows(lay.prose(), lay.look, wanted), MARGIN),
        Stream::Reasoning => {
            let rows = thinking(writing.draft.text(), open, lay);
            rows.into_iter().skip(wanted.start).take(wanted.len()).collect()
        }
    }
}

/// How many rows that takes.
pub(super) fn writing_height(writing: &mut Writing, open: bool, lay: &Lay<'_>) -> usize {
    match writing.stream {
        Stream::Text => writing.draft.height(lay.prose(), lay.look).max(1),
        Stream::Reasoning => thinking(writing.draft.text(), open, lay).len(),
    }
}

fn thinking(text: &str, open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let count = counted(text.split_whitespace().count(), "word");
    let mut rows = lay.quiet(Role::Reasoning, &format!("thinking · {count}"));
    if open {
        let text = lay::plain(text.trim(), lay.inner(), Role::Reasoning, lay.look);
        rows.extend(inset(text, 2 * MARGIN));
    }
    rows
}

/// A prompt that waits.
pub(super) fn waiting(text: &str, when: Delivery, lay: &Lay<'_>) -> Vec<Row> {
    let (mark, how) = match when {
        Delivery::Steer => (lay.sign("↳ ", "+>"), "heard before the next step"),
        Delivery::Queue => (lay.sign("… ", ".."), "heard when this is done"),
    };
    let how = format!(" · {how}");
    let room = lay.width.saturating_sub(MARGIN + how.chars().count()).max(8);
    let dim = lay.look.style(Role::Dim);
    let row = wrap::cut(&Row::of(dim, &lay.ours(&words::first_line(text))), room, lay.look);
    let mut whole = Row::of(dim, mark);
    whole.extend(&row);
    vec![wrap::cut(&whole.and(dim, &lay.ours(&how)), lay.width, lay.look)]
}
