//! The built-in tools, one folder each: code, description, schema and cases side by side.
//!
//! A tool here knows its input and its world, never a session or a model. It keeps the invariant
//! that files are reached through the world it is handed and nothing else. Start reading at
//! [`read`]; to add a tool, copy a folder and add a line to [`register`].

pub mod apply_patch;
pub mod bash;
pub mod batch;
pub mod call_tool;
pub mod codesearch;
pub mod edit;
mod file;
pub mod format;
pub mod glob;
pub mod grep;
pub mod invalid;
pub mod job;
pub mod lsp;
mod paging;
mod picture;
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
mod harness;

use std::sync::Arc;
use windlass_lsp::Code;
use windlass_toolkit::{Cx, Failure, Registry, Scene};
use windlass_web::Web;

/// What tools know of a workspace besides its files. Without any of it, files are all they know.
#[derive(Clone, Default)]
pub struct Senses {
    /// Its language servers.
    pub code: Option<Code>,
    /// Its formatters.
    pub formats: Option<Arc<format::Formats>>,
    /// The web.
    pub web: Option<Arc<Web>>,
}

/// Puts every built-in tool into a registry.
pub fn register(registry: &Registry, senses: &Senses) {
    registry.register(apply_patch::ApplyPatch { senses: senses.clone() });
    registry.register(bash::Bash);
    registry.register(batch::Batch);
    registry.register(call_tool::CallTool);
    registry.register(edit::Edit { senses: senses.clone() });
    registry.register(glob::Glob);
    registry.register(grep::Grep);
    registry.register(invalid::Invalid);
    registry.register(job::Job);
    registry.register(lsp::Lsp { code: senses.code.clone() });
    registry.register(plan_exit::PlanExit);
    registry.register(question::Question);
    registry.register(read::Read { code: senses.code.clone() });
    registry.register(skill::Skill);
    registry.register(todoread::TodoRead);
    registry.register(todowrite::TodoWrite);
    registry.register(task::Task);
    registry.register(tool_search::ToolSearch);
    registry.register(undo::Undo { code: senses.code.clone() });
    registry.register(write::Write { senses: senses.clone() });
    if let Some(web) = &senses.web {
        registry.register(codesearch::CodeSearch(Arc::clone(web)));
        registry.register(webfetch::WebFetch(Arc::clone(web)));
        registry.register(websearch::WebSearch(Arc::clone(web)));
    }
}

/// True for a model that was trained to change files by patches; it is not offered `edit` and
/// `write`.
fn patches(scene: &Scene) -> bool {
    let model = scene.model.to_lowercase();
    model.contains("gpt-") && !model.contains("gpt-4") && !model.contains("gpt-oss")
}

/// Why a path that is not there cannot be used, with those that may have been meant.
async fn missing(cx: &Cx<'_>, path: &str) -> Failure {
    let name = path.to_owned();
    let near = cx.blocking(move |world| Ok(world.suggest(&name))).await.unwrap_or_default();
    let meant = match near.as_slice() {
        [] => String::new(),
        near => format!(". Did you mean {}?", near.join(" or ")),
    };
    Failure::new(format!("{path} does not exist{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_for_models_that_know_them() {
        let patches = |model: &str| patches(&Scene { model: model.into(), ..Scene::default() });
        for model in ["openai/gpt-5", "openrouter/openai/gpt-5.4-codex", "azure/GPT-6"] {
            assert!(patches(model), "{model}");
        }
        for model in ["openai/gpt-4o", "groq/gpt-oss-120b", "anthropic/claude", "x/my-egpt", ""] {
            assert!(!patches(model), "{model}");
        }
    }
}
