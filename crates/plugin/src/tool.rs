//! Custom tools: what a program says of itself, and its calls on the one road.
//!
//! What a tool declares to touch is what rules are asked about, and what its process is held to: one
//! that declares to look at most runs where nothing can be changed and no host be reached. Whoever
//! declares nothing may do what a command may, and is asked about as a whole.

use crate::program::{Cage, Errand, Manner, Network, Program};
use crate::reply::{File, Reply};
use crate::terms::Wishes;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{Access, Attachment, Display, Output};
use windlass_sandbox::{Hold, Hosts};
use windlass_toolkit::{Budget, Cx, Definition, Failure, Scene, Tool, foreign};

/// How many tools one program may bring.
const MOST: usize = 64;
/// How many paths one argument may name.
const PATHS: usize = 200;

/// A tool that a program answers for.
pub struct CustomTool {
    name: String,
    definition: Definition,
    declared: Option<Declared>,
    timeout: Option<Duration>,
    manner: Manner,
    listing: Listing,
    program: Arc<Program>,
}

/// Whether a model is told of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// At once.
    Told,
    /// It finds it: there was no room, or the others had been told of when it came.
    Found,
}

#[derive(Deserialize)]
struct Described {
    name: Option<String>,
    #[serde(default)]
    description: String,
    schema: Option<Value>,
    access: Option<Declared>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    parallel: Option<bool>,
}

/// What a tool says it touches. A word that is not known here could mean anything, so it is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    edit: Vec<String>,
    #[serde(default)]
    network: Vec<String>,
}

impl Declared {
    /// True if it can only look.
    fn is_quiet(&self) -> bool {
        self.edit.is_empty() && self.network.is_empty()
    }
}

impl Program {
    /// The tools of what it says of itself, and what is wrong with others. They are told of at once
    /// if all of them fit into the budget; without one they are found.
    pub fn tools(
        self: &Arc<Program>,
        described: &Value,
        budget: Option<&mut Budget>,
    ) -> (Vec<CustomTool>, Vec<String>) {
        let several = described.get("tools").and_then(Value::as_array);
        let each: Vec<&Value> = match several {
            Some(several) => several.iter().collect(),
            None => vec![described],
        };
        let (mut tools, mut notes): (Vec<CustomTool>, Vec<String>) = Default::default();
        if each.len() > MOST {
            notes.push(format!("{}: only the first {MOST} tools count", self.name()));
        }
        for one in each.into_iter().take(MOST) {
            match self.tool(one) {
                Ok(tool) if tools.iter().any(|other| other.name == tool.name) => {
                    notes.push(format!("{}: {} is described twice", self.name(), tool.name));
                }
                Ok(tool) => {
                    notes.extend(tool.unmet());
                    tools.push(tool);
                }
                Err(why) => {
                    notes.push(format!("{} brings a tool that is left out: {why}", self.name()))
                }
            }
        }
        let each = tools.iter().map(|tool| (tool.name.as_str(), &tool.definition));
        if budget.is_some_and(|budget| budget.lists(each)) {
            tools.iter_mut().for_each(|tool| tool.listing = Listing::Told);
        }
        (tools, notes)
    }

    fn tool(self: &Arc<Program>, one: &Value) -> Result<CustomTool, String> {
        let said = Described::deserialize(one).map_err(|error| error.to_string())?;
        let stem = self.name();
        let name = said.name.unwrap_or_else(|| stem.to_owned());
        let own = name.strip_prefix(stem);
        if !own.is_some_and(|rest| rest.is_empty() || rest.starts_with('_')) {
            return Err(format!("its name is {name:?}, and only {stem} and {stem}_… are its own"));
        }
        if said.description.trim().is_empty() {
            return Err("it has no description, so no model would know what it is for".into());
        }
        let schema = said.schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let schema = foreign::tame(&schema)?;
        if let Some(declared) = &said.access {
            Hosts::parse(&declared.network).map_err(|error| error.to_string())?;
        }
        let description = foreign::shortened(said.description.trim()).to_owned();
        Ok(CustomTool {
            name,
            definition: Definition { description, schema },
            declared: said.access,
            timeout: said.timeout_ms.map(|ms| Duration::from_millis(ms.max(1))),
            manner: match said.parallel {
                Some(true) => Manner::Together,
                Some(false) | None => Manner::OneByOne,
            },
            listing: Listing::Found,
            program: Arc::clone(self),
        })
    }
}

