//! What in a file is most like a text that is not there.

use super::Region;
use super::budget::{Budget, LETTERS};
use super::change::aligned;
use super::lines::{Lines, collapsed};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines of a diff, and characters of a line, that are shown.
const SHOWN: usize = 40;
const WIDE: usize = 200;

/// How alike a single line must be to be shown at all.
const ALIKE: f64 = 0.6;

/// The region that shares the most with the old text; none if nothing is similar.
pub(super) fn find(lines: &Lines<'_>, old: &str) -> Option<Region> {
    let old_lines: Vec<&str> = old.trim_end().split('\n').collect();
    let range = densest(lines, &old_lines).or_else(|| alike(lines, &old_lines))?;
    Some(region(lines, old, range))
}

/// The window of as many lines that has the most of the old ones, weighed by their length.
fn densest(lines: &Lines<'_>, old: &[&str]) -> Option<Range<usize>> {
    let mut wanted: HashMap<String, i64> = HashMap::new();
    for line in old.iter().filter(|line| line.chars().any(char::is_alphanumeric)) {
        *wanted.entry(collapsed(line).into_owned()).or_default() += 1;
    }
    let folded: Vec<String> = lines.iter().map(|line| collapsed(line).into_owned()).collect();
    let mut weight = 0;
    let (mut best, mut at) = (0, 0);
    for (last, line) in folded.iter().enumerate() {
        // What is still wanted within the window counts, what is there too often does not.
        if let Some(left) = wanted.get_mut(line) {
            weight += if *left > 0 { line.len() } else { 0 };
            *left -= 1;
        }
        let gone = (last + 1).checked_sub(old.len() + 1).and_then(|gone| folded.get(gone));
        if let Some((line, left)) = gone.and_then(|line| Some((line, wanted.get_mut(line)?))) {
            *left += 1;
            weight -= if *left > 0 { line.len() } else { 0 };
        }
        if weight > best {
            (best, at) = (weight, last);
        }
    }
    let first = (at + 1).saturating_sub(old.len());
    let first = leading(&folded, old, first..at + 1).unwrap_or(first);
    (best > 3).then(|| first..(first + old.len()).min(lines.len()))
}

/// Moves a window so that the first line that both have stands at the same depth in both.
fn leading(folded: &[String], old: &[&str], window: Range<usize>) -> Option<usize> {
    let telling = |line: &str| line.chars().any(char::is_alphanumeric);
    let mut depths = HashMap::new();
    for (depth, line) in old.iter().enumerate().filter(|(_, line)| telling(line)) {
        depths.entry(collapsed(line)).or_insert(depth);
    }
    let mut there = folded.get(window.clone())?.iter().enumerate();
    let (at, depth) = there.find_map(|(at, line)| Some((at, *depths.get(line.as_str())?)))?;
    Some((window.start + at).saturating_sub(depth))
}

/// Around the line that is most like the longest old line.
fn alike(lines: &Lines<'_>, old: &[&str]) -> Option<Range<usize>> {
    let fits = |line: &&str| line.trim().len() <= LETTERS;
    let (depth, wanted) = old
        .iter()
        .enumerate()
        .filter(|(_, line)| fits(line))
        .max_by_key(|(_, l)| l.trim().len())?;
    let wanted = wanted.trim();
    let mut budget = Budget::new();
    let mut best: Option<(f64, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        // Lines of other lengths cannot be similar enough.
        if line.len() * 2 < wanted.len() || wanted.len() * 2 < line.len() {
            continue;
        }
        let Some(score) = budget.similarity(wanted, line) else { break };
        if score >= ALIKE && best.is_none_or(|(found, _)| score > found) {
            best = Some((score, at));
        }
    }
    let first = best?.1.saturating_sub(depth);
    Some(first..(first + old.len()).min(lines.len()))
}

/// A range of lines with what differs from the old text.
pub(super) fn region(lines: &Lines<'_>, old: &str, range: Range<usize>) -> Region {
    let old: Vec<&str> = old.trim_end().split('\n').collect();
    let file: Vec<&str> = range.clone().map(|line| lines.get(line)).collect();
    let mut rows = Vec::new();
    for (same, old_range, new_range) in aligned(&old, &file) {
        if !same {
            let gone = old_range.filter_map(|at| old.get(at));
            rows.extend(gone.map(|line| ('-', None, *line)));
        }
        let sign = if same { ' ' } else { '+' };
        let there = new_range.filter_map(|at| Some((at, *file.get(at)?)));
        rows.extend(there.map(|(at, line)| (sign, Some(range.start + at + 1), line)));
    }
    let (first, last) = (range.start + 1, range.end);
    let width = last.to_string().len();
    let mut diff = String::new();
    for (sign, number, line) in rows.iter().take(SHOWN) {
        let number = number.map_or_else(String::new, |number| number.to_string());
        let cut = line.char_indices().nth(WIDE).map(|(at, _)| at);
        let shown = cut.and_then(|at| line.get(..at)).unwrap_or(line);
        let more = if cut.is_some() { "…" } else { "" };
        let _ = writeln!(diff, "{sign} {number:>width$} | {shown}{more}");
    }
    if rows.len() > SHOWN {
        let _ = writeln!(diff, "… {} more lines", rows.len() - SHOWN);
    }
    diff.truncate(diff.trim_end_matches('\n').len());
    Region { first, last, diff }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const TEXT: &str = "fn a() {\n    one();\n}\n\nfn b() {\n    two(1);\n    three();\n}\n";

    #[test]
    fn the_region_that_shares_lines_is_shown_with_what_differs() {
        let region = find(&Lines::of(TEXT), "fn b() {\n    two(2);\n    three();\n}").unwrap();
        assert_eq!((region.first, region.last), (5, 8));
        expect![[r#"
              5 | fn b() {
            -   |     two(2);
            + 6 |     two(1);
              7 |     three();
              8 | }"#]]
        .assert_eq(&region.diff);
    }

    #[test]
    fn a_line_that_is_similar_is_shown_and_nothing_is_not() {
        let region = find(&Lines::of(TEXT), "    three(3);").unwrap();
        assert_eq!((region.first, region.last), (7, 7));
        assert_eq!(find(&Lines::of(TEXT), "something else entirely"), None);
        assert_eq!(find(&Lines::of(""), "a"), None);
        assert_eq!(find(&Lines::of(TEXT), "};;"), None, "a brace is everywhere");
    }

    #[test]
    fn a_long_diff_and_long_lines_are_cut() {
        let text: String = (0..300).map(|n| format!("line {n} {}\n", "é".repeat(300))).collect();
        let old: String = text.replace("7 ", "8 ");
        let region = find(&Lines::of(&text), &old).unwrap();
        assert_eq!(region.diff.lines().count(), SHOWN + 1);
        assert!(region.diff.lines().all(|line| line.chars().count() <= WIDE + 10));
    }
}
