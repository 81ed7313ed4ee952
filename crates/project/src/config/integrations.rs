//! Settings of language servers (`lsp`), formatters (`formatter`), search engines (`search`) and
//! private hosts (`web`).
//!
//! A trusted project may add entries and change known ones. It cannot allow access outside its
//! folder, read the environment, or replace an entry of the user's own.

use super::Config;
use super::env::{ConfigEnv, FieldError, expand_env_values, field_error};
use super::mcp_server_config::name_problem;
use super::schema::{
    FormatterSettings, LanguageServerSettings, SearchEngineSettings, SettingsTable,
    WebSearchSettings, WebSettings,
};
use crate::config::file_parser::{ConfigLayer, ConfigOrigin, ParsedConfig};
use crate::config::json_pointer;
use std::collections::BTreeMap;

/// Settings of integrations, each with its origin.
#[derive(Clone, Debug, Default)]
pub struct IntegrationSettings {
    pub language_servers: NamedConfigEntries<LanguageServerSettings>,
    pub formatters: NamedConfigEntries<FormatterSettings>,
    /// The name of the search engine to use.
    pub search_engine: Option<(String, ConfigOrigin)>,
    /// Search engines of the user's own, and settings for known ones.
    pub search_engines: BTreeMap<String, (SearchEngineSettings, ConfigOrigin)>,
    /// Hosts of `web` that are not public and may be fetched from, as written.
    pub private_hosts: Vec<(String, ConfigOrigin)>,
}

/// Entries by name, unless they are all disabled.
#[derive(Clone, Debug)]
pub struct NamedConfigEntries<T> {
    /// The origin of the setting that disables all entries.
    pub disabled_by: Option<ConfigOrigin>,
    /// The settings of each entry.
    pub entries: BTreeMap<String, (T, ConfigOrigin)>,
}

impl<T> Default for NamedConfigEntries<T> {
    fn default() -> NamedConfigEntries<T> {
        NamedConfigEntries { disabled_by: None, entries: BTreeMap::new() }
    }
}

/// A kind of entry that a config sets by name.
trait NamedConfigEntry: Sized {
    /// The top-level key in a config, such as `lsp`.
    const KEY: &'static str;
    /// Validates the entry and resolves its `{env:NAME}` references.
    fn validate(
        self,
        is_user_defined: bool,
        config_env: &dyn ConfigEnv,
    ) -> Result<Self, FieldError>;
    /// Returns the table that stores entries of this kind.
    fn entries_mut(integrations: &mut IntegrationSettings) -> &mut NamedConfigEntries<Self>;
}

impl NamedConfigEntry for LanguageServerSettings {
    const KEY: &'static str = "lsp";

    fn validate(
        mut self,
        is_user_defined: bool,
        config_env: &dyn ConfigEnv,
    ) -> Result<Self, FieldError> {
        check_command(self.command.as_deref())?;
        if let (false, Some(true)) = (is_user_defined, self.write) {
            return field_error("/write", "a project's language server cannot write");
        }
        let extensions = self.extensions.iter().flat_map(BTreeMap::keys);
        check_extensions(extensions)?;
        self.env = expand_env_values("/env", self.env, (is_user_defined, config_env))?;
        Ok(self)
    }

    fn entries_mut(integrations: &mut IntegrationSettings) -> &mut NamedConfigEntries<Self> {
        &mut integrations.language_servers
    }
}

impl NamedConfigEntry for FormatterSettings {
    const KEY: &'static str = "formatter";

    fn validate(
        mut self,
        is_user_defined: bool,
        config_env: &dyn ConfigEnv,
    ) -> Result<Self, FieldError> {
        check_command(self.command.as_deref())?;
        check_extensions(self.extensions.iter().flatten())?;
        self.env = expand_env_values("/env", self.env, (is_user_defined, config_env))?;
        Ok(self)
    }

    fn entries_mut(integrations: &mut IntegrationSettings) -> &mut NamedConfigEntries<Self> {
        &mut integrations.formatters
    }
}

fn check_command(command: Option<&[String]>) -> Result<(), FieldError> {
    match command {
        Some(command) if command.first().is_none_or(|program| program.trim().is_empty()) => {
            field_error("/command", "`command` is empty")
        }
        Some(command) if command.iter().any(|part| part.contains('\0')) => {
            field_error("/command", "an argument contains a NUL byte")
        }
        Some(_) | None => Ok(()),
    }
}

fn check_extensions<'a>(
    mut extensions: impl Iterator<Item = &'a String>,
) -> Result<(), FieldError> {
    let is_invalid =
        |name: &&String| name.len() < 2 || !name.starts_with('.') || name.contains('/');
    match extensions.find(is_invalid) {
        Some(name) => field_error(
            "/extensions",
            format!("invalid file extension `{name}`; use a form such as `.rs`"),
        ),
        None => Ok(()),
    }
}

impl Config {
    pub(super) fn apply_integrations(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        (language_servers, formatters): (
            Option<SettingsTable<LanguageServerSettings>>,
            Option<SettingsTable<FormatterSettings>>,
        ),
        config_env: &dyn ConfigEnv,
    ) {
        self.apply_entries(layer, file, language_servers, config_env);
        self.apply_entries(layer, file, formatters, config_env);
    }

