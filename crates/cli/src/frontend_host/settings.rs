//! Settings that the user changes in the terminal UI: model and appearance. Only the affected
//! value in the user's config changes; comments are preserved.

use super::config_and_engines::HostState;
use serde_json::Value;
use windlass_project::ConfigFlags;
use windlass_project::config::edit;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::HostResponse;

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl HostState {
    /// Returns the same state with the model `model`.
    pub(super) fn with_model(&self, model: &str) -> Result<HostState, Fault> {
        self.reload(ConfigFlags { model: Some(model.to_owned()), ..self.flags.clone() })
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
        Ok(HostResponse::Done)
    }

    fn write_config(&self, keys: &[&str], value: &Value) -> Result<(), Fault> {
        let path = self.setup.dirs.config.join("windlass.jsonc");
        edit::set_value(&path, keys, value).map_err(|error| config_fault(error.to_string()))
    }
}
