//! A note for users of tmux, which by default sends Shift+Enter as Enter.

use crate::terminal::output;
use std::time::Duration;
use windlass_sandbox::editor_and_clipboard::program_output;

const TMUX_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_OPTION_BYTES: u64 = 256;

/// Starts the check in the background, if this is tmux, and prints the note if it is needed.
pub(super) fn note_missing_keys(env: impl Fn(&str) -> Option<String>) {
    if env("TMUX").is_none_or(|value| value.is_empty()) {
        return;
    }
    let check = || {
        let option = |name: &str| {
            let arguments = ["show-options", "-gqv", name];
            let output = program_output(("tmux", &arguments), MAX_OPTION_BYTES, TMUX_TIMEOUT);
            let output = output.ok().flatten();
            output.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        let Some(extended_keys) = option("extended-keys") else { return };
        // Before tmux 3.5 the format was always `csi-u`, and there was no option for it.
        let format = option("extended-keys-format").unwrap_or_default();
        if let Some(note) = missing_keys_note(&extended_keys, &format) {
            output::print_note(note);
        }
    };
    // The user interface does not wait for the result.
    drop(tokio::task::spawn_blocking(check));
}

/// Returns the note, if these options make Shift+Enter unusable.
fn missing_keys_note(extended_keys: &str, format: &str) -> Option<&'static str> {
    match (extended_keys, format) {
        ("on" | "always", "" | "csi-u") => None,
        ("on" | "always", _) => Some(
            "tmux sends Shift+Enter in a format that is not read here. Use Ctrl+J for a line \
             break, or add `set -s extended-keys-format csi-u` to ~/.tmux.conf",
        ),
        _ => Some(
            "tmux sends Shift+Enter as Enter. Use Ctrl+J for a line break, or add `set -s \
             extended-keys on` and `set -s extended-keys-format csi-u` to ~/.tmux.conf",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::missing_keys_note;

    #[test]
    fn only_options_that_lose_the_key_are_noted() {
        assert_eq!(missing_keys_note("on", ""), None);
        assert_eq!(missing_keys_note("always", "csi-u"), None);
        for (extended_keys, format) in [("on", "xterm"), ("off", ""), ("", "")] {
            let note = missing_keys_note(extended_keys, format).unwrap();
            assert!(note.contains("Ctrl+J"), "{note}");
        }
    }
}