    fn apply_entries<T: NamedConfigEntry>(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        entries: Option<SettingsTable<T>>,
        config_env: &dyn ConfigEnv,
    ) {
        let root_pointer = json_pointer::join("", T::KEY);
        let entries = match entries {
            None => return,
            Some(SettingsTable::Enabled(enabled)) => {
                return self.set_enabled::<T>(layer, file, enabled);
            }
            Some(SettingsTable::Entries(_)) if layer == ConfigLayer::Managed => {
                return file
                    .add_fault(&root_pointer, "the managed policy can only set this to `false`");
            }
            Some(SettingsTable::Entries(entries)) => entries,
        };
        for (name, entry) in entries {
            let pointer = json_pointer::join(&root_pointer, &name);
            let existing = T::entries_mut(&mut self.integrations).entries.get(&name);
            let is_user_entry = |(_, origin): &(T, ConfigOrigin)| origin.layer == ConfigLayer::User;
            let is_taken = layer == ConfigLayer::Project && existing.is_some_and(is_user_entry);
            let validated = match name_problem(&name) {
                _ if file.broken_entries.contains(&pointer) => continue,
                Some(reason) => Err(("", reason)),
                None if is_taken => Err(("", format!("your own config already defines `{name}`"))),
                None => entry.validate(layer != ConfigLayer::Project, config_env),
            };
            match validated {
                Err((field, reason)) => file.add_fault(&format!("{pointer}{field}"), &reason),
                Ok(entry) => {
                    if let Some(value) = file.value_at(&pointer).cloned() {
                        self.record_values(&format!("{}.{name}", T::KEY), &value, &pointer, file);
                    }
                    let origin = file.origin_of(&pointer).clone();
                    T::entries_mut(&mut self.integrations).entries.insert(name, (entry, origin));
                }
            }
        }
    }

    /// Disables or enables all entries. Entries that the managed policy disables stay disabled, and
    /// a project enables nothing.
    fn set_enabled<T: NamedConfigEntry>(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        enabled: bool,
    ) {
        let root_pointer = json_pointer::join("", T::KEY);
        let disabled_by = T::entries_mut(&mut self.integrations).disabled_by.clone();
        match (enabled, disabled_by, layer) {
            (true, _, ConfigLayer::Managed) => {
                file.add_fault(&root_pointer, "the managed policy can only set this to `false`");
            }
            (true, Some(disabling_origin), _)
                if disabling_origin.layer == ConfigLayer::Managed
                    || layer == ConfigLayer::Project =>
            {
                file.add_fault(&root_pointer, &format!("disabled by {disabling_origin}"));
            }
            // A layer that repeats the value does not become its origin.
            (false, Some(_), _) => {}
            (enabled, ..) => {
                let origin = file.origin_of(&root_pointer).clone();
                self.record_value(T::KEY, &enabled.to_string(), &origin);
                T::entries_mut(&mut self.integrations).disabled_by = (!enabled).then_some(origin);
            }
        }
    }

    /// Applies the `search` and `web` settings. Only the user chooses where search queries go and
    /// which hosts need not be public.
    pub(super) fn apply_web(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        (search, web): (Option<WebSearchSettings>, Option<WebSettings>),
        config_env: &dyn ConfigEnv,
    ) {
        if layer == ConfigLayer::Project {
            if search.is_some() {
                file.add_fault("/search", "a project cannot configure web search");
            }
            if web.is_some() {
                file.add_fault("/web", "a project cannot allow private hosts");
            }
            return;
        }
        if let Some(web) = web {
            let hosts = web.private_hosts.into_iter().enumerate();
            let private_hosts = hosts.map(|(index, host)| {
                (host, file.origin_of(&format!("/web/private_hosts/{index}")).clone())
            });
            self.integrations.private_hosts = private_hosts.collect();
            let origin = file.origin_of("/web").clone();
            let hosts: Vec<&str> =
                self.integrations.private_hosts.iter().map(|(host, _)| host.as_str()).collect();
            self.record_value("web.private_hosts", &hosts.join(", "), &origin);
        }
        let Some(search) = search else { return };
        if let Some(name) = search.provider {
            let origin = file.origin_of("/search/provider").clone();
            self.record_value("search.provider", &name, &origin);
            self.integrations.search_engine = Some((name, origin));
        }
        for (name, mut engine) in search.engines {
            let pointer = json_pointer::join("/search/engines", &name);
            if let Some(reason) = name_problem(&name) {
                file.add_fault(&pointer, &reason);
                continue;
            }
            let key = engine.api_key.take().map(|key| ("api_key".to_owned(), key));
            match expand_env_values("/api_key", key.into_iter().collect(), (true, config_env)) {
                Err((field, reason)) => file.add_fault(&format!("{pointer}{field}"), &reason),
                Ok(expanded) => {
                    engine.api_key = expanded.into_values().next();
                    if let Some(value) = file.value_at(&pointer).cloned() {
                        let name = format!("search.engines.{name}");
                        self.record_values(&name, &value, &pointer, file);
                    }
                    let origin = file.origin_of(&pointer).clone();
                    self.integrations.search_engines.insert(name, (engine, origin));
                }
            }
        }
    }
}
