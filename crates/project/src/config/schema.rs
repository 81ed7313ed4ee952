//! The types of a config file, which define its published schema.

use super::model_prices::ModelPriceSettings;
use super::tui_settings::TuiSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use windlass_protocol::{AgentRole, ModelOptions, PermissionMode, ReasoningEffort};

/// A config file. Comments and trailing commas are allowed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// The URL of this schema, for editors.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The model to use, as `provider/model`; or a list, in which the later ones take over for the
    /// rest of a turn if the ones before them fail.
    pub model: Option<ModelNames>,
    /// The model for titles, summaries and judgements, as `provider/model`. By default, the model of
    /// the session. Only in your own config.
    pub small_model: Option<String>,
    /// Providers by name: changes to built-in ones, and your own.
    #[serde(default)]
    pub provider: BTreeMap<String, ProviderSettings>,
    /// Agents by name: built-in ones such as `build`, and your own. The settings are those of an
    /// agent file's front matter.
    #[serde(default)]
    pub agent: BTreeMap<String, AgentSettings>,
    /// Instruction files in addition to `AGENTS.md`, as patterns relative to the project's folder,
    /// such as `docs/*.md`. Those of a project apply once it is trusted.
    #[serde(default)]
    pub instructions: Vec<String>,
    /// Plugins in the form of OpenCode: names of npm packages, which `windlass plugin add` adds, and
    /// script files relative to your config folder.
    #[serde(default)]
    pub plugin: Vec<String>,
    /// Permission rules: `"allow"`, `"ask"` or `"deny"` for everything, or a map from a key
    /// (`read`, `edit`, a tool's name) to a level or to patterns with a level each.
    pub permission: Option<Value>,
    /// The permission mode: `plan`, `ask`, `auto` or `full`. Only in your own config and in the
    /// managed policy; there it is the least restrictive mode allowed.
    pub mode: Option<PermissionMode>,
    /// Ask the session's model once for a title, if the front end shows lists of sessions. By
    /// default, a local model is not asked.
    pub titles: Option<bool>,
    /// The sandbox of commands. Only in your own config and in the managed policy.
    pub sandbox: Option<SandboxSettings>,
    /// Folders outside the project that tools and commands may use like the project itself, as
    /// absolute paths or from `~/`. Only in your own config.
    pub additional_directories: Option<Vec<String>>,
    /// MCP (Model Context Protocol) servers by name.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpServerSettings>,
    /// Hooks by the point at which they run: `before_tool`, `prompt` and others, in our format or
    /// in Claude's (`PreToolUse`).
    #[serde(default)]
    pub hooks: BTreeMap<String, Vec<Value>>,
    /// The presentation of external tools to the model. Only in your own config.
    pub tools: Option<ExternalToolSettings>,
    /// Settings of all subagents. Only in your own config.
    pub subagents: Option<SubagentSettings>,
    /// Language servers: `false` for none, or entries by name. An entry overrides settings of a
    /// built-in server of that name; a new one needs `command` and `extensions`.
    #[serde(default)]
    #[schemars(with = "SettingsTable<LanguageServerSettings>")]
    pub lsp: Option<SettingsTable<LanguageServerSettings>>,
    /// Formatters: `false` for none, or entries by name, as for `lsp`.
    #[serde(default)]
    #[schemars(with = "SettingsTable<FormatterSettings>")]
    pub formatter: Option<SettingsTable<FormatterSettings>>,
    /// Web search. Only in your own config.
    pub search: Option<WebSearchSettings>,
    /// Web access to non-public hosts. Only in your own config.
    pub web: Option<WebSettings>,
    /// Appearance and keys of the terminal interface. Only in your own config.
    pub tui: Option<TuiSettings>,
}

/// Returns the JSON Schema of a config file. It is a published interface.
pub fn config_schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(ConfigFile);
    schema.insert("title".into(), "Windlass config".into());
    schema
}

/// A model, or a model and its fallbacks, each as `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelNames {
    /// A model without fallbacks.
    One(String),
    /// A model, then its fallbacks in order.
    Several(#[schemars(length(min = 1))] Vec<String>),
}

impl ModelNames {
    /// Reads names that are separated by commas.
    pub fn from_list(text: &str) -> ModelNames {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        ModelNames::Several(names.map(str::to_owned).collect())
    }

    /// Splits into the first model and the fallbacks; `None` without a model.
    pub fn split(self) -> Option<(String, Vec<String>)> {
        match self {
            ModelNames::One(name) => Some((name, Vec::new())),
            ModelNames::Several(names) => {
                let mut names = names.into_iter();
                names.next().map(|first| (first, names.collect()))
            }
        }
    }
}

/// Entries by name, or a switch for all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SettingsTable<T> {
    /// Enables or disables all entries.
    Enabled(bool),
    /// Entries by name.
    Entries(BTreeMap<String, T>),
}

