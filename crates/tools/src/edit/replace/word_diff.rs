//! Edits within one line whose words match but whose spacing differs.

/// Applies the difference between `old` and `new` to `file`, which has the words of `old`. Words
/// change as in the edit; spacing stays as in the file unless the edit changes it.
pub(super) fn apply_word_diff(old: &str, new: &str, file: &str) -> String {
    let (old, new, file) = (spaced_words(old), spaced_words(new), spaced_words(file));
    let is_same_word = |(a, b): &(&(&str, &str), &(&str, &str))| a.1 == b.1;
    let head = old.iter().zip(&new).take_while(is_same_word).count();
    let max_tail = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(max_tail).take_while(is_same_word).count();
    let mut result = String::new();
    for (index, (space, word)) in new.iter().enumerate() {
        // Words after the change are counted from the end.
        let from_end = new.len() - index;
        let old_index = if from_end <= tail { old.len() - from_end } else { index };
        let original = old.get(old_index).zip(file.get(old_index));
        let original = original.filter(|((old_space, _), _)| old_space == space);
        result.push_str(original.map_or(space, |(_, (space, _))| space));
        result.push_str(word);
    }
    result
}

/// Returns each word with the whitespace before it, which is empty for the first.
fn spaced_words(line: &str) -> Vec<(&str, &str)> {
    let mut rest = line.trim();
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let word = rest.trim_start();
        let (space, word) = rest.split_at(rest.len() - word.len());
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        tokens.push((space, word));
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::apply_word_diff;

    #[test]
    fn words_change_and_spacing_stays() {
        for (old, new, file, expected) in [
            ("a = 1", "a = 2", "a  =  1", "a  =  2"),
            ("a = 1", "a = 1 + 2", "a  =  1", "a  =  1 + 2"),
            ("f(a,  b)", "f(c,  b)", "f(a, b)", "f(c, b)"),
            ("let a = b c", "let b c", "let  a\t=  b  c", "let  b  c"),
            ("a b", "a  b", "a   b", "a  b"),
            ("x y", "z", "x  y", "z"),
        ] {
            assert_eq!(apply_word_diff(old, new, file), expected, "{old:?} {new:?} {file:?}");
        }
    }
}
