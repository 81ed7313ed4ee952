//! `plan_exit`: shows the person a plan and asks whether to carry it out. The mode is theirs to
//! change: the session does it on their reply, never this tool.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{Access, Inquiry, Mode, Output, Suggestion};
use windlass_toolkit::bound::plain;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Stake, Tool};

/// How long a plan may be, in bytes.
const LONGEST: usize = 16_000;

/// The tool.
pub struct PlanExit;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The plan: what will be changed, where and how, and how it will be checked.
    plan: String,
}

#[async_trait]
impl Tool for PlanExit {
    type Input = Input;

    fn name(&self) -> &str {
        "plan_exit"
    }

    fn batched(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let mode = cx.world.mode();
        if mode != Mode::Plan {
            let text = format!("There is no mode plan to leave: this is mode {mode}. Go on.");
            return Err(Failure::new(text));
        }
        let plan = plain(input.plan.trim());
        if plan.is_empty() {
            return Err(Failure::new("The plan says nothing. Say what you would do."));
        }
        if plan.len() > LONGEST {
            let text = format!("The plan is longer than {LONGEST} bytes. Say the essence of it.");
            return Err(Failure::new(text));
        }
        let question = format!("{plan}\n\nCarry the plan out?");
        let replies = cx.caller.inquire(vec![inquiry(question)], Stake::Mode).await?;
        let Some(reply) = replies.into_iter().next() else {
            return Err(Failure::new(
                "Nobody is here to say yes to the plan, so nothing may be changed. Give the plan \
                 as your answer.",
            ));
        };
        let said = reply.into_iter().next().unwrap_or_default();
        let yes = [Mode::Auto, Mode::Ask].iter().any(|mode| mode.name() == said);
        let text = match said.as_str() {
            _ if yes => format!("The person said yes ({said}). Carry the plan out."),
            "" | NO => "The person said no. This is still mode plan: ask what they want \
                        otherwise, or end here."
                .to_owned(),
            said => {
                format!("The person did not say yes. This is still mode plan. They said: {said}")
            }
        };
        Ok(Output { title: "a plan".into(), text, ..Output::default() })
    }
}

const NO: &str = "no";

fn inquiry(question: String) -> Inquiry {
    let option = |label: &str, description: &str| Suggestion {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    Inquiry {
        header: "Plan".to_owned(),
        question,
        options: vec![
            option(Mode::Auto.name(), "yes; what stays in the project is done without asking"),
            option(Mode::Ask.name(), "yes, and ask before every change"),
            option(NO, "keep planning"),
        ],
        multiple: false,
        custom: true,
    }
}

#[cfg(test)]
mod tests;
