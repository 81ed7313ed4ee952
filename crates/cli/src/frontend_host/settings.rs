//! Settings that the user changes in the terminal UI: model, API key, appearance. Only the affected
//! value in the user's config changes; comments are preserved.

use super::config_and_engines::{HostState, to_fault};
use crate::commands::auth;
use secrecy::SecretString;
use serde_json::Value;
use windlass_project::ConfigFlags;
use windlass_project::config::edit;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{HostResponse, ProviderKey};

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

    /// Saves a provider's API key.
    pub(super) fn save_key(&self, provider: &str, key: &ProviderKey) -> Result<(), Fault> {
        let key = SecretString::from(key.0.trim().to_owned());
        let source =
            auth::save_key(&self.setup, provider, &key).map_err(|error| to_fault(&error))?;
        crate::terminal::output::print_note(&format!(
            "saved the API key for {provider} in {source}"
        ));
        Ok(())
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
