//! Settings that the user changes in the terminal UI: model and appearance. Only the affected
//! value in the user's config changes; comments are preserved.

use super::workspace_state::WorkspaceState;
use serde_json::Value;
use std::path::Path;
use windlass_project::config::edit;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::mutex_lock::lock;

/// Setting with the models that the model picker shows first.
pub(crate) const FAVORITE_MODELS: &str = "tui.favorite_models";

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl WorkspaceState {
    /// Returns the variants of a model, then the efforts that it supports.
    pub(crate) fn available_efforts(&self, model: Option<&str>) -> Vec<String> {
        let Some(name) = model else { return Vec::new() };
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
    pub(crate) fn save_model(&self, model: &str) -> Result<(), Fault> {
        write_config(&self.setup.dirs.config, &["model"], &Value::String(model.to_owned()))
    }

    /// Saves a `tui.…` setting, such as the theme.
    pub(crate) fn set_option(&self, name: &str, value: &Value) -> Result<HostResponse, Fault> {
        save_tui_setting(&self.setup.dirs.config, name, value)?;
        if name == FAVORITE_MODELS {
            let favorites = serde_json::from_value(value.clone()).ok();
            *lock(&self.memory.favorite_models) = favorites;
        }
        Ok(HostResponse::Done)
    }
}

/// Saves a `tui.…` setting in the config of this folder.
pub(crate) fn save_tui_setting(config: &Path, name: &str, value: &Value) -> Result<(), Fault> {
    let keys: Vec<&str> = name.split('.').collect();
    // Only `tui.…`: a front end must not change settings that decide what is run or allowed.
    if !matches!(keys.as_slice(), ["tui", key, ..] if !key.is_empty()) {
        return Err(config_fault(format!("`{name}` is not a `tui` setting")));
    }
    write_config(config, &keys, value)
}

fn write_config(config: &Path, keys: &[&str], value: &Value) -> Result<(), Fault> {
    let path = config.join("windlass.jsonc");
    edit::set_value(&path, keys, value).map_err(|error| config_fault(error.to_string()))
}
