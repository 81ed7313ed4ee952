//! Integrations of the built-in tools: language servers, formatters and the web.
//!
//! Language servers and formatters run what a project configures, so none are available before the
//! folder is trusted. The user chooses the search engine; a project has no influence on it.

use super::LoadedProject;
use crate::redact;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_lsp::project_markers::ProjectMarker;
use windlass_lsp::{LanguageServers, LspConfig, LspServerConfig, LspTimeouts, ServerLog};
use windlass_permission::Decision;
use windlass_project::{
    ApiKeyStore, FolderTrust, FormatterSettings, LanguageServerSettings, NamedConfigEntries,
    ServerLogs,
};
use windlass_protocol::ToolAccess;
use windlass_toolkit::{ProcessLauncher, ToolRuntime};
use windlass_tools::ToolIntegrations;
use windlass_tools::formatters::{self, Formatters};
use windlass_web::{SearchEngine, WebClient};

impl LoadedProject {
    /// Builds the integrations without starting anything.
    pub(super) fn build_integrations(&self, runtime: &ToolRuntime) -> ToolIntegrations {
        let is_trusted = self.config.trust == FolderTrust::Trusted;
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let servers = self.language_servers();
        let user_agent = format!("windlass/{}", env!("CARGO_PKG_VERSION"));
        let web = Arc::new(WebClient::new(self.search_engines(), user_agent));
        if !is_trusted {
            if servers.iter().any(|row| self.has_project_marker(row)) {
                self.context.notes.send(
                    "note: language servers and formatters start once you trust this folder: \
                     `windlass trust`",
                );
            }
            return ToolIntegrations { web, ..ToolIntegrations::default() };
        }
        let formatters = self.formatters();
        let formatters = (!formatters.is_empty())
            .then(|| Arc::new(Formatters::new(formatters, launcher.clone())));
        let log = Arc::new(LanguageServerLogStore(ServerLogs::new(&self.dirs, "lsp")));
        let (timeouts, changes) = (LspTimeouts::default(), self.server_changes());
        let config = LspConfig { servers, launcher, log, timeouts, changes };
        let language_servers = (!config.servers.is_empty()).then(|| LanguageServers::open(config));
        self.set_running_language_servers(language_servers.clone());
        ToolIntegrations { language_servers, formatters, web }
    }

    /// Returns the search engines with their keys from the environment or the key store. If the
    /// user chose an engine, only that one remains.
    fn search_engines(&self) -> Vec<SearchEngine> {
        let integrations = &self.config.integrations;
        let built_in = windlass_web::built_in_engines();
        let keys = ApiKeyStore::open(&self.dirs);
        let saved_keys = keys.list().unwrap_or_default();
        let find_key = |engine: &SearchEngine| {
            let env_value = |name: &String| {
                LoadedProject::env_variable(name).filter(|key| !key.trim().is_empty())
            };
            let key = engine.env.iter().find_map(env_value).map(SecretString::from).or_else(|| {
                saved_keys.iter().find(|(name, _)| *name == engine.name)?;
                keys.get(&engine.name).ok().flatten().map(|(secret, _)| secret)
            });
            key.iter().for_each(|key| redact::add_secret(key.expose_secret()));
            key
        };
        let mut engines: Vec<SearchEngine> = Vec::new();
        for (name, (settings, origin)) in &integrations.search_engines {
            let row =
                built_in.iter().find(|row| row.name == *settings.like.as_ref().unwrap_or(name));
            let Some(row) = row else {
                let names: Vec<&str> = built_in.iter().map(|row| row.name.as_str()).collect();
                self.context.notes.send(&format!(
                    "note: {origin}: search.engines.{name} is skipped: `like` must be one of {}",
                    names.join(", ")
                ));
                continue;
            };
            let mut engine = row.copy_as(name.clone(), settings.url.clone());
            // The usual variable belongs to the known address; with another `url` the config must
            // name the variable.
            if row.name == *name && settings.url.is_none() {
                engine.env.clone_from(&row.env);
            }
            engine.key = settings.api_key.clone().or_else(|| find_key(&engine));
            engines.push(engine);
        }
        for mut row in built_in {
            if !integrations.search_engines.contains_key(&row.name) {
                row.key = find_key(&row);
                engines.push(row);
            }
        }
        if let Some((chosen, origin)) = &integrations.search_engine {
            match engines.iter().position(|engine| engine.name == *chosen) {
                Some(index) => engines = vec![engines.swap_remove(index)],
                None => self.context.notes.send(&format!(
                    "note: {origin}: unknown search engine `{chosen}`; web search is off"
                )),
            }
            engines.retain(|engine| engine.name == *chosen);
        }
        engines
    }

