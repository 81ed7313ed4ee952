//! The judgement about the goal of a turn: a model reads the end of the conversation and decides
//! whether the condition is met.

use tokio::time::Instant;
use windlass_protocol::{
    HookPoint, HookVerdict, Message, MessagePart, MessageRole, ToolCallPart, Transcript,
};
use windlass_toolkit::{HookJudge, HookRun};

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
        Ok(answer) => read_judgement(&answer),
    };
    HookRun { hook: "goal".to_owned(), point, duration: started.elapsed(), verdict }
}

fn read_judgement(answer: &str) -> HookVerdict {
    let json = answer.find('{').zip(answer.rfind('}'));
    let json = json.and_then(|(start, end)| answer.get(start..=end));
    let value: Option<serde_json::Value> = json.and_then(|json| serde_json::from_str(json).ok());
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name));
    let reason = field("reason").and_then(|reason| reason.as_str()).unwrap_or("it is not met yet");
    match field("ok").and_then(serde_json::Value::as_bool) {
        Some(true) => HookVerdict::Passed,
        Some(false) => HookVerdict::Refused { reason: reason.to_owned() },
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
        assert_eq!(read_judgement(r#"{"ok": true}"#), HookVerdict::Passed);
        let refused = HookVerdict::Refused { reason: "no tests".into() };
        assert_eq!(read_judgement(r#"Well: {"ok": false, "reason": "no tests"}"#), refused);
        for answer in ["", "yes", r#"{"ok": 1}"#] {
            assert!(matches!(read_judgement(answer), HookVerdict::Failed { .. }), "{answer}");
        }
    }
}
