//! Computes the common prefix and suffix of two texts.

/// Returns the byte lengths of the common prefix and suffix of two texts.
///
/// Compares whole lines first, so that a merely repeated line keeps its bytes; then characters.
pub(super) fn shared_affix_bytes(old: &str, new: &str) -> (usize, usize) {
    let head = shared_line_bytes(old.split_inclusive('\n'), new.split_inclusive('\n'));
    let (old, new) = (strip_affixes(old, head, 0), strip_affixes(new, head, 0));
    let tail = shared_line_bytes(old.split_inclusive('\n').rev(), new.split_inclusive('\n').rev());
    let (old, new) = (strip_affixes(old, 0, tail), strip_affixes(new, 0, tail));
    let head_chars = shared_char_bytes(old.chars(), new.chars());
    let (old, new) = (strip_affixes(old, head_chars, 0), strip_affixes(new, head_chars, 0));
    (head + head_chars, tail + shared_char_bytes(old.chars().rev(), new.chars().rev()))
}

fn strip_affixes(text: &str, head: usize, tail: usize) -> &str {
    text.get(head..text.len() - tail).unwrap_or_default()
}

fn shared_line_bytes<'a>(
    old: impl Iterator<Item = &'a str>,
    new: impl Iterator<Item = &'a str>,
) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum()
}

fn shared_char_bytes(old: impl Iterator<Item = char>, new: impl Iterator<Item = char>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).map(|(char, _)| char.len_utf8()).sum()
}
