//! Checks the raw text before any parser runs.
//!
//! Characters that a terminal hides or shows in another place make a user approve something other
//! than what runs. The set of blanks that a shell accepts depends on the locale.

use super::MAX_COMMAND_BYTES;
use super::ambiguity_reasons::ShellAmbiguity;
use super::parse_result::ShellParseResult;
use windlass_protocol::display_text::is_hidden_or_bidi;

pub(super) fn precheck(text: &str, result: &mut ShellParseResult) {
    if text.len() > MAX_COMMAND_BYTES {
        result.add_ambiguity(ShellAmbiguity::TooLong);
    }
    for character in text.chars() {
        if is_forbidden_control(character) {
            result.add_ambiguity(ShellAmbiguity::ControlCharacters);
        }
        if is_invisible(character) {
            result.add_ambiguity(ShellAmbiguity::InvisibleCharacters);
        }
    }
}

/// Finds expansions that evaluate the value of a variable: the positions in `${x:1:2}` are
/// arithmetic, `${x@P}` and `${!x}` can run the commands in the value, and `${x:=y}` is an assignment.
pub(super) fn evaluating_expansions(text: &str) -> Vec<ShellAmbiguity> {
    let expansions = text.split("${").skip(1).filter_map(|expansion| {
        let name_end = expansion.find(|c: char| !c.is_ascii_alphanumeric() && !"_*".contains(c))?;
        let operator = expansion.get(name_end..)?;
        let has_default = [":-", ":?", ":+"].iter().any(|start| operator.starts_with(start));
        match operator.chars().next()? {
            ':' if !has_default => Some(ShellAmbiguity::Arithmetic),
            '@' | '!' | '=' => Some(ShellAmbiguity::Unknown),
            _ => None,
        }
    });
    expansions.collect()
}

/// Returns true for control characters other than tab and line feed, the only ones a command needs.
pub(super) fn is_forbidden_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n')
}

/// Returns true for non-ASCII whitespace and characters without a visible shape.
pub(super) fn is_invisible(character: char) -> bool {
    !character.is_ascii()
        && (character.is_whitespace()
            || is_hidden_or_bidi(character)
            || matches!(
                character,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
                    | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{206a}'..='\u{206f}' | '\u{2800}'
                    | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                    | '\u{fffe}' | '\u{ffff}' | '\u{1d173}'..='\u{1d17a}'
                    | '\u{e0000}'..='\u{e0fff}'
            ))
}
