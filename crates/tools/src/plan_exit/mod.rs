//! `plan_exit`: shows the user a plan and asks whether to carry it out. The session changes the
//! mode on the user's reply; this tool never does.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{
    CallDescription, PermissionMode, QuestionOption, ToolAccess, ToolOutput, UserQuestion,
};
use windlass_toolkit::truncate_output::strip_controls;
use windlass_toolkit::{
    CallContext, CallFailure, QuestionEffect, StepContext, Tool, ToolDefinition, UserPresence,
};

const MAX_PLAN_BYTES: usize = 16_000;

/// The `plan_exit` tool.
pub struct PlanExitTool;

/// Input of the `plan_exit` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanExitInput {
    /// The plan: the changes, where and how, and how to check them.
    plan: String,
}

#[async_trait]
impl Tool for PlanExitTool {
    type Input = PlanExitInput;

    fn name(&self) -> &str {
        "plan_exit"
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["ExitPlanMode"]
    }

    fn describe_call(&self, _input: &PlanExitInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Plan", "planning", ""))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        context.user == UserPresence::Present
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<PlanExitInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &PlanExitInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: PlanExitInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let mode = cx.world.mode();
        if mode != PermissionMode::Plan {
            let text = format!(
                "The current mode is {mode}, not plan, so there is no plan mode to exit. \
                 Continue."
            );
            return Err(CallFailure::new(text));
        }
        let plan = strip_controls(input.plan.trim());
        if plan.is_empty() {
            return Err(CallFailure::new("The plan is empty. Say what you would do."));
        }
        if plan.len() > MAX_PLAN_BYTES {
            let text = format!(
                "The plan is longer than {MAX_PLAN_BYTES} bytes. Shorten it to the essentials."
            );
            return Err(CallFailure::new(text));
        }
        let question = format!("{plan}\n\nCarry the plan out?");
        let replies =
            cx.caller.ask_user(vec![plan_question(question)], QuestionEffect::SetMode).await?;
        let Some(reply) = replies.into_iter().next() else {
            return Err(CallFailure::new(
                "No user is available to approve the plan, so nothing may be changed. Give the \
                 plan as your answer.",
            ));
        };
        let answer = reply.into_iter().next().unwrap_or_default();
        let is_approved =
            [PermissionMode::Auto, PermissionMode::Ask].iter().any(|mode| mode.name() == answer);
        let text = match answer.as_str() {
            _ if is_approved => format!("The user approved the plan ({answer}). Carry it out."),
            "" | REJECT_LABEL => "The user rejected the plan. The mode is still plan: ask what \
                                  to change, or stop here."
                .to_owned(),
            answer => format!(
                "The user did not approve the plan. The mode is still plan. The user said: {answer}"
            ),
        };
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

const REJECT_LABEL: &str = "no";

fn plan_question(question: String) -> UserQuestion {
    let option = |label: &str, description: &str| QuestionOption {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    UserQuestion {
        header: "Plan".to_owned(),
        question,
        options: vec![
            option(PermissionMode::Auto.name(), "yes; changes inside the project need no approval"),
            option(PermissionMode::Ask.name(), "yes; ask before every change"),
            option(REJECT_LABEL, "keep planning"),
        ],
        allow_multiple: false,
        allow_custom: true,
        asker: None,
        is_permission: false,
    }
}

#[cfg(test)]
mod tests;
