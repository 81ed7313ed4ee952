//! Logins: checks and saves API keys, and adds OpenAI-compatible servers to the user's config.

use super::workspace_state::{WorkspaceState, to_fault};
use crate::commands::auth::{self, ApiKeyCheck, KEY_CHECK_TIMEOUT};
use crate::terminal::output;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{ApiKey, Client, Endpoint, catalog};
use windlass_project::config::edit;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{LoginResult, ProviderKey};

/// Limits the models that are written to the config for a new server.
const MAX_SAVED_MODELS: usize = 50;
/// Limits the name of a provider.
const MAX_NAME_BYTES: usize = 32;

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl WorkspaceState {
    /// Asks the provider about an API key and saves it, unless the provider rejects it.
    pub(crate) async fn check_and_save_key(
        &self,
        provider: &str,
        key: &ProviderKey,
        save_rejected: bool,
    ) -> Result<LoginResult, Fault> {
        let key = SecretString::from(key.0.trim().to_owned());
        let check = match save_rejected {
            true => ApiKeyCheck::Unknown("you chose to save it".to_owned()),
            false => auth::check_key(&self.setup, provider, &key)
                .await
                .map_err(|error| to_fault(&error))?,
        };
        let result = match check {
            ApiKeyCheck::Rejected(reason) => return Ok(LoginResult::Rejected { reason }),
            ApiKeyCheck::Accepted => LoginResult::Saved,
            ApiKeyCheck::Unknown(reason) => LoginResult::SavedUnchecked { reason },
        };
        let source =
            auth::save_key(&self.setup, provider, &key).map_err(|error| to_fault(&error))?;
        output::print_note(&format!("saved the API key for {provider} in {source}"));
        Ok(result)
    }

    /// Adds an OpenAI-compatible server to the user's config, with the models that it lists, and
    /// saves its API key.
    pub(crate) async fn add_provider(
        &self,
        name: &str,
        base_url: &str,
        key: &ProviderKey,
        model: &str,
    ) -> Result<LoginResult, Fault> {
        let (name, base_url) = (name.trim(), base_url.trim().trim_end_matches('/'));
        let (key, model) = (key.0.trim(), model.trim());
        self.check_new_name(name)?;
        let mut endpoint = Endpoint::generic(WireFormat::OpenaiChat, base_url.to_owned());
        endpoint.provider = name.to_owned();
        endpoint.api_key = (!key.is_empty())
            .then(|| ApiKey { secret: key.to_owned().into(), source: "your input".to_owned() });
        let listed = Client::new(endpoint)?.check_api_key("/models", KEY_CHECK_TIMEOUT).await;
        let (mut models, result) = match listed {
            Ok(models) => (models, LoginResult::Saved),
            Err(fault) => match ApiKeyCheck::from_fault(fault) {
                ApiKeyCheck::Rejected(reason) => return Ok(LoginResult::Rejected { reason }),
                ApiKeyCheck::Unknown(reason) if !model.is_empty() => {
                    (Vec::new(), LoginResult::SavedUnchecked { reason })
                }
                ApiKeyCheck::Unknown(reason) => {
                    return Err(config_fault(format!(
                        "cannot list the models of this server ({reason}). Check the URL, or name \
                         a model"
                    )));
                }
                ApiKeyCheck::Accepted => (Vec::new(), LoginResult::Saved),
            },
        };
        if !model.is_empty() {
            models.retain(|listed| listed != model);
            models.insert(0, model.to_owned());
        }
        if models.is_empty() {
            return Err(config_fault("this server lists no models; name the model to use"));
        }
        models.truncate(MAX_SAVED_MODELS);
        let models: Map<String, Value> =
            models.into_iter().map(|model| (model, json!({}))).collect();
        let value = json!({"api": "openai-chat", "base_url": base_url, "models": models});
        let path = self.setup.dirs.config.join("windlass.jsonc");
        let change = edit::insert(&path, ("provider", name), &value)
            .map_err(|error| config_fault(error.to_string()))?;
        let Some(change) = change else {
            return Err(config_fault(format!("your config already contains `{name}`")));
        };
        if !key.is_empty() {
            let save = || -> anyhow::Result<()> {
                let reloaded = self.reload()?;
                auth::save_key(&reloaded.setup, name, &key.to_owned().into())?;
                Ok(())
            };
            if let Err(error) = save() {
                change.revert().map_err(|error| config_fault(error.to_string()))?;
                return Err(to_fault(&error));
            }
        }
        output::print_note(&format!("added the provider {name} to {}", path.display()));
        Ok(result)
    }

    fn check_new_name(&self, name: &str) -> Result<(), Fault> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_valid) {
            return Err(config_fault(format!(
                "invalid name: use letters, digits, `_` and `-`, at most {MAX_NAME_BYTES}"
            )));
        }
        let is_taken = catalog::find_provider(name).is_some()
            || self.setup.config.providers.contains_key(name);
        match is_taken {
            true => Err(config_fault(format!("the name `{name}` is taken; choose another"))),
            false => Ok(()),
        }
    }
}
