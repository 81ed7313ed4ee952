//! The effective config: what the person says, what a trusted project adds, what flags override,
//! and where each value came from.

use crate::file::{self, Diagnostic, File, Layer, Origin};
use crate::trust::{Standing, Trust};
use crate::{Error, Places, pointer};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// One config file. Comments and trailing commas are allowed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where an editor finds the schema of this file.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The model to use, as `provider/model`.
    pub model: Option<String>,
    /// The providers, by name.
    #[serde(default)]
    pub provider: BTreeMap<String, Provider>,
    /// What may be done without asking: `"allow"`, `"ask"` or `"deny"` for everything, or a map
    /// from a key (`read`, `edit`, a tool's name) to a level or to patterns with a level each.
    pub permission: Option<Value>,
}

/// A provider of models.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The wire format: `openai-chat`.
    pub api: String,
    /// The address of the API, for example `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// The key, or `{env:NAME}` for the value of an environment variable. Never shown.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// The models it has, by name.
    #[serde(default)]
    pub models: BTreeMap<String, Model>,
}

/// A model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// How many tokens it can take in.
    pub context: Option<u64>,
    /// How many tokens it can write at once.
    pub output: Option<u64>,
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
    files: Vec<(Layer, File)>,
    shown: Vec<(String, String, Origin)>,
}

/// Where a project keeps its config, weakest first.
pub(crate) const PROJECT_FILES: &[&str] = &["windlass.jsonc", ".windlass/windlass.jsonc"];

impl Config {
    /// Reads what the person says and, if its folder is trusted, what the project says. `env`
    /// gives the environment, `model` is the command line's choice.
    pub fn load(
        places: &Places,
        root: &Path,
        model: Option<String>,
        env: &dyn Fn(&str) -> Option<String>,
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
            files: Vec::new(),
            shown: Vec::new(),
        };
        for (layer, mut file) in files {
            config.take(layer, &mut file, env);
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

    fn take(&mut self, layer: Layer, file: &mut File, env: &dyn Fn(&str) -> Option<String>) {
        let value = std::mem::take(&mut file.value);
        let settings: Settings = match serde_json::from_value(Value::Object(value.clone())) {
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
            self.take_provider(layer, file, name, provider, env);
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
        env: &dyn Fn(&str) -> Option<String>,
    ) {
        use secrecy::ExposeSecret;
        let pointer = pointer::join("/provider", &name);
        let own = |(_, origin): &(Provider, Origin)| origin.layer == Layer::User;
        if layer == Layer::Project && self.providers.get(&name).is_some_and(own) {
            let message = format!("your own config already has a provider `{name}`");
            return file.fault(&pointer, &message);
        }
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
            provider.api_key = env(&variable).map(SecretString::from);
            if provider.api_key.is_none() {
                let message = format!("the environment variable {variable} is not set");
                file.fault(&format!("{pointer}/api_key"), &message);
            }
        }
        let origin = file.origin(&pointer).clone();
        for (key, value) in [("api", &provider.api), ("base_url", &provider.base_url)] {
            let place = file.origin(&format!("{pointer}/{key}")).clone();
            self.show(&format!("provider.{name}.{key}"), value, &place);
        }
        if provider.api_key.is_some() {
            let place = file.origin(&format!("{pointer}/api_key")).clone();
            self.show(&format!("provider.{name}.api_key"), "(set)", &place);
        }
        for model in provider.models.keys() {
            let place = pointer::join(&format!("{pointer}/models"), model);
            let place = file.origin(&place).clone();
            self.show(&format!("provider.{name}.models"), model, &place);
        }
        self.providers.insert(name, (provider, origin));
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
        // count: rules and models add up.
        let adds_up = name.starts_with("permission") || name.ends_with(".models");
        if !adds_up {
            self.shown.retain(|(shown, ..)| shown != name);
        }
        self.shown.push((name.to_owned(), value.to_owned(), origin.clone()));
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
