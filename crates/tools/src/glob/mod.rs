//! `glob`: finds files by name pattern, newest first.

use crate::paging::{RESULTS_PER_PAGE, ResultTotal, page_footer, page_notes, results_to_skip};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::{FileFilter, FileWalk, FoundFile, WorkingFolder};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// The `glob` tool.
pub struct GlobTool;

/// Input of the `glob` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GlobInput {
    /// The glob.
    pattern: String,
    /// The folder to search; default is the workspace.
    path: Option<String>,
    /// The first result to show, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
}

impl GlobInput {
    fn folder(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

#[async_trait]
impl Tool for GlobTool {
    type Input = GlobInput;

    fn name(&self) -> &str {
        "glob"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Glob", "LS"]
    }

    fn describe_call(&self, input: &GlobInput, root: &str) -> Option<CallDescription> {
        let object = crate::search_description(&input.pattern, input.path.as_deref(), root);
        Some(CallDescription::new("Find", "finding", object).covering_arguments())
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<GlobInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut GlobInput, folder: &WorkingFolder) {
        input.path = match &input.path {
            Some(path) => Some(folder.resolve(path).into_owned()),
            None => folder.path().map(Cow::into_owned),
        };
    }

    fn access(&self, input: &GlobInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Search { path: input.folder().to_owned() }]
    }

    async fn run(&self, input: GlobInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let cancel = cx.cancel.clone();
        cx.run_blocking(move |workspace| {
            let skipped = results_to_skip(input.offset)?;
            let walk = workspace.walk(input.folder())?;
            let files = list_newest_first(&walk, &input, &|| cancel.is_cancelled())?;
            if cancel.is_cancelled() {
                return Err(CallFailure::new("interrupted before all files were listed"));
            }
            let folder = workspace.workspace().working_folder();
            let text = render_page(&input, &files, skipped, folder)?
                + &page_notes(&walk.notes(), "folders were skipped");
            let title = ResultTotal::Exact(files.len()).describe(["file", "files"]);
            Ok(ToolOutput { title, text, ..ToolOutput::default() })
        })
        .await
    }
}

/// Sort key: newest first, then by path for files of the same age.
type FileByAge = (Reverse<SystemTime>, String);

fn list_newest_first(
    walk: &FileWalk<'_>,
    input: &GlobInput,
    is_canceled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<FileByAge>, CallFailure> {
    let files = Mutex::new(Vec::new());
    let visit = |found: FoundFile<'_>| {
        // Skips files that are gone, or became links since the walk passed them.
        if let Ok(modified) = found.modified() {
            let entry = (Reverse(modified), found.into_path());
            files.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
    };
    let filter = FileFilter { globs: vec![input.pattern.clone()] };
    walk.visit_parallel(&filter, is_canceled, &visit)?;
    let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort_unstable();
    Ok(files)
}

fn render_page(
    input: &GlobInput,
    files: &[FileByAge],
    skipped: usize,
    folder: &WorkingFolder,
) -> Result<String, CallFailure> {
    if files.is_empty() {
        return Ok(format!(
            "No file in {} matches {}. Hidden and ignored files are left out. Try a wider pattern \
             or another path.",
            input.folder(),
            input.pattern
        ));
    }
    let page = files.iter().skip(skipped).take(RESULTS_PER_PAGE);
    let shown: Vec<Cow<'_, str>> = page.map(|(_, path)| folder.show(path)).collect();
    let footer =
        page_footer(skipped, shown.len(), ResultTotal::Exact(files.len()), ["file", "files"])?;
    Ok(format!("{}\n{footer}", shown.join("\n")).trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests;
