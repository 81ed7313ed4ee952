//! A config file as it is written: the types behind its published schema.

use crate::agents::Employer;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use windlass_protocol::{Effort, Mode, Options};

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
    /// The agents, by name: `build` and the others that are built in, and your own. What is said here is
    /// what the head of an agent's file says.
    #[serde(default)]
    pub agent: BTreeMap<String, Agent>,
    /// Files that advise the model besides AGENTS.md, as patterns relative to the project's folder,
    /// such as `docs/*.md`. Those of a project count once it is trusted.
    #[serde(default)]
    pub instructions: Vec<String>,
    /// What may be done without asking: `"allow"`, `"ask"` or `"deny"` for everything, or a map
    /// from a key (`read`, `edit`, a tool's name) to a level or to patterns with a level each.
    pub permission: Option<Value>,
    /// How much is done without asking: `plan`, `ask`, `auto` or `full`. In your own config and in
    /// the managed policy only; there it is the laxest that may be chosen.
    pub mode: Option<Mode>,
    /// Whether a session's model is asked once for a title, where a front end shows lists of sessions.
    /// Unless it is said here, a model on this machine is not asked.
    pub titles: Option<bool>,
    /// What commands are kept in. In your own config and in the managed policy only.
    pub sandbox: Option<Walls>,
    /// Servers of the Model Context Protocol, by name.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpServer>,
    /// Programs that have their say, by the point at which they are asked: `before_tool`, `prompt`
    /// and others, in our form or in Claude's (`PreToolUse`).
    #[serde(default)]
    pub hooks: BTreeMap<String, Vec<Value>>,
    /// How tools of others are told of. In your own config only.
    pub tools: Option<ToolSettings>,
    /// Language servers: `false` for none, or rows by name. A row that Windlass knows takes over what
    /// is said here; a new one needs `command` and `extensions`.
    #[serde(default)]
    #[schemars(with = "Rows<LanguageServer>")]
    pub lsp: Option<Rows<LanguageServer>>,
    /// Formatters: `false` for none, or rows by name, likewise.
    #[serde(default)]
    #[schemars(with = "Rows<Formatter>")]
    pub formatter: Option<Rows<Formatter>>,
    /// Where searches of the web go. In your own config only.
    pub search: Option<Search>,
    /// What can be fetched besides public hosts. In your own config only.
    pub web: Option<WebSettings>,
    /// How the screen looks and which keys it has. In your own config only.
    pub tui: Option<ScreenSettings>,
}

/// How the screen looks, and its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenSettings {
    /// The theme, by name; `/theme` lists them.
    pub theme: Option<String>,
    /// Looks of your own for parts of the screen, such as `"accent": "bold #d08770"`.
    #[serde(default)]
    pub colors: BTreeMap<String, String>,
    /// Other keys for commands, such as `"editor": "ctrl+e"`; several with spaces between them, none
    /// with `""`. `/help` lists the commands.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// Whether everything is written as plain lines, for a screen reader or a simple terminal.
    pub linear: Option<bool>,
    /// Whether lines and marks are drawn in ASCII only.
    pub ascii: Option<bool>,
}

/// Rows by name, or whether there are any.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Rows<T> {
    /// Whether there are any.
    All(bool),
    /// By name.
    Each(BTreeMap<String, T>),
}

/// Written so that what is wrong with a row is said where it stands.
impl<T: JsonSchema> JsonSchema for Rows<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Rows", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let row = generator.subschema_for::<T>();
        json_schema!({"type": ["boolean", "object"], "additionalProperties": row})
    }
}

/// A language server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageServer {
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// The program and its arguments; `{cache}` stands for a folder of its own.
    pub command: Option<Vec<String>>,
    /// The ends of the names of its files, such as `.rs`, each with what the protocol calls such
    /// files.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Names of what stands where a project begins, such as `Cargo.toml`; without any it serves
    /// everywhere.
    pub roots: Option<Vec<String>>,
    /// What it is for; of several servers for one language the first that fits serves a file.
    pub language: Option<String>,
    /// What it finds in its environment. `{env:NAME}` is the value of a variable, in your own config
    /// only.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// What it is told when it starts.
    pub initialization: Option<Value>,
    /// What it hears when it asks for its settings.
    pub settings: Option<Value>,
    /// The most memory that it may use, in megabytes.
    pub memory: Option<NonZeroU32>,
    /// Whether it may change the project. Only your own config can say yes.
    pub write: Option<bool>,
    /// How a person gets it.
    pub install: Option<String>,
}

