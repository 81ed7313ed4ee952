//! The effective config: the user's settings, additions of a trusted project, overrides by flags,
//! and the origin of each value. The managed policy limits them all.

mod agents;
pub mod edit;
mod effective_values;
mod env;
pub(crate) mod file_parser;
pub(crate) mod hook_config;
mod hooks;
mod integrations;
pub(crate) mod json_pointer;
mod managed_policy;
mod mcp;
pub(crate) mod mcp_server_config;
mod model_options;
mod model_prices;
mod plugin_list;
mod plugin_merge;
mod sandbox;
mod schema;
mod tui_settings;

pub(crate) use agents::AgentConfigEntry;
pub use env::ConfigEnv;
pub use file_parser::PROJECT_FILES;
pub use hook_config::{HookCommand, HookConfig, HookIoFormat};
pub use integrations::{IntegrationSettings, NamedConfigEntries};
pub use mcp_server_config::{McpOAuthConfig, McpServerConfig, McpTransport};
pub use model_options::ModelOption;
pub use model_prices::ModelPriceSettings;
pub use plugin_list::PluginList;
pub use sandbox::SandboxConfig;
pub use schema::{
    AgentSettings, ConfigFile, ExternalToolSettings, FormatterSettings, LanguageServerSettings,
    McpLoginSettings, McpOAuthClientSettings, McpServerKind, McpServerSettings, ModelNames,
    ModelSettings, ProviderSettings, ProviderTimeoutSettings, SandboxSettings,
    SearchEngineSettings, SettingsTable, SubagentSettings, WebSearchSettings, WebSettings,
    config_schema,
};
pub use tui_settings::{
    NotificationMode, SidePanelMode, StatusLineCommand, StatusLineContent, TuiSettings,
};

use crate::config::file_parser::{ConfigDiagnostic, ConfigLayer, ConfigOrigin, ParsedConfig};
use crate::plugins::{InstalledPlugins, LoadedPlugin};
use crate::trust::command_files::command_files;
use crate::trust::{FolderTrust, TrustStore, TrustedFile, is_trusted_path};
use crate::{Dirs, ProjectError};
use model_options::ModelOptionScope;
use sandbox::ManagedPolicyOrigins;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use windlass_protocol::PermissionMode;

/// The merged settings of all layers.
pub struct Config {
    /// The model to use.
    pub model: Option<(String, ConfigOrigin)>,
    /// The models that take over if `model` fails, from the same place.
    pub fallback_models: Vec<String>,
    /// The model for titles, summaries and judgements.
    pub small_model: Option<(String, ConfigOrigin)>,
    /// The providers by name.
    pub providers: BTreeMap<String, (ProviderSettings, ConfigOrigin)>,
    /// Permission rules as written, one entry per file: the managed policy, the user's own, the
    /// project's.
    pub permissions: Vec<LayerPermissionRules>,
    /// Patterns of the `instructions` settings.
    pub instruction_patterns: Vec<(String, ConfigOrigin)>,
    /// Entries of the `plugin` settings.
    pub plugin_list: PluginList,
    pub diagnostics: Vec<ConfigDiagnostic>,
    /// The trust state of the project's folder.
    pub trust: FolderTrust,
    /// `true` if the user trusts the folder, but chose to approve changes.
    pub keeps_asking: bool,
    /// `true` if the user declined to trust the folder, and it offers nothing else since.
    pub is_trust_declined: bool,
    /// Providers with a fault, by canonical name, with the reason; they cannot be used.
    pub broken_providers: BTreeMap<String, String>,
    /// The chosen mode; never less restrictive than `max_mode`.
    pub mode: Option<(PermissionMode, ConfigOrigin)>,
    /// The least restrictive mode allowed, also if no mode is chosen.
    pub max_mode: Option<PermissionMode>,
    pub sandbox: SandboxConfig,
    /// `true` to ask a session's model for a title, if configured.
    pub titles: Option<bool>,
    /// The MCP servers by name.
    pub servers: BTreeMap<String, (McpServerConfig, ConfigOrigin)>,
    /// Hooks of the user, the project and plugins.
    pub hooks: Vec<HookConfig>,
    /// Plugins that are unchanged since the user added them.
    pub plugins: Vec<LoadedPlugin>,
    /// The presentation of external tools to the model.
    pub tools: ExternalToolSettings,
    pub subagents: SubagentSettings,
    /// Language servers, formatters, search engines and private hosts.
    pub integrations: IntegrationSettings,
    pub tui: TuiSettings,
    managed: ManagedPolicyOrigins,
    dirs: Dirs,
    root: PathBuf,
    files: Vec<(ConfigLayer, ParsedConfig)>,
    effective_values: Vec<(String, String, ConfigOrigin)>,
    options: Vec<(ModelOptionScope, ModelOption)>,
    agents: Vec<AgentConfigEntry>,
    documents: BTreeMap<String, String>,
    trusted_files: Vec<TrustedFile>,
}

