//! The end of the road: what hooks make of a result, and how much of it a model is given.

use crate::bound::{self, Limits};
use crate::hook::{self, Firing, Hook, Matter, Moment};
use crate::tool::{Caller, Failure};
use serde_json::Value;
use std::sync::Arc;
use windlass_protocol::{Display, Output};

/// How many files a result holds at most.
const MOST_FILES: usize = 16;

/// What ran, for the hooks that see what it gave.
pub(crate) struct Ran {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// Shows a result to the hooks, in order, and puts on record what they said.
pub(crate) async fn hooked(
    hooks: &[Arc<dyn Hook>],
    (moment, caller): (&Moment<'_>, &dyn Caller),
    Ran { tool, arguments }: Ran,
    output: Output,
) -> Result<Output, Failure> {
    let matter = Matter::After { tool, arguments, output };
    let (firings, heard) = hook::fire(hooks, moment, matter).await;
    tell(caller, firings).await;
    let stopped = match heard.map(|heard| heard.matter) {
        Ok(Matter::After { output, .. }) => return Ok(output),
        Ok(_) => return Err(Failure::new("The call ran, but its result was lost.")),
        Err(stopped) => stopped,
    };
    let hook::Stopped { hook, reason } = stopped;
    let text = format!("The call ran, but the hook {hook} withheld its result: {reason}");
    Err(Failure::new(text))
}

/// Puts on record what hooks said.
pub(crate) async fn tell(caller: &dyn Caller, firings: Vec<Firing>) {
    for firing in firings {
        caller.hooked(firing).await;
    }
}

/// A result within its limits. What is left out is kept where it can be read.
pub(crate) async fn bounded(mut output: Output, limits: Limits, caller: &dyn Caller) -> Output {
    output.title = short(&output.title, limits);
    output.display = match output.display {
        Display::Text => Display::Text,
        // Made from the text itself, so that it never says more than the model was given.
        Display::Terminal { .. } => {
            let coloured = bound::coloured(&output.text);
            // What is cut could be cut within a colour.
            let coloured = coloured.filter(|text| bound::cut(text, limits, "").is_none());
            Display::Terminal { coloured }
        }
        Display::Diff { unified } => Display::Diff { unified: short(&unified, limits) },
        Display::Checklist { mut items } => {
            for item in &mut items {
                item.content = short(&item.content, limits);
            }
            Display::Checklist { items }
        }
    };
    if serde_json::to_string(&output.metadata).map_or(0, |json| json.len()) > limits.bytes {
        output.metadata.clear();
    }
    output.attachments.truncate(MOST_FILES);
    for file in &mut output.attachments {
        file.name = short(&file.name, limits);
    }
    output.text = bound::plain(&output.text);
    if bound::cut(&output.text, limits, "").is_some() {
        let reference = match caller.keep(output.text.clone().into_bytes()).await {
            Ok(blob) => {
                let reference = format!("read blob:{}", blob.as_str());
                output.full = Some(blob);
                reference
            }
            Err(failure) => format!("lost, {failure}"),
        };
        if let Some(cut) = bound::cut(&output.text, limits, &reference) {
            output.text = cut;
        }
    }
    output
}

/// A text that steers no terminal, within its limits.
pub(crate) fn short(text: &str, limits: Limits) -> String {
    let text = bound::plain(text);
    bound::cut(&text, limits, "not kept").unwrap_or(text)
}
