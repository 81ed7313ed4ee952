//! What is wrong with a text before anything parses it.
//!
//! Characters that a terminal does not show, or shows elsewhere, make a person agree to something
//! else than what runs, and the shells' own idea of a blank depends on the language of the system.

use super::LONGEST;
use super::doubt::Doubt;
use super::finding::Finding;
use windlass_protocol::text::hides;

pub(super) fn look(text: &str, finding: &mut Finding) {
    if text.len() > LONGEST {
        finding.doubt(Doubt::Length);
    }
    for character in text.chars() {
        if is_control(character) {
            finding.doubt(Doubt::Control);
        }
        if is_unseen(character) {
            finding.doubt(Doubt::Hidden);
        }
    }
}

/// Tabs and line feeds are the only ones a command needs.
pub(super) fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n')
}

/// Blanks that are not ASCII, and marks without a shape of their own.
pub(super) fn is_unseen(character: char) -> bool {
    !character.is_ascii()
        && (character.is_whitespace()
            || hides(character)
            || matches!(
                character,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
                    | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{206a}'..='\u{206f}' | '\u{2800}'
                    | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                    | '\u{fffe}' | '\u{ffff}' | '\u{1d173}'..='\u{1d17a}'
                    | '\u{e0000}'..='\u{e0fff}'
            ))
}