/// Settings of the command line. They override all files except the managed policy.
#[derive(Clone, Debug, Default)]
pub struct ConfigFlags {
    /// The model, as `provider/model`, and its fallbacks after commas.
    pub model: Option<String>,
    /// The small model, as `provider/model`.
    pub small_model: Option<String>,
    pub mode: Option<PermissionMode>,
    /// `true` to run commands in a sandbox.
    pub sandbox: Option<bool>,
    /// Folders in addition to `additional_directories` of the config, as absolute paths.
    pub additional_directories: Vec<String>,
}

/// The name of the default agent, `build`.
pub const DEFAULT_AGENT: &str = "build";

/// Limits the instruction patterns in effect.
const MAX_INSTRUCTION_PATTERNS: usize = 32;

impl Config {
    /// Returns the files of the project that commands of hooks, servers and formatters name, in the
    /// user's own config and in a trusted project, relative to the project.
    pub fn command_files(&self) -> Vec<String> {
        let trusted = self.trusted_files.iter().map(|file| file.name.clone());
        let named = self.files.iter().flat_map(|(_, file)| command_files(&self.root, &file.value));
        let files: BTreeSet<String> =
            trusted.chain(named).filter(|name| !is_trusted_path(name)).collect();
        files.into_iter().collect()
    }

    /// Reads the managed policy, the policy of the tenant, the user's config and, if its folder is trusted, the project's
    /// config. `config_env` supplies the environment and the built-in providers.
    pub fn load(
        dirs: &Dirs,
        root: &Path,
        flags: ConfigFlags,
        config_env: &dyn ConfigEnv,
    ) -> Result<Config, ProjectError> {
        let mut texts = managed_policy::read_policies(dirs)?;
        let user_file = dirs.config.join("windlass.jsonc");
        if let Some(text) = file_parser::read_config_text(&user_file)? {
            texts.push((ConfigLayer::User, user_file, text));
        }
        let check = TrustStore::read(dirs)?.check_folder(root)?;
        texts.extend(
            check.config_texts.into_iter().map(|(path, text)| (ConfigLayer::Project, path, text)),
        );
        let mut config = Config::merge(texts, flags, config_env, (dirs, root));
        config.trust = check.trust;
        (config.keeps_asking, config.is_trust_declined) = (check.keeps_asking, check.is_declined);
        config.documents = check.documents;
        config.trusted_files = check.files;
        if let Some((path, text)) = check.mcp_list {
            config.apply_mcp_list(&path, &text);
        }
        let (plugins, plugin_diagnostics) =
            InstalledPlugins::read(dirs)?.with_claude_tools(config_env.claude_tools()).load_all();
        config.diagnostics.extend(plugin_diagnostics);
        config.apply_plugins(plugins, config_env);
        for path in check.config_links {
            let origin =
                ConfigOrigin { layer: ConfigLayer::Project, file: Some(path), line: 1, column: 1 };
            let message = "symbolic links are not followed; put the file itself there".to_owned();
            config.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
        }
        Ok(config)
    }