/// Implemented by hand, not with `derive`, so that validation reports a fault at the entry it
/// belongs to.
impl<T: JsonSchema> JsonSchema for SettingsTable<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Rows", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let entry = generator.subschema_for::<T>();
        json_schema!({"type": ["boolean", "object"], "additionalProperties": entry})
    }
}

/// A language server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageServerSettings {
    /// Use this server.
    pub enabled: Option<bool>,
    /// The program and its arguments; `{cache}` is replaced by a folder of its own.
    pub command: Option<Vec<String>>,
    /// File extensions such as `.rs`, each with its LSP language ID.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Names of files that mark a project root, such as `Cargo.toml`; without any, the server
    /// applies everywhere.
    pub roots: Option<Vec<String>>,
    /// The language it serves; if several servers share a language, the first that matches serves a
    /// file.
    pub language: Option<String>,
    /// Environment variables. `{env:NAME}` inserts the value of a variable, in your own config
    /// only.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// The `initializationOptions` sent at startup.
    pub initialization: Option<Value>,
    /// The settings returned for `workspace/configuration` requests.
    pub settings: Option<Value>,
    /// The memory limit, in megabytes.
    pub memory: Option<NonZeroU32>,
    /// Allow changes to the project. Only your own config can set `true`.
    pub write: Option<bool>,
    /// Installation instructions for the user.
    pub install: Option<String>,
}

/// A formatter: a program that reads a file from its standard input and writes it formatted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatterSettings {
    /// Use this formatter.
    pub enabled: Option<bool>,
    /// The program and its arguments; `{file}` is replaced by the path of the file.
    pub command: Option<Vec<String>>,
    /// File extensions, such as `.rs`.
    pub extensions: Option<Vec<String>>,
    /// File names; one must exist in the folder of the file or above it.
    pub requires: Option<Vec<String>>,
    /// Environment variables. `{env:NAME}` as for language servers.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// The timeout, in milliseconds.
    pub timeout: Option<NonZeroU32>,
}

/// Web search.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSettings {
    /// The search engine to use; by default, the first that has an API key.
    pub provider: Option<String>,
    /// Search engines by name: changes to built-in ones, and your own.
    #[serde(default)]
    pub engines: BTreeMap<String, SearchEngineSettings>,
}

/// A search engine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEngineSettings {
    /// The built-in engine that this one behaves like.
    pub like: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// The API key, or `{env:NAME}` for the value of an environment variable. Never shown.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
}

/// Web access to non-public hosts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSettings {
    /// Non-public hosts that may be fetched from, such as `localhost:3000`.
    #[serde(default)]
    pub private_hosts: Vec<String>,
}

/// An MCP server: a program (`command`) or a URL (`url`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerSettings {
    /// `local` for a program, `remote` for a URL, `sse` for the URL of an old server with one event
    /// stream; by default, derived from `command` or `url`.
    #[serde(rename = "type")]
    pub kind: Option<McpServerKind>,
    /// The program and its arguments; `{folder}` is replaced by the project's folder, and `{data}` by
    /// a folder of the server's own, which it may write.
    pub command: Option<Vec<String>>,
    /// Environment variables. `{env:NAME}` inserts the value of a variable, in your own config
    /// only.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// An alias of `env`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub environment: BTreeMap<String, SecretString>,
    /// The working directory.
    pub cwd: Option<String>,
    /// Allow writing in the project; `true` by default unless a project defines the server.
    pub write: Option<bool>,
    /// Hosts it may reach, in addition to `sandbox.network`.
    pub network: Option<Vec<String>>,
    /// Run in the sandbox. Only your own config can set `false`.
    pub sandbox: Option<bool>,
    /// The URL.
    pub url: Option<String>,
    /// Headers sent with every request. `{env:NAME}` as for `env`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// The OAuth settings, or `false` to never log in.
    pub oauth: Option<McpLoginSettings>,
    /// Use this server.
    pub enabled: Option<bool>,
    /// The time it may take to start, in milliseconds.
    pub timeout: Option<NonZeroU32>,
    /// The protocol version to use, if it cannot be negotiated.
    pub protocol: Option<String>,
}

/// The kind of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerKind {
    /// A program that is started.
    Local,
    /// A server at a URL.
    Remote,
    /// A server at a URL with one event stream, as in protocol revision 2024-11-05.
    Sse,
}

/// The login settings of an MCP server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum McpLoginSettings {
    /// Allow or forbid login.
    Enabled(bool),
    /// The OAuth client to log in as.
    Client(McpOAuthClientSettings),
}

/// The OAuth client of an MCP server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct McpOAuthClientSettings {
    /// The client ID, if the server assigned one.
    pub client_id: Option<String>,
    /// The client secret. `{env:NAME}` as for `env`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub client_secret: Option<SecretString>,
    /// The scope to request.
    pub scope: Option<String>,
    /// The local port that the browser is redirected to.
    pub callback_port: Option<u16>,
}

