//! Hooks: external code that runs at defined points of a session. A hook may deny, rewrite or
//! require approval, but never grant; a hook that fails or times out denies.
//!
//! [`run_hooks`] runs all applicable hooks in order: each one sees the payload as the previous hook
//! left it, and a `HookRun` records each verdict with its duration.

use crate::tool_definition::ToolDefinition;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::{
    CallId, HookPoint, HookVerdict, PermissionMode, SessionId, ToolAccess, ToolOutput,
};

/// The default of `Hook::timeout`.
pub const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The session and call that a hook runs for.
#[derive(Clone, Copy, Debug)]
pub struct HookContext<'a> {
    pub session: SessionId,
    /// The call, if the hook runs for one.
    pub call: Option<CallId>,
    /// The folder of the session's workspace.
    pub folder: &'a str,
    /// The permission mode of the session.
    pub mode: PermissionMode,
    /// The agent of the session, at points of the conversation; `None` at points of a call.
    pub agent: Option<&'a str>,
    /// The model that decides for hooks which are prompts.
    pub judge: Option<&'a dyn HookJudge>,
}

/// A model that decides for hooks which are prompts.
#[async_trait]
pub trait HookJudge: Send + Sync {
    /// Returns the model's answer to a prompt, or the reason why there is none.
    async fn judge(&self, prompt: &str) -> Result<String, String>;
}

impl fmt::Debug for dyn HookJudge + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookJudge")
    }
}

/// The data that a `Hook` sees and may return changed.
#[derive(Clone, Debug, PartialEq)]
pub enum HookPayload {
    /// A call before the permission decision, which applies to the returned arguments.
    BeforeCall {
        /// The tool name; read-only.
        tool: String,
        arguments: Value,
    },
    /// The result of a call, before `truncate_output`.
    AfterCall {
        /// The tool name; read-only.
        tool: String,
        /// The arguments that the call ran with; read-only.
        arguments: Value,
        output: ToolOutput,
    },
    /// A permission request that the user is about to see; read-only.
    PermissionAsked {
        tool: String,
        /// The accesses that the call needs, from `Tool::access`.
        accesses: Vec<ToolAccess>,
        /// The reason for the request.
        reason: String,
    },
    /// A prompt of the user.
    UserPrompt { text: String },
    /// The prompt of a custom command.
    CommandPrompt {
        /// The name of the command; read-only.
        command: String,
        /// The text after the name; read-only.
        arguments: String,
        text: String,
    },
    /// The definition of a tool as the model sees it.
    ToolDefinition {
        /// The tool name; read-only.
        tool: String,
        definition: ToolDefinition,
    },
    /// The parameters of a model request.
    ModelParams {
        /// The parameters, in the form of the model options.
        params: Value,
    },
    /// The messages of a model request. They are not stored: each request begins with the recorded
    /// ones.
    RequestMessages {
        /// The messages in the form of hooks. `text` and `output` may change, and texts may be
        /// added.
        messages: Value,
    },
    /// The system prompt of a session.
    SystemPrompt { text: String },
    /// A notification of an event; read-only.
    Event { point: HookPoint, details: Value },
}

impl HookPayload {
    /// Returns the `HookPoint` at which this payload is shown.
    pub fn point(&self) -> HookPoint {
        match self {
            HookPayload::BeforeCall { .. } => HookPoint::BeforeTool,
            HookPayload::AfterCall { .. } => HookPoint::AfterTool,
            HookPayload::PermissionAsked { .. } => HookPoint::Permission,
            HookPayload::UserPrompt { .. } => HookPoint::Prompt,
            HookPayload::CommandPrompt { .. } => HookPoint::Command,
            HookPayload::ToolDefinition { .. } => HookPoint::ToolDefinition,
            HookPayload::ModelParams { .. } => HookPoint::Params,
            HookPayload::RequestMessages { .. } => HookPoint::Messages,
            HookPayload::SystemPrompt { .. } => HookPoint::System,
            HookPayload::Event { point, .. } => *point,
        }
    }

