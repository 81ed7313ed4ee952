//! The maker of a call, and everything that a call may ask of it: permission, storage, answers of
//! the user, subagents.

use crate::call_failure::CallFailure;
use crate::hook::{HookJudge, HookRun};
use async_trait::async_trait;
use std::sync::Arc;
use windlass_protocol::{
    ApprovalKind, BlobRef, CallRepair, FileChange, PermissionAnswer, RequestDanger, SessionId,
    TodoItem, ToolAccess, TurnEndReason, UserQuestion,
};
use windlass_sandbox::PendingFileChange;

/// The intended effects of a call, for `ToolCaller::request_permission`.
#[derive(Clone, Debug, PartialEq)]
pub struct CallIntent {
    /// The accesses that the call needs, with resolved paths.
    pub accesses: Vec<ToolAccess>,
    /// True if running the call again changes nothing.
    pub read_only: bool,
    /// The reason why the user must approve the call, if so.
    pub ask_reason: Option<String>,
    /// The danger of the call.
    pub danger: RequestDanger,
    /// The calls that the user can approve together with this one.
    pub approval_kind: Option<ApprovalKind>,
    /// True if an earlier approval of the same call may answer the request.
    pub accepts_earlier_approval: bool,
    /// The call as it was understood, if that differs from what the model wrote.
    pub repair: Option<CallRepair>,
}

/// The reply to `ToolCaller::request_permission`.
#[derive(Clone, Debug, PartialEq)]
pub enum PermissionReply {
    /// The user will be asked, so a preview is needed. All earlier calls are finished.
    ShowPreview,
    /// The request is answered.
    Answer(PermissionAnswer),
}

/// The maker of a call: a session, for its model or for the user.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Records the intent of a call. A yes returns only after the start of the call is in the log,
    /// and on disk if the call changes something.
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply;

    /// Asks the user for permission and shows the preview.
    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer;

    /// Returns the id of the message that contains the call, as plugins read it in the session:
    /// `msg_` and the log position of its `StepStarted`. A call of the user is in no message.
    fn message_id(&self) -> Option<String> {
        None
    }

    /// Returns the model that decides for hooks which are prompts.
    fn hook_judge(&self) -> Option<&dyn HookJudge> {
        None
    }

    /// Records a `HookRun`.
    async fn record_hook(&self, _hook_run: HookRun) {}

    /// Shows a progress message of a running call.
    fn report_progress(&self, _text: String) {}

    /// Shows a piece of a running command's output, unmodified.
    fn report_output(&self, _text: String) {}

    /// Shows that a command tried to reach a host, and why that was refused, if so.
    fn report_host(&self, _host: String, _refusal: Option<String>) {}

    /// Stores bytes as a blob. A caller without storage returns a failure here and in the methods
    /// below.
    async fn put_blob(&self, _bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        Err(CallFailure::new(NO_STORAGE_TEXT))
    }

    /// Finds the blob whose reference begins with these hex digits.
    async fn find_blob(&self, _prefix: &str) -> Result<Option<BlobRef>, CallFailure> {
        Err(CallFailure::new(NO_STORAGE_TEXT))
    }

    /// Returns the bytes of a blob.
    async fn get_blob(&self, _blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        Err(CallFailure::new(NO_STORAGE_TEXT))
    }

    /// Records file changes with the data needed to undo them. The changes are made after this
    /// returns; a change that is not recorded is not made.
    async fn record_changes(&self, _batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        Err(CallFailure::new(NO_STORAGE_TEXT))
    }

    /// Records file changes that a command has already made.
    async fn record_made_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        self.record_changes(batch).await
    }

    /// Records that the changes of the last `record_changes` were not made after all.
    async fn retract_changes(&self) {}

    /// Returns the recorded bytes of a file version.
    async fn file_version(&self, _blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        Err(CallFailure::new(NO_STORAGE_TEXT))
    }

    /// Asks the user questions and waits for the replies: one list for each question.
    async fn ask_user(
        &self,
        _questions: Vec<UserQuestion>,
        _effect: QuestionEffect,
    ) -> Result<Vec<Vec<String>>, CallFailure> {
        Err(CallFailure::new(NO_USER_TEXT))
    }

    /// Returns the to-do list as it was last written.
    fn todos(&self) -> Vec<TodoItem> {
        Vec::new()
    }

    /// Returns the `SeenFile` that the caller last saw or wrote at a path.
    fn last_seen(&self, _path: &str) -> Option<SeenFile> {
        None
    }

    /// Returns true if this call should show the instructions in a file: the caller has not seen
    /// them, and no other call is about to show them.
    fn claim_instructions(&self, path: &str) -> bool {
        self.last_seen(path).is_none()
    }

    /// Records that the caller has now seen the content of a file.
    fn mark_seen(&self, _path: &str, _bytes: &Arc<[u8]>) {}

    /// Runs an agent in a session of its own. The session ends with the call unless it runs in the
    /// background.
    async fn run_subagent(&self, _request: SubagentRequest) -> Result<SubagentReport, CallFailure> {
        Err(CallFailure::new("Subagents are not available here. Do the task yourself."))
    }
}

/// A task for a subagent, started with `ToolCaller::run_subagent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentRequest {
    /// The name of the agent.
    pub agent: String,
    /// The task in a few words.
    pub description: String,
    pub prompt: String,
    /// The session to resume; `None` for a new one.
    pub session: Option<SessionId>,
    /// Runs in the background: the call does not wait, and the parent session is notified at the
    /// end.
    pub background: bool,
}

/// The result of `ToolCaller::run_subagent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentReport {
    /// The session of the subagent.
    pub session: SessionId,
    /// The last message of the subagent.
    pub text: String,
    /// The end of the turn; `None` while it runs in the background.
    pub end: Option<TurnEndReason>,
}

/// The file content before and after a `FileChange`; `None` where there was no file.
pub type BeforeAfter = [Option<Arc<[u8]>>; 2];

impl dyn ToolCaller + '_ {
    /// Returns the recorded content before and after a `FileChange`.
    pub async fn file_versions(&self, change: &FileChange) -> Result<BeforeAfter, CallFailure> {
        let mut contents = [None, None];
        for (content, version) in contents.iter_mut().zip([&change.before, &change.after]) {
            if let Some(version) = version {
                *content = Some(self.file_version(&version.blob).await?.into());
            }
        }
        Ok(contents)
    }
}

const NO_STORAGE_TEXT: &str = "storage is not available here";

/// The failure that the model gets if no user can answer its questions.
pub const NO_USER_TEXT: &str =
    "No user is available to answer. Decide yourself, and say what you decided.";

/// The effect of the replies to `ToolCaller::ask_user`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuestionEffect {
    /// The replies only inform the model.
    #[default]
    None,
    /// A reply that names a mode sets the mode of the session.
    SetMode,
}

/// A file version that the `ToolCaller` has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// Digest of the bytes.
    pub digest: BlobRef,
    /// The bytes, while they are in memory.
    pub bytes: Option<Arc<[u8]>>,
    /// A command of the session has changed the file since.
    pub is_changed_by_command: bool,
}
