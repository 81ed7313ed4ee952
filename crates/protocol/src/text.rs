//! Texts as a person sees them: what they can hide, and how they begin.

/// True for marks that show a text in another order than it has, or not at all.
pub fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// The beginning of a text, of so many characters, and a sign if there is more.
pub fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
