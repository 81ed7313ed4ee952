//! A tool call's words: what a person answered, what it gave, what became of it.

use crate::access::{Access, is_root};
use crate::todo::Todo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// What was answered when somebody was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and for the same accesses until this session ends.
    Session,
    /// Yes, and for the same accesses in this project from now on.
    Project,
    /// Yes, and for every command of the kind that was offered.
    Like {
        /// For how long.
        lasts: Lasting,
    },
    /// No. With a reason the model is told it and goes on; without one the turn ends.
    No {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Answer {
    /// True unless the answer is no.
    pub fn is_yes(&self) -> bool {
        match self {
            Answer::Once | Answer::Session | Answer::Project | Answer::Like { .. } => true,
            Answer::No { .. } => false,
        }
    }

    /// How long it holds, if for more than the call it was given to.
    pub fn lasts(&self) -> Option<Lasting> {
        match self {
            Answer::Once | Answer::No { .. } => None,
            Answer::Session => Some(Lasting::Session),
            Answer::Project => Some(Lasting::Project),
            Answer::Like { lasts } => Some(*lasts),
        }
    }
}

/// How long a yes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lasting {
    /// Until the session ends.
    Session,
    /// In this project, until it is taken back.
    Project,
}

/// Something a person allowed for good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The permission key it falls under; `bash in FOLDER` for a command below the root of the
    /// project, `bash like` for a kind of command.
    pub key: String,
    /// What was allowed.
    pub subject: String,
}

impl Approval {
    /// The key of a kind of command.
    pub const LIKE: &str = "bash like";

    /// The approval that means exactly this. A command is allowed only in the folder it was asked
    /// about in: elsewhere the same words may run something else.
    pub fn of(access: &Access) -> Approval {
        let (key, subject) = (access.key(), access.subject().to_owned());
        let key = match access {
            Access::Run { folder, .. } if !is_root(folder) => {
                format!("{key} in {folder}")
            }
            Access::Run { .. }
            | Access::Read { .. }
            | Access::Search { .. }
            | Access::Edit { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => key.to_owned(),
        };
        Approval { key, subject }
    }
}

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The model.
    Model,
    /// A person, directly.
    Person,
}

/// What a call that was not quite right means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// Its arguments, as JSON.
    pub arguments: String,
    /// What had to be changed, in words.
    pub changes: Vec<String>,
}

/// Points at bytes kept outside the log, named by their SHA-256.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct BlobRef(String);

impl TryFrom<String> for BlobRef {
    type Error = &'static str;

    fn try_from(text: String) -> Result<BlobRef, &'static str> {
        BlobRef::parse(&text).ok_or("not the name of a blob")
    }
}

impl From<BlobRef> for String {
    fn from(blob: BlobRef) -> String {
        blob.0
    }
}

impl BlobRef {
    /// The reference for these bytes.
    pub fn of(bytes: &[u8]) -> BlobRef {
        BlobRef::of_digest(Sha256::digest(bytes).into())
    }

    /// The reference for a SHA-256 digest.
    pub fn of_digest(digest: [u8; 32]) -> BlobRef {
        use std::fmt::Write;
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        BlobRef(hex)
    }

    /// Reads a reference, refusing whatever is not 64 lower-case hex digits: it becomes a file
    /// name, so nothing else may pass.
    pub fn parse(text: &str) -> Option<BlobRef> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 64 && text.bytes().all(hex)).then(|| BlobRef(text.to_owned()))
    }

    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file that goes with a message: an image or a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its name, for people and models.
    pub name: String,
    /// What it is, for example `image/png`.
    pub mime: String,
    /// Its bytes.
    pub blob: BlobRef,
}

/// How a front end shows an output. A new tool picks one of these and changes no front end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Display {
    /// The text the model was given.
    #[default]
    Text,
    /// A change to files.
    Diff {
        /// In unified form.
        unified: String,
    },
    /// What a command printed: the text the model was given, to be shown as a terminal does.
    Terminal {
        /// The same with its colours, if it had any: `ESC [ … m`, and no other control.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        coloured: Option<String>,
    },
    /// What is to be done, and how far it is.
    Checklist {
        /// In order.
        items: Vec<Todo>,
    },
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// One line for a person.
    pub title: String,
    /// What the model reads; bounded.
    pub text: String,
    /// How a front end shows it.
    #[serde(default)]
    pub display: Display,
    /// Facts for programs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The whole text, when `text` is only its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<BlobRef>,
    /// Images and documents the model is shown besides the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl Output {
    /// The exit code, if this is what a command gave.
    pub fn exit(&self) -> Option<i64> {
        self.metadata.get("exit").and_then(Value::as_i64)
    }
}

/// What became of a call. Every call gets exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and gave this.
    Completed {
        /// What it gave.
        output: Output,
    },
    /// It ran, or could not be run, and says why; the model may try otherwise.
    Failed {
        /// For the model.
        text: String,
    },
    /// A rule or a person said no; it did not run.
    Denied {
        /// For the model.
        text: String,
    },
    /// It was stopped by a person.
    Interrupted {
        /// What it had done until then.
        text: String,
    },
    /// It was started, and the process died before it could say how it ended.
    Unknown,
}

impl Outcome {
    /// The files it gave.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Outcome::Completed { output } => &output.attachments,
            Outcome::Failed { .. }
            | Outcome::Denied { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Unknown => &[],
        }
    }

    /// What the model reads.
    pub fn text(&self) -> &str {
        match self {
            Outcome::Completed { output } => &output.text,
            Outcome::Failed { text } | Outcome::Denied { text } | Outcome::Interrupted { text } => {
                text
            }
            Outcome::Unknown => {
                "This call was started, but its result was lost. It may have run; verify before \
                 repeating."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_reference_cannot_name_a_path() {
        let good = "a".repeat(64);
        assert_eq!(BlobRef::parse(&good).unwrap().as_str(), good);
        for bad in ["", "..", &"A".repeat(64), &format!("../{}", "a".repeat(61)), &"a".repeat(65)] {
            assert_eq!(BlobRef::parse(bad), None, "{bad}");
            assert!(serde_json::from_value::<BlobRef>(bad.into()).is_err(), "{bad}");
        }
    }
}
