//! The escape of texts that are shown in lines.

/// Escapes control characters and line separators, so that a text cannot imitate another line.
pub(super) fn escape_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
