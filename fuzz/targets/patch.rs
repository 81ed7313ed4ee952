//! A patch of any text, on a file of any text: it is refused, or every line that it keeps or
//! removes stands in the file, those it keeps are untouched, and the file has as many lines more as
//! the patch says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use windlass_tools::apply_patch::{Hunk, Line, Placed, Section, parse, place};
use windlass_tools::text::Splice;

fuzz_target!(|input: (&str, &str)| {
    let (patch, file) = input;
    let file = file.replace('\r', "\n");
    // Bare, and in its envelope.
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch\n");
    for text in [patch, wrapped.as_str()] {
        let Ok(sections) = parse(text) else { continue };
        for section in &sections {
            let Section::Update { hunks, .. } = section else { continue };
            let Ok(Placed { splices, .. }) = place("f", &file, &[hunks]) else { continue };
            check_count(&file, hunks, &splices);
            check_lines(&file, hunks, &splices);
        }
    }
});

fn check_count(file: &str, hunks: &[Hunk], splices: &[Splice]) {
    let (mut after, mut done) = (String::new(), 0);
    for splice in splices {
        assert!(splice.range.start >= done && splice.range.start <= splice.range.end);
        after.push_str(&file[done..splice.range.start]);
        after.push_str(&splice.new);
        done = splice.range.end;
    }
    after.push_str(&file[done..]);
    let count = |wanted: fn(&Line) -> bool| {
        hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| wanted(line)).count()
    };
    let removed = count(|line| matches!(line, Line::Remove(_)));
    let added = count(|line| matches!(line, Line::Add(_)));
    assert_eq!(file.lines().count() + added, after.lines().count() + removed);
}

/// For every hunk there is a run of lines in the file that reads as it says, in which no splice
/// touches a line that is kept. What the splices take away are lines that some hunk removes.
fn check_lines(file: &str, hunks: &[Hunk], splices: &[Splice]) {
    let mut lines: Vec<(Range<usize>, String)> = Vec::new();
    let mut start = 0;
    for line in file.split_inclusive('\n') {
        lines.push((start..start + line.len(), fold(line)));
        start += line.len();
    }
    let touched = |line: &Range<usize>| {
        splices.iter().any(|it| it.range.start < line.end && line.start < it.range.end)
    };
    let fits = |there: &[(Range<usize>, String)], old: &[(bool, String)]| {
        there
            .iter()
            .zip(old)
            .all(|((range, there), (kept, wanted))| there == wanted && !(*kept && touched(range)))
    };
    let mut removed = Vec::new();
    for hunk in hunks {
        let old: Vec<(bool, String)> = hunk.lines.iter().filter_map(old).collect();
        removed.extend(old.iter().filter(|(kept, _)| !kept).map(|(_, line)| line.clone()));
        // Blank lines at the end may be only space before a marker.
        let stands = (old.len() - hunk.spare..=old.len()).any(|length| {
            length == 0 || lines.windows(length).any(|there| fits(there, &old[..length]))
        });
        assert!(stands, "a hunk was applied where it does not stand: {hunk:?}");
    }
    for (_, line) in lines.iter().filter(|(range, _)| touched(range)) {
        let at = removed.iter().position(|gone| gone == line);
        removed.swap_remove(at.expect("a line goes that no hunk removes"));
    }
}

fn old(line: &Line) -> Option<(bool, String)> {
    match line {
        Line::Keep(text) => Some((true, fold(text))),
        Line::Remove(text) => Some((false, fold(text))),
        Line::Add(_) => None,
    }
}

/// A line without what may be overlooked: white space, quotes and dashes, however they are written.
fn fold(line: &str) -> String {
    let overlooked = |letter: char| match letter {
        '-' | '\'' | '"' => true,
        letter => letter.is_whitespace() || (!letter.is_ascii() && !letter.is_alphanumeric()),
    };
    line.chars().filter(|letter| !overlooked(*letter)).collect()
}
