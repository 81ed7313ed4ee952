//! The effective config: what the person says, what a trusted project adds, what flags override,
//! and where each value came from.

use crate::file::{self, Diagnostic, File, Layer, Origin};
use crate::trust::{Standing, Trust};
use crate::{Error, Places, pointer};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use windlass_protocol::{Effort, Options};

/// One config file. Comments and trailing commas are allowed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where an editor finds the schema of this file.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The model to use, as `provider/model`.
    pub model: Option<String>,
    /// The providers, by name: those Windlass knows, with what is to be different, and others.
    #[serde(default)]
    pub provider: BTreeMap<String, Provider>,
    /// The agents, by name. There is one: `build`.
    #[serde(default)]
    pub agent: BTreeMap<String, Agent>,
    /// What may be done without asking: `"allow"`, `"ask"` or `"deny"` for everything, or a map
    /// from a key (`read`, `edit`, a tool's name) to a level or to patterns with a level each.
    pub permission: Option<Value>,
}

/// A provider of models.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The wire format: `openai-chat`, `openai-responses`, `anthropic` or `gemini`.
    pub api: Option<String>,
    /// The address of the API, for example `http://127.0.0.1:8080/v1`.
    pub base_url: Option<String>,
    /// A provider Windlass knows that this one behaves like.
    pub like: Option<String>,
    /// The key, or `{env:NAME}` for the value of an environment variable. Never shown.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Headers that are sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How long it may be silent.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How its models are to answer.
    #[serde(default)]
    pub options: Options,
    /// Its models, by name: those Windlass knows, with what is to be different, and others.
    #[serde(default)]
    pub models: BTreeMap<String, Model>,
}

/// How long a provider may be silent, in seconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Option<NonZeroU32>,
    /// From the request to the head of the response.
    pub headers: Option<NonZeroU32>,
    /// From there to the first event that says something.
    pub first: Option<NonZeroU32>,
    /// Between two such events.
    pub idle: Option<NonZeroU32>,
}

/// A model. What is not said is what Windlass knows or, of a model it does not know, assumes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// What the provider calls it, if that is not its name here.
    pub id: Option<String>,
    /// How many tokens it can take in.
    pub context: Option<u64>,
    /// How many tokens it can write at once.
    pub output: Option<u64>,
    /// It sees images.
    pub images: Option<bool>,
    /// It reads PDF files.
    pub pdfs: Option<bool>,
    /// It calls tools.
    pub calls: Option<bool>,
    /// It thinks before it answers.
    pub reasons: Option<bool>,
    /// The efforts of thinking it knows.
    pub efforts: Option<Vec<Effort>>,
    /// It answers in JSON after a schema.
    pub structured: Option<bool>,
    /// It takes a temperature.
    pub temperature: Option<bool>,
    /// How it is to answer.
    #[serde(default)]
    pub options: Options,
    /// Other ways it can be told to answer, by name; `--variant` chooses one.
    #[serde(default)]
    pub variants: BTreeMap<String, Options>,
}

/// An agent: a way of working.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// How its model is to answer.
    #[serde(default)]
    pub options: Options,
}

/// Everything that was said, put together.
pub struct Config {
    /// The model to use, and who says so.
    pub model: Option<(String, Origin)>,
    /// The providers, and who brings each.
    pub providers: BTreeMap<String, (Provider, Origin)>,
    /// Permission rules as they were written, file by file, weakest layer first.
    pub permissions: Vec<Permission>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// How the project's folder stands.
    pub standing: Standing,
    /// The providers something is wrong with, by their own names; they cannot be used.
    pub broken: BTreeSet<String>,
    files: Vec<(Layer, File)>,
    shown: Vec<(String, String, Origin)>,
    options: Vec<(Scope, Chosen)>,
}

/// Where an option is set, from weak to strong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Provider(String),
    Model(String, String),
    Agent(String),
    Variant(String, String, String),
}

/// An option that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Its name; `extra.NAME` for what only the provider knows.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Who says so.
    pub origin: Origin,
}

/// The agent there is.
pub const AGENT: &str = "build";

