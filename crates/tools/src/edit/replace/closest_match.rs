//! Finds the region of a file that is most similar to a text that does not occur in it.

use super::ClosestRegion;
use super::line_diff::align_runs;
use super::text_lines::{TextLines, collapse_whitespace};
use super::work_limit::{CompareStepBudget, MAX_COMPARED_LINE_CHARS};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Limits for a shown diff: lines, and characters per line.
const MAX_SHOWN_DIFF_LINES: usize = 40;
const MAX_SHOWN_LINE_CHARS: usize = 200;

/// Minimum similarity of a single line that is shown.
const MIN_LINE_SIMILARITY: f64 = 0.6;

/// Returns the region that has most in common with the old text; `None` if nothing is similar.
pub(super) fn find_closest(lines: &TextLines<'_>, old: &str) -> Option<ClosestRegion> {
    let old_lines: Vec<&str> = old.trim_end().split('\n').collect();
    let range =
        densest_window(lines, &old_lines).or_else(|| most_similar_window(lines, &old_lines))?;
    Some(build_region(lines, old, range))
}

/// Returns the window of `old.len()` lines that contains most of the old lines, weighted by length.
fn densest_window(lines: &TextLines<'_>, old: &[&str]) -> Option<Range<usize>> {
    let mut remaining: HashMap<String, i64> = HashMap::new();
    for line in old.iter().filter(|line| line.chars().any(char::is_alphanumeric)) {
        *remaining.entry(collapse_whitespace(line).into_owned()).or_default() += 1;
    }
    let normalized: Vec<String> =
        lines.iter().map(|line| collapse_whitespace(line).into_owned()).collect();
    let mut weight = 0;
    let (mut best, mut best_end) = (0, 0);
    for (last, line) in normalized.iter().enumerate() {
        // A line counts only as often as the old text contains it.
        if let Some(count) = remaining.get_mut(line) {
            weight += if *count > 0 { line.len() } else { 0 };
            *count -= 1;
        }
        let dropped =
            (last + 1).checked_sub(old.len() + 1).and_then(|dropped| normalized.get(dropped));
        if let Some((line, count)) = dropped.and_then(|line| Some((line, remaining.get_mut(line)?)))
        {
            *count += 1;
            weight -= if *count > 0 { line.len() } else { 0 };
        }
        if weight > best {
            (best, best_end) = (weight, last);
        }
    }
    let first = (best_end + 1).saturating_sub(old.len());
    let first = align_window(&normalized, old, first..best_end + 1).unwrap_or(first);
    (best > 3).then(|| first..(first + old.len()).min(lines.len()))
}

/// Moves a window so that the first common line has the same position in the window and in the old
/// text.
fn align_window(normalized: &[String], old: &[&str], window: Range<usize>) -> Option<usize> {
    let is_distinctive = |line: &str| line.chars().any(char::is_alphanumeric);
    let mut old_positions = HashMap::new();
    for (old_position, line) in old.iter().enumerate().filter(|(_, line)| is_distinctive(line)) {
        old_positions.entry(collapse_whitespace(line)).or_insert(old_position);
    }
    let mut window_lines = normalized.get(window.clone())?.iter().enumerate();
    let (index, old_position) =
        window_lines.find_map(|(index, line)| Some((index, *old_positions.get(line.as_str())?)))?;
    Some((window.start + index).saturating_sub(old_position))
}

/// Returns the window around the line that is most similar to the longest old line.
fn most_similar_window(lines: &TextLines<'_>, old: &[&str]) -> Option<Range<usize>> {
    let is_comparable = |line: &&str| line.trim().len() <= MAX_COMPARED_LINE_CHARS;
    let (position, longest) = old
        .iter()
        .enumerate()
        .filter(|(_, line)| is_comparable(line))
        .max_by_key(|(_, line)| line.trim().len())?;
    let longest = longest.trim();
    let mut work_limit = CompareStepBudget::new();
    let mut best: Option<(f64, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        // Lines of very different length cannot be similar enough.
        if line.len() * 2 < longest.len() || longest.len() * 2 < line.len() {
            continue;
        }
        let Some(score) = work_limit.similarity(longest, line) else { break };
        if score >= MIN_LINE_SIMILARITY && best.is_none_or(|(best_score, _)| score > best_score) {
            best = Some((score, index));
        }
    }
    let first = best?.1.saturating_sub(position);
    Some(first..(first + old.len()).min(lines.len()))
}

