//! Steering: what a person says while the model works, and when the model hears of it.
//!
//! A prompt that steers joins the turn under way before the model is asked again; one that queues
//! waits for the turn's end. A new mode is told to the model in the same place.

use super::{Out, Session, notice};
use windlass_protocol::{Delivery, Fact, Mode, PromptId};

impl Session {
    /// Takes in the prompts that steer, in the order in which they came.
    pub(super) fn steer(&mut self, out: &mut Out) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.number) else { return };
        let steers = self.transcript.waiting.iter().filter(|p| p.when == Delivery::Steer);
        let steers: Vec<PromptId> = steers.map(|prompt| prompt.id).collect();
        for prompt in steers {
            self.decide(Fact::Steered { turn, prompt }, out);
        }
    }

    /// Goes on in another mode.
    pub(super) fn change_mode(&mut self, mode: Mode, out: &mut Out) {
        if self.transcript.mode == Some(mode) {
            return notice(&format!("The mode is {mode} already."), out);
        }
        self.decide(Fact::ModeChanged { mode }, out);
    }

    /// Tells the model of a mode it has not heard of.
    pub(super) fn tell_mode(&mut self, out: &mut Out) {
        let untold = self.transcript.mode.filter(|_| self.mode_untold);
        if let Some(mode) = untold {
            self.decide(Fact::ContextChanged { text: sentence(mode).to_owned() }, out);
        }
    }
}

/// What a model is told about a mode.
pub(super) fn sentence(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => {
            "The mode is now plan: read, search and think, but change nothing. End with a plan for \
             the person to agree to."
        }
        Mode::Ask => {
            "The mode is now ask: changes and commands are allowed, and the person is asked about \
             each of them."
        }
        Mode::Auto => {
            "The mode is now auto: what stays in the workspace is done without asking; anything \
             beyond it is asked about."
        }
        Mode::Full => "The mode is now full: nothing is asked. Commands still run in the sandbox.",
    }
}