    /// Returns the tool that the payload is about, if any.
    pub fn tool(&self) -> Option<&str> {
        match self {
            HookPayload::BeforeCall { tool, .. }
            | HookPayload::AfterCall { tool, .. }
            | HookPayload::PermissionAsked { tool, .. }
            | HookPayload::ToolDefinition { tool, .. } => Some(tool),
            HookPayload::UserPrompt { .. }
            | HookPayload::CommandPrompt { .. }
            | HookPayload::ModelParams { .. }
            | HookPayload::RequestMessages { .. }
            | HookPayload::SystemPrompt { .. }
            | HookPayload::Event { .. } => None,
        }
    }

    /// Returns true if a hook may turn `before` into this payload: read-only parts are unchanged.
    fn is_valid_edit_of(&self, before: &HookPayload) -> bool {
        match (before, self) {
            (
                HookPayload::BeforeCall { tool, .. },
                HookPayload::BeforeCall { tool: new_tool, .. },
            )
            | (
                HookPayload::ToolDefinition { tool, .. },
                HookPayload::ToolDefinition { tool: new_tool, .. },
            ) => tool == new_tool,
            (
                HookPayload::AfterCall { tool, arguments, .. },
                HookPayload::AfterCall { tool: new_tool, arguments: new_arguments, .. },
            ) => tool == new_tool && arguments == new_arguments,
            (HookPayload::PermissionAsked { .. }, after) | (HookPayload::Event { .. }, after) => {
                before == after
            }
            (
                HookPayload::CommandPrompt { command, arguments, .. },
                HookPayload::CommandPrompt { command: new, arguments: new_arguments, .. },
            ) => command == new && arguments == new_arguments,
            (HookPayload::UserPrompt { .. }, HookPayload::UserPrompt { .. })
            | (HookPayload::ModelParams { .. }, HookPayload::ModelParams { .. })
            | (HookPayload::RequestMessages { .. }, HookPayload::RequestMessages { .. })
            | (HookPayload::SystemPrompt { .. }, HookPayload::SystemPrompt { .. }) => true,
            (
                HookPayload::BeforeCall { .. }
                | HookPayload::AfterCall { .. }
                | HookPayload::UserPrompt { .. }
                | HookPayload::CommandPrompt { .. }
                | HookPayload::ToolDefinition { .. }
                | HookPayload::ModelParams { .. }
                | HookPayload::RequestMessages { .. }
                | HookPayload::SystemPrompt { .. },
                _,
            ) => false,
        }
    }
}

/// The reply of a `Hook` that does not deny.
#[derive(Clone, Debug, PartialEq)]
pub enum HookReply {
    /// Continue with this payload.
    Continue(HookPayload),
    /// Continue with this payload, but require approval for this reason.
    AskUser(HookPayload, String),
    /// Continue with this payload, and add this text to the model's context. It takes effect at the
    /// start of a session, at a user prompt, and at a compaction.
    AddContext(HookPayload, String),
}

/// A check or notification that runs at a `HookPoint`.
#[async_trait]
pub trait Hook: Send + Sync {
    /// Returns the name that `HookDenial` and `HookRun` show.
    fn name(&self) -> &str;

    /// Returns true if the hook runs at this point, for this tool if the point is about one.
    fn applies_to(&self, point: HookPoint, tool: Option<&str>) -> bool;

    /// Returns the time limit for one run.
    fn timeout(&self) -> Duration {
        DEFAULT_HOOK_TIMEOUT
    }

    /// Runs the hook on a payload. An `Err` denies, as does a run beyond `timeout`.
    async fn run(
        &self,
        context: &HookContext<'_>,
        payload: HookPayload,
    ) -> Result<HookReply, HookError>;
}

/// The denial or failure of a `Hook`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The hook denied.
    #[error("{reason}")]
    Denied {
        /// The reason, for the model.
        reason: String,
    },
    /// The hook did not work.
    #[error("{reason}")]
    Failed { reason: String },
}

