//! Types of a tool call: the permission answer, the output and the outcome.

use crate::requested_access::{ToolAccess, is_workspace_root};
use crate::todo_item::TodoItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The user's answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Allows this call only.
    Once,
    /// Allows the call, and the same accesses for `ApprovalScope::Session`: until the session ends.
    Session,
    /// Allows the call, and the same accesses for `ApprovalScope::Project`: in this project from
    /// now on.
    Project,
    /// Allows the call, and every call of the `ApprovalKind` that the request offered.
    Kind {
        /// Duration of the approval.
        scope: ApprovalScope,
    },
    /// Denies the call. With a `reason`, the model reads it and continues; without one, the turn
    /// ends.
    No {
        /// Reason that the model reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Denies the call, because no user is there to ask. The model reads the hint and continues.
    Unavailable {
        /// A way to allow the call, for the model to pass on.
        hint: String,
    },
}

impl PermissionAnswer {
    /// Returns true unless the call is denied.
    pub fn is_yes(&self) -> bool {
        match self {
            PermissionAnswer::Once
            | PermissionAnswer::Session
            | PermissionAnswer::Project
            | PermissionAnswer::Kind { .. } => true,
            PermissionAnswer::No { .. } | PermissionAnswer::Unavailable { .. } => false,
        }
    }

    /// Returns the duration of the approval, or `None` if it covers only this call.
    pub fn scope(&self) -> Option<ApprovalScope> {
        match self {
            PermissionAnswer::Once
            | PermissionAnswer::No { .. }
            | PermissionAnswer::Unavailable { .. } => None,
            PermissionAnswer::Session => Some(ApprovalScope::Session),
            PermissionAnswer::Project => Some(ApprovalScope::Project),
            PermissionAnswer::Kind { scope } => Some(*scope),
        }
    }
}

/// A group of calls that the user can approve together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Commands that match a pattern.
    Commands {
        /// The start of the command line, such as `cargo test *`.
        pattern: String,
    },
    /// Edits of files in the workspace that are neither protected nor secret. They can be approved
    /// for a session only.
    Edits,
    /// Downloads from package registries. They can be approved for a project only.
    Registries,
}

impl ApprovalKind {
    /// Describes the calls: ``all `cargo test` commands``.
    pub fn describe(&self) -> String {
        match self {
            ApprovalKind::Commands { pattern } => {
                format!("all `{}` commands", pattern.trim_end_matches(" *"))
            }
            ApprovalKind::Edits => "all edits of files in this folder".to_owned(),
            ApprovalKind::Registries => "downloads from package registries".to_owned(),
        }
    }

    /// Returns true if an approval of this scope is possible.
    pub fn allows_scope(&self, scope: ApprovalScope) -> bool {
        match self {
            ApprovalKind::Commands { .. } => true,
            ApprovalKind::Edits => scope == ApprovalScope::Session,
            ApprovalKind::Registries => scope == ApprovalScope::Project,
        }
    }
}

/// The danger of a call that requires approval, as far as it is known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RequestDanger {
    /// It stays within the workspace, as far as is known.
    #[default]
    Normal,
    /// It reaches beyond the workspace: the network, other folders or secrets.
    Elevated,
    /// It runs downloaded or unknown code, destroys data, gains privileges or leaves the sandbox.
    High,
}

impl RequestDanger {
    /// Returns true for `Normal`.
    pub fn is_normal(&self) -> bool {
        *self == RequestDanger::Normal
    }
}

/// Duration of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// Valid until the session ends.
    Session,
    /// Valid in this project until the user revokes it.
    Project,
}

/// A permanent approval that the user gave (`ApprovalScope::Project`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ProjectApproval {
    /// Permission key of the approval: `bash in FOLDER` for a command in a folder below the project
    /// root, `bash like` for a kind of command.
    pub key: String,
    /// The approved access, as [`ToolAccess::subject`] returns it, or the approved kind of command.
    pub subject: String,
}

impl ProjectApproval {
    /// The key of an `ProjectApproval` for a kind of command.
    pub const COMMAND_KIND_KEY: &str = "bash like";

    /// Returns the approval for the commands of a project to reach package registries.
    pub fn registries() -> ProjectApproval {
        ProjectApproval { key: "network".to_owned(), subject: "registries".to_owned() }
    }

    /// Returns the approval for exactly this access. A command is approved only in the folder of
    /// the request: the same command line may run something else in another folder.
    pub fn for_access(access: &ToolAccess) -> ProjectApproval {
        let (key, subject) = (access.permission_key(), access.subject().to_owned());
        let key = match access {
            ToolAccess::RunCommand { folder, .. } if !is_workspace_root(folder) => {
                format!("{key} in {folder}")
            }
            ToolAccess::RunCommand { .. }
            | ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::Edit { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => key.to_owned(),
        };
        ProjectApproval { key, subject }
    }
}

/// Author of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallAuthor {
    /// The model made the call.
    Model,
    /// The user made the call directly (`SessionOp::CallTool` or `SessionOp::Undo`).
    User,
    /// A custom command of the user made the call (`SessionOp::RunPromptCommand`). Its output is part
    /// of the prompt that follows, so the call itself is not sent to the model.
    Command,
    /// Windlass made the call, to check the goal that the user set for the turn.
    Goal,
}

