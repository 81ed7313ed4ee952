//! Updates to the system prompt, recorded as `ContextChanged` messages.
//!
//! The system prompt of a session never changes. If the session is opened again with other
//! instructions or on another day, a message at the end of the conversation states the difference
//! once.

use super::{EffectList, Session};
use crate::system_prompt::set_known_mode;
use windlass_protocol::{ContextChange, Fact, SystemPromptState};

impl Session {
    /// Records the difference between the current `SystemPromptState` and the one that the model knows,
    /// at the start of a turn and after any change that may have removed earlier messages.
    pub(super) fn record_prompt_update(&mut self, out: &mut EffectList) {
        let is_turn_start = self.turn.as_ref().is_some_and(|turn| turn.steps == 0);
        if self.transcript.system_prompt.is_none()
            || (self.prompt_state.is_some() && !is_turn_start)
        {
            return;
        }
        let mut current = self.config.system_prompt.parts().clone();
        if current.is_empty() {
            return;
        }
        let mut known = self.prompt_state.take().unwrap_or_else(|| self.read_prompt_state());
        current.set_date(self.config.system_prompt.date_at(self.now), &known);
        // A mode change within the session has its own notice: see `record_mode_notice`.
        if let Some(mode) = self.transcript.mode {
            set_known_mode(&mut known, mode);
            current.set_mode(mode);
        }
        if let Some((text, state)) = current.describe_update(&known) {
            known.apply(&state);
            self.emit(Fact::ContextChanged { text, change: ContextChange::Prompt { state } }, out);
        }
        self.prompt_state = Some(known);
    }

    /// Returns true if the log contains `SessionRenamed`.
    pub(crate) fn has_title(&self) -> bool {
        self.has_title
    }

    /// Records a generated title, unless the session was renamed in the meantime.
    pub(super) fn on_title_found(&mut self, title: String, out: &mut EffectList) {
        if !self.has_title {
            self.emit(Fact::SessionRenamed { title }, out);
        }
    }

    /// Returns the prompt state from the system prompt and the messages still sent to the model.
    fn read_prompt_state(&self) -> SystemPromptState {
        let mut state = self.initial_prompt_state.clone();
        for (_, change) in self.visible_changes() {
            if let ContextChange::Prompt { state: stated } = change {
                state.apply(stated);
            }
        }
        state
    }
}
