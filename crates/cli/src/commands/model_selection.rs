//! Selects the model, its endpoint, options and API key from catalog, config and key store.

use crate::redact;
use crate::setup::LoadedProject;
use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Map;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::ModelHandle;
use windlass_llm::catalog::{self, AuthScheme, Model, Quirks};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{ApiKey, Client, Endpoint, EndpointTimeouts, is_local_url};
use windlass_project::{
    ApiKeySource, ApiKeyStore, ConfigLayer, ConfigOrigin, ModelOption, ProviderSettings,
    ProviderTimeoutSettings,
};
use windlass_protocol::ModelOptions;

/// A selected model with its endpoint and options.
pub(crate) struct ResolvedModel {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: Model,
    /// Request options, each with its `origin` in the config.
    pub(crate) options: Vec<ModelOption>,
}

impl ResolvedModel {
    /// Creates a client for the model.
    pub(crate) fn into_client(self) -> anyhow::Result<ModelHandle> {
        let options = to_model_options(&self.options)?;
        Ok(ModelHandle {
            client: Arc::new(Client::new(self.endpoint)?),
            model: Arc::new(self.model),
            options: Arc::new(options),
        })
    }
}

pub(crate) fn to_model_options(chosen: &[ModelOption]) -> anyhow::Result<ModelOptions> {
    let (mut options, mut extra) = (Map::new(), Map::new());
    for ModelOption { name, value, .. } in chosen {
        match name.strip_prefix("extra.") {
            Some(name) => extra.insert(name.to_owned(), value.clone()),
            None => options.insert(name.clone(), value.clone()),
        };
    }
    options.insert("extra".into(), extra.into());
    serde_json::from_value(options.into()).context("invalid model options")
}

impl LoadedProject {
    /// Selects the configured model; an error says what is missing and how to provide it.
    pub(crate) fn choose_model(&self, variant: Option<&str>) -> anyhow::Result<ResolvedModel> {
        let Some((name, origin)) = &self.config.model else {
            bail!(
                "no model is set. Set \"model\": \"PROVIDER/MODEL\" in {}, or use --model; run \
                 `windlass models` to list models",
                self.dirs.config.join("windlass.jsonc").display()
            );
        };
        self.choose_named_model(name, origin, variant)
    }