impl CustomTool {
    /// What it wants and does not get.
    fn unmet(&self) -> Option<String> {
        let named = &self.declared.as_ref()?.network;
        let (hosts, whose) = match &self.program.terms().wishes {
            Wishes::Granted => return None,
            Wishes::Shown(shown) if named.iter().all(|host| shown.contains(host)) => return None,
            Wishes::Shown(_) => {
                (named, "a plugin's tool reaches only what its manifest asks for and")
            }
            Wishes::Held => (named, "a project's tool reaches only"),
        };
        (!hosts.is_empty()).then(|| {
            format!(
                "{} wants to reach {}; {whose} what `sandbox.network` in your own config names",
                self.name,
                hosts.join(", ")
            )
        })
    }

    fn cage(&self) -> Cage {
        match &self.declared {
            None => Cage { hold: Hold::Write, network: Network::Usual },
            Some(declared) => Cage {
                hold: if declared.edit.is_empty() { Hold::Read } else { Hold::Write },
                network: match declared.network.is_empty() {
                    true => Network::Shut,
                    false => Network::Named(declared.network.clone()),
                },
            },
        }
    }

    async fn output(&self, reply: Reply, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Reply { text, title, metadata, files } = reply;
        let mut attachments = Vec::with_capacity(files.len());
        for File { name, mime, bytes } in files {
            attachments.push(Attachment { name, mime, blob: cx.caller.keep(bytes).await? });
        }
        let title = if title.is_empty() { self.name.clone() } else { title };
        Ok(Output { title, text, display: Display::Text, metadata, full: None, attachments })
    }
}

#[async_trait]
impl Tool for CustomTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn batched(&self) -> bool {
        self.declared.as_ref().is_some_and(Declared::is_quiet)
    }

    fn listed(&self) -> bool {
        self.listing == Listing::Told
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        self.definition.clone()
    }

    fn access(&self, input: &Self::Input) -> Vec<Access> {
        let whole = Access::Use { tool: self.name.clone() };
        let Some(declared) = &self.declared else { return vec![whole] };
        let read = declared.read.iter().flat_map(|pattern| named(pattern, input));
        let edit = declared.edit.iter().flat_map(|pattern| named(pattern, input));
        let mut accesses: Vec<Access> = read.map(|path| Access::Read { path }).collect();
        accesses.extend(edit.map(|path| Access::Edit { path }));
        if !declared.is_quiet() {
            accesses.push(whole);
        } else if accesses.is_empty() {
            accesses.push(Access::Search { path: ".".into() });
        }
        accesses
    }

    async fn preview(&self, input: &Self::Input, _cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        Ok(Some(foreign::preview("", input)))
    }

    async fn run(&self, input: Self::Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let errand = Errand {
            tool: &self.name,
            arguments: Value::Object(input),
            cage: self.cage(),
            timeout: self.timeout,
            manner: self.manner,
        };
        let reply = self.program.call(errand, cx).await?;
        self.output(reply, cx).await
    }
}

/// The paths that a pattern such as `src/{file}` means: with each value of the argument, none if the
/// call does not have it.
fn named(pattern: &str, input: &Map<String, Value>) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((name, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let values: Vec<String> = match input.get(name) {
        Some(Value::Array(list)) => list.iter().take(PATHS).filter_map(text).collect(),
        Some(value) => text(value).into_iter().collect(),
        None => Vec::new(),
    };
    let mut paths = Vec::new();
    for value in values {
        // What stands in a value is no pattern; only what the tool wrote behind it is.
        let ends = named(after, input);
        paths.extend(ends.into_iter().map(|end| format!("{before}{value}{end}")));
        if paths.len() >= PATHS {
            break;
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(pattern: &str, input: Value) -> Vec<String> {
        let Value::Object(input) = input else { panic!() };
        named(pattern, &input)
    }

    #[test]
    fn a_pattern_names_what_the_arguments_say() {
        assert_eq!(paths("a/b", json!({})), ["a/b"]);
        assert_eq!(paths("{p}", json!({"p": "x y"})), ["x y"]);
        assert_eq!(paths("{p}", json!({"p": ["x", 1, null, {}]})), ["x", "1"]);
        assert_eq!(paths("in/{p}/{q}.md", json!({"p": "x", "q": 7})), ["in/x/7.md"]);
        assert!(paths("{p}", json!({})).is_empty());
        assert_eq!(paths("{p}", json!({"p": "{q}", "q": "no"})), ["{q}"], "a value is no pattern");
        assert_eq!(paths("{p", json!({"p": "x"})), ["{p"]);
        let many: Vec<u32> = (0..1_000).collect();
        assert_eq!(paths("{p}", json!({"p": many})).len(), PATHS);
    }

    #[test]
    fn an_unknown_word_of_access_is_not_passed_over() {
        assert!(serde_json::from_value::<Declared>(json!({"read": [], "write": ["x"]})).is_err());
        assert!(serde_json::from_value::<Declared>(json!({"read": []})).unwrap().is_quiet());
    }
}
