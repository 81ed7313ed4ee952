//! A change in unified form, as it is read: the file, the numbers of lines, signs that need no
//! colour, and marks on the words that changed.

use super::code::untabbed;
use crate::cx::Look;
use crate::ink::{Row, TAB};
use crate::theme::Role;
use crate::wrap::{Break, cut, wrap};
use ratatui::style::Style;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;
use windlass_protocol::text::counted;

/// The longest lines that are compared word by word, in bytes.
const LONGEST: usize = 500;
/// Two numbers a line need this much room, one needs that much.
const TWO: usize = 60;
const ONE: usize = 28;

/// A line of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

struct Line<'a> {
    side: Side,
    text: &'a str,
    old: usize,
    new: usize,
    /// The words that are not on the other side.
    words: Vec<Range<usize>>,
}

enum Part<'a> {
    File { path: String, note: &'static str, added: usize, removed: usize },
    Hunk { lines: Vec<Line<'a>>, about: &'a str },
    Other(&'a str),
}

/// Lays it out.
pub(super) fn rows(unified: &str, width: usize, look: &Look) -> Vec<Row> {
    let parts = read(unified);
    let highest = parts.iter().flat_map(|part| match part {
        Part::Hunk { lines, .. } => lines.last().map(|line| line.old.max(line.new)),
        Part::File { .. } | Part::Other(_) => None,
    });
    let digits = highest.max().unwrap_or(0).to_string().len();
    let mut rows: Vec<Row> = Vec::new();
    let mut behind_hunk = false;
    for part in &parts {
        match part {
            Part::File { path, note, added, removed } => {
                if !rows.is_empty() {
                    rows.push(Row::default());
                }
                let dim = look.style(Role::Dim);
                let mut row = Row::of(look.style(Role::Strong), path).and(dim, note);
                row.push(dim, "  ");
                row.push(look.style(Role::Good), &format!("+{added}"));
                row.push(dim, " ");
                row.push(look.style(Role::Bad), &format!("-{removed}"));
                // A path is part of what is decided on: none of it is left out.
                rows.extend(wrap(&row, width, Break::Anywhere, 0));
            }
            Part::Hunk { lines, about } => {
                if behind_hunk {
                    rows.push(between(about, digits, width, look));
                }
                for line in lines {
                    rows.extend(line.rows(digits, width, look));
                }
            }
            Part::Other(text) => rows.extend(super::plain(text, width, Role::Dim, look)),
        }
        behind_hunk = matches!(part, Part::Hunk { .. });
    }
    rows
}

/// The files that its heads name.
pub(super) fn files(unified: &str) -> Vec<String> {
    let named = |part| match part {
        Part::File { path, .. } => Some(path),
        Part::Hunk { .. } | Part::Other(_) => None,
    };
    read(unified).into_iter().filter_map(named).collect()
}

/// Lays it out for whoever listens: words instead of signs, and every line with its number.
pub(super) fn spoken(unified: &str) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut behind_hunk = false;
    for part in read(unified) {
        let hunk = matches!(part, Part::Hunk { .. });
        match part {
            Part::File { path, note, added, removed } => {
                let added = counted(added, "line");
                said.push(format!("{path}{note}: {added} added, {removed} removed"));
            }
            Part::Hunk { lines, about } => {
                if behind_hunk {
                    said.push(format!("further on {about}").trim_end().to_owned());
                }
                said.extend(lines.iter().map(|line| match line.side {
                    Side::Both => format!("line {}: {}", line.new, line.text),
                    Side::Old => format!("removed {}: {}", line.old, line.text),
                    Side::New => format!("added {}: {}", line.new, line.text),
                }));
            }
            Part::Other(text) => said.push(text.to_owned()),
        }
        behind_hunk = hunk;
    }
    said.join("\n")
}

/// A thin line between what does not follow each other.
fn between(about: &str, digits: usize, width: usize, look: &Look) -> Row {
    let sign = if look.ascii { "..." } else { "⋯" };
    let before = " ".repeat(digits.saturating_sub(1));
    let mut row = Row::of(look.style(Role::Border), &format!("{before}{sign}"));
    row.push(look.style(Role::Dim), &format!("  {about}"));
    cut(&row, width, look)
}