    /// Selects the model with this `PROVIDER/MODEL` name.
    pub(crate) fn choose_named_model(
        &self,
        name: &str,
        origin: &ConfigOrigin,
        variant: Option<&str>,
    ) -> anyhow::Result<ResolvedModel> {
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty())
        else {
            bail!("{origin}: invalid model `{name}`; use the form PROVIDER/MODEL");
        };
        let provider = crate::commands::auth::canonical_name(provider);
        if let Some(reason) = self.config.broken_providers.get(provider) {
            bail!("provider `{provider}` is disabled: {reason}. Fix the setting to use it");
        }
        let Some((row, base)) = self.find_provider(provider)? else {
            let suggestion = crate::commands::auth::suggest_providers(provider, &self.config);
            bail!(
                "{origin}: unknown provider `{provider}`. {suggestion}Run `windlass models` to \
                 list known ones, or add your own to your config"
            );
        };
        let settings = row.models.get(model);
        if let Some(variant) = variant
            && !settings.is_some_and(|settings| settings.variants.contains_key(variant))
        {
            let variants = settings.map(|settings| settings.variants.keys().cloned().collect());
            let variants: Vec<String> = variants.unwrap_or_default();
            let available = if variants.is_empty() { "none".into() } else { variants.join(", ") };
            bail!("{name} has no variant `{variant}`; available: {available}");
        }
        let id = settings.and_then(|settings| settings.id.as_deref()).unwrap_or(model);
        let known = base.and_then(|base| catalog::find_model(base.id, id));
        let model_row = apply_overrides(known.unwrap_or_else(|| Model::unlisted(id)), settings);
        Ok(ResolvedModel {
            endpoint: self.build_endpoint(provider, &row, base, id, None)?,
            options: self.config.model_options(provider, model, None, variant),
            model: model_row,
        })
    }

    /// Returns the endpoint of a provider with a new API key, and the path of a request that checks
    /// the key; `None` if there is none.
    pub(crate) fn key_check_endpoint(
        &self,
        provider: &str,
        key: &SecretString,
    ) -> anyhow::Result<Option<(Endpoint, &'static str)>> {
        let provider = crate::commands::auth::canonical_name(provider);
        let Some((row, base)) = self.find_provider(provider)? else { return Ok(None) };
        let has_known_url = row.base_url.is_none();
        let path = match base.filter(|_| has_known_url) {
            Some(base) => base.key_check_path,
            None => Some("/models"),
        };
        let Some(path) = path else { return Ok(None) };
        let key = ApiKey { secret: key.clone(), source: "your input".to_owned() };
        Ok(Some((self.build_endpoint(provider, &row, base, "", Some(key))?, path)))
    }

    /// Returns the providers that can be used without further setup, each with the evidence for
    /// that. Those in the config come first.
    pub(crate) fn ready_providers(&self) -> Vec<(String, String)> {
        let saved_keys = ApiKeyStore::open(&self.dirs).list().unwrap_or_default();
        let mut names: Vec<String> = self.config.providers.keys().cloned().collect();
        names.extend(catalog::ALL_PROVIDERS.iter().map(|row| row.id.to_owned()));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| {
            !self.config.broken_providers.contains_key(name) && seen.insert(name.clone())
        });
        let evidence = |name: &String| {
            let settings = self.config.providers.get(name).map(|(row, _)| row);
            let has_own_url = settings.is_some_and(|row| row.base_url.is_some());
            let listed = catalog::find_provider(name).filter(|_| !has_own_url);
            let set = |variable: &&&str| {
                LoadedProject::env_variable(variable).is_some_and(|value| !value.trim().is_empty())
            };
            if let Some(variable) = listed.and_then(|row| row.key_env_vars.iter().find(set)) {
                return Some(format!("{variable} is set"));
            }
            if let Some((_, source)) = saved_keys.iter().find(|(provider, _)| provider == name) {
                return Some(format!("API key saved in {source}"));
            }
            let settings = settings?;
            (has_own_url || settings.api_key.is_some()).then(|| "set in your config".to_owned())
        };
        names
            .into_iter()
            .filter_map(|name| evidence(&name).map(|evidence| (name, evidence)))
            .collect()
    }

    /// Returns true if there is an API key for this provider.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        let settings = self.config.providers.get(name).map(|(row, _)| row.clone());
        self.find_key(name, &settings.unwrap_or_default()).is_ok_and(|key| key.is_some())
    }

    /// Registers all API keys of the user for redaction: of exports, which may contain the keys of
    /// any provider.
    pub(crate) fn register_keys(&self) {
        for (name, _) in self.ready_providers() {
            let settings = self.config.providers.get(&name).map(|(row, _)| row.clone());
            let row = settings.unwrap_or_default();
            let key = self.find_key(&name, &row).ok().flatten();
            key.iter().for_each(|key| redact::add_secret(key.secret.expose_secret()));
            row.headers.values().for_each(|value| redact::add_secret(value));
        }
    }

    /// Returns the models of a provider: those in the config first, then those in the `catalog`.
    pub(crate) fn provider_models(&self, name: &str) -> Vec<(String, Model)> {
        let provider = self.config.providers.get(name).map(|(row, _)| row);
        let base = provider.and_then(|row| row.like.as_deref()).unwrap_or(name);
        let configured = provider.into_iter().flat_map(|row| &row.models).map(|(id, settings)| {
            let known = catalog::find_model(base, settings.id.as_deref().unwrap_or(id));
            let model = known.unwrap_or_else(|| Model::unlisted(id));
            (id.clone(), apply_overrides(model, Some(settings)))
        });
        let listed = catalog::models_of_provider(base)
            .filter(|model| provider.is_none_or(|row| !row.models.contains_key(&model.id)))
            .map(|model| (model.id.clone(), model));
        configured.chain(listed).collect()
    }

    /// Returns the catalog entry of the model `name`, with the settings of the config. `None` if its
    /// provider is unknown.
    pub(crate) fn find_model(&self, name: &str) -> Option<Model> {
        let (provider, model) = name.split_once('/')?;
        let (row, base) =
            self.find_provider(crate::commands::auth::canonical_name(provider)).ok()??;
        let settings = row.models.get(model);
        let id = settings.and_then(|settings| settings.id.as_deref()).unwrap_or(model);
        let known = base.and_then(|base| catalog::find_model(base.id, id));
        Some(apply_overrides(known.unwrap_or_else(|| Model::unlisted(id)), settings))
    }

    /// Returns the names of a model's variants in the config.
    pub(crate) fn model_variants(&self, name: &str) -> Vec<String> {
        let find = || {
            let (provider, model) = name.split_once('/')?;
            let provider = crate::commands::auth::canonical_name(provider);
            let (row, _) = self.find_provider(provider).ok()??;
            Some(row.models.get(model)?.variants.keys().cloned().collect())
        };
        find().unwrap_or_default()
    }

    /// Returns the reasoning effort of a model in the config.
    pub(crate) fn configured_effort(&self, name: &str) -> Option<String> {
        let (provider, model) = name.split_once('/')?;
        let provider = crate::commands::auth::canonical_name(provider);
        let options = self.config.model_options(provider, model, None, None);
        let effort = options.into_iter().find(|option| option.name == "effort")?;
        effort.value.as_str().map(str::to_owned)
    }

    /// Returns the configured `ProviderSettings` and the catalog entry they extend; `None` if the
    /// provider is unknown.
    fn find_provider(
        &self,
        name: &str,
    ) -> anyhow::Result<Option<(ProviderSettings, Option<&'static catalog::Provider>)>> {
        let Some((row, origin)) = self.config.providers.get(name) else {
            return Ok(
                catalog::find_provider(name).map(|base| (ProviderSettings::default(), Some(base)))
            );
        };
        let base = match &row.like {
            Some(like) => Some(
                catalog::find_provider(like)
                    .with_context(|| format!("{origin}: `like`: unknown provider `{like}`"))?,
            ),
            None => catalog::find_provider(name),
        };
        Ok(Some((row.clone(), base)))
    }

    fn build_endpoint(
        &self,
        name: &str,
        row: &ProviderSettings,
        base: Option<&'static catalog::Provider>,
        model: &str,
        new_key: Option<ApiKey>,
    ) -> anyhow::Result<Endpoint> {
        let origin = self.config.providers.get(name).map(|(_, origin)| origin);
        let origin = origin.map_or_else(String::new, |origin| format!("{origin}: "));
        let configured_format = match &row.api {
            Some(api) => Some(WireFormat::from_name(api).with_context(|| {
                let names: Vec<&str> = WireFormat::NAMES.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                format!("{origin}unsupported wire format `{api}`; supported: {names}")
            })?),
            None => None,
        };
        let Some(format) = configured_format.or(base.map(|base| base.format)) else {
            bail!("{origin}provider `{name}` needs `api` (its wire format) or `like`");
        };
        let base_url = match (&row.base_url, base) {
            (Some(url), _) => url.clone(),
            (None, Some(base)) => {
                base.resolve_base_url(LoadedProject::env_variable).map_err(|variable| {
                    anyhow::anyhow!("{name} needs the environment variable {variable}; set it")
                })?
            }
            (None, None) => bail!("{origin}provider `{name}` needs `base_url`"),
        };
        let base = match base.filter(|base| base.format == format) {
            Some(base) => base,
            None => catalog::generic_provider(format, is_local_url(&base_url)),
        };
        let key = match new_key {
            Some(key) => Some(key),
            None => self.find_key(name, row)?,
        };
        if key.is_none() && base.auth != AuthScheme::OptionalBearer && row.base_url.is_none() {
            let variables = catalog::find_provider(name).map(|row| row.key_env_vars.join(" or "));
            let instruction =
                variables.map(|names| format!("Set {names}, or run")).unwrap_or("Run".into());
            bail!(
                "no API key for {name}. {instruction} `windlass auth login {name}`; get a key at \
                 {}",
                base.key_help_url
            );
        }
        key.iter().for_each(|key| redact::add_secret(key.secret.expose_secret()));
        row.headers.values().for_each(|value| redact::add_secret(value));
        Ok(Endpoint {
            provider: name.to_owned(),
            format,
            auth: base.auth,
            api_key: key,
            fixed_headers: base.fixed_headers,
            user_headers: row.headers.clone().into_iter().collect(),
            proxy_env_var: proxy_variable(&base_url),
            base_url,
            quirks: Quirks {
                think_tags: row.think_tags,
                strict_tools: row.strict_tools,
                ..base.quirks_for_model(model)
            },
            timeouts: to_timeouts(row.timeouts),
        })
    }

    /// Finds the API key of a provider: among those of the tenant, in the environment, in the config, or in the key store. A
    /// provider with an address that a project chose never gets the user's keys.
    fn find_key(&self, name: &str, row: &ProviderSettings) -> anyhow::Result<Option<ApiKey>> {
        let origin = self.config.providers.get(name).map(|(_, origin)| origin);
        let is_own = origin.is_none_or(|origin| origin.layer != ConfigLayer::Project);
        // The usual variable belongs to the known address; with another `base_url` the config must
        // name the variable.
        if let (true, Some(key)) = (is_own, self.context.provider_keys.get(name)) {
            let source = "the keys of the tenant".to_owned();
            return Ok(Some(ApiKey { secret: key.clone(), source }));
        }
        let has_known_url = is_own && row.base_url.is_none();
        let variables = catalog::find_provider(name)
            .filter(|_| has_known_url)
            .map_or(&[][..], |base| base.key_env_vars);
        for variable in variables {
            if let Some(secret) =
                LoadedProject::env_variable(variable).filter(|secret| !secret.trim().is_empty())
            {
                let source = ApiKeySource::Env((*variable).to_owned()).to_string();
                return Ok(Some(ApiKey { secret: secret.into(), source }));
            }
        }
        let key_name = format!("provider.{name}.api_key");
        let value = self.config.effective_values().iter().find(|(shown, ..)| *shown == key_name);
        let non_empty = |secret: &&SecretString| !secret.expose_secret().trim().is_empty();
        if let (Some(secret), Some((.., origin))) = (row.api_key.as_ref().filter(non_empty), value)
        {
            let source = ApiKeySource::Config(origin.clone()).to_string();
            return Ok(Some(ApiKey { secret: secret.clone(), source }));
        }
        if !is_own {
            return Ok(None);
        }
        let saved = ApiKeyStore::open(&self.dirs).get(name)?;
        Ok(saved.map(|(secret, source)| ApiKey { secret, source: source.to_string() }))
    }
}

