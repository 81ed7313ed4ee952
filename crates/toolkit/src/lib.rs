//! The tool contract, the tool registry, and the pipeline that every tool call takes.
//!
//! The crate knows no particular tool and no session. It keeps the invariant that no tool runs
//! without a grant: built-in, custom and external tools are reached only through
//! [`ToolRuntime::execute`], which validates the call, asks for permission, opens a workspace
//! limited to the grant, runs the tool and truncates the result. Start reading at [`tool`], then
//! [`pipeline`].

mod agent_restrictions;
pub mod argument_repair;
mod call_failure;
pub mod hook;
mod judgement;
pub mod pipeline;
pub mod process_health;
mod process_launcher;
pub mod registry;
pub mod tool;
mod tool_caller;
mod tool_definition;
pub mod truncate_output;
mod validate_arguments;

pub use agent_restrictions::AgentRestrictions;
pub use call_failure::CallFailure;
pub use hook::{
    CombinedHookResult, Hook, HookContext, HookDenial, HookError, HookJudge, HookPayload,
    HookReply, HookRun,
};
pub use judgement::Judgement;
pub use pipeline::{ToolCall, ToolRuntime};
pub use process_launcher::ProcessLauncher;
pub use registry::call_description::relative_path;
pub use registry::definition_budget::{
    SEARCH_TOOLS_RESERVE_TOKENS, ToolDefinitionBudget, definition_tokens,
};
pub use registry::tool_name_match::{closest_names, likely_names};
pub use registry::{PendingToolSource, Registry, ToolNameError, ToolSnapshot, WeakRegistry};
pub use tool::{
    AgentSummary, CallContext, PathInstructions, SearchableSource, SkillDefinition, StepContext,
    SubCall, Tool, ToolSearchResults, UserPresence,
};
pub use tool_caller::{
    BeforeAfter, CallIntent, NO_USER_TEXT, PermissionReply, QuestionEffect, SeenFile,
    SubagentReport, SubagentRequest, ToolCaller,
};
pub use tool_definition::ToolDefinition;
pub use validate_arguments::schema_violations;
pub use windlass_sandbox::{FileContent, FileStat, Job, JobEvent, PendingFileChange};
