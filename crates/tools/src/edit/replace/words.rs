//! One line whose words agree but whose spacing does not.

/// Applies the difference between two lines to a third one that has the words of the first: words
/// change as the edit says, and spacing stays as the file has it unless the edit changes it.
pub(super) fn carry(old: &str, new: &str, file: &str) -> String {
    let (old, new, file) = (tokens(old), tokens(new), tokens(file));
    let same = |(a, b): &(&(&str, &str), &(&str, &str))| a.1 == b.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let room = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room).take_while(same).count();
    let mut carried = String::new();
    for (at, (space, word)) in new.iter().enumerate() {
        // Words behind the change are counted from the end.
        let from_end = new.len() - at;
        let twin = if from_end <= tail { old.len() - from_end } else { at };
        let known = old.get(twin).zip(file.get(twin));
        let known = known.filter(|((before, _), _)| before == space);
        carried.push_str(known.map_or(space, |(_, (space, _))| space));
        carried.push_str(word);
    }
    carried
}

/// The words, each with the white space before it; none before the first.
fn tokens(line: &str) -> Vec<(&str, &str)> {
    let mut rest = line.trim();
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let word = rest.trim_start();
        let (space, word) = rest.split_at(rest.len() - word.len());
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        tokens.push((space, word));
        rest = behind;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::carry;

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
            assert_eq!(carry(old, new, file), expected, "{old:?} {new:?} {file:?}");
        }
    }
}
