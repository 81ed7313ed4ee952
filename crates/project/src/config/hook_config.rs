//! The config of a hook, in our format and in Claude's. The code that runs hooks interprets their
//! matchers and answers.

use crate::config::ConfigEnv;
use crate::config::env::expand_env_values;
use crate::config::file_parser::ConfigLayer;
use crate::plugins::PluginDirs;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::HookPoint;

/// Default timeouts of a hook, in our format and in Claude's, and the maximum.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const CLAUDE_DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// A hook: a program that runs at a `HookPoint` and can influence the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// The name, used in denials and in the log.
    pub name: String,
    /// The `HookPoint` at which it runs.
    pub point: HookPoint,
    /// A regular expression for the tools it applies to; `None` for all.
    pub matcher: Option<String>,
    pub command: HookCommand,
    pub timeout: Duration,
    /// `true` if it may write in the project.
    pub write: bool,
    /// The hosts it may reach.
    pub network: Vec<String>,
    pub format: HookIoFormat,
    /// The layer that defines it.
    pub layer: ConfigLayer,
    /// The `PluginDirs` of the plugin that defines it, if any.
    pub plugin: Option<PluginDirs>,
}

/// The action of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookCommand {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A shell command line.
    Shell(String),
    /// A request to an HTTP endpoint.
    Http { url: String, headers: HookHeaders },
    /// A prompt for a model, in which `$ARGUMENTS` stands for the payload.
    Prompt(String),
}

impl HookCommand {
    /// Returns the command, endpoint or prompt on one line, without headers.
    pub fn display_text(&self) -> String {
        match self {
            HookCommand::Argv(words) => words.join(" "),
            HookCommand::Shell(text) | HookCommand::Prompt(text) => text.clone(),
            HookCommand::Http { url, .. } => url.clone(),
        }
    }
}