impl Line<'_> {
    /// What stands before its text: one number or two, and its sign.
    fn gutter(&self, digits: usize, width: usize, look: &Look) -> Row {
        let number = |shown: bool, number: usize| match shown {
            true => format!("{number:>digits$} "),
            false => " ".repeat(digits + 1),
        };
        let numbers = look.style(Role::LineNumber);
        let mut row = Row::default();
        if width >= TWO {
            row.push(numbers, &number(self.side != Side::New, self.old));
            row.push(numbers, &number(self.side != Side::Old, self.new));
        } else if width >= ONE {
            let one = if self.side == Side::Old { self.old } else { self.new };
            row.push(numbers, &number(true, one));
        }
        row
    }

    fn rows(&self, digits: usize, width: usize, look: &Look) -> Vec<Row> {
        let gutter = self.gutter(digits, width, look);
        let (line, word, sign) = match self.side {
            Side::Both => (look.style(Role::Text), look.style(Role::Text), "  "),
            Side::Old => (look.style(Role::Removed), look.style(Role::RemovedWord), "- "),
            Side::New => (look.style(Role::Added), look.style(Role::AddedWord), "+ "),
        };
        let text = self.painted(line, word);
        let room = width.saturating_sub(gutter.width() + sign.len());
        let broken = wrap(&text, room, Break::Words, 0);
        let rows = broken.iter().enumerate().map(|(at, part)| {
            let mut row = Row::default();
            match at {
                0 => row.extend(&gutter),
                _ => row.push(Style::default(), &" ".repeat(gutter.width())),
            }
            row.push(line, if at == 0 { sign } else { "  " });
            row.extend(part);
            if line.bg.is_some() {
                row.fill(line, width);
            }
            row
        });
        rows.collect()
    }

    fn painted(&self, line: Style, word: Style) -> Row {
        let mut row = Row::default();
        let mut done = 0;
        let mut column = 0;
        let mut push = |row: &mut Row, style: Style, text: &str| {
            // Tabs are counted from where the text begins.
            let text = untabbed_from(text, column);
            row.push(style, &text);
            column = row.width();
        };
        for words in &self.words {
            push(&mut row, line, self.text.get(done..words.start).unwrap_or_default());
            push(&mut row, word, self.text.get(words.clone()).unwrap_or_default());
            done = words.end;
        }
        push(&mut row, line, self.text.get(done..).unwrap_or_default());
        row
    }
}

fn untabbed_from(text: &str, column: usize) -> String {
    let before = " ".repeat(column % TAB);
    let whole = format!("{before}{text}");
    let untabbed = untabbed(&whole, TAB);
    untabbed.get(before.len()..).unwrap_or_default().to_owned()
}

/// Reads a change. What is none stands as it is.
fn read(unified: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut lines = unified.lines().peekable();
    let mut old_path = None;
    // Where a hunk is, and how much of it is still to come.
    let (mut old, mut new, mut old_left, mut new_left) = (0, 0, 0, 0);
    while let Some(line) = lines.next() {
        // A change that was shortened does not have all the lines it speaks of.
        let inside = line.is_empty() || line.starts_with([' ', '+', '-', '\\']);
        if inside && (old_left > 0 || new_left > 0) {
            let (side, text) = match line.split_at_checked(1) {
                Some(("-", text)) => (Side::Old, text),
                Some(("+", text)) => (Side::New, text),
                Some((" ", text)) => (Side::Both, text),
                Some(("\\", _)) => continue,
                Some(_) | None => (Side::Both, line),
            };
            let (from_old, from_new) = (side != Side::New, side != Side::Old);
            if let Some(Part::Hunk { lines, .. }) = parts.last_mut() {
                lines.push(Line { side, text, old, new, words: Vec::new() });
            }
            old += usize::from(from_old);
            new += usize::from(from_new);
            old_left = usize::saturating_sub(old_left, usize::from(from_old));
            new_left = usize::saturating_sub(new_left, usize::from(from_new));
            continue;
        }
        (old_left, new_left) = (0, 0);
        if let Some(hunk) = hunk(line) {
            (old, old_left, new, new_left) = (hunk.0.0, hunk.0.1, hunk.1.0, hunk.1.1);
            parts.push(Part::Hunk { lines: Vec::new(), about: hunk.2 });
        } else if let Some(path) = line.strip_prefix("--- ").filter(|_| follows(lines.peek())) {
            old_path = Some(path);
        } else if let (Some(path), Some(before)) = (line.strip_prefix("+++ "), old_path.take()) {
            parts.push(file(before, path));
        } else if !known(line) {
            parts.push(Part::Other(line));
        }
    }
    count(&mut parts);
    for part in &mut parts {
        if let Part::Hunk { lines, .. } = part {
            mark_words(lines);
        }
    }
    parts
}

fn follows(next: Option<&&str>) -> bool {
    next.is_some_and(|next| next.starts_with("+++ "))
}

/// True for lines that say nothing more than the others do.
fn known(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("index ") || line.starts_with("\\ ")
}

