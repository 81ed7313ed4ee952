//! Settings that the user changes in the terminal UI: model and appearance. Only the affected
//! value in the user's config changes; comments are preserved.

use super::config_and_engines::HostState;
use serde_json::Value;
use windlass_project::ConfigFlags;
use windlass_project::config::edit;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::mutex_lock::lock;

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl HostState {
    /// Returns the same state with the model `model`.
    pub(super) fn with_model(&self, model: &str) -> Result<HostState, Fault> {
        let flags = ConfigFlags { model: Some(model.to_owned()), ..self.flags.clone() };
        // The efforts and variants are those of the model before it.
        let mut state = self.reload(flags)?;
        state.effort = None;
        Ok(state)
    }

    /// Returns the same state with another reasoning effort or variant of the model.
    pub(super) fn with_effort(&self, effort: Option<String>) -> Result<HostState, Fault> {
        let available = self.available_efforts();
        if let Some(effort) = effort.as_ref().filter(|effort| !available.contains(effort)) {
            let available = if available.is_empty() { "none".into() } else { available.join(", ") };
            return Err(config_fault(format!(
                "this model has no effort or variant `{effort}`; available: {available}"
            )));
        }
        let mut state = self.reload(self.flags.clone())?;
        state.effort = effort;
        Ok(state)
    }

    /// Returns the variants of the model, then the efforts that it supports.
    pub(super) fn available_efforts(&self) -> Vec<String> {
        let Some((name, _)) = &self.setup.config.model else { return Vec::new() };
        let mut efforts = self.setup.model_variants(name);
        let supported = self.setup.find_model(name).map(|model| model.efforts).unwrap_or_default();
        for effort in supported {
            if !efforts.iter().any(|known| known == effort.name()) {
                efforts.push(effort.name().to_owned());
            }
        }
        efforts
    }

    /// Saves the chosen model as `model` in the user's config.
    pub(super) fn save_model(&self, model: &str) -> Result<(), Fault> {
        self.write_config(&["model"], &Value::String(model.to_owned()))
    }

    /// Saves a `tui.…` setting, such as the theme.
    pub(super) fn set_option(&self, name: &str, value: &Value) -> Result<HostResponse, Fault> {
        let keys: Vec<&str> = name.split('.').collect();
        // Only `tui.…`: a front end must not change settings that decide what is run or allowed.
        if !matches!(keys.as_slice(), ["tui", key, ..] if !key.is_empty()) {
            return Err(config_fault(format!("`{name}` is not a `tui` setting")));
        }
        self.write_config(&keys, value)?;
        if name == "tui.favorite_models" {
            let favorites = serde_json::from_value(value.clone()).ok();
            *lock(&self.memory.favorite_models) = favorites;
        }
        Ok(HostResponse::Done)
    }

    fn write_config(&self, keys: &[&str], value: &Value) -> Result<(), Fault> {
        let path = self.setup.dirs.config.join("windlass.jsonc");
        edit::set_value(&path, keys, value).map_err(|error| config_fault(error.to_string()))
    }
}
