//! The user's attention: the window title, and notifications while the terminal is not focused.

use super::App;
use crate::ui_context::UiEffect;
use windlass_protocol::{Event, Fact, TurnEndReason};

/// The time without a key after which the user counts as away.
const AWAY_AFTER_MS: u64 = 10_000;

impl App {
    /// Returns the window title: a mark for the state, and the session title or the folder.
    pub fn window_title(&self) -> String {
        let mark = match (self.questions.is_open(), self.state.is_busy()) {
            (true, _) => "? ",
            (false, true) if self.appearance.ascii => "* ",
            (false, true) => "● ",
            (false, false) => "",
        };
        let folder = self.state.host_status.workspace.rsplit('/').next().unwrap_or_default();
        let name = if self.state.title.is_empty() { folder } else { self.state.title.as_str() };
        let separator = if name.is_empty() { "" } else { " - " };
        format!("{mark}{name}{separator}windlass")
    }

    /// Returns true if the user is probably not looking: the terminal is not focused, or, if it
    /// does not report that, the user has not typed for a while.
    fn user_is_away(&self) -> bool {
        match self.is_focused {
            Some(is_focused) => !is_focused,
            None => self.last_typed_at.is_none_or(|typed_at| self.now >= typed_at + AWAY_AFTER_MS),
        }
    }

    /// Adds a notification if a turn ended, and drops all of them unless the user is away.
    pub(super) fn notify_user(&self, event: &Event, ui_effects: &mut Vec<UiEffect>) {
        if let Event::Fact(record) = event
            && Some(record.session) == self.state.session
            && let Fact::TurnEnded { end, .. } = &record.fact
        {
            let text = match end {
                TurnEndReason::Completed => Some("Done"),
                TurnEndReason::Interrupted => None,
                _ => Some("Stopped before the end"),
            };
            ui_effects.extend(text.map(|text| UiEffect::Notify(text.to_owned())));
        }
        if !self.user_is_away() {
            ui_effects.retain(|effect| !matches!(effect, UiEffect::Notify(_)));
        }
        for effect in ui_effects {
            if let UiEffect::Notify(text) = effect
                && !self.state.title.is_empty()
            {
                *text = format!("{text}: {}", self.state.title);
            }
        }
    }
}