/// Returns the environment variable that sets a proxy for this URL, if one is set.
fn proxy_variable(url: &str) -> Option<&'static str> {
    let names: &[&str] = match url.starts_with("https:") {
        true => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    names
        .iter()
        .find(|name| LoadedProject::env_variable(name).is_some_and(|value| !value.is_empty()))
        .copied()
}

fn to_timeouts(settings: ProviderTimeoutSettings) -> EndpointTimeouts {
    let defaults = EndpointTimeouts::default();
    let duration = |seconds: Option<NonZeroU32>, default: Duration| {
        seconds.map_or(default, |seconds| Duration::from_secs(seconds.get().into()))
    };
    EndpointTimeouts {
        connect: duration(settings.connect, defaults.connect),
        headers: duration(settings.headers, defaults.headers),
        first_event: duration(settings.first, defaults.first_event),
        idle: duration(settings.idle, defaults.idle),
    }
}

/// Applies the `ModelSettings` in the config to a model.
fn apply_overrides(model: Model, settings: Option<&windlass_project::ModelSettings>) -> Model {
    let Some(settings) = settings else { return model };
    Model {
        context: settings.context.or(model.context),
        output: settings.output.or(model.output),
        images: settings.images.unwrap_or(model.images),
        pdfs: settings.pdfs.unwrap_or(model.pdfs),
        calls: settings.calls.unwrap_or(model.calls),
        reasons: settings.reasons.unwrap_or(model.reasons || settings.efforts.is_some()),
        efforts: settings.efforts.clone().unwrap_or_else(|| model.efforts.clone()),
        structured: settings.structured.unwrap_or(model.structured),
        temperature: settings.temperature.unwrap_or(model.temperature),
        price: catalog::Price {
            input: settings.cost.input.or(model.price.input),
            output: settings.cost.output.or(model.price.output),
            cache_read: settings.cost.cache_read.or(model.price.cache_read),
            cache_write: settings.cost.cache_write.or(model.price.cache_write),
        },
        ..model
    }
}