    /// Merges files that are not yet written, from weak to strong, without `ConfigFlags`.
    pub(crate) fn preview(
        texts: Vec<(ConfigLayer, PathBuf, String)>,
        config_env: &dyn ConfigEnv,
        (dirs, root): (&Dirs, &Path),
    ) -> Config {
        Config::merge(texts, ConfigFlags::default(), config_env, (dirs, root))
    }

    /// Merges files: the managed policies first, then from weak to strong.
    fn merge(
        texts: Vec<(ConfigLayer, PathBuf, String)>,
        flags: ConfigFlags,
        config_env: &dyn ConfigEnv,
        (dirs, root): (&Dirs, &Path),
    ) -> Config {
        let mut config = Config {
            model: None,
            fallback_models: Vec::new(),
            small_model: None,
            providers: BTreeMap::new(),
            permissions: Vec::new(),
            instruction_patterns: Vec::new(),
            plugin_list: PluginList::default(),
            diagnostics: Vec::new(),
            trust: FolderTrust::NothingToTrust,
            keeps_asking: false,
            is_trust_declined: false,
            broken_providers: BTreeMap::new(),
            mode: None,
            max_mode: None,
            sandbox: SandboxConfig::default(),
            managed: ManagedPolicyOrigins::default(),
            dirs: dirs.clone(),
            root: root.to_owned(),
            files: Vec::new(),
            effective_values: Vec::new(),
            options: Vec::new(),
            agents: Vec::new(),
            titles: None,
            servers: BTreeMap::new(),
            hooks: Vec::new(),
            plugins: Vec::new(),
            tools: ExternalToolSettings::default(),
            subagents: SubagentSettings::default(),
            integrations: IntegrationSettings::default(),
            tui: TuiSettings::default(),
            documents: BTreeMap::new(),
            trusted_files: Vec::new(),
        };
        for (layer, path, text) in texts {
            let mut file = ParsedConfig::parse(&path, layer, &text);
            config.apply_file(layer, &mut file, config_env);
            // A project's mistakes do not disable the user's own or a built-in provider.
            let broken = std::mem::take(&mut file.broken_providers).into_iter();
            let is_affected = |name: &str| match layer {
                ConfigLayer::Project => {
                    let origin_layer = config.providers.get(name).map(|(_, origin)| origin.layer);
                    config_env.canonical_provider(name).is_none()
                        && origin_layer != Some(ConfigLayer::User)
                }
                ConfigLayer::User | ConfigLayer::Flag => true,
                ConfigLayer::Managed | ConfigLayer::Plugin => false,
            };
            let to_canonical = |(name, reason): (String, String)| {
                (config_env.canonical_provider(&name).map(str::to_owned).unwrap_or(name), reason)
            };
            let affected: Vec<(String, String)> =
                broken.filter(|(name, _)| is_affected(name)).map(to_canonical).collect();
            config.broken_providers.extend(affected);
            config.diagnostics.append(&mut file.diagnostics);
            config.files.push((layer, file));
        }
        config.apply_flags(flags);
        config
    }

    fn apply_flags(&mut self, flags: ConfigFlags) {
        let origin = ConfigOrigin { layer: ConfigLayer::Flag, file: None, line: 0, column: 0 };
        if let Some(names) = flags.model {
            self.set_model(ModelNames::from_list(&names), origin.clone());
        }
        if let Some(model) = flags.small_model {
            self.set_small_model(model, origin.clone());
        }
        if let Some(mode) = flags.mode {
            self.set_mode(mode, origin.clone());
        }
        if let Some(enabled) = flags.sandbox {
            self.set_sandbox_enabled(enabled, origin.clone());
        }
        self.add_directories(flags.additional_directories, &origin);
    }

