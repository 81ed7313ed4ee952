//! `task`: has an agent work in a session of its own.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_protocol::{Access, Output, SessionId, TurnEnd};
use windlass_toolkit::{Cx, Definition, Failure, Report, Scene, Spawn, Tool};

/// The tool.
pub struct Task;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The task in three to five words.
    description: String,
    /// The task.
    prompt: String,
    /// The agent.
    subagent_type: String,
    /// The session.
    session_id: Option<String>,
    /// The command.
    #[allow(dead_code, reason = "it is for whoever reads the log")]
    command: Option<String>,
    /// At once.
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for Task {
    type Input = Input;

    fn name(&self) -> &str {
        "task"
    }

    fn offered(&self, scene: &Scene) -> bool {
        !scene.agents.is_empty()
    }

    fn batched(&self) -> bool {
        false
    }

    async fn describe(&self, scene: &Scene) -> Definition {
        let mut text = include_str!("description.md").trim().to_owned();
        text.push_str(" The agents:");
        for card in &scene.agents {
            text.push_str(&format!("\n- {}: {}", card.name, card.description));
        }
        Definition::of::<Input>(&text)
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Task { agent: input.subagent_type.clone() }]
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        if input.prompt.trim().is_empty() {
            return Err(Failure::new("prompt is empty. Say what the agent is to do."));
        }
        let session = match input.session_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => Some(id.parse::<SessionId>().map_err(|_| unknown(id))?),
            None => None,
        };
        let report = cx.caller.spawn(Spawn {
            agent: input.subagent_type.clone(),
            description: input.description.clone(),
            prompt: input.prompt,
            session,
            background: input.background,
        });
        let report = report.await?;
        let session = report.session;
        let text = told(report)?;
        let mut output = Output { title: input.description, text, ..Output::default() };
        output.metadata.insert("session".into(), json!(session));
        output.metadata.insert("agent".into(), json!(input.subagent_type));
        Ok(output)
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(format!("{id} is no session_id. Leave it out to begin a new session."))
}

/// What the model that put the agent to work reads.
fn told(Report { session, text, end }: Report) -> Result<String, Failure> {
    let why = match end {
        None => {
            return Ok(format!(
                "It works in the background, in session {session}. You are told when it is done."
            ));
        }
        Some(TurnEnd::Done) => return Ok(format!("{text}\n\n[session_id: {session}]")),
        Some(TurnEnd::Denied) => {
            "it wanted something that nobody allowed, or that somebody said no to".to_owned()
        }
        Some(TurnEnd::Interrupted) => "it was interrupted".to_owned(),
        Some(TurnEnd::Looped { what }) => format!("it went in circles ({what})"),
        Some(TurnEnd::Limit { what }) => format!("{what} was reached"),
        Some(TurnEnd::Failed { fault }) => fault.to_string(),
    };
    let said = if text.is_empty() { "nothing" } else { &text };
    Err(Failure::new(format!(
        "The agent was not done: {why}. What it did stays done. It said last: {said}\n\n\
         [session_id: {session}]"
    )))
}

#[cfg(test)]
mod tests;
