//! Selects the fallback models and the small model. A session can do without them.

use super::LoadedProject;
use crate::workspace_host::to_fault;
use std::sync::Arc;
use windlass_engine::session::TurnLimits;
use windlass_engine::{ModelHandle, ModelResolver, NamedModel};
use windlass_project::{ConfigFlags, ConfigOrigin};
use windlass_protocol::ReasoningEffort;

impl LoadedProject {
    /// Returns the callback that finds models by name. It reads the config again, so that it knows
    /// models and API keys that were added since.
    pub(crate) fn model_resolver(&self) -> ModelResolver {
        let (dirs, root) = (self.dirs.clone(), self.root.clone());
        let (flags, context) = (self.flags.clone(), self.context.clone());
        Arc::new(move |name: &str, effort: Option<&str>| {
            let dirs_and_root = (dirs.clone(), root.clone());
            let flags = ConfigFlags { model: Some(name.to_owned()), ..flags.clone() };
            let setup = LoadedProject::read_config(dirs_and_root, flags, context.clone());
            let model = setup.and_then(|setup| setup.model_with_effort(effort));
            model.map_err(|error| to_fault(&error))
        })
    }

    /// Creates a client for the configured model, with a variant or a reasoning effort.
    fn model_with_effort(&self, effort: Option<&str>) -> anyhow::Result<ModelHandle> {
        let name = self.config.model.as_ref().map(|(name, _)| name.as_str());
        let variants = name.map(|name| self.model_variants(name)).unwrap_or_default();
        let variant = effort.filter(|effort| variants.iter().any(|variant| variant == effort));
        let mut model = self.choose_model(variant)?.into_client()?;
        if let (None, Some(effort)) = (variant, effort) {
            Arc::make_mut(&mut model.options).effort = ReasoningEffort::from_name(effort);
        }
        Ok(model)
    }

    /// Returns a model that work can go on without. If it is unavailable, prints a note.
    pub(crate) fn optional_model(&self, name: &str, origin: &ConfigOrigin) -> Option<NamedModel> {
        let chosen = self.choose_named_model(name, origin, None);
        match chosen.and_then(|choice| choice.into_client()) {
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
        model: Option<&ModelHandle>,
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
            if let Some(answer) = model.and_then(|model| model.options.answer.as_ref()) {
                Arc::make_mut(&mut other.options).answer = Some(answer.clone());
            }
            (other, name)
        };
        let small = self.config.small_model.as_ref().map(|(name, origin)| (name, origin));
        (fallbacks.map(with_answer).collect(), small.and_then(load))
    }
}
