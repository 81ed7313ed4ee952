//! The name of a slash command at the start of a prompt.

/// Returns the name after a leading `/`, if it can be a command name; a path cannot.
pub(crate) fn command_name(raw: &str) -> Option<&str> {
    let name = raw.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name_char = |character: char| character.is_alphanumeric() || "-_:.".contains(character);
    name.chars().all(is_name_char).then_some(name)
}
