//! Parses a unified diff into files, hunks and lines with their changed words; `diff_rows` renders
//! them.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;
use windlass_protocol::display_text::pluralize;

/// The longest lines that are compared word by word, in bytes.
const MAX_WORD_DIFF_BYTES: usize = 500;

/// The side of a diff that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffSide {
    Both,
    Old,
    New,
}

pub(super) struct DiffLine<'a> {
    pub side: DiffSide,
    pub text: &'a str,
    pub old_number: usize,
    pub new_number: usize,
    /// The byte ranges of words that are not on the other side.
    pub changed_words: Vec<Range<usize>>,
}

pub(super) enum DiffPart<'a> {
    File { path: String, note: &'static str, added: usize, removed: usize },
    Hunk { lines: Vec<DiffLine<'a>>, section: &'a str },
    Other(&'a str),
}

/// Returns the paths in the `---`/`+++` headers of a diff.
pub(super) fn file_names(unified_diff: &str) -> Vec<String> {
    let path_of = |part| match part {
        DiffPart::File { path, .. } => Some(path),
        DiffPart::Hunk { .. } | DiffPart::Other(_) => None,
    };
    parse_diff(unified_diff).into_iter().filter_map(path_of).collect()
}

/// Describes a diff for screen readers: words instead of signs, and every line with its number.
pub(super) fn describe_diff(unified_diff: &str) -> String {
    let mut descriptions: Vec<String> = Vec::new();
    let mut after_hunk = false;
    for part in parse_diff(unified_diff) {
        let is_hunk = matches!(part, DiffPart::Hunk { .. });
        match part {
            DiffPart::File { path, note, added, removed } => {
                let added = pluralize(added, "line");
                descriptions.push(format!("{path}{note}: {added} added, {removed} removed"));
            }
            DiffPart::Hunk { lines, section } => {
                if after_hunk {
                    descriptions.push(format!("next section {section}").trim_end().to_owned());
                }
                descriptions.extend(lines.iter().map(|line| match line.side {
                    DiffSide::Both => format!("line {}: {}", line.new_number, line.text),
                    DiffSide::Old => format!("removed {}: {}", line.old_number, line.text),
                    DiffSide::New => format!("added {}: {}", line.new_number, line.text),
                }));
            }
            DiffPart::Other(text) => descriptions.push(text.to_owned()),
        }
        after_hunk = is_hunk;
    }
    descriptions.join("\n")
}

/// Parses a unified diff. Lines that are not part of a diff become `DiffPart::Other`.
pub(super) fn parse_diff(unified_diff: &str) -> Vec<DiffPart<'_>> {
    let mut parts: Vec<DiffPart<'_>> = Vec::new();
    let mut lines = unified_diff.lines().peekable();
    let mut old_path = None;
    // The current line numbers, and the number of lines that the hunk still has on each side.
    let (mut old_number, mut new_number, mut old_remaining, mut new_remaining) = (0, 0, 0, 0);
    while let Some(line) = lines.next() {
        // A truncated diff has fewer lines than its hunk header announces.
        let is_hunk_line = line.is_empty() || line.starts_with([' ', '+', '-', '\\']);
        if is_hunk_line && (old_remaining > 0 || new_remaining > 0) {
            let (side, text) = match line.split_at_checked(1) {
                Some(("-", text)) => (DiffSide::Old, text),
                Some(("+", text)) => (DiffSide::New, text),
                Some((" ", text)) => (DiffSide::Both, text),
                Some(("\\", _)) => continue,
                Some(_) | None => (DiffSide::Both, line),
            };
            let (in_old, in_new) = (side != DiffSide::New, side != DiffSide::Old);
            if let Some(DiffPart::Hunk { lines, .. }) = parts.last_mut() {
                lines.push(DiffLine {
                    side,
                    text,
                    old_number,
                    new_number,
                    changed_words: Vec::new(),
                });
            }
            old_number += usize::from(in_old);
            new_number += usize::from(in_new);
            old_remaining = usize::saturating_sub(old_remaining, usize::from(in_old));
            new_remaining = usize::saturating_sub(new_remaining, usize::from(in_new));
            continue;
        }
        (old_remaining, new_remaining) = (0, 0);
        if let Some(hunk) = parse_hunk_header(line) {
            (old_number, old_remaining, new_number, new_remaining) =
                (hunk.0.0, hunk.0.1, hunk.1.0, hunk.1.1);
            parts.push(DiffPart::Hunk { lines: Vec::new(), section: hunk.2 });
        } else if let Some(path) =
            line.strip_prefix("--- ").filter(|_| is_new_file_header(lines.peek()))
        {
            old_path = Some(path);
        } else if let (Some(path), Some(previous_path)) =
            (line.strip_prefix("+++ "), old_path.take())
        {
            parts.push(file_part(previous_path, path));
        } else if !is_redundant_header(line) {
            parts.push(DiffPart::Other(line));
        }
    }
    count_changed_lines(&mut parts);
    for part in &mut parts {
        if let DiffPart::Hunk { lines, .. } = part {
            mark_changed_words(lines);
        }
    }
    parts
}

fn is_new_file_header(next: Option<&&str>) -> bool {
    next.is_some_and(|next| next.starts_with("+++ "))
}

