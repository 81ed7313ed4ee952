//! The description of a tool call for front ends, which its tool writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool call in words, and how a session treats it. The tool writes it from the arguments
/// (`Tool::describe_call`), and `ToolCalled` records it, so that no front end has to know a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallDescription {
    /// The action: `Read`.
    pub verb: String,
    /// The action under way: `reading`.
    pub progress: String,
    /// The object of the action, on one line: `src/main.rs`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// A short addition: `lines 1–80`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// True if the words say all that the arguments say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub covers_arguments: bool,
    /// True for a call that waits for something and is meant to be repeated, which is not a loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_polling: bool,
}

impl CallDescription {
    /// Returns a description with these words. Only the first line of `object` is kept.
    pub fn new(verb: &str, progress: &str, object: impl AsRef<str>) -> CallDescription {
        CallDescription {
            verb: verb.to_owned(),
            progress: progress.to_owned(),
            object: first_line(object.as_ref()),
            ..CallDescription::default()
        }
    }

    /// Adds a note. Only its first line is kept.
    #[must_use]
    pub fn with_note(self, note: impl AsRef<str>) -> CallDescription {
        CallDescription { note: first_line(note.as_ref()), ..self }
    }

    /// Sets `covers_arguments`.
    #[must_use]
    pub fn covering_arguments(self) -> CallDescription {
        CallDescription { covers_arguments: true, ..self }
    }

    /// Returns the description as an ongoing activity: `reading src/main.rs`.
    pub fn progress_text(&self) -> String {
        format!("{} {}", self.progress, self.object).trim_end().to_owned()
    }

    /// Returns the description as one phrase: `Read src/main.rs`.
    pub fn phrase(&self) -> String {
        format!("{} {}", self.verb, self.object).trim_end().to_owned()
    }

    /// Returns true if no tool has described the call.
    pub(crate) fn is_empty(&self) -> bool {
        self.verb.is_empty()
    }
}

/// Returns the first line of a text, with an ellipsis if more lines follow.
fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first.to_owned(),
    }
}
