//! Texts as a person sees them: what they can hide, and how they begin.

/// True for marks that show a text in another order than it has, on other lines, or not at all.
///
/// Selectors that choose a form of the sign before them are not among them: emoji need those.
pub fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

/// The beginning of a text, of so many characters, and a sign if there is more.
pub fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_or_turns_a_text_around_is_known() {
        let hidden = "\u{ad}\u{61c}\u{180e}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{200b}\u{200d}\u{200e}\
                      \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{feff}\
                      \u{fff9}\u{fffb}\u{e0001}\u{e0041}\u{e007f}";
        for character in hidden.chars() {
            assert!(hides(character), "U+{:04X}", character as u32);
        }
    }

    #[test]
    fn what_people_write_hides_nothing() {
        for character in "aé ß\u{a0}\u{301}漢한ก\u{e31}🙂\u{fe0f}\u{fffd}\u{2026}\u{202f}".chars()
        {
            assert!(!hides(character), "U+{:04X}", character as u32);
        }
    }
}
