//! Hooks: commands that start anew for each run, HTTP endpoints, prompts for a model, and plugins
//! whose program keeps running.
//!
//! A command reads its payload from standard input and writes its response to standard output;
//! exit code 2 denies. Anything else is a failure, and a failure denies: only output that is
//! understood completely lets the operation pass. Start reading at [`ConfiguredHook::new`], then at
//! `run`.

mod claude_format;
mod http_request;
mod matcher;
mod prompt;
mod response;
mod run;
mod script_hook;

pub use claude_format::ClaudeHookFormat;
pub use http_request::HttpHookEndpoint;
pub use script_hook::{ScriptHook, UnloadedScriptHook};

use async_trait::async_trait;
use matcher::HookMatcher;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::HookPoint;
use windlass_sandbox::ProcessSpec;
use windlass_toolkit::{Hook, HookContext, HookError, HookPayload, HookReply, ProcessLauncher};

/// Time reserved to end a command that timed out, before the caller gives up on it.
const KILL_GRACE: Duration = Duration::from_millis(200);

/// Returns the error in a hook's `matcher`, if it is invalid.
pub fn matcher_error(matcher: &str) -> Option<String> {
    HookMatcher::new(matcher).err()
}

/// A check before each run; returns the reason if the hook must not run now.
pub type StartCheck = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The settings of a `ConfiguredHook`.
#[derive(Clone)]
pub struct ConfiguredHookSpec {
    /// The name used in denials and in the log.
    pub name: String,
    /// The point at which the hook runs.
    pub point: HookPoint,
    /// A regular expression that must match the whole tool name; `None` matches all tools.
    pub matcher: Option<String>,
    pub action: HookAction,
    /// The time limit of a run, including its start.
    pub timeout: Duration,
    /// The format of the hook's input and output.
    pub format: HookFormat,
    /// A check before each start that can prevent it.
    pub check: Option<StartCheck>,
}

/// The action of a hook from the config.
#[derive(Clone)]
pub enum HookAction {
    /// Starts a command.
    Command(Box<ProcessSpec>),
    /// Sends a request.
    Http(HttpHookEndpoint),
    /// Asks a model. `$ARGUMENTS` stands for the payload.
    Prompt(String),
}

/// The format of a hook's input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFormat {
    /// Windlass's own format.
    Native,
    /// The format of Claude Code hooks, which uses other tool names.
    Claude(ClaudeHookFormat),
}

/// A hook from the config.
pub struct ConfiguredHook {
    spec: ConfiguredHookSpec,
    matcher: Option<HookMatcher>,
    launcher: ProcessLauncher,
}

impl ConfiguredHook {
    /// Creates a hook that starts its command with the given `ProcessLauncher`; fails if the
    /// matcher is invalid.
    pub fn new(
        spec: ConfiguredHookSpec,
        launcher: &ProcessLauncher,
    ) -> Result<ConfiguredHook, String> {
        let matcher = spec.matcher.as_deref().map(HookMatcher::new).transpose()?;
        Ok(ConfiguredHook { spec, matcher, launcher: launcher.clone() })
    }

    /// Builds the JSON for the command's standard input.
    fn payload(&self, context: &HookContext<'_>, hook_payload: &HookPayload) -> Value {
        match &self.spec.format {
            HookFormat::Native => native_payload(&self.spec.name, context, hook_payload),
            HookFormat::Claude(format) => {
                claude_format::build_payload(format, context, hook_payload)
            }
        }
    }

    /// Returns true if the matcher of a hook for events does not match the kind of this event.
    fn skips_event(&self, hook_payload: &HookPayload) -> bool {
        let Some(matcher) = &self.matcher else { return false };
        let HookPayload::Event { details, .. } = hook_payload else { return false };
        let kind = ["source", "trigger", "kind"].iter().find_map(|key| details.get(key)?.as_str());
        kind.is_some_and(|kind| !matcher.matches(kind))
    }
}

#[async_trait]
impl Hook for ConfiguredHook {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn applies_to(&self, point: HookPoint, tool: Option<&str>) -> bool {
        if self.spec.point != point {
            return false;
        }
        let (Some(matcher), Some(tool)) = (&self.matcher, tool) else { return true };
        matcher.matches(tool)
            || match &self.spec.format {
                HookFormat::Native => false,
                HookFormat::Claude(format) => {
                    format.tool_names(tool).iter().any(|name| matcher.matches(name))
                }
            }
    }

    fn timeout(&self) -> Duration {
        self.spec.timeout + KILL_GRACE
    }

    async fn run(
        &self,
        context: &HookContext<'_>,
        hook_payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        if self.skips_event(&hook_payload) {
            return Ok(HookReply::Continue(hook_payload));
        }
        if let Some(check) = &self.spec.check {
            check().map_err(HookError::failed)?;
        }
        let payload = self.payload(context, &hook_payload);
        let output = match &self.spec.action {
            HookAction::Command(process) => {
                let mut process = (**process).clone();
                if self.spec.format != HookFormat::Native {
                    process.env.push(("CLAUDE_PROJECT_DIR".into(), context.folder.into()));
                }
                let launcher = self.launcher.in_mode(context.mode);
                run::run_hook(&launcher, process, &payload, self.spec.timeout).await?
            }
            HookAction::Http(endpoint) => endpoint.post(&payload, self.spec.timeout).await?,
            HookAction::Prompt(text) => {
                return prompt::judge_payload(text, context, &payload, hook_payload).await;
            }
        };
        match &self.spec.format {
            HookFormat::Native => response::interpret_output(&output, hook_payload),
            HookFormat::Claude(format) => {
                claude_format::interpret_output(format, &output, &payload, hook_payload)
            }
        }
    }
}

/// Builds the payload in Windlass's own format.
fn native_payload(name: &str, context: &HookContext<'_>, hook_payload: &HookPayload) -> Value {
    let mut payload = json!({
        "windlass": 1,
        "hook": name,
        "point": hook_payload.point(),
        "session": context.session,
        "folder": context.folder,
        "mode": context.mode,
    });
    let mut add = |key: &str, value: Value| {
        if let Some(payload) = payload.as_object_mut() {
            payload.insert(key.to_owned(), value);
        }
    };
    if let Some(call) = context.call {
        add("call", json!(call));
    }
    if let Some(agent) = context.agent {
        add("agent", json!(agent));
    }
    if let Some(tool) = hook_payload.tool() {
        add("tool", json!(tool));
    }
    match hook_payload {
        HookPayload::BeforeCall { arguments, .. } => add("arguments", arguments.clone()),
        HookPayload::AfterCall { arguments, output, .. } => {
            add("arguments", arguments.clone());
            add("output", json!(output.text));
            add("title", json!(output.title));
            add("metadata", json!(output.metadata));
        }
        HookPayload::PermissionAsked { accesses, reason, .. } => {
            add("accesses", json!(accesses));
            add("reason", json!(reason));
        }
        HookPayload::UserPrompt { text } => add("prompt", json!(text)),
        HookPayload::CommandPrompt { command, arguments, text } => {
            add("command", json!(command));
            add("arguments", json!(arguments));
            add("prompt", json!(text));
        }
        HookPayload::ToolDefinition { definition, .. } => {
            add("description", json!(definition.description));
            add("parameters", definition.schema.clone());
        }
        HookPayload::ModelParams { params } => add("params", params.clone()),
        HookPayload::RequestMessages { messages } => add("messages", messages.clone()),
        HookPayload::SystemPrompt { text } => add("system", json!(text)),
        HookPayload::Event { details, .. } => add("what", details.clone()),
    }
    payload
}

#[cfg(test)]
mod tests;
