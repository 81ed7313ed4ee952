//! The chosen models, and their `options`: four scopes that can set them, and their precedence.

use super::{Config, ModelNames, ProviderSettings};
use crate::config::file_parser::{ConfigLayer, ConfigOrigin, ParsedConfig};
use crate::config::json_pointer;
use serde_json::Value;

/// The scope of a `ModelOption`, from weakest to strongest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelOptionScope {
    Provider(String),
    Model(String, String),
    Agent(String),
    Variant(String, String, String),
}

/// A configured model option.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOption {
    /// The name; `extra.NAME` for options that only the provider knows.
    pub name: String,
    pub value: Value,
    pub origin: ConfigOrigin,
}

impl Config {
    pub(super) fn set_model(&mut self, names: ModelNames, origin: ConfigOrigin) {
        let Some((model, fallback_models)) = names.split() else { return };
        let mut shown = vec![model.as_str()];
        shown.extend(fallback_models.iter().map(String::as_str));
        self.record_value("model", &shown.join(", "), &origin);
        (self.model, self.fallback_models) = (Some((model, origin)), fallback_models);
    }

    pub(super) fn set_small_model(&mut self, model: String, origin: ConfigOrigin) {
        self.record_value("small_model", &model, &origin);
        self.small_model = Some((model, origin));
    }

    pub(super) fn apply_small_model(
        &mut self,
        layer: ConfigLayer,
        model: Option<String>,
        file: &mut ParsedConfig,
    ) {
        match model {
            Some(_) if layer == ConfigLayer::Project => {
                file.add_fault("/small_model", "a project cannot choose the small model");
            }
            Some(model) => self.set_small_model(model, file.origin_of("/small_model").clone()),
            None => {}
        }
    }

    pub(super) fn apply_provider_options(
        &mut self,
        name: &str,
        provider: &ProviderSettings,
        pointer: &str,
        file: &ParsedConfig,
    ) {
        self.apply_options(ModelOptionScope::Provider(name.into()), pointer, file);
        for (model, settings) in &provider.models {
            let model_pointer = json_pointer::join(&format!("{pointer}/models"), model);
            self.apply_options(
                ModelOptionScope::Model(name.into(), model.clone()),
                &model_pointer,
                file,
            );
            for variant in settings.variants.keys() {
                let scope = ModelOptionScope::Variant(name.into(), model.clone(), variant.clone());
                let variant_pointer =
                    json_pointer::join(&format!("{model_pointer}/variants"), variant);
                self.apply_options(scope, &variant_pointer, file);
            }
        }
    }

    /// Adds the options of one scope, each with its origin.
    pub(super) fn apply_options(
        &mut self,
        scope: ModelOptionScope,
        pointer: &str,
        file: &ParsedConfig,
    ) {
        let options_pointer = match scope {
            ModelOptionScope::Variant(..) => pointer.to_owned(),
            ModelOptionScope::Provider(_)
            | ModelOptionScope::Model(..)
            | ModelOptionScope::Agent(_) => {
                format!("{pointer}/options")
            }
        };
        let Some(Value::Object(options)) = file.value_at(&options_pointer) else { return };
        for (key, value) in options {
            let inner = match value {
                Value::Object(inner) if key == "extra" => inner,
                _ => {
                    let origin = file.origin_of(&json_pointer::join(&options_pointer, key)).clone();
                    let option = ModelOption { name: key.clone(), value: value.clone(), origin };
                    self.options.push((scope.clone(), option));
                    continue;
                }
            };
            for (name, value) in inner {
                let option_pointer =
                    json_pointer::join(&json_pointer::join(&options_pointer, key), name);
                let origin = file.origin_of(&option_pointer).clone();
                let (name, value) = (format!("extra.{name}"), value.clone());
                self.options.push((scope.clone(), ModelOption { name, value, origin }));
            }
        }
    }

    /// Returns the options of a model with their origins: those of its provider, the model, the
    /// agent and the variant, each overriding the previous ones.
    pub fn model_options(
        &self,
        provider: &str,
        model: &str,
        agent: Option<&str>,
        variant: Option<&str>,
    ) -> Vec<ModelOption> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let variant = variant.map(|name| {
            ModelOptionScope::Variant(provider.clone(), model.clone(), name.to_owned())
        });
        let scopes = [
            ModelOptionScope::Provider(provider.clone()),
            ModelOptionScope::Model(provider, model),
        ];
        let agent = agent.map(|agent| ModelOptionScope::Agent(agent.to_owned()));
        let mut options: Vec<ModelOption> = Vec::new();
        for scope in scopes.into_iter().chain(agent).chain(variant) {
            for option in self.options_of(&scope) {
                options.retain(|weaker| weaker.name != option.name);
                options.push(option.clone());
            }
        }
        options
    }

    /// Returns the options that the config sets for an agent.
    pub fn agent_options(&self, agent: &str) -> Vec<ModelOption> {
        self.options_of(&ModelOptionScope::Agent(agent.to_owned())).cloned().collect()
    }

    /// Returns the options that a variant of a model sets.
    pub fn variant_options(&self, provider: &str, model: &str, variant: &str) -> Vec<ModelOption> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let scope = ModelOptionScope::Variant(provider, model, variant.to_owned());
        self.options_of(&scope).cloned().collect()
    }

    fn options_of(&self, scope: &ModelOptionScope) -> impl Iterator<Item = &ModelOption> {
        let options = self.options.iter().filter(move |(option_scope, _)| option_scope == scope);
        options.map(|(_, option)| option)
    }
}