    fn apply_file(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        config_env: &dyn ConfigEnv,
    ) {
        if layer == ConfigLayer::Managed {
            managed_policy::remove_disallowed_keys(file);
        }
        let value = Value::Object(file.value.clone());
        let settings: ConfigFile = match serde_json::from_value(value) {
            Ok(settings) => settings,
            Err(error) => {
                file.add_fault("", &error.to_string());
                return;
            }
        };
        if let Some(names) = settings.model {
            self.set_model(names, file.origin_of("/model").clone());
        }
        self.apply_small_model(layer, settings.small_model, file);
        if let Some(titles) = settings.titles {
            self.record_value("titles", &titles.to_string(), &file.origin_of("/titles").clone());
            self.titles = Some(titles);
        }
        for (name, provider) in settings.provider {
            self.apply_provider(layer, file, name, provider, config_env);
        }
        for (name, server) in settings.mcp {
            self.apply_mcp_server(layer, file, (name, server), config_env);
        }
        self.apply_hooks(layer, settings.hooks, file, config_env);
        self.apply_tool_settings(layer, settings.tools, file);
        self.apply_integrations(layer, file, (settings.lsp, settings.formatter), config_env);
        self.apply_web(layer, file, (settings.search, settings.web), config_env);
        self.apply_tui(layer, settings.tui, file);
        self.apply_agents(layer, file);
        self.apply_subagents(layer, settings.subagents, file);
        self.apply_instructions(settings.instructions, file);
        self.apply_plugin_list(layer, settings.plugin, file);
        self.apply_mode_and_sandbox(layer, settings.mode, settings.sandbox, file);
        self.apply_additional_directories(layer, settings.additional_directories, file);
        if let Some(permission) = settings.permission {
            self.record_permission(&permission, "", file);
            let file_index = self.files.len();
            self.permissions.push(LayerPermissionRules { layer, rules: permission, file_index });
        }
    }

    /// Applies the `tui` settings. A repository may not bind keys or restyle permission requests.
    fn apply_tui(&mut self, layer: ConfigLayer, tui: Option<TuiSettings>, file: &mut ParsedConfig) {
        let Some(tui) = tui else { return };
        if layer == ConfigLayer::Project {
            return file.add_fault(
                "/tui",
                "a project cannot change the look or the keys of the terminal UI",
            );
        }
        if let Some(value) = file.value_at("/tui").cloned() {
            self.record_values("tui", &value, "/tui", file);
        }
        self.tui = tui;
    }

    /// Applies the `instructions` patterns. They accumulate, so that a project does not suppress
    /// the user's own.
    fn apply_instructions(&mut self, patterns: Vec<String>, file: &mut ParsedConfig) {
        for (index, pattern) in patterns.into_iter().enumerate() {
            let pointer = format!("/instructions/{index}");
            let is_full = self.instruction_patterns.len() >= MAX_INSTRUCTION_PATTERNS;
            match crate::instructions::pattern_problem(&pattern) {
                Some(problem) => file.add_fault(&pointer, &format!("`{pattern}` {problem}")),
                None if is_full => {
                    file.add_fault(
                        &pointer,
                        &format!("more than {MAX_INSTRUCTION_PATTERNS} patterns"),
                    );
                }
                None => {
                    let origin = file.origin_of(&pointer).clone();
                    self.record_value("instructions", &pattern, &origin);
                    self.instruction_patterns.push((pattern, origin));
                }
            }
        }
    }

