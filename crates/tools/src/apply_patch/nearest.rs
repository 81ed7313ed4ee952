//! The region of a file that is most like what a hunk expected, for words about a miss.

use super::seek::{Lens, View};
use std::collections::HashMap;
use std::fmt::Write as _;
use windlass_protocol::text::beginning;

/// How many pairs of equal lines are looked at.
const VOTES: usize = 100_000;
/// How many lines are compared letter by letter, and how far.
const LINES: usize = 50_000;
const LETTERS: usize = 200;
/// How many lines are shown, and how much of each.
const SHOWN: usize = 6;
const WIDTH: usize = 120;

/// Words about the nearest region, or that there is none.
pub(super) fn describe(view: &View<'_>, wanted: &[&str]) -> String {
    if view.lines.is_empty() {
        return "The file is empty.".to_owned();
    }
    let Some(start) = by_equal_lines(view, wanted).or_else(|| by_letters(view, wanted)) else {
        return "Nothing in the file is like it.".to_owned();
    };
    let there = view.lines.iter().skip(start);
    let differs = |(wanted, line): &(&&str, &&str)| {
        Lens::Plain.see(wanted).as_ref() != Lens::Plain.see(line).as_ref()
    };
    let equal = wanted.iter().zip(there).take_while(|pair| !differs(pair)).count();
    let first = start + equal.saturating_sub(SHOWN / 2);
    let count = (start + wanted.len()).saturating_sub(first).clamp(1, SHOWN);
    let mut words = "The nearest lines are:".to_owned();
    for (number, line) in (1..).zip(&view.lines).skip(first).take(count) {
        let _ = write!(words, "\n    {number}: {}", beginning(line, WIDTH));
    }
    if let Some(missing) = wanted.get(equal) {
        let (missing, number) = (beginning(missing, WIDTH), start + equal + 1);
        let _ = match view.lines.get(start + equal) {
            Some(_) => write!(words, "\nLine {number} differs: the hunk has \"{missing}\"."),
            None => write!(words, "\nThe file ends there, but the hunk goes on: \"{missing}\"."),
        };
    }
    words
}

/// Where the most lines are equal, through the laxest lens.
fn by_equal_lines(view: &View<'_>, wanted: &[&str]) -> Option<usize> {
    let index = view.index(Lens::Plain);
    let mut offsets: HashMap<u32, Vec<usize>> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let seen = Lens::Plain.see(line);
        // Blank lines and lone braces stand everywhere.
        if seen.chars().any(char::is_alphanumeric)
            && let Some(number) = index.known.get(seen.as_ref())
        {
            offsets.entry(*number).or_default().push(offset);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let starts = index.numbers.iter().enumerate().flat_map(|(at, number)| {
        let offsets = offsets.get(number).map(Vec::as_slice).unwrap_or_default();
        offsets.iter().filter_map(move |offset| at.checked_sub(*offset))
    });
    for start in starts.take(VOTES) {
        *votes.entry(start).or_default() += 1;
    }
    let better = |(start, count): &(usize, usize)| (*count, std::cmp::Reverse(*start));
    votes.into_iter().max_by_key(better).map(|(start, _)| start)
}

/// Where a line begins and ends most like the hunk's longest.
fn by_letters(view: &View<'_>, wanted: &[&str]) -> Option<usize> {
    let longest = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len());
    let (offset, line) = longest.filter(|(_, line)| !line.trim().is_empty())?;
    let alike = |other: &str| {
        let (one, other) = (line.trim(), other.trim());
        let pairs = one.bytes().zip(other.bytes()).take(LETTERS);
        let front = pairs.take_while(|(one, other)| one == other).count();
        let room = one.len().min(other.len()) - front;
        let pairs = one.bytes().rev().zip(other.bytes().rev()).take(room.min(LETTERS));
        let same = front + pairs.take_while(|(one, other)| one == other).count();
        (same * 2 >= one.len().max(other.len()).min(2 * LETTERS)).then_some(same)
    };
    let lines = view.lines.iter().enumerate().take(LINES);
    let scores = lines.filter_map(|(at, other)| Some((alike(other)?, at)));
    let best = scores.max_by_key(|(score, at)| (*score, std::cmp::Reverse(*at)));
    best.map(|(_, at)| at.saturating_sub(offset))
}
