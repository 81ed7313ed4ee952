//! The definition of one agent: parsing and validation of its settings.

use crate::config::ModelNames;
use crate::config::file_parser::{ConfigLayer, ConfigOrigin};
use crate::front_matter::{self, FrontMatter};
use serde_json::{Map, Value};
use windlass_protocol::{AgentRole, ModelOptions, PermissionMode};

pub(super) const MAX_AGENT_BYTES: usize = 64 << 10;
/// Limits a description: every model that can start the agent reads it.
const MAX_DESCRIPTION_BYTES: usize = 1_000;

/// The use of an agent's prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentPromptMode {
    /// After Windlass's own instructions.
    #[default]
    Append,
    /// In place of Windlass's own instructions. The environment and the project's instructions
    /// stay.
    Replace,
}

/// The definition of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    pub name: String,
    /// When to use the agent.
    pub description: String,
    pub role: AgentRole,
    /// Its own model, as `provider/model`.
    pub model: Option<String>,
    /// The models that take over if `model` fails.
    pub fallback_models: Vec<String>,
    /// The sampling temperature of its model.
    pub temperature: Option<f64>,
    /// The variant of its model.
    pub variant: Option<String>,
    /// Options for its model.
    pub options: Map<String, Value>,
    /// The most requests of a turn.
    pub max_steps: Option<u32>,
    /// Tools by name or by prefix and `*`, and whether the agent has them; the last match decides.
    pub tools: Vec<(String, bool)>,
    /// `permission` rules as written. They only restrict, unless `is_user_agent`.
    pub permissions: Vec<Value>,
    /// The least restrictive `PermissionMode` the agent works in.
    pub max_mode: Option<PermissionMode>,
    /// The agent's system prompt.
    pub prompt: String,
    pub prompt_mode: AgentPromptMode,
    /// The source of the definition; `None` for a built-in agent.
    pub origin: Option<ConfigOrigin>,
}

impl AgentConfig {
    /// Returns true if all of the definition is the user's own. An agent of the user that a project
    /// changes is not: the project could have replaced its prompt.
    pub fn is_user_agent(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| is_user_layer(origin.layer))
    }
}

/// Returns true for the layers that only the user writes.
pub(super) fn is_user_layer(layer: ConfigLayer) -> bool {
    match layer {
        ConfigLayer::User | ConfigLayer::Flag => true,
        ConfigLayer::Plugin | ConfigLayer::Project | ConfigLayer::Managed => false,
    }
}

/// Checks an agent file. Returns its settings and the unknown keys among them, or the reason why
/// the agent would be left out.
pub(crate) fn check_agent_file(
    name: &str,
    text: &str,
) -> Result<(Map<String, Value>, Vec<String>), String> {
    if text.len() > MAX_AGENT_BYTES {
        return Err(format!("larger than {} kB", MAX_AGENT_BYTES >> 10));
    }
    let front = front_matter::parse_front_matter(text).map_err(|error| error.message)?;
    let settings = front.settings.clone();
    parse_agent(name, front).map(|parsed| (settings, parsed.unknown_keys))
}

/// Returns the reason why an agent of a plugin cannot be used, if any.
pub(crate) fn check_plugin_agent(name: &str, front: FrontMatter) -> Option<String> {
    match parse_named_agent(name, front) {
        Err(message) => Some(format!("{message}; the agent is skipped")),
        Ok(parsed) if !parsed.disabled => None,
        Ok(parsed) => {
            let unknown_key = parsed.unknown_keys.first();
            Some(
                unknown_key
                    .map_or_else(|| "it is disabled".to_owned(), |key| unknown_key_message(key)),
            )
        }
    }
}

/// Returns the message for a key that no agent has.
pub(super) fn unknown_key_message(key: &str) -> String {
    format!("unknown key `{key}`; ignored")
}

/// A parsed agent, its `disable` setting, and its unknown keys.
pub(super) struct ParsedAgent {
    pub(super) agent: AgentConfig,
    pub(super) disabled: bool,
    pub(super) unknown_keys: Vec<String>,
}

/// Parses an agent whose name is not validated yet.
pub(super) fn parse_named_agent(name: &str, front: FrontMatter) -> Result<ParsedAgent, String> {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name_char) {
        let message = "invalid agent name: use up to 64 letters, digits, `-`, `_` and `.`";
        return Err(message.to_owned());
    }
    parse_agent(name, front)
}

