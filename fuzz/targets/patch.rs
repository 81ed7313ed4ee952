//! Applies any patch to any text: it is rejected, or every line that it keeps or removes is in the
//! file, kept lines are untouched, and the number of lines changes as the patch says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use windlass_tools::apply_patch::{
    HunkLine, LocatedHunks, PatchHunk, PatchSection, locate_hunks, parse_patch,
};
use windlass_tools::text::TextSplice;

fuzz_target!(|input: (&str, &str)| {
    let (patch, file) = input;
    let file = file.replace('\r', "\n");
    // With and without the envelope.
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch\n");
    for text in [patch, wrapped.as_str()] {
        let Ok(sections) = parse_patch(text) else { continue };
        for section in &sections {
            let PatchSection::Update { hunks, .. } = section else { continue };
            let Ok(LocatedHunks { splices, .. }) = locate_hunks("f", &file, &[hunks]) else {
                continue;
            };
            check_count(&file, hunks, &splices);
            check_lines(&file, hunks, &splices);
        }
    }
});

fn check_count(file: &str, hunks: &[PatchHunk], splices: &[TextSplice]) {
    let (mut after, mut done) = (String::new(), 0);
    for splice in splices {
        assert!(splice.range.start >= done && splice.range.start <= splice.range.end);
        after.push_str(&file[done..splice.range.start]);
        after.push_str(&splice.new_text);
        done = splice.range.end;
    }
    after.push_str(&file[done..]);
    let count = |is_counted: fn(&HunkLine) -> bool| {
        hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| is_counted(line)).count()
    };
    let removed = count(|line| matches!(line, HunkLine::Remove(_)));
    let added = count(|line| matches!(line, HunkLine::Add(_)));
    assert_eq!(file.lines().count() + added, after.lines().count() + removed);
}

/// Checks that the lines of every hunk are in the file, that no splice touches a kept line, and
/// that the splices remove only lines that some hunk removes.
fn check_lines(file: &str, hunks: &[PatchHunk], splices: &[TextSplice]) {
    let mut lines: Vec<(Range<usize>, String)> = Vec::new();
    let mut start = 0;
    for line in file.split_inclusive('\n') {
        lines.push((start..start + line.len(), fold(line)));
        start += line.len();
    }
    let is_touched = |line: &Range<usize>| {
        splices.iter().any(|it| it.range.start < line.end && line.start < it.range.end)
    };
    let matches_at = |actual: &[(Range<usize>, String)], old_lines: &[(bool, String)]| {
        actual.iter().zip(old_lines).all(|((range, actual), (kept, expected))| {
            actual == expected && !(*kept && is_touched(range))
        })
    };
    let mut removed = Vec::new();
    for hunk in hunks {
        let old_lines: Vec<(bool, String)> = hunk.lines.iter().filter_map(old_line).collect();
        removed.extend(old_lines.iter().filter(|(kept, _)| !kept).map(|(_, line)| line.clone()));
        // Blank lines at the end may only be spacing before a marker.
        let matches = (old_lines.len() - hunk.trailing_blanks..=old_lines.len()).any(|length| {
            length == 0
                || lines.windows(length).any(|actual| matches_at(actual, &old_lines[..length]))
        });
        assert!(matches, "a hunk was applied at lines that it does not match: {hunk:?}");
    }
    for (_, line) in lines.iter().filter(|(range, _)| is_touched(range)) {
        let at = removed.iter().position(|removed_line| removed_line == line);
        removed.swap_remove(at.expect("every removed line must be in a hunk"));
    }
}

fn old_line(line: &HunkLine) -> Option<(bool, String)> {
    match line {
        HunkLine::Context(text) => Some((true, fold(text))),
        HunkLine::Remove(text) => Some((false, fold(text))),
        HunkLine::Add(_) => None,
    }
}

/// Returns a line without ignored characters: whitespace, quotes and dashes in any form.
fn fold(line: &str) -> String {
    let is_ignored = |letter: char| match letter {
        '-' | '\'' | '"' => true,
        letter => letter.is_whitespace() || (!letter.is_ascii() && !letter.is_alphanumeric()),
    };
    line.chars().filter(|letter| !is_ignored(*letter)).collect()
}
