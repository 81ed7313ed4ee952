//! The sequences for notifications, the window title and the progress state.
//!
//! Their text passes through `SafeLine`, so it cannot end a sequence early.

use super::features::NotificationMethod;
use crate::safe_line::SafeLine;
use ratatui::style::Style;

/// The longest text of a notification or a title, in characters.
const MAX_TEXT_CHARS: usize = 80;

/// Returns a text without control characters, and not longer than a title can be.
fn safe_text(text: &str) -> String {
    SafeLine::styled(Style::default(), text).text().chars().take(MAX_TEXT_CHARS).collect()
}

/// Returns the sequence that notifies the user.
pub(super) fn notification_sequence(method: NotificationMethod, text: &str) -> String {
    let text = safe_text(text);
    match method {
        NotificationMethod::Off => String::new(),
        NotificationMethod::Bell => "\x07".to_owned(),
        NotificationMethod::Osc9 => format!("\x1b]9;{text}\x1b\\"),
        NotificationMethod::Osc99 => format!("\x1b]99;i=windlass;{text}\x1b\\"),
        // A semicolon would separate the title from the body.
        NotificationMethod::Osc777 => {
            format!("\x1b]777;notify;Windlass;{}\x1b\\", text.replace(';', ","))
        }
    }
}

/// Returns the sequence that sets the window title.
pub(super) fn title_sequence(title: &str) -> String {
    format!("\x1b]2;{}\x1b\\", safe_text(title))
}

/// Returns the sequence that shows or removes the progress state of the tab.
pub(super) fn progress_sequence(is_busy: bool) -> &'static str {
    if is_busy { "\x1b]9;4;3\x1b\\" } else { "\x1b]9;4;0\x1b\\" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_inside_its_sequence() {
        let evil = "a\x1b\\b\x07c\x1b]52;c;ZXZpbA==\x07\u{9c}d\ne;f";
        let sequences = [
            notification_sequence(NotificationMethod::Osc9, evil),
            notification_sequence(NotificationMethod::Osc99, evil),
            notification_sequence(NotificationMethod::Osc777, evil),
            title_sequence(evil),
        ];
        for sequence in sequences {
            let body = sequence.strip_prefix("\x1b]").unwrap().strip_suffix("\x1b\\").unwrap();
            assert!(!body.contains(|c: char| c.is_control()), "{sequence:?}");
        }
        assert_eq!(notification_sequence(NotificationMethod::Bell, evil), "\x07");
        assert_eq!(notification_sequence(NotificationMethod::Off, evil), "");
    }

    #[test]
    fn a_long_title_is_cut() {
        assert!(title_sequence(&"x".repeat(500)).len() < 100);
    }
}
