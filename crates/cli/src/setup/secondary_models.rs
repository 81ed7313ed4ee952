//! Selects the fallback models and the small model. A session can do without them.

use super::LoadedProject;
use std::sync::Arc;
use windlass_engine::session::TurnLimits;
use windlass_engine::{ModelHandle, NamedModel};
use windlass_project::ConfigOrigin;

impl LoadedProject {
    /// Returns a model that work can go on without. If it is unavailable, prints a note.
    pub(crate) fn optional_model(&self, name: &str, origin: &ConfigOrigin) -> Option<NamedModel> {
        let chosen = self.choose_named_model(name, origin, None);
        match chosen.and_then(|choice| choice.into_client(None)) {
            Ok(model) => Some((model, Arc::from(name))),
            Err(error) => {
                let reason = crate::error_chain(&error);
                self.context.notes.send(&format!("note: {name} is not used: {reason}"));
                None
            }
        }
    }

    /// Returns the fallbacks of the configured model, with the same schema for the answer, and the
    /// small model. With a cost limit, models without a known price are left out.
    pub(crate) fn secondary_models(
        &self,
        model: &ModelHandle,
        limits: &TurnLimits,
    ) -> (Vec<NamedModel>, Option<NamedModel>) {
        let is_usable = |(other, name): &NamedModel| {
            let is_usable = limits.cost.is_none() || other.model.price.input.is_some();
            if !is_usable {
                self.context.notes.send(&format!(
                    "note: {name} is not used: its price is unknown, so --max-cost cannot apply"
                ));
            }
            is_usable
        };
        let load = |(name, origin): (&String, &ConfigOrigin)| {
            self.optional_model(name, origin).filter(is_usable)
        };
        let origin = self.config.model.as_ref().map(|(_, origin)| origin);
        let fallbacks = origin.into_iter().flat_map(|origin| {
            self.config.fallback_models.iter().filter_map(move |name| load((name, origin)))
        });
        let with_answer = |(mut other, name): NamedModel| {
            if model.options.answer.is_some() {
                Arc::make_mut(&mut other.options).answer.clone_from(&model.options.answer);
            }
            (other, name)
        };
        let small = self.config.small_model.as_ref().map(|(name, origin)| (name, origin));
        (fallbacks.map(with_answer).collect(), small.and_then(load))
    }
}
