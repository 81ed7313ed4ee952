//! A config file as it is written: the types behind its published schema.

use crate::agents::Employer;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
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
