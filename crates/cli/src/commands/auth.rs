//! Implements `windlass auth …`: the API keys that the user stores. A key comes from the keyboard
//! or from standard input, never from an argument, and is never shown.

use crate::setup::LoadedProject;
use crate::terminal::{output, secret_input};
use crate::{CliExit, args};
use anyhow::bail;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_llm::{Client, catalog};
use windlass_project::{ApiKeySource, ApiKeyStore, Config, ConfigFlags, ConfigLayer};
use windlass_protocol::Fault;
use windlass_web::SearchEngine;

/// Limit for the request that checks an API key.
pub(crate) const KEY_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a `windlass auth` command.
pub(crate) async fn run_auth(command: &args::AuthCommand) -> anyhow::Result<CliExit> {
    match command {
        args::AuthCommand::Login { provider, unchecked } => login(provider, *unchecked).await,
        args::AuthCommand::List => list_keys(),
        args::AuthCommand::Logout { provider } => logout(provider),
    }
}

async fn login(provider: &str, unchecked: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    check_provider(provider, &setup.config)?;
    let help_url = catalog::find_provider(provider)
        .map(|row| row.key_help_url.to_owned())
        .or_else(|| find_search_engine(provider)?.keys_at);
    let hint = help_url.map(|url| format!(" (get one at {url})")).unwrap_or_default();
    let question = format!("Paste the API key for {provider}{hint}; input is hidden: ");
    let Some(key) = secret_input::read_secret(&question)? else {
        output::print_note("no key saved");
        return Ok(CliExit::Interrupted);
    };
    if key.expose_secret().is_empty() {
        bail!(
            "no API key given. Type it at the prompt, or pipe it in: windlass auth login \
             {provider} < FILE"
        );
    }
    let check = match unchecked {
        true => None,
        false => Some(check_key(&setup, provider, &key).await?),
    };
    if let Some(ApiKeyCheck::Rejected(reason)) = &check {
        output::print_error(&format!("{provider} does not accept this key: {reason}"));
        if !output::is_interactive() || !output::confirm("Save it anyway? [y/N] ") {
            output::print_note("not saved; copy the key again, or use --unchecked to save it");
            return Ok(CliExit::Failed);
        }
    }
    let source = save_key(&setup, provider, &key)?;
    let note = format!("saved the API key for {provider} in {source}");
    output::print_note(&match check {
        Some(ApiKeyCheck::Accepted) => format!("{note}; the provider accepts it"),
        Some(ApiKeyCheck::Unknown(reason)) => format!("{note}; it was not checked: {reason}"),
        Some(ApiKeyCheck::Rejected(_)) | None => note,
    });
    Ok(CliExit::Done)
}

/// The answer of a provider about an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiKeyCheck {
    Accepted,
    /// The provider rejects the key, with its message.
    Rejected(String),
    /// The provider could not be asked, with the reason.
    Unknown(String),
}

impl ApiKeyCheck {
    pub(crate) fn from_fault(fault: Fault) -> ApiKeyCheck {
        match fault {
            Fault::Auth { message } => ApiKeyCheck::Rejected(message),
            Fault::Network { message } | Fault::HostNotFound { message } => {
                ApiKeyCheck::Unknown(format!("the provider cannot be reached ({message})"))
            }
            other => ApiKeyCheck::Unknown(other.to_string()),
        }
    }
}

/// Asks a provider with one request if it accepts a key.
pub(crate) async fn check_key(
    setup: &LoadedProject,
    provider: &str,
    key: &SecretString,
) -> anyhow::Result<ApiKeyCheck> {
    check_provider(provider, &setup.config)?;
    check_key_text(key)?;
    let Some((endpoint, path)) = setup.key_check_endpoint(provider, key)? else {
        return Ok(ApiKeyCheck::Unknown(format!("{provider} offers no request for that")));
    };
    Ok(match Client::new(endpoint)?.check_api_key(path, KEY_CHECK_TIMEOUT).await {
        Ok(_) => ApiKeyCheck::Accepted,
        Err(fault) => ApiKeyCheck::from_fault(fault),
    })
}

/// Rejects a text that cannot be an API key.
fn check_key_text(key: &SecretString) -> anyhow::Result<()> {
    if key.expose_secret().is_empty() {
        bail!("no API key given; nothing was saved");
    }
    if key.expose_secret().contains(|c: char| c.is_whitespace() || c.is_control()) {
        bail!(
            "invalid API key: it contains spaces or control characters; nothing was saved. Copy \
             it again"
        );
    }
    Ok(())
}

/// Saves an API key and returns its [`ApiKeySource`].
pub(crate) fn save_key(
    setup: &LoadedProject,
    provider: &str,
    key: &SecretString,
) -> anyhow::Result<ApiKeySource> {
    check_provider(provider, &setup.config)?;
    check_key_text(key)?;
    Ok(ApiKeyStore::open(&setup.dirs).set(canonical_name(provider), key)?)
}

