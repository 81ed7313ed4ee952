//! Which model answers, where it is and what it is told: the catalogue, the config and the keys
//! put together. And `windlass models`.

use crate::{Exit, redact, screen, setup::Setup};
use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::Asked;
use windlass_llm::catalog::{self, Auth, Model};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint, Key, Timers, is_local};
use windlass_project::{Chosen, Flags, Keys, Layer, Origin, Provider, Source, Timeouts};
use windlass_protocol::Options;

/// A model that has been chosen.
pub(crate) struct Choice {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: Model,
    /// How it is to answer, and who says so.
    pub(crate) options: Vec<Chosen>,
}

impl Choice {
    /// Something that can be asked. `answer` is the schema its answer has to fit, if there is one.
    pub(crate) fn asked(self, answer: Option<Value>) -> anyhow::Result<Asked> {
        let mut options = options(&self.options)?;
        options.answer = answer.or(options.answer);
        Ok(Asked {
            client: Arc::new(Client::new(self.endpoint)?),
            model: Arc::new(self.model),
            options: Arc::new(options),
        })
    }
}

fn options(chosen: &[Chosen]) -> anyhow::Result<Options> {
    let (mut all, mut extra) = (Map::new(), Map::new());
    for Chosen { name, value, .. } in chosen {
        match name.strip_prefix("extra.") {
            Some(name) => extra.insert(name.to_owned(), value.clone()),
            None => all.insert(name.clone(), value.clone()),
        };
    }
    all.insert("extra".into(), extra.into());
    serde_json::from_value(all.into()).context("the options cannot be read")
}

impl Setup {
    /// The model to ask; an error says what is missing and how to get it.
    pub(crate) fn choose(&self, variant: Option<&str>) -> anyhow::Result<Choice> {
        let Some((name, origin)) = &self.config.model else {
            bail!(
                "no model is set. Set \"model\": \"PROVIDER/MODEL\" in {}, or use --model; \
                 `windlass models` lists them",
                self.places.config.join("windlass.jsonc").display()
            );
        };
        self.choose_named(name, origin, variant)
    }

