//! Text of a server, made safe to show and to send to the model.

use windlass_toolkit::truncate_output;

/// Limits the server text that is shown or sent to the model.
const MAX_SERVER_TEXT_CHARS: usize = 2_000;

/// Shortens server text and strips its control characters.
pub(crate) fn clean_server_text(text: &str) -> String {
    let short: String = text.chars().take(MAX_SERVER_TEXT_CHARS).collect();
    truncate_output::strip_controls(&short)
}