/// A formatter: a program that reads a file from its standard input and writes it formatted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Formatter {
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// The program and its arguments; `{file}` stands for the path of the file.
    pub command: Option<Vec<String>>,
    /// The ends of the names of its files, such as `.rs`.
    pub extensions: Option<Vec<String>>,
    /// Names of files, of which one has to stand in the folder of the file or above it.
    pub when: Option<Vec<String>>,
    /// What it finds in its environment. `{env:NAME}` as above.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// How long it may take, in milliseconds.
    pub timeout: Option<NonZeroU32>,
}

/// Where searches of the web go.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The engine to use; without it, the first that has a key.
    pub provider: Option<String>,
    /// Engines by name: those Windlass knows, with what is to be different, and others.
    #[serde(default)]
    pub engines: BTreeMap<String, SearchEngine>,
}

/// An engine that searches.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEngine {
    /// The engine Windlass knows that this one behaves like.
    pub like: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// The key, or `{env:NAME}` for the value of an environment variable. Never shown.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
}

/// What can be fetched besides public hosts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSettings {
    /// Hosts that may be fetched from although they are not public, such as `localhost:3000`.
    #[serde(default)]
    pub inside: Vec<String>,
}

/// A server of the Model Context Protocol: a program (`command`), or an address (`url`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// `local` for a program, `remote` for an address; without it, what is there decides.
    #[serde(rename = "type")]
    pub kind: Option<McpKind>,
    /// The program and its arguments; `{folder}` stands for the project's folder.
    pub command: Option<Vec<String>>,
    /// What it finds in its environment. `{env:NAME}` is the value of a variable, in your own config
    /// only.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// Another name of `env`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub environment: BTreeMap<String, SecretString>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// Whether it may write in the project; true unless a project brings it.
    pub write: Option<bool>,
    /// The hosts it may reach besides those of `sandbox.network`.
    pub network: Option<Vec<String>>,
    /// Whether it is kept in the sandbox. Only your own config can say no.
    pub sandbox: Option<bool>,
    /// The address.
    pub url: Option<String>,
    /// Headers that are sent with every request. `{env:NAME}` as above.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// How to log in, or `false` for never.
    pub oauth: Option<McpLogin>,
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// How long it may take to start, in milliseconds.
    pub timeout: Option<NonZeroU32>,
    /// The version of the protocol to speak, where it cannot be found out.
    pub protocol: Option<String>,
}

/// Where a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpKind {
    /// It is a program that is started.
    Local,
    /// It is at an address.
    Remote,
}

/// How to log in to a server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum McpLogin {
    /// Whether at all.
    Whether(bool),
    /// As whom.
    As(McpClient),
}

/// As whom to log in to a server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct McpClient {
    /// The client's name, if the server gave one.
    pub client_id: Option<String>,
    /// Its secret. `{env:NAME}` as above.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub client_secret: Option<SecretString>,
    /// What to ask for.
    pub scope: Option<String>,
    /// The port of this machine that the browser comes back to.
    pub callback_port: Option<u16>,
}

/// How tools of others are told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSettings {
    /// How many tokens their definitions may take in every request; the others are found by
    /// searching.
    pub budget: Option<u32>,
    /// How long a call of a custom tool may take, in milliseconds.
    pub timeout: Option<NonZeroU32>,
}

/// What commands are kept in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walls {
    /// Whether there is one. The managed policy can say `true` for good.
    pub enabled: Option<bool>,
    /// The hosts that commands may reach, for example `crates.io` or `*.example.com:8443`, and the
    /// groups `registries` and `git-hosts`; without any, none.
    pub network: Option<Vec<String>>,
    /// Folders besides the project that commands may write to, as absolute paths or from `~/`,
    /// without links on the way.
    pub write: Option<Vec<String>>,
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
    /// How its model is to answer. For `build` only.
    #[serde(default)]
    pub options: Options,
    /// When to use it; other agents read this.
    pub description: Option<String>,
    /// Who may have it work: a person (`primary`), other agents (`subagent`), or both (`all`).
    pub mode: Option<Employer>,
    /// Its own model, as `provider/model`.
    pub model: Option<String>,
    /// How freely its model answers.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Tools by name, or a beginning and `*`, and whether it has them; the last that fits decides.
    #[serde(default)]
    pub tools: BTreeMap<String, bool>,
    /// Permission rules, which only tighten.
    pub permission: Option<Value>,
    /// What its model is told.
    pub prompt: Option<String>,
    /// Takes the agent of this name away.
    pub disable: Option<bool>,
}
