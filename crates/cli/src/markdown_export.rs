//! Renders a session as Markdown: prompts and answers as text, calls and their output in fences.
//!
//! Text that is not Markdown stands in a fence that is longer than any in the text, so that it
//! cannot close it.

use crate::commands::run::{summarize_arguments, summarize_outcome};
use crate::terminal::output::format_dollars;
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{
    CallOutcome, Message, MessagePart, MessageRole, OutputDisplay, ToolCallPart, Transcript,
};
use windlass_toolkit::truncate_output::show_controls;

/// Renders the Markdown document of a [`Transcript`].
pub(crate) fn render_markdown(transcript: &Transcript) -> String {
    let mut text = format!("# {}\n", to_one_line(&transcript.title));
    for message in &transcript.messages {
        write_message(&mut text, message);
    }
    let usage = transcript.usage;
    let cost = match transcript.cost.0 {
        0 => String::new(),
        _ => format!(", {}", format_dollars(transcript.cost)),
    };
    text.push_str(&format!(
        "\n---\n\n{} input tokens, {} output tokens{cost}. Created by Windlass.\n",
        usage.input, usage.output
    ));
    // Control characters could steer a terminal that shows the file.
    show_controls(&text)
}

fn write_message(text: &mut String, message: &Message) {
    match message.role {
        MessageRole::User => text.push_str("\n## Prompt\n"),
        MessageRole::Assistant => text.push_str("\n## Answer\n"),
        MessageRole::Context => {}
    }
    for part in &message.parts {
        match (message.role, part) {
            (MessageRole::Context, MessagePart::Text { text: note, .. }) => {
                text.push_str(&format!("\n*{}*\n", to_one_line(note)));
            }
            (_, MessagePart::Text { text: words, .. }) if words.trim().is_empty() => {}
            (_, MessagePart::Text { text: words, .. }) => {
                text.push_str(&format!("\n{}\n", words.trim()));
            }
            (_, MessagePart::Reasoning { text: words, .. }) if words.trim().is_empty() => {}
            (_, MessagePart::Reasoning { text: words, .. }) => {
                let quoted: Vec<String> =
                    words.trim().lines().map(|line| format!("> {line}")).collect();
                text.push_str(&format!("\n> *Thinking*\n>\n{}\n", quoted.join("\n")));
            }
            (_, MessagePart::File(file)) => {
                text.push_str(&format!("\n*{}, {}*\n", to_one_line(&file.name), file.mime_type));
            }
            (_, MessagePart::Call(call)) => write_call(text, call),
        }
    }
}

fn write_call(text: &mut String, call: &ToolCallPart) {
    let status = call.outcome.as_ref().map_or_else(|| "in progress".to_owned(), summarize_outcome);
    let line = format!("{} {}", call.tool, summarize_arguments(&call.arguments));
    text.push_str(&format!("\n**{}**: {}\n", to_one_line(&line), to_one_line(&status)));
    let (language, output) = match &call.outcome {
        None => return,
        Some(CallOutcome::Completed { output }) => match &output.display {
            OutputDisplay::Diff { unified_diff } => ("diff", unified_diff.as_str()),
            OutputDisplay::Text
            | OutputDisplay::Markdown
            | OutputDisplay::Terminal { .. }
            | OutputDisplay::Checklist { .. } => ("", output.text.as_str()),
        },
        Some(other) => ("", other.text()),
    };
    if !output.trim().is_empty() {
        let fence = fence_for(output);
        text.push_str(&format!("\n{fence}{language}\n{}\n{fence}\n", output.trim_end()));
    }
}

/// Returns a fence that no line of the text closes.
fn fence_for(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count())
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence_for("plain"), "```");
        assert_eq!(fence_for("a\n  ````rust\nb"), "`````");
    }
}