impl HookError {
    /// Creates a `Denied` error.
    pub fn denied(reason: impl Into<String>) -> HookError {
        HookError::Denied { reason: reason.into() }
    }

    /// Creates a `Failed` error.
    pub fn failed(reason: impl Into<String>) -> HookError {
        HookError::Failed { reason: reason.into() }
    }
}

/// A record of one hook run and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    pub hook: String,
    pub point: HookPoint,
    pub duration: Duration,
    pub verdict: HookVerdict,
}

/// The denial that stopped `run_hooks`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The hook `{hook}` denied this: {reason}")]
pub struct HookDenial {
    pub hook: String,
    pub reason: String,
}

/// The combined result of all hooks at a `HookPoint`.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinedHookResult {
    /// The payload after all rewrites.
    pub payload: HookPayload,
    /// The reason to require approval, if a hook returned `AskUser`.
    pub ask_reason: Option<String>,
    /// Texts from `AddContext`, for the model's context.
    pub context: Vec<String>,
    /// The hooks that changed the payload.
    pub changed_by: Vec<String>,
}

/// Runs the hooks in order until one denies. At points where hooks cannot change the outcome, a
/// denial is only recorded.
pub async fn run_hooks(
    hooks: &[Arc<dyn Hook>],
    context: &HookContext<'_>,
    payload: HookPayload,
) -> (Vec<HookRun>, Result<CombinedHookResult, HookDenial>) {
    let point = payload.point();
    let mut hook_runs = Vec::new();
    let (context_texts, changed_by) = (Vec::new(), Vec::new());
    let mut result =
        CombinedHookResult { payload, ask_reason: None, context: context_texts, changed_by };
    for hook in hooks {
        if !hook.applies_to(point, result.payload.tool()) {
            continue;
        }
        let started = Instant::now();
        let reply = hook.run(context, result.payload.clone());
        let reply = match tokio::time::timeout(hook.timeout(), reply).await {
            Ok(reply) => reply,
            Err(_) => Err(HookError::failed("it did not answer in time")),
        };
        let duration = started.elapsed();
        let (verdict, denial) = match reply.and_then(|reply| result.apply_reply(hook.name(), reply))
        {
            Ok(verdict) => (verdict, None),
            Err(HookError::Denied { reason }) => {
                (HookVerdict::Refused { reason: reason.clone() }, Some(reason))
            }
            Err(HookError::Failed { reason }) => {
                (HookVerdict::Failed { reason: reason.clone() }, Some(reason))
            }
        };
        let name = hook.name().to_owned();
        hook_runs.push(HookRun { hook: name.clone(), point, duration, verdict });
        if let Some(reason) = denial.filter(|_| point.can_change_outcome()) {
            return (hook_runs, Err(HookDenial { hook: name, reason }));
        }
    }
    (hook_runs, Ok(result))
}

impl CombinedHookResult {
    /// Applies a `HookReply`; fails if it changed a read-only part of the payload.
    fn apply_reply(&mut self, hook: &str, reply: HookReply) -> Result<HookVerdict, HookError> {
        let (payload, ask_reason, context) = match reply {
            HookReply::Continue(payload) => (payload, None, None),
            HookReply::AskUser(payload, reason) => (payload, Some(reason), None),
            HookReply::AddContext(payload, context_text) => (payload, None, Some(context_text)),
        };
        if !payload.is_valid_edit_of(&self.payload) {
            return Err(HookError::failed("it changed a read-only field"));
        }
        let changed = payload != self.payload;
        self.payload = payload;
        self.context.extend(context);
        self.changed_by.extend(changed.then(|| hook.to_owned()));
        Ok(match ask_reason {
            Some(reason) => {
                let text = format!("the hook `{hook}` requires approval: {reason}");
                self.ask_reason = Some(match self.ask_reason.take() {
                    None => text,
                    Some(earlier) => format!("{earlier}; {text}"),
                });
                HookVerdict::Asks { reason }
            }
            None if changed => HookVerdict::Rewrote,
            None => HookVerdict::Passed,
        })
    }
}