/// What a config can refer to.
pub trait Outside {
    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<String>;
    /// The own name of a provider that is known without any config, whichever of its names it is
    /// called by. A project cannot change it.
    fn knows(&self, provider: &str) -> Option<&'static str>;
}

/// Where a project keeps its config, weakest first.
pub const PROJECT_FILES: &[&str] = &["windlass.jsonc", ".windlass/windlass.jsonc"];

impl Config {
    /// Reads what the person says and, if its folder is trusted, what the project says. `outside`
    /// gives the environment and the providers that are known anyway, `model` is the command
    /// line's choice.
    pub fn load(
        places: &Places,
        root: &Path,
        model: Option<String>,
        outside: &dyn Outside,
    ) -> Result<Config, Error> {
        let mut files = Vec::new();
        let own = places.config.join("windlass.jsonc");
        if let Some(text) = file::read(&own)? {
            files.push((Layer::User, File::parse(&own, Layer::User, &text)));
        }
        let (standing, texts) = Trust::read(places)?.look(root)?;
        for (path, text) in texts {
            files.push((Layer::Project, File::parse(&path, Layer::Project, &text)));
        }
        let mut config = Config {
            model: None,
            providers: BTreeMap::new(),
            permissions: Vec::new(),
            diagnostics: Vec::new(),
            standing,
            broken: BTreeSet::new(),
            files: Vec::new(),
            shown: Vec::new(),
            options: Vec::new(),
        };
        for (layer, mut file) in files {
            config.take(layer, &mut file, outside);
            // A project's mistakes are its own: they do not keep the person from their provider.
            let broken = std::mem::take(&mut file.broken).into_iter();
            let own = |name: &String| match layer {
                Layer::Project => {
                    let row = config.providers.get(name).map(|(_, origin)| origin.layer);
                    outside.knows(name).is_none() && row != Some(Layer::User)
                }
                Layer::User | Layer::Flag => true,
            };
            let named = |name: String| outside.knows(&name).map_or(name, str::to_owned);
            config.broken.extend(broken.filter(own).map(named));
            config.diagnostics.append(&mut file.diagnostics);
            config.files.push((layer, file));
        }
        if let Some(model) = model {
            let origin = Origin { layer: Layer::Flag, file: None, line: 0, column: 0 };
            config.show("model", &model, &origin);
            config.model = Some((model, origin));
        }
        Ok(config)
    }

    fn take(&mut self, layer: Layer, file: &mut File, outside: &dyn Outside) {
        let value = Value::Object(file.value.clone());
        let settings: Settings = match serde_json::from_value(value) {
            Ok(settings) => settings,
            Err(error) => {
                file.fault("", &error.to_string());
                return;
            }
        };
        if let Some(model) = settings.model {
            let origin = file.origin("/model").clone();
            self.show("model", &model, &origin);
            self.model = Some((model, origin));
        }
        for (name, provider) in settings.provider {
            self.take_provider(layer, file, name, provider, outside);
        }
        for name in settings.agent.keys() {
            let pointer = pointer::join("/agent", name);
            if name == AGENT {
                self.take_agent(layer, &pointer, file);
            } else {
                file.fault(&pointer, &format!("there is no agent `{name}`; there is `{AGENT}`"));
            }
        }
        if let Some(permission) = settings.permission {
            self.show_permission(&permission, "", file);
            let file = self.files.len();
            self.permissions.push(Permission { layer, value: permission, file });
        }
    }