fn parse_agent(
    name: &str,
    FrontMatter { settings, body }: FrontMatter,
) -> Result<ParsedAgent, String> {
    let mut agent = AgentConfig {
        name: name.to_owned(),
        description: String::new(),
        role: AgentRole::default(),
        model: None,
        fallback_models: Vec::new(),
        temperature: None,
        variant: None,
        options: Map::new(),
        max_steps: None,
        tools: Vec::new(),
        permissions: Vec::new(),
        max_mode: None,
        prompt: body,
        prompt_mode: AgentPromptMode::default(),
        origin: None,
    };
    let mut disabled = false;
    let mut unknown_keys = Vec::new();
    for (key, value) in settings {
        let must_be = |expected: &str| format!("`{key}` must be {expected}");
        match key.as_str() {
            "description" => {
                let text = value.as_str().ok_or_else(|| must_be("a text"))?;
                agent.description = windlass_protocol::display_text::truncate_chars(
                    text.trim(),
                    MAX_DESCRIPTION_BYTES,
                );
            }
            "mode" => {
                let roles = [AgentRole::Primary, AgentRole::Subagent, AgentRole::All];
                let role = roles.into_iter().find(|it| value.as_str() == Some(it.name()));
                agent.role = role.ok_or_else(|| must_be("`primary`, `subagent` or `all`"))?;
            }
            "model" => {
                let names = serde_json::from_value::<ModelNames>(value.clone()).ok();
                let (model, fallbacks) = names
                    .and_then(ModelNames::split)
                    .filter(|(model, rest)| rest.iter().chain([model]).all(|it| it.contains('/')))
                    .ok_or_else(|| must_be("PROVIDER/MODEL, or a list of them"))?;
                (agent.model, agent.fallback_models) = (Some(model), fallbacks);
            }
            "temperature" => {
                let in_range = |temperature: &f64| (0.0..=2.0).contains(temperature);
                let temperature = value.as_f64().filter(in_range);
                agent.temperature = Some(temperature.ok_or_else(|| must_be("between 0 and 2"))?);
            }
            "variant" => {
                let variant = value.as_str().ok_or_else(|| must_be("a text"))?;
                agent.variant = Some(variant.to_owned());
            }
            "options" => {
                let options = value.as_object().ok_or_else(|| must_be("an object"))?;
                serde_json::from_value::<ModelOptions>(value.clone())
                    .map_err(|error| format!("`options`: {error}"))?;
                agent.options = options.clone();
            }
            "steps" | "maxSteps" => {
                let steps = value.as_u64().and_then(|steps| u32::try_from(steps).ok());
                let steps = steps.filter(|steps| *steps > 0);
                agent.max_steps = Some(steps.ok_or_else(|| must_be("a number above 0"))?);
            }
            "prompt_mode" => {
                agent.prompt_mode = match value.as_str() {
                    Some("append") => AgentPromptMode::Append,
                    Some("replace") => AgentPromptMode::Replace,
                    _ => return Err(must_be("`append` or `replace`")),
                };
            }
            "tools" => {
                agent.tools = parse_tools(&value)
                    .ok_or_else(|| must_be("an object of tool names and booleans"))?
            }
            "permission" => agent.permissions.push(value),
            "prompt" => {
                let text = value.as_str().ok_or_else(|| must_be("a text"))?;
                agent.prompt = format!("{}\n\n{}", text.trim(), agent.prompt).trim().to_owned();
            }
            "disable" => disabled = value.as_bool().ok_or_else(|| must_be("`true` or `false`"))?,
            "name" => {}
            _ => unknown_keys.push(key),
        }
    }
    if agent.description.is_empty() && !disabled && agent.role != AgentRole::Primary {
        return Err("missing `description` (when to use the agent)".to_owned());
    }
    Ok(ParsedAgent { agent, disabled, unknown_keys })
}

fn parse_tools(value: &Value) -> Option<Vec<(String, bool)>> {
    let pairs = |map: &Map<String, Value>| {
        map.iter().map(|(name, enabled)| Some((name.clone(), enabled.as_bool()?))).collect()
    };
    match value {
        Value::Object(map) => pairs(map),
        Value::Null => Some(Vec::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}