/// The input and output format of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookIoFormat {
    /// Our own format.
    Windlass,
    /// The format of Claude's hooks.
    Claude,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookConfigEntry {
    #[serde(rename = "match")]
    matcher: Option<String>,
    command: Option<HookCommandValue>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    prompt: Option<String>,
    timeout: Option<u32>,
    name: Option<String>,
    write: Option<bool>,
    network: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HookCommandValue {
    ShellLine(String),
    Argv(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaudeHookGroup {
    matcher: Option<String>,
    hooks: Vec<ClaudeHook>,
}

#[derive(Deserialize)]
struct ClaudeHook {
    #[serde(rename = "type")]
    kind: String,
    command: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    prompt: Option<String>,
    timeout: Option<f64>,
}

/// The headers of a request, whose values may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HookHeaders(pub BTreeMap<String, String>);

impl std::fmt::Debug for HookHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl HookConfig {
    /// Expands `{env:NAME}` in the headers of an HTTP endpoint.
    pub(crate) fn expand_headers(&mut self, config_env: &dyn ConfigEnv) -> Result<(), String> {
        if let HookCommand::Http { headers, .. } = &mut self.command {
            let values = std::mem::take(&mut headers.0).into_iter();
            let values = values.map(|(name, value)| (name, value.into())).collect();
            let expanded = expand_env_values("/headers", values, (true, config_env));
            let expanded = expanded.map_err(|(_, reason)| reason)?.into_iter();
            let expose =
                |(name, value): (String, SecretString)| (name, value.expose_secret().to_owned());
            headers.0 = expanded.map(expose).collect();
        }
        Ok(())
    }
}

pub(crate) fn parse_hook_point(name: &str) -> Result<HookPoint, String> {
    HookPoint::from_name(name).ok_or_else(|| {
        let available = HookPoint::ALL.map(HookPoint::name).join(", ");
        format!("unknown hook `{name}`; available: {available}")
    })
}

/// Parses the hooks of one entry, in our format or in Claude's.
pub(crate) fn parse_hook_entry(
    entry: Value,
    point: HookPoint,
    layer: ConfigLayer,
) -> Result<Vec<HookConfig>, String> {
    let clamp = |timeout: Duration| timeout.clamp(Duration::from_millis(1), MAX_TIMEOUT);
    if entry.get("hooks").is_some() {
        let entry: ClaudeHookGroup =
            serde_json::from_value(entry).map_err(|error| error.to_string())?;
        // In Claude's format an empty matcher and `*` mean every tool.
        let matcher = entry.matcher.filter(|text| !matches!(text.as_str(), "" | "*"));
        let mut hooks = Vec::new();
        for hook in entry.hooks {
            let command = match (hook.kind.as_str(), hook.command, hook.url, hook.prompt) {
                ("command", Some(line), _, _) if !line.trim().is_empty() => {
                    HookCommand::Shell(line)
                }
                ("command", ..) => return Err("`command` is missing or empty".into()),
                ("http", _, Some(url), _) => http_command(url, hook.headers, layer)?,
                ("http", ..) => return Err("`url` is missing".into()),
                ("prompt", _, _, Some(prompt)) => prompt_command(prompt, point)?,
                ("prompt", ..) => return Err("`prompt` is missing".into()),
                (kind, ..) => return Err(format!("unsupported hook type `{kind}`")),
            };
            let seconds = hook.timeout.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            let timeout = seconds.map_or(CLAUDE_DEFAULT_TIMEOUT, |s| {
                Duration::from_secs_f64(s.min(MAX_TIMEOUT.as_secs_f64()))
            });
            hooks.push(HookConfig {
                name: String::new(),
                point,
                matcher: matcher.clone(),
                command,
                timeout: clamp(timeout),
                write: false,
                network: Vec::new(),
                format: HookIoFormat::Claude,
                layer,
                plugin: None,
            });
        }
        return Ok(hooks);
    }
    let entry: HookConfigEntry =
        serde_json::from_value(entry).map_err(|error| error.to_string())?;
    if layer == ConfigLayer::Project && entry.network.is_some() {
        return Err("a project's hook cannot use the network".into());
    }
    let command = match (entry.command, entry.url, entry.prompt) {
        (Some(HookCommandValue::ShellLine(line)), None, None) if !line.trim().is_empty() => {
            HookCommand::Shell(line)
        }
        (Some(HookCommandValue::Argv(words)), None, None)
            if words.first().is_some_and(|word| !word.trim().is_empty()) =>
        {
            HookCommand::Argv(words)
        }
        (Some(_), None, None) => return Err("`command` is empty".into()),
        (None, Some(url), None) => http_command(url, entry.headers, layer)?,
        (None, None, Some(prompt)) => prompt_command(prompt, point)?,
        _ => return Err("set one of `command`, `url` and `prompt`".into()),
    };
    let timeout = entry.timeout.map_or(DEFAULT_TIMEOUT, |ms| Duration::from_millis(ms.into()));
    Ok(vec![HookConfig {
        name: entry.name.unwrap_or_default(),
        point,
        matcher: entry.matcher,
        command,
        timeout: clamp(timeout),
        write: entry.write.unwrap_or(false),
        network: entry.network.unwrap_or_default(),
        format: HookIoFormat::Windlass,
        layer,
        plugin: None,
    }])
}

fn http_command(
    url: String,
    headers: BTreeMap<String, String>,
    layer: ConfigLayer,
) -> Result<HookCommand, String> {
    if matches!(layer, ConfigLayer::Project | ConfigLayer::Plugin) {
        return Err("only your own hooks can use the network".into());
    }
    Ok(HookCommand::Http { url, headers: HookHeaders(headers) })
}

/// The model that judges counts its requests for the session, so a prompt can run only where a
/// session waits for the answer.
fn prompt_command(prompt: String, point: HookPoint) -> Result<HookCommand, String> {
    // A command runs before its session is known.
    let is_possible = point.can_change_outcome() && point != HookPoint::Command
        || matches!(point, HookPoint::TurnEnd | HookPoint::SubagentEnd);
    match (is_possible, prompt.trim().is_empty()) {
        (_, true) => Err("`prompt` is empty".into()),
        (false, _) => Err(format!("a prompt has no effect at {point}")),
        (true, false) => Ok(HookCommand::Prompt(prompt)),
    }
}
