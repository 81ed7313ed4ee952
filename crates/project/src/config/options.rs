//! How a model is to answer: four places that can say so, and which of them counts.

use super::{AGENT, Config, Provider};
use crate::file::{File, Origin};
use crate::pointer;
use serde_json::Value;

/// Where an option is set, from weak to strong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Provider(String),
    Model(String, String),
    Agent(String),
    Variant(String, String, String),
}

/// An option that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Its name; `extra.NAME` for what only the provider knows.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Who says so.
    pub origin: Origin,
}

impl Config {
    pub(super) fn take_provider_options(
        &mut self,
        name: &str,
        provider: &Provider,
        pointer: &str,
        file: &File,
    ) {
        self.take_options(Scope::Provider(name.into()), pointer, file);
        for (model, row) in &provider.models {
            let place = pointer::join(&format!("{pointer}/models"), model);
            self.take_options(Scope::Model(name.into(), model.clone()), &place, file);
            for variant in row.variants.keys() {
                let scope = Scope::Variant(name.into(), model.clone(), variant.clone());
                let place = pointer::join(&format!("{place}/variants"), variant);
                self.take_options(scope, &place, file);
            }
        }
    }

    /// Takes over the options of one place, each with where it stands.
    pub(super) fn take_options(&mut self, scope: Scope, pointer: &str, file: &File) {
        let place = match scope {
            Scope::Variant(..) => pointer.to_owned(),
            Scope::Provider(_) | Scope::Model(..) | Scope::Agent(_) => format!("{pointer}/options"),
        };
        let Some(Value::Object(options)) = file.at(&place) else { return };
        for (key, value) in options {
            let inner = match value {
                Value::Object(inner) if key == "extra" => inner,
                _ => {
                    let origin = file.origin(&pointer::join(&place, key)).clone();
                    let chosen = Chosen { name: key.clone(), value: value.clone(), origin };
                    self.options.push((scope.clone(), chosen));
                    continue;
                }
            };
            for (name, value) in inner {
                let at = pointer::join(&pointer::join(&place, key), name);
                let origin = file.origin(&at).clone();
                let (name, value) = (format!("extra.{name}"), value.clone());
                self.options.push((scope.clone(), Chosen { name, value, origin }));
            }
        }
    }

    /// How a model is to answer: what its provider, itself, the agent and a variant say, the later
    /// over the earlier, each with where it stands.
    pub fn options(&self, provider: &str, model: &str, variant: Option<&str>) -> Vec<Chosen> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let variant =
            variant.map(|name| Scope::Variant(provider.clone(), model.clone(), name.to_owned()));
        let scopes = [
            Scope::Provider(provider.clone()),
            Scope::Model(provider, model),
            Scope::Agent(AGENT.to_owned()),
        ];
        let mut chosen: Vec<Chosen> = Vec::new();
        for scope in scopes.into_iter().chain(variant) {
            for (_, option) in self.options.iter().filter(|(at, _)| *at == scope) {
                chosen.retain(|weaker| weaker.name != option.name);
                chosen.push(option.clone());
            }
        }
        chosen
    }
}
