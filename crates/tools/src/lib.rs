//! The built-in tools, one folder each: code, description, schema and cases side by side.
//!
//! A tool knows its input and its workspace, never a session or a model. It keeps the invariant
//! that it reaches files only through its `CallWorkspace`. Start reading at
//! [`read`]; to add a tool, copy a folder and add a line to [`register`].

pub mod apply_patch;
pub mod bash;
pub mod batch;
pub mod call_tool;
pub mod codesearch;
pub mod edit;
mod file_diff;
mod file_edit;
pub mod formatters;
pub mod glob;
pub mod grep;
mod image;
pub mod invalid;
pub mod job;
pub mod lsp;
mod nearby_instructions;
mod paging;
pub mod plan_exit;
pub mod question;
pub mod read;
pub mod skill;
pub mod task;
#[doc(hidden)]
pub mod text;
pub mod todoread;
pub mod todowrite;
pub mod tool_search;
pub mod undo;
pub mod webfetch;
pub mod websearch;
pub mod write;

#[cfg(test)]
mod case_runner;

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_lsp::LanguageServers;
use windlass_protocol::ClaudeToolNames;
use windlass_toolkit::{CallContext, CallFailure, Registry, StepContext, relative_path};
use windlass_web::WebClient;

/// Services of a workspace that tools use besides its files. Without language servers and
/// formatters, tools work on files alone.
#[derive(Clone, Default)]
pub struct ToolIntegrations {
    pub language_servers: Option<LanguageServers>,
    pub formatters: Option<Arc<formatters::Formatters>>,
    /// Client for `webfetch`, `websearch` and `codesearch`.
    pub web: Arc<WebClient>,
}

/// Registers every built-in tool.
pub fn register(registry: &Registry, integrations: &ToolIntegrations) {
    registry.register(apply_patch::ApplyPatchTool { integrations: integrations.clone() });
    registry.register(bash::BashTool);
    registry.register(batch::BatchTool);
    registry.register(call_tool::CallTool);
    registry.register(edit::EditTool { integrations: integrations.clone() });
    registry.register(glob::GlobTool);
    registry.register(grep::GrepTool);
    registry.register(invalid::InvalidCallTool);
    registry.register(job::JobTool);
    registry.register(lsp::LspTool { language_servers: integrations.language_servers.clone() });
    registry.register(plan_exit::PlanExitTool);
    registry.register(question::QuestionTool);
    registry.register(read::ReadTool { language_servers: integrations.language_servers.clone() });
    registry.register(skill::SkillTool);
    registry.register(todoread::TodoReadTool);
    registry.register(todowrite::TodoWriteTool);
    registry.register(task::SubagentTaskTool);
    registry.register(tool_search::ToolSearchTool);
    registry.register(undo::UndoTool { language_servers: integrations.language_servers.clone() });
    registry.register(write::WriteTool { integrations: integrations.clone() });
    registry.register(codesearch::WebCodeSearchTool(Arc::clone(&integrations.web)));
    registry.register(webfetch::WebFetchTool(Arc::clone(&integrations.web)));
    registry.register(websearch::WebSearchTool(Arc::clone(&integrations.web)));
}

/// Returns the names of the tools in Claude Code.
pub fn claude_names() -> ClaudeToolNames {
    all_tools().claude_names()
}

/// Returns true if a call may start a process: every tool that is not built in, and those under the
/// permission key of commands.
pub fn runs_commands(tool: &str) -> bool {
    all_tools().permission_key(tool).is_none_or(|key| key == "bash")
}

/// Returns the permission key of a built-in tool.
pub fn permission_key(tool: &str) -> Option<String> {
    static KEYS: std::sync::LazyLock<BTreeMap<String, String>> =
        std::sync::LazyLock::new(permission_keys);
    KEYS.get(tool).cloned()
}

/// Returns the permission keys of the built-in tools, by the name of the tool.
pub fn permission_keys() -> BTreeMap<String, String> {
    let tools = all_tools();
    let names = tools.names().into_iter();
    names.filter_map(|name| tools.permission_key(&name).map(|key| (name, key))).collect()
}

fn all_tools() -> Registry {
    let registry = Registry::default();
    register(&registry, &ToolIntegrations::default());
    registry
}

/// Describes a search for `pattern` in a folder, if it is not the whole project.
fn search_description(pattern: &str, path: Option<&str>, root: &str) -> String {
    match path.map(|path| relative_path(path, root)).filter(|path| !matches!(*path, "" | ".")) {
        Some(path) => format!("{pattern} in {path}"),
        None => pattern.to_owned(),
    }
}

/// Returns true for models trained to change files by patches; they are not offered `edit` and
/// `write`.
fn prefers_patches(context: &StepContext) -> bool {
    let model = context.model.to_lowercase();
    model.contains("gpt-") && !model.contains("gpt-4") && !model.contains("gpt-oss")
}

/// Returns the failure for a path that does not exist, with suggestions of similar paths.
async fn path_not_found(cx: &CallContext<'_>, path: &str) -> CallFailure {
    let name = path.to_owned();
    let similar = cx
        .run_blocking(move |workspace| Ok(workspace.suggest_paths(&name)))
        .await
        .unwrap_or_default();
    let suggestion = match similar.as_slice() {
        [] => String::new(),
        similar => format!(". Did you mean {}?", similar.join(" or ")),
    };
    CallFailure::new(format!("{path} does not exist{suggestion}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_toolkit::Tool;

    #[test]
    fn apply_patch_has_every_claude_name_for_changing_files() {
        let names = claude_names();
        for name in ["Edit", "Write", "MultiEdit"] {
            assert!(names.tools_for(name).contains(&"apply_patch"), "{name}");
        }
        assert_eq!(names.tools_for("Edit"), ["edit", "apply_patch"]);
        assert_eq!(names.tools_for("WebFetch"), ["webfetch"]);
        assert!(names.tools_for("NotebookEdit").is_empty());
    }

    #[test]
    fn a_rule_for_webfetch_covers_searches_of_the_web() {
        let keys = permission_keys();
        for tool in ["webfetch", "websearch", "codesearch"] {
            assert_eq!(keys.get(tool).map(String::as_str), Some("webfetch"), "{tool}");
        }
    }

    #[test]
    fn subagents_have_no_todo_list() {
        assert!(!Tool::is_for_subagents(&crate::todowrite::TodoWriteTool));
        assert!(!Tool::is_for_subagents(&crate::todoread::TodoReadTool));
    }

    #[test]
    fn only_gpt_models_prefer_patches() {
        let prefers = |model: &str| {
            prefers_patches(&StepContext { model: model.into(), ..StepContext::default() })
        };
        for model in ["openai/gpt-5", "openrouter/openai/gpt-5.4-codex", "azure/GPT-6"] {
            assert!(prefers(model), "{model}");
        }
        for model in ["openai/gpt-4o", "groq/gpt-oss-120b", "anthropic/claude", "x/my-egpt", ""] {
            assert!(!prefers(model), "{model}");
        }
    }
}
