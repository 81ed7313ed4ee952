//! Agents that a config describes, and how the model of the usual one is to answer.
//!
//! An agent is taken as it is written: what its keys mean is said where files of agents are read.

use super::options::Scope;
use super::{AGENT, Config};
use crate::file::{File, Layer, Origin};
use crate::pointer;
use serde_json::{Map, Value};

/// An agent in a config.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) settings: Map<String, Value>,
    pub(crate) origin: Origin,
}

impl Config {
    /// The agents of a layer.
    pub(crate) fn described(&self, layer: Layer) -> impl Iterator<Item = &Described> {
        self.agents.iter().filter(move |agent| agent.origin.layer == layer)
    }

    pub(super) fn take_agents(&mut self, layer: Layer, file: &mut File) {
        let names = file.at("/agent").and_then(Value::as_object);
        let names: Vec<String> = names.into_iter().flat_map(Map::keys).cloned().collect();
        for name in names {
            let pointer = pointer::join("/agent", &name);
            self.take_agent_options(layer, (&name, &pointer), file);
            if file.unfit.contains(&name) {
                continue;
            }
            let Some(Value::Object(mut settings)) = file.at(&pointer).cloned() else { continue };
            self.show_all(&format!("agent.{name}"), &settings.clone().into(), &pointer, file);
            settings.shift_remove("options");
            if settings.is_empty() {
                continue;
            }
            let origin = file.origin(&pointer).clone();
            // Of two files of a layer the stronger one describes it whole.
            self.agents.retain(|known| known.name != name || known.origin.layer != layer);
            self.agents.push(Described { name, settings, origin });
        }
    }

    /// What a project puts into requests as it is would go out under the person's key, past every
    /// permission, so that part is the person's alone.
    fn take_agent_options(&mut self, layer: Layer, (name, at): (&str, &str), file: &mut File) {
        let (options, extra) = (format!("{at}/options"), format!("{at}/options/extra"));
        if name != AGENT && file.at(&options).is_some() {
            file.fault(
                &options,
                &format!("only `{AGENT}` has options; set `temperature` or `model`"),
            );
            file.remove(&options);
        }
        if layer == Layer::Project && file.at(&extra).is_some() {
            file.fault(&extra, "a project cannot add to requests");
            file.remove(&extra);
        }
        self.take_options(Scope::Agent(name.to_owned()), at, file);
    }
}
