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
    if text.encoding().starts_with("UTF-16") {
        return;
    }
    // Everywhere else a line ends with this byte, and with this byte only.
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    let before = view[..range.start].matches('\n').count();
    let head = before.checked_sub(1).map_or(0, |line| ends[line] + 1);
    assert_eq!(after[..head], bytes[..head], "a line before it");
    let behind = view[range.end..].matches('\n').count();
    let tail = ends.len().checked_sub(behind).and_then(|line| ends.get(line)).map_or(0, |at| bytes.len() - at - 1);
    assert!(after.ends_with(&bytes[bytes.len() - tail..]), "a line behind it");
});
