//! `task`: runs a subagent in a session of its own.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_protocol::{
    CallDescription, OutputDisplay, SessionId, ToolAccess, ToolOutput, TurnEndReason,
};
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, SubagentReport, SubagentRequest, Tool, ToolDefinition,
    UserPresence,
};

/// The part of the description about the argument `background`, which is not always offered.
const BACKGROUND_DESCRIPTION: &str =
    " With `background` the call returns at once, and you are told when it is done.";

/// The `task` tool.
pub struct SubagentTaskTool;

/// Input of the `task` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentTaskInput {
    /// The task in three to five words.
    description: String,
    /// The task.
    prompt: String,
    /// The agent.
    subagent_type: String,
    /// The session.
    session_id: Option<String>,
    /// The command.
    #[allow(dead_code, reason = "shown to the user in the log")]
    command: Option<String>,
    /// Async.
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for SubagentTaskTool {
    type Input = SubagentTaskInput;

    fn name(&self) -> &str {
        "task"
    }

    fn is_for_subagents(&self) -> bool {
        false
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Task", "Agent"]
    }

    fn describe_call(&self, input: &SubagentTaskInput, _root: &str) -> Option<CallDescription> {
        let agent = if input.subagent_type.is_empty() { "agent" } else { &input.subagent_type };
        let object = format!("{agent}: {}", input.description);
        Some(CallDescription::new("Task", "running subagent", object))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        !context.agents.is_empty()
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, context: &StepContext) -> ToolDefinition {
        let mut text = include_str!("description.md").trim().to_owned();
        // Without a user, the session ends with its turn, and the model would never hear of it.
        let has_background = context.user == UserPresence::Present;
        if !has_background {
            text = text.replace(BACKGROUND_DESCRIPTION, "");
        }
        text.push_str(" Agents:");
        for agent in &context.agents {
            text.push_str(&format!("\n- {}: {}", agent.name, agent.description));
        }
        let mut definition = ToolDefinition::for_input::<SubagentTaskInput>(&text);
        let properties = definition.schema.get_mut("properties").and_then(Value::as_object_mut);
        if let Some(properties) = properties.filter(|_| !has_background) {
            properties.remove("background");
        }
        definition
    }

    fn access(&self, input: &SubagentTaskInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Subagent { agent: input.subagent_type.clone() }]
    }

    async fn run(
        &self,
        input: SubagentTaskInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        if input.prompt.trim().is_empty() {
            return Err(CallFailure::new("prompt is empty. Describe the task for the agent."));
        }
        let session = match input.session_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => Some(id.parse::<SessionId>().map_err(|_| invalid_session_id(id))?),
            None => None,
        };
        let report = cx.caller.run_subagent(SubagentRequest {
            agent: input.subagent_type.clone(),
            description: input.description.clone(),
            prompt: input.prompt,
            session,
            background: input.background,
        });
        let report = report.await?;
        let session = report.session;
        let text = render_report(report)?;
        let display = OutputDisplay::Markdown;
        let mut output = ToolOutput { text, display, ..ToolOutput::default() };
        output.metadata.insert("session".into(), json!(session));
        output.metadata.insert("agent".into(), json!(input.subagent_type));
        Ok(output)
    }
}

fn invalid_session_id(id: &str) -> CallFailure {
    CallFailure::new(format!("`{id}` is not a valid session_id. Omit it to start a new session."))
}

/// Renders the `SubagentReport` for the model that started the subagent.
fn render_report(
    SubagentReport { session, text, end }: SubagentReport,
) -> Result<String, CallFailure> {
    let reason = match end {
        None => {
            return Ok(format!(
                "It runs in the background, in session {session}. You will be notified when it \
                 is done."
            ));
        }
        Some(TurnEndReason::Completed) => return Ok(format!("{text}\n\n[session_id: {session}]")),
        Some(TurnEndReason::Denied) => "an action it needed was denied or not approved".to_owned(),
        Some(TurnEndReason::Interrupted) => "it was interrupted".to_owned(),
        Some(TurnEndReason::LoopDetected { repeated_action }) => {
            format!("it kept repeating itself ({repeated_action})")
        }
        Some(TurnEndReason::LimitReached { limit }) => format!("{limit} was reached"),
        Some(TurnEndReason::Failed { fault }) => fault.to_string(),
    };
    let last_message = if text.is_empty() { "nothing" } else { &text };
    Err(CallFailure::new(format!(
        "The agent did not finish: {reason}. Its changes remain. Its last message: \
         {last_message}\n\n[session_id: {session}]"
    )))
}

#[cfg(test)]
mod tests;
