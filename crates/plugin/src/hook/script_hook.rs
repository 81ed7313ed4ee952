//! Hooks of JavaScript and TypeScript plugins. Unlike a command hook, the program keeps running
//! between its runs, in the read-only sandbox in which it was described.
//!
//! The host in the program translates each point to the method that a plugin calls, and a method
//! that throws denies. A program that does not start, does not answer in time or answers anything
//! else fails, which denies as well.

use super::{native_payload, response};
use crate::tool_process::ToolProcess;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::HookPoint;
use windlass_toolkit::{Hook, HookContext, HookError, HookPayload, HookReply};

/// Time for a plugin to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for everything around the answer: the start of the program, and its end if it fails.
const START_AND_END_TIME: Duration = Duration::from_secs(20);

/// A hook of a plugin at one point.
pub struct ScriptHook {
    name: String,
    point: HookPoint,
    program: Arc<ToolProcess>,
}

/// A line with the answer of the host.
#[derive(Deserialize)]
struct HookAnswerLine {
    result: Option<Map<String, Value>>,
    error: Option<String>,
}

impl ScriptHook {
    /// Returns the hooks that a program's description names. `name` is shown in denials and in the
    /// log.
    pub fn parse_all(
        program: &Arc<ToolProcess>,
        name: &str,
        description: &Value,
    ) -> Result<Vec<ScriptHook>, String> {
        let points =
            description.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
        let to_hook = |point: &Value| {
            let point = point.as_str().and_then(HookPoint::from_name);
            let point = point.ok_or("it has a hook at an unknown point")?;
            Ok(ScriptHook { name: name.to_owned(), point, program: Arc::clone(program) })
        };
        points.iter().map(to_hook).collect()
    }
}

#[async_trait]
impl Hook for ScriptHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn applies_to(&self, point: HookPoint, _tool: Option<&str>) -> bool {
        self.point == point
    }

    fn timeout(&self) -> Duration {
        ANSWER_TIMEOUT + START_AND_END_TIME
    }

    async fn run(
        &self,
        context: &HookContext<'_>,
        hook_payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        let payload = native_payload(&self.name, context, &hook_payload);
        let session = (context.session, context.mode);
        let answered = self.program.run_hook(session, self.point, payload, ANSWER_TIMEOUT).await;
        let line = answered.map_err(|failure| HookError::failed(failure.text))?;
        let line: HookAnswerLine =
            serde_json::from_slice(&line).map_err(response::malformed_output)?;
        match line {
            HookAnswerLine { error: Some(error), .. } => Err(HookError::failed(error)),
            HookAnswerLine { result: Some(mut result), .. } => {
                // A plugin may add text to the session when it is told of an event.
                let context = match self.point {
                    HookPoint::Event => result.shift_remove("context"),
                    _ => None,
                };
                if let Some(Value::String(text)) = context {
                    return Ok(HookReply::AddContext(hook_payload, text));
                }
                response::interpret_output(&Value::Object(result).to_string(), hook_payload)
            }
            HookAnswerLine { .. } => {
                Err(HookError::failed("it answered with neither `result` nor `error`"))
            }
        }
    }
}

/// The hook of a plugin that could not be loaded: it denies every call, because the plugin may
/// exist to deny some.
pub struct UnloadedScriptHook {
    name: String,
    reason: String,
}

impl UnloadedScriptHook {
    /// Creates the hook of a plugin that could not be loaded for this reason.
    pub fn new(name: &str, reason: &str) -> UnloadedScriptHook {
        UnloadedScriptHook { name: name.to_owned(), reason: reason.to_owned() }
    }

    /// Returns true if the text of a script names a method that a plugin has to change or deny
    /// something.
    pub fn is_plugin_text(text: &str) -> bool {
        let methods = HookPoint::ALL.into_iter().filter(|point| point.can_change_outcome());
        let names = methods.flat_map(HookPoint::opencode_names);
        names.into_iter().any(|name| text.contains(name))
    }
}

#[async_trait]
impl Hook for UnloadedScriptHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn applies_to(&self, point: HookPoint, _tool: Option<&str>) -> bool {
        point == HookPoint::BeforeTool
    }

    async fn run(
        &self,
        _context: &HookContext<'_>,
        _hook_payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        let reason = &self.reason;
        Err(HookError::failed(format!(
            "its hooks cannot run, so no call is allowed: {reason}. The user must fix or remove \
             it"
        )))
    }
}
