//! Any bytes as a text, with any splice: lines that it does not touch keep their very bytes, and
//! what was written reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tools::text::{Lines, Splice, Text};

fuzz_target!(|input: (&[u8], u16, u16, &str)| {
    let (bytes, from, length, new) = input;
    if let Ok(mut lines) = Lines::open(bytes) {
        while let Ok(Some(_)) = lines.read() {}
    }
    let Ok(text) = Text::decode(bytes.to_vec()) else { return };
    assert_eq!(text.bytes(), bytes);
    let view = text.view();
    let at = |wanted: usize| {
        (0..=wanted.min(view.len())).rev().find(|at| view.is_char_boundary(*at)).unwrap_or(0)
    };
    let start = at(usize::from(from));
    let range = start..at(start + usize::from(length)).max(start);
    let same = Splice { range: range.clone(), new: view[range.clone()].to_owned() };
    assert_eq!(text.splice(&[same]).unwrap(), bytes, "nothing was to change");
    let _ = text.rewrite(new);
    let splice = Splice { range: range.clone(), new: new.to_owned() };
    let Ok(after) = text.splice(&[splice]) else { return };
    let ends = line_ends(bytes, text.encoding());
    assert_eq!(ends.len(), view.matches('\n').count());
    let before = view[..range.start].matches('\n').count();
    let head = before.checked_sub(1).map_or(0, |line| ends[line]);
    assert_eq!(after[..head], bytes[..head], "a line before it");
    let behind = view[range.end..].matches('\n').count();
    let tail = ends.get(ends.len() - behind).map_or(&[][..], |end| &bytes[*end..]);
    assert!(after.ends_with(tail), "a line behind it");
});

/// Where lines end, their line feed included: after one pair of bytes in UTF-16, after one byte
/// everywhere else.
fn line_ends(bytes: &[u8], encoding: &str) -> Vec<usize> {
    let feed: &[u8] = match encoding {
        "UTF-16LE" => b"\n\0",
        "UTF-16BE" => b"\0\n",
        _ => b"\n",
    };
    let units = bytes.chunks(feed.len()).enumerate();
    units.filter(|(_, unit)| *unit == feed).map(|(at, _)| (at + 1) * feed.len()).collect()
}
