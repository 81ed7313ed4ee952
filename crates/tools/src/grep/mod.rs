//! `grep`: searches file contents with a regex, in this process, with the same rules as ripgrep.
//!
//! [`search`] defines a search and its results, `pool` runs it on all cores and orders the results
//! by path, `worker` is the work of one thread, and `lines` turns matches into text. This file
//! defines the tool and renders a page of results.

mod matched_lines;
pub mod search;
mod search_threads;
mod stop_signal;
mod worker;

use crate::paging::{RESULTS_PER_PAGE, ResultTotal, page_footer, page_notes, results_to_skip};
use crate::read::{load_blob, parse_blob_path};
use async_trait::async_trait;
use schemars::JsonSchema;
use search::{GrepResultRange, GrepResults, GrepSearch, GrepSkippedFile};
use serde::Deserialize;
use std::borrow::Cow;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::{FileFilter, WorkingFolder};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// Results counted beyond a page before counting stops.
const MAX_COUNTED_BEYOND_PAGE: usize = 1_000;

/// Size limit of a page. A page ends early rather than being cut in the middle.
const MAX_PAGE_BYTES: usize = 48 * 1024;

/// The `grep` tool.
pub struct GrepTool;

/// Input of the `grep` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrepInput {
    /// The regex.
    pattern: String,
    /// File, folder or stored output (`blob:…`) to search; default is the workspace.
    path: Option<String>,
    /// Glob of the files to search, such as `*.{ts,tsx}`.
    include: Option<String>,
    /// Context lines before and after each match.
    #[schemars(range(max = 50))]
    context: Option<u8>,
    /// Format.
    #[serde(default)]
    mode: GrepMode,
    /// The first result to show, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
}

/// Output format of a search.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum GrepMode {
    /// The matching lines.
    #[default]
    Content,
    /// The files with a match.
    Files,
    /// Count of matching lines per file.
    Count,
}

impl GrepMode {
    fn result_nouns(self) -> [&'static str; 2] {
        match self {
            GrepMode::Content => ["match", "matches"],
            GrepMode::Files | GrepMode::Count => ["file", "files"],
        }
    }
}

impl GrepInput {
    fn search_path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

#[async_trait]
impl Tool for GrepTool {
    type Input = GrepInput;

    fn name(&self) -> &str {
        "grep"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Grep"]
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[("include", "glob")]
    }

    fn describe_call(&self, input: &GrepInput, root: &str) -> Option<CallDescription> {
        let object = crate::search_description(&input.pattern, input.path.as_deref(), root);
        Some(CallDescription::new("Search", "searching", object).covering_arguments())
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<GrepInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut GrepInput, folder: &WorkingFolder) {
        if input.path.as_deref().and_then(parse_blob_path).is_some() {
            return;
        }
        input.path = match &input.path {
            Some(path) => Some(folder.resolve(path).into_owned()),
            None => folder.path().map(Cow::into_owned),
        };
    }

    fn access(&self, input: &GrepInput) -> Vec<ToolAccess> {
        let path = input.search_path().to_owned();
        vec![match parse_blob_path(&path) {
            Some(_) => ToolAccess::ReadBlob { blob: path },
            None => ToolAccess::Search { path },
        }]
    }

