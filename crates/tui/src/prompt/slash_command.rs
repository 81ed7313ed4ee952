//! The name of a slash command at the start of a prompt, and tips for commands of other programs.

/// Returns the name after a leading `/`, if it can be a command name; a path cannot.
pub(crate) fn command_name(raw: &str) -> Option<&str> {
    let name = raw.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name_char = |character: char| character.is_alphanumeric() || "-_:.".contains(character);
    name.chars().all(is_name_char).then_some(name)
}

/// Returns what to do instead of a command of other programs that Windlass does not have.
pub fn missing_command_tip(name: &str) -> Option<&'static str> {
    match name {
        "memory" => Some("Instructions for the model are in AGENTS.md; /init writes it."),
        "logout" => Some("`windlass auth logout PROVIDER` removes an API key."),
        "vim" => Some("`\"tui\": {\"vim\": true}` in the config gives the prompt the keys of vi."),
        _ => None,
    }
}
