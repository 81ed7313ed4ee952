//! Any edit of any text: it is refused, or its splices lie in order within the text, and an edit
//! that fits exactly, once or everywhere, is applied exactly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tools::edit::replace::{Count, Strategy, replace};

fuzz_target!(|input: (&str, &str, &str, bool)| {
    let (text, old, new, all) = input;
    let text = text.replace("\r\n", "\n");
    let count = if all { Count::All } else { Count::One };
    let Ok(replaced) = replace(&text, old, new, count) else { return };
    let mut done = 0;
    let mut after = String::new();
    for splice in &replaced.splices {
        assert!(splice.range.start >= done && splice.range.start <= splice.range.end);
        after.push_str(&text[done..splice.range.start]);
        after.push_str(&splice.new);
        done = splice.range.end;
    }
    after.push_str(&text[done..]);
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (old, new) = (plain(old), plain(new));
    match replaced.strategy {
        Strategy::Exact => assert_eq!(after, text.replacen(&old, &new, 1)),
        Strategy::MultiOccurrence => assert_eq!(after, text.replace(&old, &new)),
        Strategy::LineTrimmed
        | Strategy::BlockAnchor
        | Strategy::WhitespaceNormalised
        | Strategy::IndentationFlexible
        | Strategy::EscapeNormalised
        | Strategy::TrimmedBoundary
        | Strategy::ContextAware => assert!(!text.contains(&old), "it stands there exactly"),
    }
});
