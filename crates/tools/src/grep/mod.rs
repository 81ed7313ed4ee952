//! `grep`: what files hold, searched in this process as ripgrep would.
//!
//! [`search`] finds, on all cores, and puts what it found into the order of paths; `worker` is what one
//! core does, `lines` turns matches into text; here is the tool, and what a page of results looks like.

use crate::paging::{PAGE, Total, footer, remarks, skipped};
use async_trait::async_trait;
use schemars::JsonSchema;
use search::{Extent, Gap, Harvest, Search};
use serde::Deserialize;
use windlass_protocol::text::counted;
use windlass_protocol::{Access, Output};
use windlass_sandbox::Wanted;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

mod lines;
pub mod search;
mod worker;

/// How many results are counted beyond a page before counting stops.
const BEYOND: usize = 1_000;

/// How long a page may be. Above it, a page ends early rather than being cut in its middle.
const PAGE_BYTES: usize = 48 * 1024;

/// The tool.
pub struct Grep;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The expression.
    pattern: String,
    /// The file or folder to search; the workspace if not given.
    path: Option<String>,
    /// A glob of the files to search, such as `*.{ts,tsx}`.
    include: Option<String>,
    /// How many lines to show before and after each match.
    #[schemars(range(max = 50))]
    context: Option<u8>,
    /// The form.
    #[serde(default)]
    mode: Mode,
    /// The first result to show, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
}

/// What is shown of the matches.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Mode {
    /// The matching lines.
    #[default]
    Content,
    /// The files that hold a match.
    Files,
    /// How many lines match in each file.
    Count,
}

impl Mode {
    fn results(self) -> [&'static str; 2] {
        match self {
            Mode::Content => ["match", "matches"],
            Mode::Files | Mode::Count => ["file", "files"],
        }
    }
}

impl Input {
    fn place(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

#[async_trait]
impl Tool for Grep {
    type Input = Input;

    fn name(&self) -> &str {
        "grep"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Search { path: input.place().to_owned() }]
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let cancel = cx.cancel.clone();
        cx.blocking(move |world| {
            let search = Search {
                mode: input.mode,
                context: usize::from(input.context.unwrap_or(0).min(50)),
                wanted: Wanted { globs: input.include.iter().cloned().collect() },
                extent: Extent { skipped: skipped(input.offset)?, shown: PAGE, beyond: BEYOND },
                ..Search::new(&input.pattern)?
            };
            let tree = world.tree(input.place())?;
            let harvest = search.run(&tree, &|| cancel.is_cancelled())?;
            if cancel.is_cancelled() {
                return Err(Failure::new("interrupted before the search was done"));
            }
            let text = render(&input, &search, &harvest)?
                + &remarks(&tree.notes(), "folders were left out");
            Ok(Output { title: input.pattern, text, ..Output::default() })
        })
        .await
    }
}

/// A page as it grows.
#[derive(Default)]
struct Page {
    text: String,
    shown: usize,
}

impl Page {
    /// True if there is no room for more. The first result is shown however long it is.
    fn is_full(&self, more: usize) -> bool {
        self.shown > 0 && self.text.len() + more > PAGE_BYTES
    }
}

fn render(input: &Input, search: &Search, harvest: &Harvest) -> Result<String, Failure> {
    if harvest.found == 0 {
        return Ok(nothing(input, harvest) + &left_out(&harvest.gaps));
    }
    let (mut page, mut passed) = (Page::default(), 0);
    let Extent { skipped, shown, .. } = search.extent;
    for hits in &harvest.files {
        let results = hits.results(search.mode);
        let first = skipped.saturating_sub(passed).min(results);
        let last = skipped.saturating_add(shown).saturating_sub(passed).min(results);
        passed += results;
        if first == last {
            continue;
        }
        let head = match search.mode {
            Mode::Content | Mode::Files => format!("{}\n", hits.path),
            Mode::Count => format!("{}: {}\n", hits.path, hits.matches),
        };
        if page.is_full(head.len()) {
            break;
        }
        let before = page.text.len();
        page.text.push_str(&head);
        let written = match search.mode {
            Mode::Content => hits.lines.write(first..last, &mut page),
            Mode::Files | Mode::Count => {
                page.shown += 1;
                1
            }
        };
        if written == 0 {
            page.text.truncate(before);
        }
        if written < last - first {
            break;
        }
    }
    let total = match harvest.found < search.extent.goal() {
        true => Total::Exactly(harvest.found),
        false => Total::MoreThan(search.extent.goal() - 1),
    };
    let footer = footer(skipped, page.shown, total, search.mode.results())?;
    Ok(format!("{}{footer}", page.text).trim_end_matches('\n').to_owned()
        + &left_out(&harvest.gaps))
}

/// What to say, and what to try, where nothing was found.
fn nothing(input: &Input, harvest: &Harvest) -> String {
    let place = match input.place() {
        "." => "the workspace",
        place => place,
    };
    if harvest.searched == 0 {
        return match &input.include {
            Some(include) => format!(
                "There is no file to search in {place} that matches {include}. Hidden and ignored \
                 files are left out. Try another include, or none."
            ),
            None => format!(
                "There is no file to search in {place}. Hidden and ignored files are left out."
            ),
        };
    }
    let files = counted(harvest.searched, "file");
    let binary = match harvest.binary {
        0 => String::new(),
        count => format!(", {count} of them binary and left out"),
    };
    format!(
        "No match for {} in {place} ({files} searched{binary}). Try a shorter pattern, (?i) before it to \
         ignore case, or a wider path.",
        input.pattern
    )
}

/// Which files could not be searched to their end, and why.
fn left_out(gaps: &[Gap]) -> String {
    let gaps: Vec<String> =
        gaps.iter().map(|gap| format!("{}: {}", gap.path, gap.reason)).collect();
    remarks(&gaps, "files were not searched to their end")
}

#[cfg(test)]
mod tests;