    async fn run(&self, input: GrepInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let cancel = cx.cancel.clone();
        let stored_text = match parse_blob_path(input.search_path()) {
            Some(blob) => Some(load_blob(blob, cx).await?),
            None => None,
        };
        cx.run_blocking(move |workspace| {
            let search = GrepSearch {
                mode: input.mode,
                context: usize::from(input.context.unwrap_or(0).min(50)),
                file_filter: FileFilter { globs: input.include.iter().cloned().collect() },
                range: GrepResultRange {
                    skip: results_to_skip(input.offset)?,
                    limit: RESULTS_PER_PAGE,
                    count_beyond: MAX_COUNTED_BEYOND_PAGE,
                },
                ..GrepSearch::new(&input.pattern)?
            };
            if let Some(text) = stored_text {
                let results = search.run_on_text(input.search_path(), &text);
                let text = render_page(&input, &search, &results)?;
                let title = search.total(&results).describe(search.mode.result_nouns());
                return Ok(ToolOutput { title, text, ..ToolOutput::default() });
            }
            let walk = workspace.walk(input.search_path())?;
            let mut search_results = search.run(&walk, &|| cancel.is_cancelled())?;
            let folder = workspace.workspace().working_folder();
            for file in &mut search_results.files {
                file.path = folder.show(&file.path).into_owned();
            }
            if cancel.is_cancelled() {
                return Err(CallFailure::new("interrupted before the search was done"));
            }
            let text = render_page(&input, &search, &search_results)?
                + &page_notes(&walk.notes(), "folders were skipped");
            let title = search.total(&search_results).describe(search.mode.result_nouns());
            Ok(ToolOutput { title, text, ..ToolOutput::default() })
        })
        .await
    }
}

/// A page under construction.
#[derive(Default)]
struct GrepPage {
    text: String,
    shown_results: usize,
}

impl GrepPage {
    /// Returns true if `extra_bytes` do not fit. The first result is shown however long it is.
    fn is_full(&self, extra_bytes: usize) -> bool {
        self.shown_results > 0 && self.text.len() + extra_bytes > MAX_PAGE_BYTES
    }
}

impl GrepSearch {
    /// Returns the number of results, as far as they were counted.
    fn total(&self, search_results: &GrepResults) -> ResultTotal {
        match search_results.result_count < self.range.results_to_find() {
            true => ResultTotal::Exact(search_results.result_count),
            false => ResultTotal::MoreThan(self.range.results_to_find() - 1),
        }
    }
}

fn render_page(
    input: &GrepInput,
    search: &GrepSearch,
    search_results: &GrepResults,
) -> Result<String, CallFailure> {
    if search_results.result_count == 0 {
        return Ok(no_match_message(input, search_results)
            + &skipped_files_note(&search_results.skipped_files));
    }
    let (mut page, mut earlier_results) = (GrepPage::default(), 0);
    let GrepResultRange { skip, limit, .. } = search.range;
    for file_matches in &search_results.files {
        let results = file_matches.result_count(search.mode);
        let first = skip.saturating_sub(earlier_results).min(results);
        let last = skip.saturating_add(limit).saturating_sub(earlier_results).min(results);
        earlier_results += results;
        if first == last {
            continue;
        }
        let head = match search.mode {
            GrepMode::Content | GrepMode::Files => format!("{}\n", file_matches.path),
            GrepMode::Count => format!("{}: {}\n", file_matches.path, file_matches.match_count),
        };
        if page.is_full(head.len()) {
            break;
        }
        let file_start = page.text.len();
        page.text.push_str(&head);
        let written = match search.mode {
            GrepMode::Content => file_matches.lines.write_matches(first..last, &mut page),
            GrepMode::Files | GrepMode::Count => {
                page.shown_results += 1;
                1
            }
        };
        if written == 0 {
            page.text.truncate(file_start);
        }
        if written < last - first {
            break;
        }
    }
    let total = search.total(search_results);
    let footer = page_footer(skip, page.shown_results, total, search.mode.result_nouns())?;
    Ok(format!("{}{footer}", page.text).trim_end_matches('\n').to_owned()
        + &skipped_files_note(&search_results.skipped_files))
}

/// Returns the message for a search without results, with suggestions.
fn no_match_message(input: &GrepInput, search_results: &GrepResults) -> String {
    let location = match input.search_path() {
        "." => "the workspace",
        location => location,
    };
    if search_results.searched_files == 0 {
        return match &input.include {
            Some(include) => format!(
                "No file to search in {location} matches {include}. Hidden and ignored files are \
                 left out. Try another include, or omit it."
            ),
            None => {
                format!("No files to search in {location}. Hidden and ignored files are left out.")
            }
        };
    }
    let files = pluralize(search_results.searched_files, "file");
    let binary_note = match search_results.binary_files {
        0 => String::new(),
        count => format!(", {count} of them binary and left out"),
    };
    format!(
        "No match for {} in {location} ({files} searched{binary_note}). Try a shorter pattern, \
         (?i) before it to ignore case, or a wider path.",
        input.pattern
    )
}

/// Lists the files that were not searched to their end, with reasons.
fn skipped_files_note(skipped: &[GrepSkippedFile]) -> String {
    let skipped: Vec<String> =
        skipped.iter().map(|file| format!("{}: {}", file.path, file.reason)).collect();
    page_notes(&skipped, "files were not searched completely")
}

#[cfg(test)]
mod tests;
