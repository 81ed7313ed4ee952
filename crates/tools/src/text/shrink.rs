//! What really differs between two texts.

/// How many bytes two texts share at their beginning and at their end.
///
/// Whole lines come first, so that a line merely repeated keeps the bytes it has; then characters.
pub(super) fn shared(old: &str, new: &str) -> (usize, usize) {
    let head = lines(old.split_inclusive('\n'), new.split_inclusive('\n'));
    let (old, new) = (inside(old, head, 0), inside(new, head, 0));
    let tail = lines(old.split_inclusive('\n').rev(), new.split_inclusive('\n').rev());
    let (old, new) = (inside(old, 0, tail), inside(new, 0, tail));
    let more = chars(old.chars(), new.chars());
    let (old, new) = (inside(old, more, 0), inside(new, more, 0));
    (head + more, tail + chars(old.chars().rev(), new.chars().rev()))
}

fn inside(text: &str, head: usize, tail: usize) -> &str {
    text.get(head..text.len() - tail).unwrap_or_default()
}

fn lines<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum()
}

fn chars(old: impl Iterator<Item = char>, new: impl Iterator<Item = char>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).map(|(char, _)| char.len_utf8()).sum()
}