    /// Returns the configured formatters, the user's own first.
    pub(crate) fn formatters(&self) -> Vec<formatters::FormatterConfig> {
        self.merge_rows(formatters::builtin_formatters(), &self.config.integrations.formatters)
    }

    /// Returns the formatters whose `requires` markers this project has. Reads nothing before the
    /// folder is trusted.
    pub(crate) fn project_formatters(&self) -> Vec<formatters::FormatterConfig> {
        let open_root = |runtime: ToolRuntime| {
            let accesses = vec![ToolAccess::Read { path: ".".to_owned() }];
            match runtime.policy.decide(accesses, &[]) {
                Decision::Allowed(grant) => Some(runtime.workspace.open_read_only(grant)),
                Decision::Ask(_) | Decision::Denied { .. } => None,
            }
        };
        let is_trusted = self.config.trust == FolderTrust::Trusted;
        let runtime = is_trusted.then(|| self.build_runtime(self.configured_mode()).ok()).flatten();
        let Some(workspace) = runtime.and_then(open_root) else { return Vec::new() };
        let is_set_up = |row: &formatters::FormatterConfig| {
            !row.requires.is_empty()
                && row.requires.iter().all(|marker| marker.is_present(&workspace, "."))
        };
        self.formatters().into_iter().filter(is_set_up).collect()
    }

    /// Returns true if the project root contains one of the server's `roots` markers. Checks only
    /// that the file exists and does not open it.
    pub(crate) fn has_project_marker(&self, row: &LspServerConfig) -> bool {
        row.roots.iter().flatten().any(|name| LoadedProject::path_exists(&self.root.join(name)))
    }

    /// Returns the configured language servers, the user's own first.
    pub(crate) fn language_servers(&self) -> Vec<LspServerConfig> {
        self.merge_rows(
            windlass_lsp::built_in_servers(),
            &self.config.integrations.language_servers,
        )
    }

    /// Merges the built-in rows with the config. Rows that only the config defines come first.
    fn merge_rows<R: ConfigurableIntegration>(
        &self,
        built_in: Vec<R>,
        config: &NamedConfigEntries<R::RowSettings>,
    ) -> Vec<R> {
        if config.disabled_by.is_some() {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for (name, (settings, origin)) in &config.entries {
            if built_in.iter().any(|row| row.name() == name) || R::is_disabled(settings) {
                continue;
            }
            match R::new(name, settings) {
                Some(row) => rows.push(row),
                None => self.context.notes.send(&format!(
                    "note: {origin}: {}.{name} is skipped: a new entry needs `command` and \
                     `extensions`",
                    R::KEY
                )),
            }
        }
        rows.extend(built_in.into_iter().filter_map(|row| match config.entries.get(row.name()) {
            None => Some(row),
            Some((settings, _)) if R::is_disabled(settings) => None,
            Some((settings, _)) => Some(row.with_settings(settings)),
        }));
        rows
    }
}

/// A built-in table row that the config can change.
trait ConfigurableIntegration: Sized {
    /// The settings for a row in the config.
    type RowSettings;
    /// The config section of these rows, such as `lsp`.
    const KEY: &'static str;
    fn name(&self) -> &str;
    fn is_disabled(settings: &Self::RowSettings) -> bool;
    /// Creates a row that only the config defines; `None` if a required setting is missing.
    fn new(name: &str, settings: &Self::RowSettings) -> Option<Self>;
    /// Applies the settings in the config to the row.
    fn with_settings(self, settings: &Self::RowSettings) -> Self;
}

impl ConfigurableIntegration for LspServerConfig {
    type RowSettings = LanguageServerSettings;
    const KEY: &'static str = "lsp";

