//! Logs and requests as lines a person can read, without ids and times.

use std::sync::Arc;
use windlass_protocol::{Access, Answer, CallId, Fact, Finish, Message, Outcome, Part, TurnEnd};

pub(super) fn render_log<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let mut calls: Vec<CallId> = Vec::new();
    let mut lines = String::new();
    for fact in facts {
        if let Fact::Called { call, .. } = fact {
            calls.push(*call);
        }
        let number = |id: &CallId| calls.iter().position(|call| call == id).unwrap() + 1;
        lines.push_str(&render(fact, &number));
        lines.push('\n');
    }
    lines
}

fn render(fact: &Fact, number: &dyn Fn(&CallId) -> usize) -> String {
    match fact {
        Fact::Opened { workspace, .. } => format!("opened {workspace}"),
        Fact::Prompted { text, .. } => format!("prompted: {text}"),
        Fact::TurnStarted { turn, prompt: Some(_) } => format!("turn {turn}"),
        Fact::TurnStarted { turn, prompt: None } => format!("turn {turn}, a person's own call"),
        Fact::StepStarted { step, .. } => format!("  step {step}"),
        Fact::StepEnded { step, finish, .. } => match finish {
            Finish::Failed { fault } => format!("  step {step} failed: {fault}"),
            other => format!("  step {step} ended: {}", word(other)),
        },
        Fact::Retrying { attempt, wait_ms, .. } => {
            format!("  again after failure {attempt}, in {wait_ms} ms")
        }
        Fact::Interrupted { turn } => format!("  interrupted turn {turn}"),
        Fact::TurnEnded { turn, end } => match end {
            TurnEnd::Failed { fault } => format!("turn {turn} failed: {fault}"),
            other => format!("turn {turn} ended: {}", word(other)),
        },
        Fact::Said { text, .. } => format!("    said: {text}"),
        Fact::Reasoned { text, .. } => format!("    thought: {text}"),
        Fact::Called { call, tool, arguments, .. } => {
            format!("    called #{}: {tool} {arguments}", number(call))
        }
        Fact::Asked { call, accesses, .. } => {
            let accesses: Vec<&str> = accesses.iter().map(Access::subject).collect();
            format!("  asked #{}: {}", number(call), accesses.join(", "))
        }
        Fact::Answered { call, answer } => match answer {
            Answer::No { reason: Some(reason) } => format!("  no to #{}: {reason}", number(call)),
            other => format!("  answered #{}: {}", number(call), word(other)),
        },
        Fact::Started { call, attempt, read_only, .. } => {
            let kind = if *read_only { "looks" } else { "changes" };
            format!("  started #{}, attempt {attempt}, {kind}", number(call))
        }
        Fact::Unchanged { call } => format!("  unchanged #{}", number(call)),
        Fact::Changing { call, .. } => format!("  changing #{}", number(call)),
        Fact::Settled { call, outcome, .. } => {
            format!("  settled #{}: {}: {}", number(call), word(outcome), short(outcome))
        }
        other => format!("{other:?}"),
    }
}

fn short(outcome: &Outcome) -> &str {
    outcome.text()
}

/// The tag a value has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap();
    let tags = ["reason", "end", "answer", "status"];
    tags.iter().find_map(|tag| json[tag].as_str()).unwrap().to_owned()
}

/// What the model was told, step by step: one line a message.
pub(super) fn render_requests(requests: &[Vec<Arc<Message>>]) -> String {
    let mut lines = String::new();
    for (index, messages) in requests.iter().enumerate() {
        lines.push_str(&format!("request {}\n", index + 1));
        for message in messages {
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    Part::Text { text, .. } => text.clone(),
                    Part::Reasoning { text, .. } => format!("({text})"),
                    Part::File(file) => format!("<{}>", file.name),
                    Part::Call(call) => {
                        let outcome = call.outcome.as_ref().map_or("?", Outcome::text);
                        format!("{} {} -> {outcome}", call.tool, call.arguments)
                    }
                })
                .collect();
            lines.push_str(&format!("  {:?}: {}\n", message.role, parts.join(" | ")));
        }
    }
    lines
}
