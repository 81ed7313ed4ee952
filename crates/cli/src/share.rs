//! A session as a page for a browser: one file, no scripts, nothing fetched from anywhere.
//!
//! All text comes from a model, from files or from commands, so none of it is markup: it is escaped
//! once, at the door to the page ([`text`]), and cannot steer a terminal that shows the source.

use crate::run::{brief, gist};
use std::fmt::Write;
use windlass_protocol::{CallPart, Display, Message, Outcome, Part, Role, Transcript};
use windlass_toolkit::bound::plain;

const HEAD: &str = "<!doctype html>
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

/// The page.
pub(crate) fn page(transcript: &Transcript) -> String {
    let mut page = String::from(HEAD);
    let title = text(&transcript.title);
    // Writing to a String cannot fail.
    let _ = writeln!(page, "<title>{title}</title></head><body>\n<h1>{title}</h1>");
    for message in &transcript.messages {
        write_message(&mut page, message);
    }
    let usage = transcript.usage;
    let _ = write!(page, "<footer><p>{} tokens in, {} out", usage.input, usage.output);
    if transcript.cost.0 > 0 {
        let _ = write!(page, ", {}", crate::session::dollars(transcript.cost));
    }
    page.push_str(". Written by Windlass.</p></footer>\n</body></html>\n");
    page
}

fn write_message(page: &mut String, message: &Message) {
    for part in &message.parts {
        let _ = match (message.role, part) {
            (_, Part::Text { text: said, .. }) if said.trim().is_empty() => Ok(()),
            (Role::User, Part::Text { text: said, .. }) => {
                writeln!(page, "<article class=\"user\">{}</article>", text(said.trim()))
            }
            (Role::Context, Part::Text { text: said, .. }) => {
                writeln!(page, "<article class=\"context\">{}</article>", text(said.trim()))
            }
            (Role::Assistant, Part::Text { text: said, .. }) => {
                writeln!(page, "<article>{}</article>", text(said.trim()))
            }
            (_, Part::Reasoning { text: said, .. }) if said.trim().is_empty() => Ok(()),
            (_, Part::Reasoning { text: said, .. }) => writeln!(
                page,
                "<details class=\"thought\"><summary>thoughts</summary><pre>{}</pre></details>",
                text(said.trim())
            ),
            (_, Part::File(file)) => {
                writeln!(
                    page,
                    "<p class=\"context\">[{}, {}]</p>",
                    text(&file.name),
                    text(&file.mime)
                )
            }
            (_, Part::Call(call)) => write_call(page, call),
        };
    }
}

fn write_call(page: &mut String, call: &CallPart) -> std::fmt::Result {
    let became = call.outcome.as_ref().map_or_else(|| "under way".to_owned(), gist);
    let line = format!("{} {}: {became}", call.tool, brief(&call.arguments));
    writeln!(page, "<details><summary>{}</summary>", text(&line))?;
    writeln!(page, "<pre>{}</pre>", text(&call.arguments))?;
    if let Some(outcome) = &call.outcome {
        let shown = match outcome {
            Outcome::Completed { output } => match &output.display {
                Display::Diff { unified } => unified,
                Display::Text | Display::Terminal { .. } | Display::Checklist { .. } => {
                    &output.text
                }
            },
            other => other.text(),
        };
        writeln!(page, "<pre>{}</pre>", text(shown))?;
    }
    page.push_str("</details>\n");
    Ok(())
}

/// A text as it stands in a page: nothing in it is markup.
fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in plain(text).chars() {
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
    fn no_text_is_markup_and_none_steers_a_terminal() {
        let evil = "</pre><script>alert(1)</script>&amp;\"' onx=\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
        let safe = text(evil);
        assert!(
            !safe.contains(['<', '>', '"', '\'', '\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
            "{safe}"
        );
        assert!(safe.contains("&amp;amp;"), "{safe}");
    }
}