    fn name(&self) -> &str {
        &self.name
    }

    fn is_disabled(settings: &LanguageServerSettings) -> bool {
        settings.enabled == Some(false)
    }

    fn new(name: &str, server: &LanguageServerSettings) -> Option<LspServerConfig> {
        let row = LspServerConfig {
            name: name.to_owned(),
            language: name.to_owned(),
            command: server.command.clone()?,
            local: Vec::new(),
            extensions: server.extensions.clone()?,
            files: BTreeMap::new(),
            roots: Vec::new(),
            single_file: server.roots.is_none(),
            additional: false,
            requires: Vec::new(),
            env: BTreeMap::new(),
            initialization: serde_json::Value::Null,
            settings: serde_json::Value::Null,
            settle: 0,
            memory: 2_048,
            write: false,
            warnings: false,
            install: String::new(),
        };
        Some(row.with_settings(server))
    }

    fn with_settings(mut self, server: &LanguageServerSettings) -> LspServerConfig {
        let row = &mut self;
        if let Some(command) = &server.command {
            // A configured command means exactly that program, not one from the project.
            (row.command, row.local) = (command.clone(), Vec::new());
        }
        if let Some(extensions) = &server.extensions {
            row.extensions = extensions.clone();
        }
        if let Some(roots) = &server.roots {
            row.roots = vec![roots.clone()];
        }
        if let Some(language) = &server.language {
            row.language = language.clone();
        }
        if let Some(initialization) = &server.initialization {
            row.initialization = initialization.clone();
        }
        if let Some(settings) = &server.settings {
            row.settings = settings.clone();
        }
        if let Some(memory) = server.memory {
            row.memory = memory.get().into();
        }
        if let Some(install) = &server.install {
            row.install = install.clone();
        }
        row.write = server.write.unwrap_or(false);
        row.env.extend(expose_env(&server.env));
        self
    }
}

impl ConfigurableIntegration for formatters::FormatterConfig {
    type RowSettings = FormatterSettings;
    const KEY: &'static str = "formatter";

    fn name(&self) -> &str {
        &self.name
    }

    fn is_disabled(settings: &FormatterSettings) -> bool {
        settings.enabled == Some(false)
    }

    fn new(name: &str, formatter: &FormatterSettings) -> Option<formatters::FormatterConfig> {
        let row = formatters::FormatterConfig {
            name: name.to_owned(),
            command: formatter.command.clone()?,
            local: Vec::new(),
            extensions: formatter.extensions.clone()?,
            files: Vec::new(),
            requires: Vec::new(),
            env: BTreeMap::new(),
            timeout: 2_000,
            install: String::new(),
        };
        Some(row.with_settings(formatter))
    }

    fn with_settings(mut self, formatter: &FormatterSettings) -> formatters::FormatterConfig {
        let row = &mut self;
        if let Some(command) = &formatter.command {
            (row.command, row.local) = (command.clone(), Vec::new());
        }
        if let Some(extensions) = &formatter.extensions {
            row.extensions = extensions.clone();
        }
        if let Some(requires) = &formatter.requires {
            row.requires = vec![ProjectMarker::AnyFile(
                requires.iter().cloned().map(ProjectMarker::File).collect(),
            )];
        }
        if let Some(timeout) = formatter.timeout {
            row.timeout = timeout.get().into();
        }
        row.env.extend(expose_env(&formatter.env));
        self
    }
}

/// Returns the environment variables in plain text, for starting a program.
fn expose_env(env: &BTreeMap<String, SecretString>) -> impl Iterator<Item = (String, String)> {
    env.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
}

/// Stores the logs of language servers in the user's data folder.
struct LanguageServerLogStore(ServerLogs);

impl ServerLog for LanguageServerLogStore {
    fn log_line(&self, server: &str, line: &str) {
        if let Err(error) = self.0.append(server, line) {
            tracing::debug!(server, %error, "cannot write the server log");
        }
    }
}