/// Returns true for header lines that only repeat what the file headers say.
fn is_redundant_header(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("index ") || line.starts_with("\\ ")
}

fn file_part(before: &str, after: &str) -> DiffPart<'static> {
    let display_path = |path: &str| {
        let path = path.split('\t').next().unwrap_or_default();
        let stripped = path.strip_prefix("a/").or(path.strip_prefix("b/"));
        stripped.unwrap_or(path).to_owned()
    };
    let (before, after) = (display_path(before), display_path(after));
    let (path, note) = match (before.as_str(), after.as_str()) {
        ("/dev/null", _) => (after, " new"),
        (_, "/dev/null") => (before, " removed"),
        (old_path, new_path) if old_path == new_path => (after, ""),
        _ => (format!("{before} → {after}"), ""),
    };
    DiffPart::File { path, note, added: 0, removed: 0 }
}

type HunkLineRange = (usize, usize);

/// Parses a hunk header into its old and new `HunkLineRange` and its section text.
fn parse_hunk_header(line: &str) -> Option<(HunkLineRange, HunkLineRange, &str)> {
    let (spans, section) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = spans.split_once(" +")?;
    let span = |text: &str| -> Option<HunkLineRange> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((span(old)?, span(new)?, section.trim()))
}

fn count_changed_lines(parts: &mut [DiffPart<'_>]) {
    let (mut plus, mut minus) = (0, 0);
    for part in parts.iter_mut().rev() {
        match part {
            DiffPart::Hunk { lines, .. } => {
                plus += lines.iter().filter(|line| line.side == DiffSide::New).count();
                minus += lines.iter().filter(|line| line.side == DiffSide::Old).count();
            }
            DiffPart::File { added, removed, .. } => {
                (*added, *removed) = (plus, minus);
                (plus, minus) = (0, 0);
            }
            DiffPart::Other(_) => {}
        }
    }
}

/// Compares removed lines with the added lines that replace them, and sets `changed_words`.
fn mark_changed_words(lines: &mut [DiffLine<'_>]) {
    let mut index = 0;
    while index < lines.len() {
        let run_length = |start: usize, side: DiffSide| {
            lines.iter().skip(start).take_while(|line| line.side == side).count()
        };
        let removed = run_length(index, DiffSide::Old);
        let added = run_length(index + removed, DiffSide::New);
        for pair in 0..removed.min(added) {
            let pair_lines = (lines.get(index + pair), lines.get(index + removed + pair));
            let (Some(old), Some(new)) = pair_lines else { continue };
            let Some((old_words, new_words)) = diff_words(old.text, new.text) else { continue };
            if let Some(line) = lines.get_mut(index + pair) {
                line.changed_words = old_words;
            }
            if let Some(line) = lines.get_mut(index + removed + pair) {
                line.changed_words = new_words;
            }
        }
        index += (removed + added).max(1);
    }
}

type WordRanges = Vec<Range<usize>>;

/// Returns the ranges of the words that two lines do not share, if they share enough to count as
/// the same line.
fn diff_words(old: &str, new: &str) -> Option<(WordRanges, WordRanges)> {
    if old.len().max(new.len()) > MAX_WORD_DIFF_BYTES {
        return None;
    }
    let (old_tokens, new_tokens) = (tokenize(old), tokenize(new));
    let token_ranges = |tokens: &[&str]| {
        let mut offset = 0;
        let token_range = |token: &&str| {
            offset += token.len();
            offset - token.len()..offset
        };
        tokens.iter().map(token_range).collect::<WordRanges>()
    };
    let (old_ranges, new_ranges) = (token_ranges(&old_tokens), token_ranges(&new_tokens));
    let joined_range = |ranges: &WordRanges, index: usize, count: usize| {
        let first = ranges.get(index)?.start;
        Some(first..ranges.get(index + count.checked_sub(1)?)?.end)
    };
    let (mut old_words, mut new_words, mut shared_bytes) =
        (WordRanges::new(), WordRanges::new(), 0);
    for step in capture_diff_slices(Algorithm::Myers, &old_tokens, &new_tokens) {
        let (old_start, old_count, new_start, new_count) = match step {
            DiffOp::Equal { old_index, len, .. } => {
                let shared_tokens = old_tokens.iter().skip(old_index).take(len);
                shared_bytes += shared_tokens
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
        old_words.extend(joined_range(&old_ranges, old_start, old_count));
        new_words.extend(joined_range(&new_ranges, new_start, new_count));
    }
    // Lines that share little are easier to read without word marks.
    (shared_bytes * 3 >= old.trim().len().max(new.trim().len())).then_some((old_words, new_words))
}

/// Splits a text into words, whitespace and punctuation characters.
fn tokenize(text: &str) -> Vec<&str> {
    let kind = |character: char| match character {
        character if character.is_alphanumeric() || character == '_' => 0,
        character if character.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            2 => first.len_utf8(),
            kind_of_first => {
                rest.find(|character| kind(character) != kind_of_first).unwrap_or(rest.len())
            }
        };
        let Some((token, remaining)) = rest.split_at_checked(end) else { break };
        tokens.push(token);
        rest = remaining;
    }
    tokens
}
