//! What a text can hold that a person does not see as it is.

/// True for marks that show a text in another order than it has, or not at all.
pub fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}
