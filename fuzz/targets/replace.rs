//! Applies any edit to any text: it is rejected, or its splices are in order and within the text,
//! and an exact match, once or everywhere, is replaced exactly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tools::edit::replace::{MatchStrategy, ReplaceCount, replace};

fuzz_target!(|input: (&str, &str, &str, bool)| {
    let (text, old, new, all) = input;
    let text = text.replace("\r\n", "\n");
    let count = if all { ReplaceCount::All } else { ReplaceCount::One };
    let Ok(replaced) = replace(&text, old, new, count) else { return };
    let mut done = 0;
    let mut after = String::new();
    for splice in &replaced.splices {
        assert!(splice.range.start >= done && splice.range.start <= splice.range.end);
        after.push_str(&text[done..splice.range.start]);
        after.push_str(&splice.new_text);
        done = splice.range.end;
    }
    after.push_str(&text[done..]);
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (old, new) = (plain(old), plain(new));
    match replaced.strategy {
        MatchStrategy::Exact => assert_eq!(after, text.replacen(&old, &new, 1)),
        MatchStrategy::MultiOccurrence => assert_eq!(after, text.replace(&old, &new)),
        MatchStrategy::LineTrimmed
        | MatchStrategy::BlockAnchor
        | MatchStrategy::WhitespaceNormalized
        | MatchStrategy::IndentationFlexible
        | MatchStrategy::EscapeNormalized
        | MatchStrategy::TrimmedBoundary
        | MatchStrategy::ContextAware => assert!(!text.contains(&old), "an exact match was missed"),
    }
});
