//! Splices any bytes as a text file: lines that a splice does not touch keep their bytes, and an
//! unchanged text encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tools::text::{FileText, TextLineReader, TextSplice};

fuzz_target!(|input: (&[u8], u16, u16, &str)| {
    let (bytes, from, length, new) = input;
    if let Ok(mut lines) = TextLineReader::open(bytes) {
        while let Ok(Some(_)) = lines.read_line() {}
    }
    let Ok(text) = FileText::decode(bytes.to_vec()) else { return };
    assert_eq!(text.bytes(), bytes);
    let view = text.view();
    let at = |wanted: usize| {
        (0..=wanted.min(view.len())).rev().find(|at| view.is_char_boundary(*at)).unwrap_or(0)
    };
    let start = at(usize::from(from));
    let range = start..at(start + usize::from(length)).max(start);
    let same = TextSplice { range: range.clone(), new_text: view[range.clone()].to_owned() };
    assert_eq!(text.splice(&[same]).unwrap(), bytes, "an identical splice must change nothing");
    let _ = text.rewrite(new);
    let splice = TextSplice { range: range.clone(), new_text: new.to_owned() };
    let Ok(after) = text.splice(&[splice]) else { return };
    let ends = line_ends(bytes, text.encoding_name());
    assert_eq!(ends.len(), view.matches('\n').count());
    let before = view[..range.start].matches('\n').count();
    let head = before.checked_sub(1).map_or(0, |line| ends[line]);
    assert_eq!(after[..head], bytes[..head], "a line before the splice changed");
    let behind = view[range.end..].matches('\n').count();
    let tail = ends.get(ends.len() - behind).map_or(&[][..], |end| &bytes[*end..]);
    assert!(after.ends_with(tail), "a line after the splice changed");
});

/// Returns the end offsets of all lines, including the line feed, which is two bytes in UTF-16 and
/// one byte in other encodings.
fn line_ends(bytes: &[u8], encoding: &str) -> Vec<usize> {
    let feed: &[u8] = match encoding {
        "UTF-16LE" => b"\n\0",
        "UTF-16BE" => b"\0\n",
        _ => b"\n",
    };
    let units = bytes.chunks(feed.len()).enumerate();
    units.filter(|(_, unit)| *unit == feed).map(|(at, _)| (at + 1) * feed.len()).collect()
}
