//! A patch of any text, on a file of any text: it is refused, or the file has as many lines more as
//! the patch says, and they are where its splices say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tools::apply_patch::{Line, Section, parse, place};

fuzz_target!(|input: (&str, &str)| {
    let (patch, file) = input;
    let file = file.replace('\r', "\n");
    // Bare, and in its envelope.
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch\n");
    for text in [patch, wrapped.as_str()] {
        let Ok(sections) = parse(text) else { continue };
        for section in &sections {
            let Section::Update { hunks, .. } = section else { continue };
            let Ok(splices) = place("f", &file, &[hunks]) else { continue };
            let (mut after, mut done) = (String::new(), 0);
            for splice in &splices {
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
    }
});