    /// The model of this name.
    pub(crate) fn choose_named(
        &self,
        name: &str,
        origin: &Origin,
        variant: Option<&str>,
    ) -> anyhow::Result<Choice> {
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty())
        else {
            bail!("{origin}: `{name}` is not of the form PROVIDER/MODEL");
        };
        let provider = crate::auth::own_name(provider);
        if self.config.broken.contains(provider) {
            bail!(
                "something is wrong with what your config says about {provider}, see above; it is not \
                 used until that is mended"
            );
        }
        let Some((row, base)) = self.provider(provider)? else {
            let near = crate::auth::nearest_providers(provider, &self.config);
            bail!(
                "{origin}: there is no provider `{provider}`. {near}`windlass models` lists the known \
                 ones; one of your own goes into your config"
            );
        };
        let settings = row.models.get(model);
        if let Some(wanted) = variant
            && !settings.is_some_and(|settings| settings.variants.contains_key(wanted))
        {
            let known = settings.map(|settings| settings.variants.keys().cloned().collect());
            let known: Vec<String> = known.unwrap_or_default();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            bail!("{name} has no variant `{wanted}`. It has: {known}");
        }
        let id = settings.and_then(|settings| settings.id.as_deref()).unwrap_or(model);
        let found = base.and_then(|base| catalog::model(base.id, id));
        let model_row = overlaid(found.unwrap_or_else(|| Model::assumed(id)), settings);
        Ok(Choice {
            endpoint: self.endpoint(provider, &row, base, id)?,
            options: self.config.options(provider, model, variant),
            model: model_row,
        })
    }

    /// The providers that can be asked at once, and how that is known: those of the config first.
    pub(crate) fn ready(&self) -> Vec<(String, String)> {
        let kept = Keys::open(&self.places).list().unwrap_or_default();
        let mut names: Vec<String> = self.config.providers.keys().cloned().collect();
        names.extend(catalog::PROVIDERS.iter().map(|row| row.id.to_owned()));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| !self.config.broken.contains(name) && seen.insert(name.clone()));
        let how = |name: &String| {
            let said = self.config.providers.get(name).map(|(row, _)| row);
            let elsewhere = said.is_some_and(|row| row.base_url.is_some());
            let known = catalog::provider(name).filter(|_| !elsewhere);
            let set =
                |variable: &&&str| Setup::env(variable).is_some_and(|it| !it.trim().is_empty());
            if let Some(variable) = known.and_then(|row| row.env.iter().find(set)) {
                return Some(format!("{variable} is set"));
            }
            if let Some((_, source)) = kept.iter().find(|(kept, _)| kept == name) {
                return Some(format!("a key is kept in {source}"));
            }
            let said = said?;
            (elsewhere || said.api_key.is_some()).then(|| "your config has it".to_owned())
        };
        names.into_iter().filter_map(|name| how(&name).map(|how| (name, how))).collect()
    }

    /// The models of a provider: those of the config first, then those that everybody knows.
    pub(crate) fn models_of(&self, name: &str) -> Vec<(String, Model)> {
        let said = self.config.providers.get(name).map(|(row, _)| row);
        let base = said.and_then(|row| row.like.as_deref()).unwrap_or(name);
        let own = said.into_iter().flat_map(|row| &row.models).map(|(id, said)| {
            let known = catalog::model(base, said.id.as_deref().unwrap_or(id));
            (id.clone(), overlaid(known.unwrap_or_else(|| Model::assumed(id)), Some(said)))
        });
        let known = catalog::models(base)
            .filter(|model| said.is_none_or(|row| !row.models.contains_key(&model.id)))
            .map(|model| (model.id.clone(), model));
        own.chain(known).collect()
    }

    /// How many tokens a model takes, if that is known.
    pub(crate) fn window(&self, name: &str) -> Option<u64> {
        let (provider, model) = name.split_once('/')?;
        let (row, base) = self.provider(crate::auth::own_name(provider)).ok()??;
        let settings = row.models.get(model);
        let id = settings.and_then(|settings| settings.id.as_deref()).unwrap_or(model);
        let known = base.and_then(|base| catalog::model(base.id, id));
        overlaid(known.unwrap_or_else(|| Model::assumed(id)), settings).context
    }

    /// What the config says of a provider, and the row of the catalogue it is based on; `None` if
    /// nobody knows it.
    fn provider(
        &self,
        name: &str,
    ) -> anyhow::Result<Option<(Provider, Option<&'static catalog::Provider>)>> {
        let said = self.config.providers.get(name);
        let Some((row, origin)) = said else {
            return Ok(catalog::provider(name).map(|base| (Provider::default(), Some(base))));
        };
        let base = match &row.like {
            Some(like) => Some(catalog::provider(like).with_context(|| {
                format!("{origin}: `like`: there is no known provider `{like}`")
            })?),
            None => catalog::provider(name),
        };
        Ok(Some((row.clone(), base)))
    }

    fn endpoint(
        &self,
        name: &str,
        row: &Provider,
        base: Option<&'static catalog::Provider>,
        model: &str,
    ) -> anyhow::Result<Endpoint> {
        let at = self.config.providers.get(name).map(|(_, origin)| origin);
        let at = at.map_or_else(String::new, |origin| format!("{origin}: "));
        let said = match &row.api {
            Some(api) => Some(Format::named(api).with_context(|| {
                let known: Vec<&str> = Format::NAMES.iter().map(|(name, _)| *name).collect();
                let known = known.join(", ");
                format!("{at}`{api}` is not a wire format we speak. We speak: {known}")
            })?),
            None => None,
        };
        let Some(format) = said.or(base.map(|base| base.format)) else {
            bail!("{at}the provider `{name}` needs `api`, the wire format it speaks, or `like`");
        };
        let base_url = match (&row.base_url, base) {
            (Some(url), _) => url.clone(),
            (None, Some(base)) => base.url(Setup::env).map_err(|variable| {
                anyhow::anyhow!("{name} needs to know {variable}; set the environment variable")
            })?,
            (None, None) => bail!("{at}the provider `{name}` needs `base_url`"),
        };
        let base = match base.filter(|base| base.format == format) {
            Some(base) => base,
            None => catalog::plain(format, is_local(&base_url)),
        };
        let key = self.key(name, row)?;
        if key.is_none() && base.auth != Auth::Optional && row.base_url.is_none() {
            let known = catalog::provider(name).map(|row| row.env.join(" or "));
            let variables =
                known.map(|names| format!("Set {names}, or run")).unwrap_or("Run".into());
            bail!(
                "there is no key for {name}. {variables} `windlass auth login {name}`; keys are made \
                 at {}",
                base.keys_at
            );
        }
        key.iter().for_each(|key| redact::know(key.secret.expose_secret()));
        row.headers.values().for_each(|value| redact::know(value));
        Ok(Endpoint {
            provider: name.to_owned(),
            format,
            auth: base.auth,
            key,
            fixed: base.headers,
            headers: row.headers.clone().into_iter().collect(),
            proxy: proxy(&base_url),
            base_url,
            quirks: base.quirks_of(model),
            timers: timers(row.timeouts),
        })
    }

    /// A provider's key: from the environment, the config, or where keys are kept. One that a
    /// project chose the address of gets none of the person's.
    fn key(&self, name: &str, row: &Provider) -> anyhow::Result<Option<Key>> {
        let origin = self.config.providers.get(name).map(|(_, origin)| origin);
        let own = origin.is_none_or(|origin| origin.layer != Layer::Project);
        // The variable belongs to the known address; at another one it has to be named.
        let usual = own && row.base_url.is_none();
        let variables = catalog::provider(name).filter(|_| usual).map_or(&[][..], |base| base.env);
        for variable in variables {
            if let Some(secret) = Setup::env(variable).filter(|secret| !secret.trim().is_empty()) {
                let from = Source::Env((*variable).to_owned()).to_string();
                return Ok(Some(Key { secret: secret.into(), from }));
            }
        }
        let said = format!("provider.{name}.api_key");
        let said = self.config.shown().iter().find(|(shown, ..)| *shown == said);
        let filled = |secret: &&SecretString| !secret.expose_secret().trim().is_empty();
        if let (Some(secret), Some((.., origin))) = (row.api_key.as_ref().filter(filled), said) {
            let from = Source::Config(origin.clone()).to_string();
            return Ok(Some(Key { secret: secret.clone(), from }));
        }
        if !own {
            return Ok(None);
        }
        let kept = Keys::open(&self.places).get(name)?;
        Ok(kept.map(|(secret, source)| Key { secret, from: source.to_string() }))
    }
}

