//! The model of a step: the session's own, the one that the prompt names, a fallback after a failure,
//! or the small model for a summary.
//!
//! `StepRetrying` records the model that takes over, so the choice is a fold of the log.

use super::token_estimate::window_request_tokens;
use super::{EffectList, Session, SessionConfig, SessionEffect, SessionModel};
use windlass_protocol::{Cost, Fact, Fault, LogSeq, StepPurpose, TokenUsage};

impl SessionConfig {
    /// Returns the session's own model and the fallbacks, each once.
    fn answer_models(&self) -> Vec<SessionModel> {
        let own = SessionModel {
            name: self.model.clone(),
            window: self.context_window,
            price: self.price,
        };
        let mut models = vec![own];
        for fallback in &self.fallback_models {
            if models.iter().all(|model| model.name != fallback.name) {
                models.push(fallback.clone());
            }
        }
        models
    }
}

impl Session {
    /// Returns the model that the prompt of this turn names, if the session knows it.
    fn prompt_model(&self) -> Option<&SessionModel> {
        let name = self.turn.as_ref().and_then(|turn| turn.prompt_model.as_ref())?;
        self.config.prompt_models.iter().find(|model| model.name == *name)
    }

    /// Returns the model that answers now, then the fallbacks that are left in this turn. The
    /// fallbacks belong to the session's own model.
    fn remaining_models(&self) -> Vec<SessionModel> {
        if let Some(model) = self.prompt_model() {
            return vec![model.clone()];
        }
        let mut models = self.config.answer_models();
        let fallback = self.turn.as_ref().and_then(|turn| turn.fallback_model.as_ref());
        let is_current = |model: &SessionModel| Some(&model.name) == fallback;
        // A model that is no longer configured is not used.
        let current = models.iter().position(is_current).unwrap_or_default();
        models.drain(..current);
        models
    }

    /// Returns the model that answers now.
    pub(super) fn answer_model(&self) -> SessionModel {
        self.remaining_models().into_iter().next().unwrap_or_default()
    }

    /// Returns the maximum size of a request to `answer_model`, if known.
    pub(super) fn max_answer_request_tokens(&self) -> Option<u64> {
        self.token_estimator.max_request_tokens(self.answer_model().window)
    }

    /// Returns the small model, unless it just failed to write this summary.
    pub(super) fn summary_model(&self) -> Option<SessionModel> {
        let small = self.config.small_model.clone()?;
        let has_failed = self.turn.as_ref().is_some_and(|turn| turn.summary_failed);
        (!has_failed && small.name != self.answer_model().name).then_some(small)
    }

    /// Returns true if the last request was a summary by the small model.
    pub(super) fn is_small_model_step(&self) -> bool {
        let small = self.config.small_model.as_ref().map(|small| small.name.as_str());
        let answer_model = self.answer_model().name;
        self.turn.as_ref().is_some_and(|turn| {
            turn.purpose == StepPurpose::Summary
                && turn.step_model != answer_model
                && small == Some(turn.step_model.as_str())
        })
    }

    /// Returns the next fallback.
    pub(super) fn next_fallback(&self) -> Option<SessionModel> {
        self.remaining_models().into_iter().nth(1)
    }

    /// Returns the next fallback that accepts larger requests, or whose window is unknown.
    pub(super) fn larger_fallback(&self) -> Option<SessionModel> {
        let current = self.max_answer_request_tokens().unwrap_or_default();
        let mut fallbacks = self.remaining_models().into_iter().skip(1);
        fallbacks.find(|model| window_request_tokens(model.window).is_none_or(|max| max > current))
    }

    /// Lets another model take over for the rest of the turn.
    pub(super) fn retry_with_model(&mut self, model: String, fault: Fault, out: &mut EffectList) {
        let Some(open) = &self.turn else { return };
        let (turn, step, attempt) = (open.number, open.steps, open.failures + 1);
        let model = Some(model);
        self.emit(Fact::StepRetrying { turn, step, attempt, fault, wait_ms: 0, model }, out);
        out.0.push(SessionEffect::RetryAfter { turn, step, after_ms: 0 });
    }

    /// Computes the cost of the last request, if the price of its model is known.
    pub(super) fn step_cost(&self, usage: &TokenUsage) -> Option<Cost> {
        let name = self.turn.as_ref().map(|turn| turn.step_model.as_str());
        let models = self.config.answer_models().into_iter();
        let others = self.config.prompt_models.iter().chain(&self.config.small_model);
        let mut models = models.chain(others.cloned());
        let model = models.find(|model| Some(model.name.as_str()) == name);
        // The user may have changed the model during the request.
        model.unwrap_or_else(|| self.answer_model()).cost(usage)
    }

    /// Returns the log position of the last `StepStarted` of this turn.
    pub(crate) fn step_seq(&self) -> Option<LogSeq> {
        self.turn.as_ref().and_then(|turn| turn.step_seq)
    }

    /// Returns the model of the last request of this turn.
    pub(crate) fn step_model(&self) -> Option<&str> {
        self.turn.as_ref().map(|turn| turn.step_model.as_str()).filter(|name| !name.is_empty())
    }
}

/// Returns true if another model may succeed: this one is overloaded, unreachable or unknown, or
/// its account has no credit. A rejected API key is a mistake that the user should hear of.
pub(super) fn is_failure_of_model(fault: &Fault) -> bool {
    match fault {
        Fault::RateLimited { .. } | Fault::Network { .. } | Fault::HostNotFound { .. } => true,
        Fault::Provider { status, .. } => {
            matches!(status, None | Some(402 | 404 | 408 | 409 | 410 | 425 | 500..=599))
        }
        Fault::Auth { .. }
        | Fault::ContextOverflow { .. }
        | Fault::ModelRefused { .. }
        | Fault::Storage { .. }
        | Fault::SessionBusy { .. }
        | Fault::SessionMoved { .. }
        | Fault::Config { .. }
        | Fault::Refused { .. }
        | Fault::Internal { .. } => false,
    }
}
