//! What a server lists: tools, prompts, resources. However much it lists, what is taken is bounded,
//! and a list that never ends is left.

use crate::call::{Broke, Terms};
use crate::link::Link;
use crate::prompt::PromptCard;
use crate::spec::PinnedTool;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use windlass_toolkit::foreign;

/// So many tools of a server are taken.
const TOOLS: usize = 1_000;
/// So many pages of a list are read.
const PAGES: usize = 100;
/// So many bytes of definitions are taken.
const BYTES: usize = 4 << 20;
/// So many prompts are taken.
const PROMPTS: usize = 200;
/// How long one page may take.
const PAGE: Duration = Duration::from_secs(30);

/// What was listed, and what of it was left out.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) tools: BTreeMap<String, PinnedTool>,
    pub(crate) left_out: Vec<String>,
}

/// Reads the list of tools.
pub(crate) async fn tools(link: &Link) -> Result<Listed, Broke> {
    let mut listed = Listed::default();
    let mut bytes = 0;
    let mut pages = Pages::default();
    while let Some(params) = pages.next() {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let ServerResult::ListToolsResult(page) =
            link.request(request, &Terms::quiet(PAGE)).await?
        else {
            return Err(Broke::Odd);
        };
        for tool in page.tools {
            let definition = definition(&tool);
            bytes += definition.to_string().len();
            if listed.tools.len() >= TOOLS || bytes > BYTES {
                listed.left_out.push("it lists more tools than are taken".into());
                return Ok(listed);
            }
            let name = tool.name.into_owned();
            let digest = foreign::digest(&definition);
            listed.tools.insert(name.clone(), PinnedTool { name, digest, definition });
        }
        pages.read(page.next_cursor);
    }
    Ok(listed)
}

/// Reads the list of prompts.
pub(crate) async fn prompts(link: &Link) -> Result<Vec<PromptCard>, Broke> {
    let mut cards = Vec::new();
    let mut pages = Pages::default();
    while let Some(params) = pages.next() {
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        let result = link.request(request, &Terms::quiet(PAGE)).await?;
        let ServerResult::ListPromptsResult(page) = result else { return Err(Broke::Odd) };
        cards.extend(page.prompts.iter().map(PromptCard::of).take(PROMPTS - cards.len()));
        if cards.len() >= PROMPTS {
            break;
        }
        pages.read(page.next_cursor);
    }
    Ok(cards)
}

/// The pages of a list. One that leads back to itself ends there.
#[derive(Default)]
pub(crate) struct Pages {
    seen: HashSet<String>,
    count: usize,
    next: Option<String>,
    done: bool,
}

impl Pages {
    /// What asks for the next page, if there is one.
    pub(crate) fn next(&mut self) -> Option<PaginatedRequestParams> {
        if self.done || self.count >= PAGES {
            return None;
        }
        self.count += 1;
        Some(PaginatedRequestParams::default().with_cursor(self.next.take()))
    }

    /// A page was read, and names the one after it.
    pub(crate) fn read(&mut self, next: Option<String>) {
        match next {
            Some(next) if self.seen.insert(next.clone()) => self.next = Some(next),
            Some(_) | None => self.done = true,
        }
    }
}

/// What of a tool is looked at: everything that is told to a model or decides what a call does.
fn definition(tool: &Tool) -> Value {
    let mut definition = Map::new();
    definition.insert("name".into(), json!(tool.name));
    if let Some(title) = &tool.title {
        definition.insert("title".into(), json!(title));
    }
    if let Some(description) = &tool.description {
        definition.insert("description".into(), json!(description));
    }
    definition.insert("inputSchema".into(), Value::Object((*tool.input_schema).clone()));
    if let Some(annotations) = &tool.annotations {
        definition.insert("annotations".into(), json!(annotations));
    }
    Value::Object(definition)
}