    /// Applies a `provider` entry entirely. A project's provider with the name of the user's own is
    /// ignored, so that the user's API key never goes to a URL that a project chose.
    fn apply_provider(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        name: String,
        mut provider: ProviderSettings,
        config_env: &dyn ConfigEnv,
    ) {
        use secrecy::ExposeSecret;
        let pointer = json_pointer::join("/provider", &name);
        let is_user_entry =
            |(_, origin): &(ProviderSettings, ConfigOrigin)| origin.layer == ConfigLayer::User;
        if layer == ConfigLayer::Project && self.providers.get(&name).is_some_and(is_user_entry) {
            let message = format!("your own config already has a provider `{name}`");
            return file.add_fault(&pointer, &message);
        }
        let canonical = config_env.canonical_provider(&name);
        if layer == ConfigLayer::Project && canonical.is_some() {
            let message = format!("a project cannot change the provider `{name}`");
            return file.add_fault(&pointer, &message);
        }
        // A provider has one entry under its canonical name, by any of its names.
        let name = canonical.map_or(name, str::to_owned);
        let is_duplicate = |(_, origin): &(ProviderSettings, ConfigOrigin)| {
            origin.layer == layer && origin.file == file.origin_of(&pointer).file
        };
        if self.providers.get(&name).is_some_and(is_duplicate) {
            return file.add_fault(
                &pointer,
                &format!("`{name}` is already configured under another name"),
            );
        }
        self.remove_provider_values(&name);
        let variable = provider.api_key.as_ref().and_then(|key| {
            let inner = key.expose_secret().strip_prefix("{env:")?.strip_suffix('}')?;
            Some(inner.to_owned())
        });
        if let Some(variable) = variable {
            if layer == ConfigLayer::Project {
                let message =
                    "a project cannot read environment variables; put the key in your own config";
                return file.add_fault(&format!("{pointer}/api_key"), message);
            }
            provider.api_key = config_env.env(&variable).map(SecretString::from);
            if provider.api_key.is_none() {
                let message = format!("the environment variable {variable} is not set");
                file.add_fault(&format!("{pointer}/api_key"), &message);
            }
        }
        let origin = file.origin_of(&pointer).clone();
        if let Some(value) = file.value_at(&pointer).cloned() {
            self.record_values(&format!("provider.{name}"), &value, &pointer, file);
        }
        self.apply_provider_options(&name, &provider, &pointer, file);
        self.providers.insert(name, (provider, origin));
    }

    /// Removes the values that a weaker layer set for a provider, because an entry is replaced
    /// entirely.
    fn remove_provider_values(&mut self, name: &str) {
        let prefix = format!("provider.{name}.");
        self.effective_values.retain(|(value_name, ..)| !value_name.starts_with(&prefix));
        self.options.retain(|(scope, _)| match scope {
            ModelOptionScope::Provider(provider)
            | ModelOptionScope::Model(provider, _)
            | ModelOptionScope::Variant(provider, ..) => provider != name,
            ModelOptionScope::Agent(_) => true,
        });
    }

    /// Returns the documents of a trusted project directly in a folder such as `.windlass/agents/`,
    /// with the content that was compared with the trusted one.
    pub fn documents(&self, folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
        let is_direct_child =
            move |name: &&String| name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/'));
        let matching = self.documents.iter().filter(move |(name, _)| is_direct_child(name));
        matching.map(|(name, text)| (self.root.join(name), text.clone()))
    }

    /// Returns the same documents at any depth below a folder.
    pub(crate) fn documents_beneath(
        &self,
        folder: &str,
    ) -> impl Iterator<Item = (PathBuf, String)> {
        let matching = self.documents.iter().filter(move |(name, _)| name.starts_with(folder));
        matching.map(|(name, text)| (self.root.join(name), text.clone()))
    }

    /// Returns the files of a trusted project directly in a folder such as `.windlass/tools/`, as
    /// they were at the trust check.
    pub fn trusted_files(&self, folder: &str) -> Vec<TrustedFile> {
        let is_direct_child = |file: &&TrustedFile| {
            file.name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/'))
        };
        self.trusted_files.iter().filter(is_direct_child).cloned().collect()
    }

    /// Reads a file again and returns `true` if it is unchanged since the trust check.
    pub fn is_unchanged(&self, file: &TrustedFile) -> bool {
        file.is_unchanged()
    }

    /// Returns every effective value with its origin, without API keys.
    pub fn effective_values(&self) -> &[(String, String, ConfigOrigin)] {
        &self.effective_values
    }

    /// Returns the origin of a permission rule, by its JSON pointer below `permission`.
    pub fn permission_origin(
        &self,
        permission: &LayerPermissionRules,
        pointer: &str,
    ) -> Option<ConfigOrigin> {
        let (_, file) = self.files.get(permission.file_index)?;
        Some(file.origin_of(&format!("/permission{pointer}")).clone())
    }
}

/// The permission rules of one file.
pub struct LayerPermissionRules {
    pub layer: ConfigLayer,
    /// The rules as written.
    pub rules: Value,
    file_index: usize,
}

#[cfg(test)]
mod tests;
