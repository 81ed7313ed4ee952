//! Configuration of a user and a project: config files, instructions, trusted folders, stored
//! approvals and API keys of providers.
//!
//! This crate reads and reports; it starts no process and decides no permission. It keeps the
//! invariant that no byte of a project is interpreted before its folder is trusted, and that trust
//! applies to the content, not to the path. Start reading at [`Config::load`].

mod agents;
mod allowed_tools;
mod api_keys;
mod approvals;
mod claude_permission_rules;
pub mod config;
mod custom_commands;
mod custom_tools;
mod dirs;
mod error;
mod front_matter;
mod hex;
pub mod import;
mod instruction_names;
mod instructions;
mod mcp_server_data;
mod mcp_server_pins;
mod opencode_permission_rules;
mod plugins;
mod private_files;
mod server_files;
mod server_logs;
mod skills;
mod trust;

pub use agents::{AgentConfig, AgentConfigs, AgentPromptMode};
pub use allowed_tools::allowed_calls;
pub use api_keys::{ApiKeySource, ApiKeyStore};
pub use approvals::{ApprovalStore, StoredApproval};
pub use config::file_parser::{ConfigDiagnostic, ConfigLayer, ConfigOrigin, parse_config_object};
pub use config::{
    AgentSettings, Config, ConfigEnv, ConfigFile, ConfigFlags, ExternalToolSettings,
    FormatterSettings, HookCommand, HookConfig, HookIoFormat, IntegrationSettings,
    LanguageServerSettings, LayerPermissionRules, McpLoginSettings, McpOAuthClientSettings,
    McpOAuthConfig, McpServerConfig, McpServerKind, McpServerSettings, McpTransport, ModelOption,
    ModelPriceSettings, ModelSettings, NamedConfigEntries, NotificationMode, PROJECT_FILES,
    PluginList, ProviderSettings, ProviderTimeoutSettings, SandboxConfig, SandboxSettings,
    SearchEngineSettings, SettingsTable, SidePanelMode, StatusLineCommand, StatusLineContent,
    TuiSettings, WebSearchSettings, WebSettings, config_schema,
};
pub use custom_commands::{CustomCommand, CustomCommands, ExpandedPrompt, TemplateShellCommand};
pub use custom_tools::{
    PluginToolAccess, PreparedToolFile, ScriptConfig, ToolDescriptionCache, ToolFile, ToolFiles,
    is_typescript, write_cached_files, write_compiled_scripts,
};
pub use dirs::{Dirs, find_project_root};
pub use error::ProjectError;
pub use instructions::{
    InstructionText, LoadedInstructions, PathRule, git_branch, has_instructions, is_git_repository,
    load_instructions, top_level_names,
};
pub use mcp_server_data::create_server_data_folder;
pub use mcp_server_pins::{McpServerPinOwner, McpServerPins};
pub use plugins::{
    InstalledPlugin, InstalledPlugins, LoadedPlugin, MarketplacePlugin, MarketplacePluginSource,
    NpmPackageSpec, PluginCandidate, PluginComponents, PluginContents, PluginDiff, PluginDirs,
    PluginDownloadDir, PluginManifest, PluginManifestFormat, PluginMarketplace, PluginMarketplaces,
    PluginSource, PluginTool, github_url, is_marketplace_name,
};
pub use private_files::create_private_folder;
pub use server_files::{
    MAX_SOCKET_PATH_BYTES, RunningServer, ServedSession, ServerFiles, ServerLock, TokensLock,
};
pub use server_logs::ServerLogs;
pub use skills::{SkillFile, SkillFiles, skill_copies_folder};
pub use trust::{FolderTrust, TrustDiff, TrustRequest, TrustStore, TrustedFile};