    /// A provider is taken whole. One that a project names like the person's own is ignored, so
    /// that their key never goes to an address a project chose.
    fn take_provider(
        &mut self,
        layer: Layer,
        file: &mut File,
        name: String,
        mut provider: Provider,
        outside: &dyn Outside,
    ) {
        use secrecy::ExposeSecret;
        let pointer = pointer::join("/provider", &name);
        let own = |(_, origin): &(Provider, Origin)| origin.layer == Layer::User;
        if layer == Layer::Project && self.providers.get(&name).is_some_and(own) {
            let message = format!("your own config already has a provider `{name}`");
            return file.fault(&pointer, &message);
        }
        let known = outside.knows(&name);
        if layer == Layer::Project && known.is_some() {
            let message = format!("a project cannot change the provider `{name}`");
            return file.fault(&pointer, &message);
        }
        // One provider, one row, whichever of its names is used.
        let name = known.map_or(name, str::to_owned);
        let twice = |(_, origin): &(Provider, Origin)| {
            origin.layer == layer && origin.file == file.origin(&pointer).file
        };
        if self.providers.get(&name).is_some_and(twice) {
            return file.fault(&pointer, &format!("`{name}` is already here, by another name"));
        }
        self.forget(&name);
        let variable = provider.api_key.as_ref().and_then(|key| {
            let inner = key.expose_secret().strip_prefix("{env:")?.strip_suffix('}')?;
            Some(inner.to_owned())
        });
        if let Some(variable) = variable {
            if layer == Layer::Project {
                let message =
                    "a project cannot read the environment; put the key in your own config";
                return file.fault(&format!("{pointer}/api_key"), message);
            }
            provider.api_key = outside.env(&variable).map(SecretString::from);
            if provider.api_key.is_none() {
                let message = format!("the environment variable {variable} is not set");
                file.fault(&format!("{pointer}/api_key"), &message);
            }
        }
        let origin = file.origin(&pointer).clone();
        if let Some(value) = file.at(&pointer).cloned() {
            self.show_all(&format!("provider.{name}"), &value, &pointer, file);
        }
        self.take_provider_options(&name, &provider, &pointer, file);
        self.providers.insert(name, (provider, origin));
    }

    /// What a weaker layer said of a provider no longer counts: a row is taken whole.
    fn forget(&mut self, name: &str) {
        let prefix = format!("provider.{name}.");
        self.shown.retain(|(shown, ..)| !shown.starts_with(&prefix));
        self.options.retain(|(scope, _)| match scope {
            Scope::Provider(at) | Scope::Model(at, _) | Scope::Variant(at, ..) => at != name,
            Scope::Agent(_) => true,
        });
    }

