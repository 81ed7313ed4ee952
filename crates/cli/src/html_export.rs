//! Renders a session as a single HTML file, without scripts or external resources.
//!
//! All text comes from a model, from files or from commands, so none of it is treated as markup. It
//! is escaped in one place ([`escape_html`]), which also strips control characters, so that the
//! source cannot control a terminal that shows it.

use crate::commands::run::{summarize_arguments, summarize_outcome};
use crate::terminal::output::format_dollars;
use std::fmt::Write;
use windlass_protocol::{
    CallOutcome, Message, MessagePart, MessageRole, OutputDisplay, ToolCallPart, Transcript,
};
use windlass_toolkit::truncate_output::show_controls;

const HTML_HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"referrer\" content=\"no-referrer\">
<style>
body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace;margin:.5rem 0}
p,article{white-space:pre-wrap;overflow-wrap:anywhere}
.user{border-left:4px solid #3a6ea5;padding-left:.8rem;font-weight:600}
.context,.thought{color:#666;font-size:.9em}
details{border:1px solid #ccc;border-radius:4px;padding:.2rem .6rem;margin:.4rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
footer{color:#666;font-size:.9em;border-top:1px solid #ccc;margin-top:2rem}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}details,footer{border-color:#444}}
</style>
";

/// Renders the HTML page of a [`Transcript`].
pub(crate) fn render_page(transcript: &Transcript) -> String {
    let mut page = String::from(HTML_HEAD);
    let title = escape_html(&transcript.title);
    // Writing to a `String` cannot fail.
    let _ = writeln!(page, "<title>{title}</title></head><body>\n<h1>{title}</h1>");
    for message in &transcript.messages {
        write_message(&mut page, message);
    }
    let usage = transcript.usage;
    let _ = write!(page, "<footer><p>{} input tokens, {} output tokens", usage.input, usage.output);
    if transcript.cost.0 > 0 {
        let _ = write!(page, ", {}", format_dollars(transcript.cost));
    }
    page.push_str(". Created by Windlass.</p></footer>\n</body></html>\n");
    page
}

fn write_message(page: &mut String, message: &Message) {
    for part in &message.parts {
        let _ = match (message.role, part) {
            (_, MessagePart::Text { text, .. }) if text.trim().is_empty() => Ok(()),
            (MessageRole::User, MessagePart::Text { text, .. }) => {
                writeln!(page, "<article class=\"user\">{}</article>", escape_html(text.trim()))
            }
            (MessageRole::Context, MessagePart::Text { text, .. }) => {
                writeln!(page, "<article class=\"context\">{}</article>", escape_html(text.trim()))
            }
            (MessageRole::Assistant, MessagePart::Text { text, .. }) => {
                writeln!(page, "<article>{}</article>", escape_html(text.trim()))
            }
            (_, MessagePart::Reasoning { text, .. }) if text.trim().is_empty() => Ok(()),
            (_, MessagePart::Reasoning { text, .. }) => writeln!(
                page,
                "<details class=\"thought\"><summary>Thinking</summary><pre>{}</pre></details>",
                escape_html(text.trim())
            ),
            (_, MessagePart::File(file)) => {
                writeln!(
                    page,
                    "<p class=\"context\">[{}, {}]</p>",
                    escape_html(&file.name),
                    escape_html(&file.mime_type)
                )
            }
            (_, MessagePart::Call(call)) => write_call(page, call),
        };
    }
}

fn write_call(page: &mut String, call: &ToolCallPart) -> std::fmt::Result {
    let status = call.outcome.as_ref().map_or_else(|| "in progress".to_owned(), summarize_outcome);
    let line = format!("{} {}: {status}", call.tool, summarize_arguments(&call.arguments));
    writeln!(page, "<details><summary>{}</summary>", escape_html(&line))?;
    writeln!(page, "<pre>{}</pre>", escape_html(&call.arguments))?;
    if let Some(outcome) = &call.outcome {
        let text = match outcome {
            CallOutcome::Completed { output } => match &output.display {
                OutputDisplay::Diff { unified_diff } => unified_diff,
                OutputDisplay::Text
                | OutputDisplay::Markdown
                | OutputDisplay::Terminal { .. }
                | OutputDisplay::Checklist { .. } => &output.text,
            },
            other => other.text(),
        };
        writeln!(page, "<pre>{}</pre>", escape_html(text))?;
    }
    page.push_str("</details>\n");
    Ok(())
}

/// Escapes a text for HTML and shows control characters as symbols, so that nothing in it is markup.
fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in show_controls(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_has_no_markup_and_no_control_characters() {
        let hostile = "</pre><script>alert(1)</script>&amp;\"' onx=\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
        let safe = escape_html(hostile);
        assert!(
            !safe.contains(['<', '>', '"', '\'', '\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
            "{safe}"
        );
        assert!(safe.contains("&amp;amp;"), "{safe}");
    }
}