fn logout(provider: &str) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    if !ApiKeyStore::open(&dirs).remove(canonical_name(provider))? {
        output::print_error(&format!(
            "no saved API key for {provider}. Run `windlass auth list` to see all keys"
        ));
        return Ok(CliExit::Failed);
    }
    output::print_note(&format!("removed the API key for {provider}"));
    for source in env_key_sources(provider) {
        output::print_note(&format!("note: {source} still contains one"));
    }
    Ok(CliExit::Done)
}

fn list_keys() -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let mut rows: BTreeMap<String, Vec<ApiKeySource>> = BTreeMap::new();
    for name in setup.config.providers.keys() {
        let key_name = format!("provider.{name}.api_key");
        let values =
            setup.config.effective_values().iter().filter(|(shown, ..)| *shown == key_name);
        let sources = values.map(|(.., origin)| ApiKeySource::Config(origin.clone()));
        rows.entry(name.clone()).or_default().extend(sources);
    }
    for row in catalog::ALL_PROVIDERS {
        rows.entry(row.id.to_owned()).or_default().extend(set_variables(row.key_env_vars));
    }
    for engine in windlass_web::built_in_engines() {
        rows.entry(engine.name).or_default().extend(set_variables(&engine.env));
    }
    for (name, (_, origin)) in &setup.config.integrations.search_engines {
        let key_name = format!("search.engines.{name}.api_key");
        let is_set = setup.config.effective_values().iter().any(|(shown, ..)| *shown == key_name);
        let source = is_set.then(|| ApiKeySource::Config(origin.clone()));
        rows.entry(name.clone()).or_default().extend(source);
    }
    let is_login =
        |name: &str| name.starts_with(crate::commands::mcp::token_store::KEY_NAME_PREFIX);
    for (name, source) in ApiKeyStore::open(&setup.dirs).list()? {
        if is_login(&name) {
            continue;
        }
        rows.entry(name).or_default().push(source);
    }
    rows.retain(|_, sources| !sources.is_empty());
    if rows.is_empty() {
        output::print_note("no API keys yet; add one with `windlass auth login PROVIDER`");
    }
    let width = rows.keys().map(|name| name.chars().count()).max().unwrap_or_default();
    for (name, sources) in rows {
        let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
        output::print_line(&format!("{name:<width$}  {}", sources.join(", ")));
    }
    Ok(CliExit::Done)
}

/// Returns the environment variables that are set and usually contain the key of this provider or
/// search engine.
fn env_key_sources(name: &str) -> Vec<ApiKeySource> {
    let mut sources =
        catalog::find_provider(name).map(|row| set_variables(row.key_env_vars)).unwrap_or_default();
    sources.extend(
        find_search_engine(name).map(|engine| set_variables(&engine.env)).unwrap_or_default(),
    );
    sources
}

/// Returns the variables that are set to a non-empty value.
fn set_variables(variables: &[impl AsRef<str>]) -> Vec<ApiKeySource> {
    let names = variables.iter().map(AsRef::as_ref);
    let set = names.filter(|name: &&str| {
        LoadedProject::env_variable(name).is_some_and(|value| !value.is_empty())
    });
    set.map(|name| ApiKeySource::Env(name.to_owned())).collect()
}

/// Finds a built-in search engine by name.
fn find_search_engine(name: &str) -> Option<SearchEngine> {
    windlass_web::built_in_engines().into_iter().find(|engine| engine.name == name)
}

/// Accepts known providers and those in the user's own config. Rejects a project's provider: a
/// stored key never goes to an address that a project chose.
fn check_provider(provider: &str, config: &Config) -> anyhow::Result<()> {
    let layer = config.providers.get(canonical_name(provider)).map(|(_, origin)| origin.layer);
    if catalog::find_provider(provider).is_some()
        || find_search_engine(provider).is_some()
        || config.integrations.search_engines.contains_key(provider)
        || layer.is_some_and(|layer| layer != ConfigLayer::Project)
    {
        return Ok(());
    }
    if layer.is_some() {
        bail!(
            "cannot save a key: `{provider}` is defined by this project, and keys are saved only \
             for providers in your own config. To use your key, add the provider to your own \
             config"
        );
    }
    let suggestion = suggest_providers(provider, config);
    bail!(
        "unknown provider `{provider}`. {suggestion}Run `windlass models` to list known \
         providers, or add your own to your config first"
    );
}

/// Returns the name under which a provider's key is stored, for any alias in the `catalog`.
pub(crate) fn canonical_name(provider: &str) -> &str {
    catalog::find_provider(provider).map_or(provider, |row| row.id)
}

/// Suggests similar provider names in a sentence; empty if there are none.
pub(crate) fn suggest_providers(input: &str, config: &Config) -> String {
    let mut names: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    names.extend(catalog::ALL_PROVIDERS.iter().map(|row| row.id));
    names.sort_unstable();
    names.dedup();
    output::did_you_mean(input, &names)
}
