//! The `RenderContext` of the transcript: widths, symbols and margins of its rows.

use crate::keys::UiCommand;
use crate::render::MAX_PROSE_WIDTH;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use std::borrow::Cow;

/// The left margin of text, in columns.
pub(super) const LEFT_MARGIN: usize = 2;

/// The settings that rows are rendered for: width, `Appearance`, `SessionState` and time.
#[derive(Clone, Copy)]
pub(super) struct RenderContext<'a> {
    pub width: usize,
    pub appearance: &'a Appearance,
    pub state: &'a SessionState,
    /// The current time, in milliseconds since 1970.
    pub now_millis: u64,
}

impl RenderContext<'_> {
    /// Returns the width right of the margin, for text that limits its prose itself.
    pub fn text_width(&self) -> usize {
        self.width.saturating_sub(LEFT_MARGIN).max(1)
    }

    /// Returns the width of prose, at most `MAX_PROSE_WIDTH`.
    pub fn prose_width(&self) -> usize {
        self.text_width().min(MAX_PROSE_WIDTH)
    }

    /// Returns the width of prose nested below a headline.
    pub fn inner_prose_width(&self) -> usize {
        self.prose_width().saturating_sub(LEFT_MARGIN).max(1)
    }

    /// Returns the width of preformatted text.
    pub fn full_width(&self) -> usize {
        self.width.saturating_sub(2 * LEFT_MARGIN).max(1)
    }

    /// Returns the symbol, or its replacement if `Appearance::ascii` is set.
    pub fn symbol(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.appearance.ascii { ascii } else { unicode }
    }

    /// Replaces the non-ASCII symbols in a UI text if `Appearance::ascii` is set.
    pub fn ascii_fallback<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.appearance.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '·' | '–' | '−' | '─' => plain.push('-'),
                '…' => plain.push_str("..."),
                '→' => plain.push_str("->"),
                '↓' => plain.push('v'),
                '×' => plain.push('x'),
                '¢' => plain.push('c'),
                other => plain.push(other),
            }
        }
        Cow::Owned(plain)
    }

    /// Renders a one-line remark of the UI, wrapped if necessary.
    pub fn quiet_row(&self, role: StyleRole, text: &str) -> Vec<SafeLine> {
        let row = SafeLine::styled(self.appearance.style(role), &self.ascii_fallback(text));
        indent_rows(wrap::wrap(&row, self.prose_width(), WrapMode::Words, 0), LEFT_MARGIN)
    }

    /// Returns the key bound to a command, for a hint.
    pub fn key_hint(&self, command: UiCommand) -> String {
        self.appearance.key_map.key_hint(command)
    }
}

/// Indents all rows that are not empty.
pub(super) fn indent_rows(rows: Vec<SafeLine>, columns: usize) -> Vec<SafeLine> {
    let margin = " ".repeat(columns);
    let rows = rows.into_iter().map(|row| {
        if row.width() == 0 {
            return SafeLine::default();
        }
        let mut indented = SafeLine::styled(Default::default(), &margin);
        indented.append(&row);
        indented
    });
    rows.collect()
}
