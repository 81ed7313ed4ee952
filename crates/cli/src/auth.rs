//! `windlass auth …`: the keys a person gives us to keep. A key comes from the keyboard or from
//! standard input, never from an argument, and is never shown.

use crate::{Exit, args, screen, setup::Setup, unseen};
use anyhow::bail;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use windlass_llm::catalog;
use windlass_project::{Config, Flags, Keys, Layer, Source};
use windlass_web::Engine;

/// Does a command.
pub(crate) fn auth(command: &args::Auth) -> anyhow::Result<Exit> {
    match command {
        args::Auth::Login { provider } => login(provider),
        args::Auth::List => list(),
        args::Auth::Logout { provider } => logout(provider),
    }
}

fn login(provider: &str) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    check(provider, &setup.config)?;
    let known = catalog::provider(provider).map(|row| row.keys_at.to_owned());
    let made = known.or_else(|| engine(provider)?.keys_at).map(|at| format!(" ({at} makes them)"));
    let question = format!("Key for {provider}{}, not shown: ", made.unwrap_or_default());
    let Some(key) = unseen::read(&question)? else {
        screen::note("nothing was kept");
        return Ok(Exit::Interrupted);
    };
    if key.expose_secret().is_empty() {
        bail!(
            "no key was given. Type it when asked, or pipe it in: windlass auth login {provider} < FILE"
        );
    }
    let source = keep(&setup, provider, &key)?;
    screen::note(&format!("the key for {provider} is kept in {source}"));
    Ok(Exit::Done)
}

/// Keeps a key, and says where.
pub(crate) fn keep(setup: &Setup, provider: &str, key: &SecretString) -> anyhow::Result<Source> {
    check(provider, &setup.config)?;
    if key.expose_secret().is_empty() {
        bail!("no key was given; nothing was kept");
    }
    if key.expose_secret().contains(|c: char| c.is_whitespace() || c.is_control()) {
        bail!(
            "a key has no spaces or control characters in it; nothing was kept. Copy it once more"
        );
    }
    Ok(Keys::open(&setup.places).set(own_name(provider), key)?)
}

fn logout(provider: &str) -> anyhow::Result<Exit> {
    let (places, _) = Setup::places()?;
    if !Keys::open(&places).remove(own_name(provider))? {
        screen::error(&format!(
            "no key is kept for {provider}. `windlass auth list` shows what there is"
        ));
        return Ok(Exit::Failed);
    }
    screen::note(&format!("the key for {provider} is forgotten"));
    for source in in_environment(provider) {
        screen::note(&format!("note: {source} still holds one"));
    }
    Ok(Exit::Done)
}

fn list() -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let mut rows: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for name in setup.config.providers.keys() {
        let row = format!("provider.{name}.api_key");
        let places = setup.config.shown().iter().filter(|(shown, ..)| *shown == row);
        let places = places.map(|(.., origin)| Source::Config(origin.clone()));
        rows.entry(name.clone()).or_default().extend(places);
    }
    for row in catalog::PROVIDERS {
        rows.entry(row.id.to_owned()).or_default().extend(set(row.env));
    }
    for engine in windlass_web::engines() {
        rows.entry(engine.name).or_default().extend(set(&engine.env));
    }
    for (name, (_, origin)) in &setup.config.senses.engines {
        let row = format!("search.engines.{name}.api_key");
        let said = setup.config.shown().iter().any(|(shown, ..)| *shown == row);
        let place = said.then(|| Source::Config(origin.clone()));
        rows.entry(name.clone()).or_default().extend(place);
    }
    let logins = |name: &str| name.starts_with(crate::mcp::tokens::PREFIX);
    for (name, source) in Keys::open(&setup.places).list()? {
        if logins(&name) {
            continue;
        }
        rows.entry(name).or_default().push(source);
    }
    rows.retain(|_, sources| !sources.is_empty());
    if rows.is_empty() {
        screen::note("no keys yet; `windlass auth login PROVIDER` keeps one");
    }
    let width = rows.keys().map(|name| name.chars().count()).max().unwrap_or_default();
    for (name, sources) in rows {
        let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
        screen::line(&format!("{name:<width$}  {}", sources.join(", ")));
    }
    Ok(Exit::Done)
}

/// The variables that are set and usually hold the key of a provider or an engine.
fn in_environment(name: &str) -> Vec<Source> {
    let mut found = catalog::provider(name).map(|row| set(row.env)).unwrap_or_default();
    found.extend(engine(name).map(|engine| set(&engine.env)).unwrap_or_default());
    found
}

/// Those variables that are set.
fn set(variables: &[impl AsRef<str>]) -> Vec<Source> {
    let names = variables.iter().map(AsRef::as_ref);
    let set = names.filter(|name: &&str| Setup::env(name).is_some_and(|value| !value.is_empty()));
    set.map(|name| Source::Env(name.to_owned())).collect()
}

/// An engine that searches and everybody knows.
fn engine(name: &str) -> Option<Engine> {
    windlass_web::engines().into_iter().find(|engine| engine.name == name)
}

/// Accepts a provider everybody knows and the person's own. A project's does not count: a key that
/// is kept never goes to an address a project chose.
fn check(provider: &str, config: &Config) -> anyhow::Result<()> {
    let layer = config.providers.get(own_name(provider)).map(|(_, origin)| origin.layer);
    if catalog::provider(provider).is_some()
        || engine(provider).is_some()
        || config.senses.engines.contains_key(provider)
        || layer.is_some_and(|layer| layer != Layer::Project)
    {
        return Ok(());
    }
    if layer.is_some() {
        bail!(
            "`{provider}` is this project's provider, and keys are kept for your own ones only. \
             To use yours with it, put the provider in your own config"
        );
    }
    let near = nearest_providers(provider, config);
    bail!("there is no provider `{provider}`. {near}One of your own goes into your config first");
}

/// The name a provider's key is kept under, whichever of its names it is called by.
pub(crate) fn own_name(provider: &str) -> &str {
    catalog::provider(provider).map_or(provider, |row| row.id)
}

/// The providers somebody may have meant, in a sentence, if there are any.
pub(crate) fn nearest_providers(spelled: &str, config: &Config) -> String {
    let mut names: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    names.extend(catalog::PROVIDERS.iter().map(|row| row.id));
    names.sort_unstable();
    names.dedup();
    screen::near(spelled, &names)
}
