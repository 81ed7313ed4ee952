//! Logs and requests as readable lines, without ids and times.

use windlass_protocol::{
    CallId, CallOutcome, Fact, FinishReason, MessagePart, MessageRole, Messages, PermissionAnswer,
    StepPurpose, ToolAccess, TurnEndReason,
};

pub(super) fn render_log<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let mut calls: Vec<CallId> = Vec::new();
    let mut lines = String::new();
    for fact in facts {
        if let Fact::ToolCalled { call, .. } = fact {
            calls.push(*call);
        }
        let number = |id: &CallId| calls.iter().position(|call| call == id).unwrap() + 1;
        lines.push_str(&render_fact(fact, &number));
        lines.push('\n');
    }
    lines
}

fn render_fact(fact: &Fact, number: &dyn Fn(&CallId) -> usize) -> String {
    match fact {
        Fact::SessionOpened { workspace, .. } => format!("opened {workspace}"),
        Fact::PromptSubmitted { text, .. } => format!("prompt: {text}"),
        Fact::PromptWithdrawn { .. } => "prompt withdrawn".into(),
        Fact::Rewound { to } => format!("rewound to {to}"),
        Fact::TurnStarted { turn, prompt: Some(_) } => format!("turn {turn}"),
        Fact::TurnStarted { turn, prompt: None } => format!("turn {turn}, without a prompt"),
        Fact::StepStarted { step, purpose, model, .. } => {
            let purpose = if *purpose == StepPurpose::Summary { ", summary" } else { "" };
            // `p/m` is the model of the session.
            let model = if model == "p/m" { String::new() } else { format!(" by {model}") };
            format!("  step {step}{purpose}{model}")
        }
        Fact::PromptSteered { turn, .. } => format!("  steered turn {turn}"),
        Fact::ModeChanged { mode } => format!("mode {mode}"),
        Fact::AgentChanged { agent } => format!("agent {agent}"),
        Fact::ContextChanged { text, .. } => format!("  context: {text}"),
        Fact::OutputsPruned { calls } => {
            let calls: Vec<String> = calls.iter().map(|id| format!("#{}", number(id))).collect();
            format!("  pruned {}", calls.join(", "))
        }
        Fact::ContextCompacted { through, summary, .. } => {
            format!("  compacted through {through}:\n    | {}", summary.replace('\n', "\n    | "))
        }
        Fact::StepEnded { step, finish_reason, .. } => match finish_reason {
            FinishReason::Failed { fault } => format!("  step {step} failed: {fault}"),
            other => format!("  step {step} ended: {}", tag(other)),
        },
        Fact::StepRetrying { attempt, model: Some(model), .. } => {
            format!("  retry after failure {attempt}, with {model}")
        }
        Fact::StepRetrying { attempt, wait_ms, .. } => {
            format!("  retry after failure {attempt}, in {wait_ms} ms")
        }
        Fact::TurnInterrupted { turn } => format!("  interrupted turn {turn}"),
        Fact::TurnEnded { turn, end } => match end {
            TurnEndReason::Failed { fault } => format!("turn {turn} failed: {fault}"),
            TurnEndReason::LimitReached { limit } => format!("turn {turn} ended: limit: {limit}"),
            TurnEndReason::LoopDetected { repeated_action } => {
                format!("turn {turn} ended: loop: {repeated_action}")
            }
            other => format!("turn {turn} ended: {}", tag(other)),
        },
        Fact::ModelText { text, .. } => format!("    text: {text}"),
        Fact::ModelReasoning { text, .. } => format!("    reasoning: {text}"),
        Fact::ToolCalled { call, tool, arguments, .. } => {
            format!("    called #{}: {tool} {arguments}", number(call))
        }
        Fact::PermissionAsked { call, accesses, reason, .. } => {
            let accesses: Vec<&str> = accesses.iter().map(ToolAccess::subject).collect();
            let reason = if reason == "no rule allows it" { "" } else { reason };
            let text =
                format!("  permission asked #{}: {} {reason}", number(call), accesses.join(", "));
            text.trim_end().into()
        }
        Fact::PermissionAnswered { call, answer } => match answer {
            PermissionAnswer::No { reason: Some(reason) } => {
                format!("  permission answered #{}: no: {reason}", number(call))
            }
            other => format!("  permission answered #{}: {}", number(call), tag(other)),
        },
        Fact::CallStarted { call, attempt, read_only, .. } => {
            let kind = if *read_only { "read-only" } else { "read-write" };
            format!("  started #{}, attempt {attempt}, {kind}", number(call))
        }
        Fact::QuestionAsked { call, questions } => {
            let texts: Vec<&str> = questions.iter().map(|one| one.question.as_str()).collect();
            format!("  question asked #{}: {}", number(call), texts.join(", "))
        }
        Fact::QuestionAnswered { call, answers } => {
            format!("  question answered #{}: {answers:?}", number(call))
        }
        Fact::HookRan { call, hook, point, verdict, .. } => {
            let subject = call.map(|call| format!(" #{}", number(&call))).unwrap_or_default();
            format!("  hook {hook}, {point}{subject}: {}", verdict.name())
        }
        Fact::FilesUnchanged { call } => format!("  files unchanged #{}", number(call)),
        Fact::FilesChanging { call, .. } => format!("  files changing #{}", number(call)),
        Fact::CallSettled { call, outcome, .. } => {
            format!("  settled #{}: {}: {}", number(call), tag(outcome), shorten(outcome.text()))
        }
        other => format!("{other:?}"),
    }
}

/// Shortens a long text to its beginning and its length.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some(_) => format!("{}… {} bytes", text.get(..20).unwrap(), text.len()),
        None => text.to_owned(),
    }
}

/// Returns the tag of an enum value in JSON.
fn tag(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap();
    let tags = ["reason", "end", "answer", "status"];
    tags.iter().find_map(|tag| json[tag].as_str()).unwrap().to_owned()
}

/// Renders the requests to the model: one line per message.
pub(super) fn render_requests(requests: &[Messages]) -> String {
    let mut lines = String::new();
    for (index, messages) in requests.iter().enumerate() {
        lines.push_str(&format!("request {}\n", index + 1));
        for message in messages {
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    // A summary is short, and its text matters.
                    MessagePart::Text { text, .. } if message.role == MessageRole::Context => {
                        text.clone()
                    }
                    MessagePart::Text { text, .. } => shorten(text),
                    MessagePart::Reasoning { text, .. } => format!("({text})"),
                    MessagePart::File(file) => format!("<{}>", file.name),
                    MessagePart::Call(call) => {
                        let outcome = call.outcome.as_ref().map_or("?", CallOutcome::text);
                        let outcome = if call.pruned { "(pruned)" } else { outcome };
                        format!("{} {} -> {}", call.tool, call.arguments, shorten(outcome))
                    }
                })
                .collect();
            let parts = parts.join(" | ").replace('\n', "\n    ");
            lines.push_str(&format!("  {:?}: {parts}\n", message.role));
        }
    }
    lines
}
