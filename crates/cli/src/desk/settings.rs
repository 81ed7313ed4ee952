//! What a person sets from within: a model, a key, a look. Their own config is changed in that one
//! place, and its comments stay.

use super::house::{House, fault};
use crate::auth;
use secrecy::SecretString;
use serde_json::Value;
use windlass_project::{Flags, edit};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Key};

fn refused(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl House {
    /// The same house with another model.
    pub(super) fn with_model(&self, model: &str) -> Result<House, Fault> {
        self.again(Flags { model: Some(model.to_owned()), ..self.flags.clone() })
    }

    /// Keeps the choice of a model in the person's config.
    pub(super) fn keep_model(&self, model: &str) -> Result<(), Fault> {
        self.change(&["model"], &Value::String(model.to_owned()))
    }

    /// Keeps a provider's key.
    pub(super) fn login(&self, provider: &str, key: &Key) -> Result<(), Fault> {
        let key = SecretString::from(key.0.trim().to_owned());
        let kept = auth::keep(&self.setup, provider, &key).map_err(|error| fault(&error))?;
        crate::screen::note(&format!("the key for {provider} is kept in {kept}"));
        Ok(())
    }

    /// Keeps a look or the like.
    pub(super) fn set(&self, name: &str, value: &Value) -> Result<Answered, Fault> {
        let keys: Vec<&str> = name.split('.').collect();
        // Nothing that decides what is run or allowed is changed from a screen.
        if !matches!(keys.as_slice(), ["tui", key, ..] if !key.is_empty()) {
            return Err(refused(format!("`{name}` is not a setting of the screen")));
        }
        self.change(&keys, value)?;
        Ok(Answered::Done)
    }

    fn change(&self, keys: &[&str], value: &Value) -> Result<(), Fault> {
        let path = self.setup.places.config.join("windlass.jsonc");
        edit::set(&path, keys, value).map_err(|error| refused(error.to_string()))
    }
}
