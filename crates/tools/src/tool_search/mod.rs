//! `tool_search`: tools that others bring and that there was no room to tell of, found by what they
//! say of themselves.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::text::beginning;
use windlass_protocol::{Access, Output, ToolSummary};
use windlass_toolkit::bound::plain;
use windlass_toolkit::{Cx, Definition, Failure, Found, Scene, Tool};

/// How many tools are shown, if not told otherwise.
const SHOWN: u8 = 5;
/// How many bytes all of them take, and how many characters what one says of itself.
const LONGEST: usize = 16 * 1024;
const WORDS: usize = 1_000;
/// How many bytes the list of those who bring tools takes in the description, and how many
/// characters one of them.
const BUDGET: usize = 700;
const LINE: usize = 100;

/// The tool.
pub struct ToolSearch;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// What the tool should do, or its name.
    query: String,
    /// How many are shown; 5 if not given.
    #[schemars(range(min = 1, max = 10))]
    limit: Option<u8>,
}

#[async_trait]
impl Tool for ToolSearch {
    type Input = Input;

    fn name(&self) -> &str {
        "tool_search"
    }

    /// Where a model is told of everything, there is nothing to find.
    fn offered(&self, scene: &Scene) -> bool {
        !scene.elsewhere.is_empty()
    }

    async fn describe(&self, scene: &Scene) -> Definition {
        let mut definition = Definition::of::<Input>(include_str!("description.md"));
        definition.description.push_str(&sources(&scene.elsewhere));
        definition
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let limit = input.limit.unwrap_or(SHOWN);
        let found = cx.find_tools(&input.query, limit.into()).await;
        Ok(Output { title: plain(&input.query), text: text(found), ..Output::default() })
    }
}

/// What was found, as a model reads it.
fn text(found: Found) -> String {
    let Found { tools, mut more, missing } = found;
    let mut text = String::new();
    for tool in &tools {
        let shown = card(tool);
        // The first one is shown whatever it takes: what is too long is cut like any result.
        if !text.is_empty() && text.len() + shown.len() > LONGEST {
            more += 1;
            continue;
        }
        text.push_str(&shown);
    }
    match tools.is_empty() {
        true => {
            text.push_str("No tool fits. Try other words: what it does, or what it is about.\n")
        }
        false => text.push_str("Call one with call_tool {\"name\": …, \"arguments\": {…}}.\n"),
    }
    if more > 0 {
        text.push_str(&format!("{more} more fit; search with more words to see them.\n"));
    }
    for missing in missing {
        let why = beginning(&plain(&missing), WORDS);
        text.push_str(&format!("Not looked through, because it is not there: {why}\n"));
    }
    text
}

fn card(tool: &ToolSummary) -> String {
    let words = plain(&tool.description);
    let words: Vec<&str> = words.lines().map(str::trim_end).collect();
    let words = beginning(words.join("\n").trim(), WORDS);
    format!("{} — {words}\n{}\n\n", tool.name, tool.schema)
}

/// Who brings tools, as far as there is room.
fn sources(elsewhere: &[String]) -> String {
    let mut list = String::new();
    let mut left = elsewhere.len();
    for line in elsewhere {
        let line = plain(line);
        let line: Vec<&str> = line.split_whitespace().collect();
        let line = format!("\n- {}", beginning(&line.join(" "), LINE));
        if list.len() + line.len() > BUDGET {
            break;
        }
        list.push_str(&line);
        left -= 1;
    }
    if left > 0 {
        list.push_str(&format!("\n({left} more are not listed)"));
    }
    list
}

#[cfg(test)]
mod tests;
