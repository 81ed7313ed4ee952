//! Constructors and properties of facts: their kind, and whether they must reach the disk at once.

use crate::call_approval_and_outcome::{BlobRef, CallOutcome};
use crate::context_change::ContextChange;
use crate::event::{DEFAULT_AGENT, Fact};

impl Fact {
    /// Returns `SessionOpened` for a session that the user starts with `DEFAULT_AGENT`.
    pub fn session_opened(workspace: impl Into<String>, version: impl Into<String>) -> Fact {
        let (workspace, version) = (workspace.into(), version.into());
        Fact::SessionOpened { workspace, version, agent: DEFAULT_AGENT.to_owned(), parent: None }
    }

    /// Returns `ContextChanged` for information that nothing else depends on.
    pub fn context_note(text: impl Into<String>) -> Fact {
        Fact::ContextChanged { text: text.into(), change: ContextChange::Note }
    }

    /// Returns the files outside the log that the fact names: attachments and full outputs.
    pub fn named_blobs(&self) -> impl Iterator<Item = &BlobRef> {
        let (attachments, full_text) = match self {
            Fact::PromptSubmitted { attachments, .. } => (attachments.as_slice(), None),
            Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
                (output.attachments.as_slice(), output.full_text.as_ref())
            }
            _ => (&[][..], None),
        };
        attachments.iter().map(|file| &file.blob).chain(full_text)
    }

    /// Returns the name of this kind of fact, as the log stores it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fact::SessionOpened { .. } => "session_opened",
            Fact::SystemPromptSet { .. } => "system_prompt_set",
            Fact::ModeChanged { .. } => "mode_changed",
            Fact::AgentChanged { .. } => "agent_changed",
            Fact::ModelChanged { .. } => "model_changed",
            Fact::SessionRenamed { .. } => "session_renamed",
            Fact::SideRequestEnded { .. } => "side_request_ended",
            Fact::SessionForked { .. } => "session_forked",
            Fact::ContextCompacted { .. } => "context_compacted",
            Fact::OutputsPruned { .. } => "outputs_pruned",
            Fact::Rewound { .. } => "rewound",
            Fact::PromptSubmitted { .. } => "prompt_submitted",
            Fact::PromptWithdrawn { .. } => "prompt_withdrawn",
            Fact::TurnStarted { .. } => "turn_started",
            Fact::PromptSteered { .. } => "prompt_steered",
            Fact::StepStarted { .. } => "step_started",
            Fact::StepEnded { .. } => "step_ended",
            Fact::StepRetrying { .. } => "step_retrying",
            Fact::TurnInterrupted { .. } => "turn_interrupted",
            Fact::TurnEnded { .. } => "turn_ended",
            Fact::ModelText { .. } => "model_text",
            Fact::ModelReasoning { .. } => "model_reasoning",
            Fact::ToolCalled { .. } => "tool_called",
            Fact::PermissionAsked { .. } => "permission_asked",
            Fact::PermissionAnswered { .. } => "permission_answered",
            Fact::ApprovalsRevoked => "approvals_revoked",
            Fact::CallStarted { .. } => "call_started",
            Fact::QuestionAsked { .. } => "question_asked",
            Fact::QuestionAnswered { .. } => "question_answered",
            Fact::SubagentStarted { .. } => "subagent_started",
            Fact::FilesChanging { .. } => "files_changing",
            Fact::FilesUnchanged { .. } => "files_unchanged",
            Fact::CallSettled { .. } => "call_settled",
            Fact::HookRan { .. } => "hook_ran",
            Fact::ContextChanged { .. } => "context_changed",
            Fact::FactsLost { .. } => "facts_lost",
        }
    }

    /// Returns true if the fact must reach the disk before anything that follows it, because a
    /// promise depends on it: input of the user (a prompt, its withdrawal, an answer, an
    /// interrupt), and the start of a call that is not read-only.
    pub fn needs_disk_sync(&self) -> bool {
        match self {
            Fact::PromptSubmitted { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::ApprovalsRevoked
            | Fact::QuestionAnswered { .. }
            | Fact::TurnInterrupted { .. } => true,
            Fact::CallStarted { read_only, .. } => !read_only,
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextCompacted { .. }
            | Fact::OutputsPruned { .. }
            | Fact::Rewound { .. }
            | Fact::TurnStarted { .. }
            | Fact::PromptSteered { .. }
            | Fact::QuestionAsked { .. }
            | Fact::SubagentStarted { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::StepRetrying { .. }
            | Fact::TurnEnded { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::ToolCalled { .. }
            | Fact::PermissionAsked { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::CallSettled { .. }
            | Fact::HookRan { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => false,
        }
    }
}