/// A repair of a malformed tool call (`ToolCalled`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRepair {
    /// Repaired `ToolCalled::arguments`, as JSON.
    pub arguments: String,
    /// Descriptions of the changes that the repair made.
    pub changes: Vec<String>,
}

/// A reference to bytes stored outside the log, named by their SHA-256 digest.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct BlobRef(String);

impl TryFrom<String> for BlobRef {
    type Error = &'static str;

    fn try_from(text: String) -> Result<BlobRef, &'static str> {
        BlobRef::parse(&text).ok_or("invalid blob reference")
    }
}

impl From<BlobRef> for String {
    fn from(blob: BlobRef) -> String {
        blob.0
    }
}

/// Length of `BlobRef::short_name`: long enough that a blob of another session cannot be guessed.
const SHORT_NAME_DIGITS: usize = 12;

impl BlobRef {
    /// Returns the reference for the SHA-256 digest of `bytes`.
    pub fn for_bytes(bytes: &[u8]) -> BlobRef {
        BlobRef::from_digest(Sha256::digest(bytes).into())
    }

    /// Returns the reference for a SHA-256 digest.
    pub fn from_digest(digest: [u8; 32]) -> BlobRef {
        use std::fmt::Write;
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing to a `String` cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        BlobRef(hex)
    }

    /// Parses a reference. Rejects everything except 64 lower-case hex digits, because the text
    /// becomes a file name.
    pub fn parse(text: &str) -> Option<BlobRef> {
        let is_hex_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex_digit)).then(|| BlobRef(text.to_owned()))
    }

    /// Returns the 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first digits, which identify a blob among those of a user.
    pub fn short_name(&self) -> &str {
        self.0.get(..SHORT_NAME_DIGITS).unwrap_or(&self.0)
    }
}

/// A file attached to a message: an image, a document or text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Name of the file, shown to the user and the model.
    pub name: String,
    /// Media type, for example `image/png`.
    pub mime_type: String,
    /// Reference to the content of the file.
    pub blob: BlobRef,
}

/// The form in which a front end shows a `ToolOutput`. A new tool picks one of these, so no front
/// end has to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum OutputDisplay {
    /// Plain text: `ToolOutput::text`.
    #[default]
    Text,
    /// Markdown: `ToolOutput::text`.
    Markdown,
    /// A change to files.
    Diff {
        /// The change as a unified diff.
        unified_diff: String,
    },
    /// Output of a command: `ToolOutput::text`, shown as a terminal shows it.
    Terminal {
        /// The same text with its colors, if it has any: `ESC [ … m` sequences and no other control
        /// characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        colored_text: Option<String>,
    },
    /// A to-do list with the progress of each item.
    Checklist {
        /// Items of the list, in order.
        items: Vec<TodoItem>,
    },
}

/// Output of a tool: [`CallOutcome::Completed`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// Result in a few words for the user: `3 matches`. Empty if there is nothing to say.
    pub title: String,
    /// Text for the model, limited in length.
    pub text: String,
    /// Form in which a front end shows the output.
    #[serde(default)]
    pub display: OutputDisplay,
    /// Machine-readable data about the output.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// New to-do list of the session, if the call changed it. Only a built-in tool sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<TodoItem>>,
    /// Numbers of the background jobs that the call started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started_jobs: Vec<u64>,
    /// True for state or instructions, which stay in the context when old outputs are pruned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retained: bool,
    /// Blob with the complete text, if `text` contains only its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_text: Option<BlobRef>,
    /// Images and documents that the model receives in addition to `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl ToolOutput {
    /// Returns the exit code, if this is the output of a command.
    pub fn exit_code(&self) -> Option<i64> {
        self.metadata.get("exit").and_then(Value::as_i64)
    }
}

/// Start of `CallOutcome::Denied::text` for a call that the user denied. Front ends reword it for
/// the user.
pub const USER_DENIAL_TEXT: &str = "The user denied this call";

/// Start of the result of a call that needed approval when no user was there.
pub const NO_USER_DENIAL_TEXT: &str = "Not run: no user is there to approve it.";

/// Outcome of a tool call. Every call gets exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallOutcome {
    /// The call ran and returned output.
    Completed {
        /// Output of the call.
        output: ToolOutput,
    },
    /// The call failed or could not run. The model may try another way.
    Failed {
        /// Explanation for the model.
        text: String,
    },
    /// A rule or the user denied the call; it did not run.
    Denied {
        /// Explanation for the model.
        text: String,
    },
    /// The user stopped the call (`SessionOp::Interrupt`).
    Interrupted {
        /// Description of the work done before the stop.
        text: String,
    },
    /// The call started (`CallStarted`), and the process died before it recorded an outcome.
    ResultUnknown,
}

impl CallOutcome {
    /// Returns the files in the output of a `Completed` call.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            CallOutcome::Completed { output } => &output.attachments,
            CallOutcome::Failed { .. }
            | CallOutcome::Denied { .. }
            | CallOutcome::Interrupted { .. }
            | CallOutcome::ResultUnknown => &[],
        }
    }

    /// Returns the text that the model reads.
    pub fn text(&self) -> &str {
        match self {
            CallOutcome::Completed { output } => &output.text,
            CallOutcome::Failed { text }
            | CallOutcome::Denied { text }
            | CallOutcome::Interrupted { text } => text,
            CallOutcome::ResultUnknown => {
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
