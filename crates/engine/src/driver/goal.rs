//! The judgement about the goal of a turn: a model reads the end of the conversation and decides
//! whether the condition is met.

use tokio::time::Instant;
use windlass_protocol::{
    HookPoint, HookVerdict, Message, MessagePart, MessageRole, ToolCallPart, Transcript,
};
use windlass_toolkit::{HookJudge, HookRun, Judgement};

/// Limits of the conversation that the model reads: all of it, and each part.
const MAX_CONVERSATION_BYTES: usize = 16 << 10;
const MAX_PART_BYTES: usize = 2_000;

/// Returns the end of the conversation as text, newest part last.
pub(super) fn conversation_excerpt(transcript: &Transcript) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut size = 0;
    for message in transcript.messages.iter().rev() {
        for text in message.parts.iter().rev().filter_map(|part| part_text(message, part)) {
            size += text.len();
            if size > MAX_CONVERSATION_BYTES {
                parts.reverse();
                return parts.join("\n");
            }
            parts.push(text);
        }
    }
    parts.reverse();
    parts.join("\n")
}

fn part_text(message: &Message, part: &MessagePart) -> Option<String> {
    let cut =
        |text: &str| text.get(..text.floor_char_boundary(MAX_PART_BYTES)).unwrap_or("").to_owned();
    match part {
        MessagePart::Text { text, .. } => {
            let author = match message.role {
                MessageRole::User => "user",
                MessageRole::Assistant => "assistant",
                MessageRole::Context => "note",
            };
            Some(format!("[{author}] {}", cut(text)))
        }
        MessagePart::Call(call) => {
            let ToolCallPart { tool, arguments, outcome, .. } = &**call;
            let outcome = outcome.as_ref().map_or("", |outcome| outcome.text());
            Some(format!("[call {tool}] {} -> {}", cut(arguments), cut(outcome)))
        }
        MessagePart::Reasoning { .. } | MessagePart::File(_) => None,
    }
}

/// Asks the model whether the condition is met. If it cannot tell, the turn ends.
pub(super) async fn judge_goal(
    judge: &dyn HookJudge,
    point: HookPoint,
    condition: &str,
    conversation: &str,
) -> HookRun {
    let started = Instant::now();
    let prompt = format!(
        "<condition>\n{condition}\n</condition>\n<conversation>\n{conversation}\n</conversation>"
    );
    let verdict = match judge.judge(&prompt).await {
        Err(reason) => HookVerdict::Failed { reason },
        Ok(answer) => to_verdict(Judgement::parse(&answer)),
    };
    HookRun { hook: "goal".to_owned(), point, duration: started.elapsed(), verdict }
}

fn to_verdict(judgement: Option<Judgement>) -> HookVerdict {
    match judgement {
        Some(Judgement { ok: true, .. }) => HookVerdict::Passed,
        Some(Judgement { reason, .. }) if reason.is_empty() => {
            HookVerdict::Refused { reason: "it is not met yet".to_owned() }
        }
        Some(Judgement { reason, .. }) => HookVerdict::Refused { reason },
        None => {
            let reason = "the model that judges the goal gave no judgement".to_owned();
            HookVerdict::Failed { reason }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_judgement_is_a_failure() {
        let verdict = |answer: &str| to_verdict(Judgement::parse(answer));
        let refused = |reason: &str| HookVerdict::Refused { reason: reason.into() };
        assert_eq!(verdict(r#"{"ok": true}"#), HookVerdict::Passed);
        assert_eq!(verdict(r#"Well: {"ok": false, "reason": "no tests"}"#), refused("no tests"));
        assert_eq!(verdict(r#"{"ok": false}"#), refused("it is not met yet"));
        assert!(matches!(verdict("yes"), HookVerdict::Failed { .. }));
    }
}