/// Builds a `ClosestRegion`: a range of lines with its diff to the old text.
pub(super) fn build_region(lines: &TextLines<'_>, old: &str, range: Range<usize>) -> ClosestRegion {
    let old: Vec<&str> = old.trim_end().split('\n').collect();
    let file: Vec<&str> = range.clone().map(|line| lines.get(line)).collect();
    let mut rows = Vec::new();
    for (is_equal, old_range, new_range) in align_runs(&old, &file) {
        if !is_equal {
            let removed = old_range.filter_map(|index| old.get(index));
            rows.extend(removed.map(|line| ('-', None, *line)));
        }
        let marker = if is_equal { ' ' } else { '+' };
        let file_lines = new_range.filter_map(|index| Some((index, *file.get(index)?)));
        rows.extend(file_lines.map(|(index, line)| (marker, Some(range.start + index + 1), line)));
    }
    let (first, last) = (range.start + 1, range.end);
    let width = last.to_string().len();
    let mut diff = String::new();
    for (marker, number, line) in rows.iter().take(MAX_SHOWN_DIFF_LINES) {
        let number = number.map_or_else(String::new, |number| number.to_string());
        let cut_offset = line.char_indices().nth(MAX_SHOWN_LINE_CHARS).map(|(index, _)| index);
        let visible = cut_offset.and_then(|index| line.get(..index)).unwrap_or(line);
        let ellipsis = if cut_offset.is_some() { "…" } else { "" };
        let _ = writeln!(diff, "{marker} {number:>width$} | {visible}{ellipsis}");
    }
    if rows.len() > MAX_SHOWN_DIFF_LINES {
        let _ = writeln!(diff, "… {} more lines", rows.len() - MAX_SHOWN_DIFF_LINES);
    }
    diff.truncate(diff.trim_end_matches('\n').len());
    ClosestRegion { first_line: first, last_line: last, diff }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const TEXT: &str = "fn a() {\n    one();\n}\n\nfn b() {\n    two(1);\n    three();\n}\n";

    #[test]
    fn the_region_with_common_lines_is_shown_with_its_diff() {
        let region =
            find_closest(&TextLines::new(TEXT), "fn b() {\n    two(2);\n    three();\n}").unwrap();
        assert_eq!((region.first_line, region.last_line), (5, 8));
        expect![[r#"
              5 | fn b() {
            -   |     two(2);
            + 6 |     two(1);
              7 |     three();
              8 | }"#]]
        .assert_eq(&region.diff);
    }

    #[test]
    fn a_similar_line_is_shown_and_a_different_one_is_not() {
        let region = find_closest(&TextLines::new(TEXT), "    three(3);").unwrap();
        assert_eq!((region.first_line, region.last_line), (7, 7));
        assert_eq!(find_closest(&TextLines::new(TEXT), "something else entirely"), None);
        assert_eq!(find_closest(&TextLines::new(""), "a"), None);
        assert_eq!(find_closest(&TextLines::new(TEXT), "};;"), None, "a brace is not distinctive");
    }

    #[test]
    fn a_long_diff_and_long_lines_are_cut() {
        let text: String = (0..300).map(|n| format!("line {n} {}\n", "é".repeat(300))).collect();
        let old: String = text.replace("7 ", "8 ");
        let region = find_closest(&TextLines::new(&text), &old).unwrap();
        assert_eq!(region.diff.lines().count(), MAX_SHOWN_DIFF_LINES + 1);
        assert!(region.diff.lines().all(|line| line.chars().count() <= MAX_SHOWN_LINE_CHARS + 10));
    }
}