    /// Shows everything that is said at a place, except what may be secret.
    fn show_all(&mut self, name: &str, value: &Value, pointer: &str, file: &File) {
        let origin = file.origin(pointer).clone();
        let secret = name.ends_with(".api_key") || name.contains(".headers.");
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let inner = pointer::join(pointer, key);
                    self.show_all(&format!("{name}.{key}"), value, &inner, file);
                }
            }
            _ if secret => self.show(name, "(set)", &origin),
            // An address may hold a password, though it should not.
            Value::String(text) if text.contains('@') => self.show(name, "(set)", &origin),
            Value::String(text) => self.show(name, text, &origin),
            other => self.show(name, &other.to_string(), &origin),
        }
    }

    fn show_permission(&mut self, value: &Value, pointer: &str, file: &File) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.show_permission(value, &pointer::join(pointer, key), file);
                }
            }
            other => {
                let origin = file.origin(&format!("/permission{pointer}")).clone();
                let names: Vec<String> = pointer::names(pointer).collect();
                let path =
                    if names.is_empty() { String::new() } else { format!(".{}", names.join(" ")) };
                let level = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                self.show(&format!("permission{path}"), &level, &origin);
            }
        }
    }

    fn show(&mut self, name: &str, value: &str, origin: &Origin) {
        // A stronger layer replaces what a weaker one said of the same thing, except where both
        // count: rules add up.
        let adds_up = name.starts_with("permission");
        if !adds_up {
            self.shown.retain(|(shown, ..)| shown != name);
        }
        self.shown.push((name.to_owned(), value.to_owned(), origin.clone()));
    }

    /// What a project puts into requests as it is would go out under the person's key, past every
    /// permission, so that part is the person's alone.
    fn take_agent(&mut self, layer: Layer, pointer: &str, file: &mut File) {
        let extra = format!("{pointer}/options/extra");
        if layer == Layer::Project && file.at(&extra).is_some() {
            file.fault(&extra, "a project cannot add to requests");
            file.remove(&extra);
        }
        if let Some(value) = file.at(pointer).cloned() {
            self.show_all(&format!("agent.{AGENT}"), &value, pointer, file);
        }
        self.take_options(Scope::Agent(AGENT.to_owned()), pointer, file);
    }

    fn take_provider_options(
        &mut self,
        name: &str,
        provider: &Provider,
        pointer: &str,
        file: &File,
    ) {
        self.take_options(Scope::Provider(name.into()), pointer, file);
        for (model, row) in &provider.models {
            let place = pointer::join(&format!("{pointer}/models"), model);
            self.take_options(Scope::Model(name.into(), model.clone()), &place, file);
            for variant in row.variants.keys() {
                let scope = Scope::Variant(name.into(), model.clone(), variant.clone());
                let place = pointer::join(&format!("{place}/variants"), variant);
                self.take_options(scope, &place, file);
            }
        }
    }

    /// Takes over the options of one place, each with where it stands.
    fn take_options(&mut self, scope: Scope, pointer: &str, file: &File) {
        let place = match scope {
            Scope::Variant(..) => pointer.to_owned(),
            Scope::Provider(_) | Scope::Model(..) | Scope::Agent(_) => format!("{pointer}/options"),
        };
        let Some(Value::Object(options)) = file.at(&place) else { return };
        for (key, value) in options {
            let inner = match value {
                Value::Object(inner) if key == "extra" => inner,
                _ => {
                    let origin = file.origin(&pointer::join(&place, key)).clone();
                    let chosen = Chosen { name: key.clone(), value: value.clone(), origin };
                    self.options.push((scope.clone(), chosen));
                    continue;
                }
            };
            for (name, value) in inner {
                let at = pointer::join(&pointer::join(&place, key), name);
                let origin = file.origin(&at).clone();
                let (name, value) = (format!("extra.{name}"), value.clone());
                self.options.push((scope.clone(), Chosen { name, value, origin }));
            }
        }
    }

    /// How a model is to answer: what its provider, itself, the agent and a variant say, the later
    /// over the earlier, each with where it stands.
    pub fn options(&self, provider: &str, model: &str, variant: Option<&str>) -> Vec<Chosen> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let variant =
            variant.map(|name| Scope::Variant(provider.clone(), model.clone(), name.to_owned()));
        let scopes = [
            Scope::Provider(provider.clone()),
            Scope::Model(provider, model),
            Scope::Agent(AGENT.to_owned()),
        ];
        let mut chosen: Vec<Chosen> = Vec::new();
        for scope in scopes.into_iter().chain(variant) {
            for (_, option) in self.options.iter().filter(|(at, _)| *at == scope) {
                chosen.retain(|weaker| weaker.name != option.name);
                chosen.push(option.clone());
            }
        }
        chosen
    }

    /// Every value that is in force, with where it came from. Keys are not among them.
    pub fn shown(&self) -> &[(String, String, Origin)] {
        &self.shown
    }

    /// Where a permission rule stands, by its JSON pointer below `permission`.
    pub fn permission_origin(&self, permission: &Permission, pointer: &str) -> Option<Origin> {
        let (_, file) = self.files.get(permission.file)?;
        Some(file.origin(&format!("/permission{pointer}")).clone())
    }
}

/// The permission rules of one file.
pub struct Permission {
    /// Who says it.
    pub layer: Layer,
    /// What is said.
    pub value: Value,
    file: usize,
}

/// What a config would set, line by line, for the person who is asked to trust it.
pub(crate) fn wishes(root: &Path, path: &Path, text: &str) -> Vec<String> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let file = File::parse(path, Layer::Project, text);
    let mut wishes = Vec::new();
    list(&Value::Object(file.value.clone()), &name, "", &mut wishes);
    wishes.extend(file.diagnostics.iter().map(ToString::to_string));
    wishes
}

fn list(value: &Value, file: &str, path: &str, wishes: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let map: &Map<String, Value> = map;
            for (key, value) in map {
                // A key may hold anything; it must not look like something else.
                let key = key.escape_debug();
                let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
                list(value, file, &path, wishes);
            }
        }
        _ if path.ends_with("api_key") => wishes.push(format!("{file}: {path} (a key)")),
        other => wishes.push(format!("{file}: {path} = {other}")),
    }
}

#[cfg(test)]
mod tests;