fn file(before: &str, after: &str) -> Part<'static> {
    let bare = |path: &str| {
        let path = path.split('\t').next().unwrap_or_default();
        let short = path.strip_prefix("a/").or(path.strip_prefix("b/"));
        short.unwrap_or(path).to_owned()
    };
    let (before, after) = (bare(before), bare(after));
    let (path, note) = match (before.as_str(), after.as_str()) {
        ("/dev/null", _) => (after, " new"),
        (_, "/dev/null") => (before, " removed"),
        (one, other) if one == other => (after, ""),
        _ => (format!("{before} → {after}"), ""),
    };
    Part::File { path, note, added: 0, removed: 0 }
}

type Span = (usize, usize);

/// Where a hunk is in the old and the new file, and what it is about.
fn hunk(line: &str) -> Option<(Span, Span, &str)> {
    let (places, about) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = places.split_once(" +")?;
    let span = |spelled: &str| -> Option<Span> {
        let (from, count) = spelled.split_once(',').unwrap_or((spelled, "1"));
        Some((from.parse().ok()?, count.parse().ok()?))
    };
    Some((span(old)?, span(new)?, about.trim()))
}

fn count(parts: &mut [Part<'_>]) {
    let (mut plus, mut minus) = (0, 0);
    for part in parts.iter_mut().rev() {
        match part {
            Part::Hunk { lines, .. } => {
                plus += lines.iter().filter(|line| line.side == Side::New).count();
                minus += lines.iter().filter(|line| line.side == Side::Old).count();
            }
            Part::File { added, removed, .. } => {
                (*added, *removed) = (plus, minus);
                (plus, minus) = (0, 0);
            }
            Part::Other(_) => {}
        }
    }
}

/// Compares lines that went with those that came in their place.
fn mark_words(lines: &mut [Line<'_>]) {
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, side: Side| {
            lines.iter().skip(from).take_while(|line| line.side == side).count()
        };
        let gone = run(at, Side::Old);
        let came = run(at + gone, Side::New);
        for pair in 0..gone.min(came) {
            let texts = (lines.get(at + pair), lines.get(at + gone + pair));
            let (Some(old), Some(new)) = texts else { continue };
            let Some((old_words, new_words)) = compare(old.text, new.text) else { continue };
            if let Some(line) = lines.get_mut(at + pair) {
                line.words = old_words;
            }
            if let Some(line) = lines.get_mut(at + gone + pair) {
                line.words = new_words;
            }
        }
        at += (gone + came).max(1);
    }
}

type Words = Vec<Range<usize>>;

/// The words that two lines do not share, if they share enough to be the same line.
fn compare(old: &str, new: &str) -> Option<(Words, Words)> {
    if old.len().max(new.len()) > LONGEST {
        return None;
    }
    let (before, after) = (tokens(old), tokens(new));
    let places = |tokens: &[&str]| {
        let mut at = 0;
        let place = |token: &&str| {
            at += token.len();
            at - token.len()..at
        };
        tokens.iter().map(place).collect::<Words>()
    };
    let (from, to) = (places(&before), places(&after));
    let cover = |places: &Words, at: usize, count: usize| {
        let first = places.get(at)?.start;
        Some(first..places.get(at + count.checked_sub(1)?)?.end)
    };
    let (mut gone, mut came, mut same) = (Words::new(), Words::new(), 0);
    for step in capture_diff_slices(Algorithm::Myers, &before, &after) {
        let (from_at, from_count, to_at, to_count) = match step {
            DiffOp::Equal { old_index, len, .. } => {
                let kept = before.iter().skip(old_index).take(len);
                same += kept
                    .filter(|token| !token.trim().is_empty())
                    .map(|token| token.len())
                    .sum::<usize>();
                continue;
            }
            DiffOp::Delete { old_index, old_len, new_index } => (old_index, old_len, new_index, 0),
            DiffOp::Insert { old_index, new_index, new_len } => (old_index, 0, new_index, new_len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (old_index, old_len, new_index, new_len)
            }
        };
        gone.extend(cover(&from, from_at, from_count));
        came.extend(cover(&to, to_at, to_count));
    }
    // Lines that share little are easier to read as a whole.
    (same * 3 >= old.trim().len().max(new.trim().len())).then_some((gone, came))
}

/// Words, spaces and signs.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |sign: char| match sign {
        sign if sign.is_alphanumeric() || sign == '_' => 0,
        sign if sign.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            2 => first.len_utf8(),
            same => rest.find(|sign| kind(sign) != same).unwrap_or(rest.len()),
        };
        let Some((token, behind)) = rest.split_at_checked(end) else { break };
        tokens.push(token);
        rest = behind;
    }
    tokens
}