/// The variable that names a proxy for an address, if one is set.
fn proxy(url: &str) -> Option<&'static str> {
    let names: &[&str] = match url.starts_with("https:") {
        true => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    names.iter().find(|name| Setup::env(name).is_some_and(|value| !value.is_empty())).copied()
}

fn timers(said: Timeouts) -> Timers {
    let usual = Timers::default();
    let seconds = |said: Option<NonZeroU32>, usual: Duration| {
        said.map_or(usual, |seconds| Duration::from_secs(seconds.get().into()))
    };
    Timers {
        connect: seconds(said.connect, usual.connect),
        headers: seconds(said.headers, usual.headers),
        first: seconds(said.first, usual.first),
        idle: seconds(said.idle, usual.idle),
    }
}

/// A model with what the config says is different.
fn overlaid(model: Model, said: Option<&windlass_project::Model>) -> Model {
    let Some(said) = said else { return model };
    Model {
        context: said.context.or(model.context),
        output: said.output.or(model.output),
        images: said.images.unwrap_or(model.images),
        pdfs: said.pdfs.unwrap_or(model.pdfs),
        calls: said.calls.unwrap_or(model.calls),
        reasons: said.reasons.unwrap_or(model.reasons || said.efforts.is_some()),
        efforts: said.efforts.clone().unwrap_or_else(|| model.efforts.clone()),
        structured: said.structured.unwrap_or(model.structured),
        temperature: said.temperature.unwrap_or(model.temperature),
        ..model
    }
}

/// `windlass models`.
pub(crate) fn list(only: Option<&str>, json: bool) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let mut names: Vec<String> = catalog::PROVIDERS.iter().map(|row| row.id.to_owned()).collect();
    names.extend(setup.config.providers.keys().cloned());
    if let Some(only) = only {
        let wanted = catalog::provider(only).map_or(only, |row| row.id);
        names.retain(|name| name == wanted || name == only);
        if names.is_empty() {
            let near = crate::auth::nearest_providers(only, &setup.config);
            bail!("there is no provider `{only}`. {near}`windlass models` lists the known ones");
        }
    }
    names.sort();
    names.dedup();
    let mut rows = Vec::new();
    for name in &names {
        let models = setup.models_of(name).into_iter();
        rows.extend(models.map(|(id, model)| (format!("{name}/{id}"), model)));
    }
    if json {
        let rows: Vec<Value> = rows.iter().map(|(name, model)| as_json(name, model)).collect();
        screen::json(&serde_json::to_string_pretty(&rows)?);
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, model) in &rows {
        screen::line(&format!("{name:<width$}  {}", told(model)));
    }
    for name in names.iter().filter(|name| only.is_some() && catalog::models(name).next().is_none())
    {
        screen::note(&format!(
            "{name}: any model your server has works, as {name}/NAME; its limits can be set in your config"
        ));
    }
    Ok(Exit::Done)
}

/// What a model takes, gives, costs and can do, on one line.
pub(crate) fn told(model: &Model) -> String {
    let tokens = |count: Option<u64>| match count {
        Some(count) if count >= 1_000_000 => format!("{:.1}M", count as f64 / 1e6),
        Some(count) if count >= 1_000 => format!("{}k", count / 1_000),
        Some(count) => count.to_string(),
        None => "?".into(),
    };
    let price = match (model.price.input, model.price.output) {
        (Some(input), Some(output)) => format!("${input}/${output}"),
        _ => "-".into(),
    };
    let can = [
        (model.calls, "tools"),
        (model.images, "images"),
        (model.pdfs, "pdf"),
        (model.reasons, "thinks"),
        (model.structured, "json"),
    ];
    let can: Vec<&str> = can.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
    format!(
        "{:>5} in {:>5} out  {price:<14}  {}",
        tokens(model.context),
        tokens(model.output),
        can.join(" ")
    )
}

fn as_json(name: &str, model: &Model) -> Value {
    let efforts: Vec<&str> = model.efforts.iter().map(|effort| effort.name()).collect();
    serde_json::json!({
        "name": name,
        "context": model.context,
        "output": model.output,
        "price": {
            "input": model.price.input,
            "output": model.price.output,
            "cache_read": model.price.cache_read,
            "cache_write": model.price.cache_write,
        },
        "images": model.images,
        "pdfs": model.pdfs,
        "calls": model.calls,
        "reasons": model.reasons,
        "efforts": efforts,
        "structured": model.structured,
        "temperature": model.temperature,
    })
}