/// The presentation of external tools to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalToolSettings {
    /// The tokens that tool definitions may take in every request; the model finds the other tools
    /// by searching.
    pub budget: Option<u32>,
    /// The timeout of a custom tool's call, in milliseconds.
    pub timeout: Option<NonZeroU32>,
}

/// Settings of all subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentSettings {
    /// Tools by name, or by prefix and `*`, that only the agent you work with has. A subagent of
    /// your own can still list one by name.
    #[serde(default)]
    pub exclude_tools: Vec<String>,
}

/// The sandbox of commands.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Use the sandbox. `true` in the managed policy cannot be overridden.
    pub enabled: Option<bool>,
    /// Hosts that commands may reach, for example `crates.io` or `*.example.com:8443`, and the
    /// groups `registries` and `git-hosts`; by default none.
    pub network: Option<Vec<String>>,
    /// Folders of the home folder that commands may read without approval, as absolute paths or
    /// from `~/`. Toolchains, package caches and the repository of the project need no entry; keys
    /// and logins stay hidden.
    pub read: Option<Vec<String>>,
    /// Folders outside the project that commands may write to, as absolute paths or from `~/`,
    /// without links in the path.
    pub write: Option<Vec<String>>,
}

/// A model provider.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// The wire format: `openai-chat`, `openai-responses`, `anthropic` or `gemini`.
    pub api: Option<String>,
    /// The base URL of the API, for example `http://127.0.0.1:8080/v1`.
    pub base_url: Option<String>,
    /// The built-in provider that this one behaves like.
    pub like: Option<String>,
    /// The API key, or `{env:NAME}` for the value of an environment variable. Never shown.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Headers sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The timeouts.
    #[serde(default)]
    pub timeouts: ProviderTimeoutSettings,
    /// Text between `<think>` tags in an answer is reasoning.
    #[serde(default)]
    pub think_tags: bool,
    /// Ask the provider to follow the schemas of tools strictly, where a schema allows it.
    #[serde(default)]
    pub strict_tools: bool,
    /// Options for all its models.
    #[serde(default)]
    pub options: ModelOptions,
    /// Models by name: changes to built-in ones, and your own.
    #[serde(default)]
    pub models: BTreeMap<String, ModelSettings>,
}

/// The timeouts of a provider, in seconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderTimeoutSettings {
    /// Until the connection is established.
    pub connect: Option<NonZeroU32>,
    /// From the request to the response headers.
    pub headers: Option<NonZeroU32>,
    /// From the headers to the first event with content.
    pub first: Option<NonZeroU32>,
    /// Between two events with content.
    pub idle: Option<NonZeroU32>,
}

/// A model. Missing settings come from the built-in catalog, or from defaults for an unknown model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The provider's ID of the model, if it differs from its name here.
    pub id: Option<String>,
    /// The context window, in tokens.
    pub context: Option<u64>,
    /// The maximum output, in tokens.
    pub output: Option<u64>,
    /// Accepts images.
    pub images: Option<bool>,
    /// Accepts PDF files.
    pub pdfs: Option<bool>,
    /// Supports tool calls.
    pub calls: Option<bool>,
    /// Supports reasoning.
    pub reasons: Option<bool>,
    /// The supported reasoning efforts.
    pub efforts: Option<Vec<ReasoningEffort>>,
    /// Supports JSON output with a schema.
    pub structured: Option<bool>,
    /// Accepts a temperature.
    pub temperature: Option<bool>,
    /// The token prices.
    #[serde(default)]
    pub cost: ModelPriceSettings,
    /// Options for this model.
    #[serde(default)]
    pub options: ModelOptions,
    /// Alternative options by name; `--variant` selects one.
    #[serde(default)]
    pub variants: BTreeMap<String, ModelOptions>,
}

/// An agent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// Options for its model.
    #[serde(default)]
    pub options: ModelOptions,
    /// When to use the agent; other agents read this.
    pub description: Option<String>,
    /// The role: started by the user (`primary`), by other agents (`subagent`), or by both (`all`).
    pub mode: Option<AgentRole>,
    /// Its own model, as `provider/model`, or a list with fallbacks.
    pub model: Option<ModelNames>,
    /// The sampling temperature of its model.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The variant of its model.
    pub variant: Option<String>,
    /// The most requests of a turn.
    #[schemars(range(min = 1))]
    pub steps: Option<u32>,
    /// Tools by name, or by prefix and `*`, each enabled or not; the last match decides.
    #[serde(default)]
    pub tools: BTreeMap<String, bool>,
    /// Permission rules. Those in a project can only restrict.
    pub permission: Option<Value>,
    /// The system prompt.
    pub prompt: Option<String>,
    /// `replace` uses `prompt` in place of Windlass's own instructions, `append` after them.
    pub prompt_mode: Option<String>,
    /// `true` to remove the agent of this name.
    pub disable: Option<bool>,
}
