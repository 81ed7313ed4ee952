//! Steering: delivers prompts that the user submits while the model works.
//!
//! A prompt with `PromptDelivery::Steer` joins the current turn before the next model request; a queued
//! one waits for the end of the turn. The notice of a new mode is recorded at the same point.

use super::{EffectList, Session};
use windlass_protocol::{ContextChange, Fact, OpError, PermissionMode, PromptDelivery, PromptId};

impl Session {
    /// Adds the steering prompts to the current turn, in submission order.
    pub(super) fn apply_steering_prompts(&mut self, out: &mut EffectList) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.number) else { return };
        let prompts = self.transcript.queued_prompts.iter();
        let steering = prompts.filter(|prompt| prompt.delivery == PromptDelivery::Steer);
        let steering: Vec<PromptId> = steering.map(|prompt| prompt.id).collect();
        for prompt in steering {
            self.emit(Fact::PromptSteered { turn, prompt }, out);
        }
    }

    pub(super) fn change_mode(
        &mut self,
        mode: PermissionMode,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        if self.transcript.mode == Some(mode) {
            return Err(OpError::Invalid { text: format!("The mode is already {mode}.") });
        }
        self.emit(Fact::ModeChanged { mode }, out);
        Ok(())
    }

    /// Records the `mode_notice` of a mode that the model has not been told about.
    pub(super) fn record_mode_notice(&mut self, out: &mut EffectList) {
        let unannounced = self.transcript.mode.filter(|_| self.mode_notice_due);
        if let Some(mode) = unannounced {
            let text = mode_notice(mode).to_owned();
            self.emit(Fact::ContextChanged { text, change: ContextChange::Mode { mode } }, out);
        }
    }
}

/// Returns the notice to the model about a mode.
pub(super) fn mode_notice(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => {
            "The mode is now plan: read, search and think, but change nothing. End with a plan \
             for the user to approve."
        }
        PermissionMode::Ask => {
            "The mode is now ask: changes and commands are allowed, and each requires the user's \
             approval."
        }
        PermissionMode::Auto => {
            "The mode is now auto: work inside the workspace needs no approval; anything beyond \
             it requires approval."
        }
        PermissionMode::Full => {
            "The mode is now full: nothing requires approval. Commands still run in \
                       the sandbox."
        }
    }
}
