//! Logs and requests as lines a person can read, without ids and times.

use windlass_protocol::{
    Access, Answer, CallId, Fact, Finish, Messages, Outcome, Part, Purpose, Role, TurnEnd,
};

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
        Fact::Withdrawn { .. } => "withdrawn".into(),
        Fact::Reverted { to } => format!("reverted to {to}"),
        Fact::TurnStarted { turn, prompt: Some(_) } => format!("turn {turn}"),
        Fact::TurnStarted { turn, prompt: None } => format!("turn {turn}, a person's own call"),
        Fact::StepStarted { step, purpose: Purpose::Summary, .. } => {
            format!("  step {step}, to sum up")
        }
        Fact::StepStarted { step, .. } => format!("  step {step}"),
        Fact::Steered { turn, .. } => format!("  steered turn {turn}"),
        Fact::ModeChanged { mode } => format!("mode {mode}"),
        Fact::ContextChanged { text } => format!("  told: {text}"),
        Fact::Pruned { calls } => {
            let calls: Vec<String> = calls.iter().map(|id| format!("#{}", number(id))).collect();
            format!("  pruned {}", calls.join(", "))
        }
        Fact::Compacted { through, summary } => {
            format!("  compacted through {through}:\n    | {}", summary.replace('\n', "\n    | "))
        }
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
            TurnEnd::Limit { what } => format!("turn {turn} ended: limit: {what}"),
            TurnEnd::Looped { what } => format!("turn {turn} ended: looped: {what}"),
            other => format!("turn {turn} ended: {}", word(other)),
        },
        Fact::Said { text, .. } => format!("    said: {text}"),
        Fact::Reasoned { text, .. } => format!("    thought: {text}"),
        Fact::Called { call, tool, arguments, .. } => {
            format!("    called #{}: {tool} {arguments}", number(call))
        }
        Fact::Asked { call, accesses, reason, .. } => {
            let accesses: Vec<&str> = accesses.iter().map(Access::subject).collect();
            let why = if reason == "no rule allows it" { "" } else { reason };
            format!("  asked #{}: {} {why}", number(call), accesses.join(", ")).trim_end().into()
        }
        Fact::Answered { call, answer } => match answer {
            Answer::No { reason: Some(reason) } => format!("  no to #{}: {reason}", number(call)),
            other => format!("  answered #{}: {}", number(call), word(other)),
        },
        Fact::Started { call, attempt, read_only, .. } => {
            let kind = if *read_only { "looks" } else { "changes" };
            format!("  started #{}, attempt {attempt}, {kind}", number(call))
        }
        Fact::Inquired { call, inquiries } => {
            let asked: Vec<&str> = inquiries.iter().map(|one| one.question.as_str()).collect();
            format!("  inquired #{}: {}", number(call), asked.join(", "))
        }
        Fact::Replied { call, replies } => format!("  replied to #{}: {replies:?}", number(call)),
        Fact::Hooked { call, hook, point, verdict, .. } => {
            let about = call.map(|call| format!(" #{}", number(&call))).unwrap_or_default();
            format!("  hook {hook}, {point}{about}: {}", verdict.word())
        }
        Fact::Unchanged { call } => format!("  unchanged #{}", number(call)),
        Fact::Changing { call, .. } => format!("  changing #{}", number(call)),
        Fact::Settled { call, outcome, .. } => {
            format!("  settled #{}: {}: {}", number(call), word(outcome), shortened(outcome.text()))
        }
        other => format!("{other:?}"),
    }
}

/// What can be read of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some(_) => format!("{}… {} bytes", text.get(..20).unwrap(), text.len()),
        None => text.to_owned(),
    }
}

/// The tag a value has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap();
    let tags = ["reason", "end", "answer", "status"];
    tags.iter().find_map(|tag| json[tag].as_str()).unwrap().to_owned()
}

/// What the model was told, step by step: one line a message.
pub(super) fn render_requests(requests: &[Messages]) -> String {
    let mut lines = String::new();
    for (index, messages) in requests.iter().enumerate() {
        lines.push_str(&format!("request {}\n", index + 1));
        for message in messages {
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    // A summary is short, and what it says matters.
                    Part::Text { text, .. } if message.role == Role::Context => text.clone(),
                    Part::Text { text, .. } => shortened(text),
                    Part::Reasoning { text, .. } => format!("({text})"),
                    Part::File(file) => format!("<{}>", file.name),
                    Part::Call(call) => {
                        let outcome = call.outcome.as_ref().map_or("?", Outcome::text);
                        let outcome = if call.pruned { "(pruned)" } else { outcome };
                        format!("{} {} -> {}", call.tool, call.arguments, shortened(outcome))
                    }
                })
                .collect();
            let parts = parts.join(" | ").replace('\n', "\n    ");
            lines.push_str(&format!("  {:?}: {parts}\n", message.role));
        }
    }
    lines
}
