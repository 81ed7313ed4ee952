//! What a call means: which tool, and with what. Nothing is decided here, and nothing touched.
//!
//! A call of a tool that stands for another is that other call from here on: hooks, rules and
//! records are the other's.

use crate::hook::{self, Firing, Matter};
use crate::registry::{Entry, Snapshot};
use crate::road::{Call, Runtime};
use crate::tool::{AnyTool, Prepared};
use crate::{repair, schema};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_protocol::{Author, Outcome, Repair};

/// The tool that answers calls which name no tool or make no sense.
pub const INVALID: &str = "invalid";

/// A call whose tool and arguments are known.
pub(crate) struct Understood {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) arguments: Value,
    pub(crate) prepared: Box<dyn Prepared>,
    pub(crate) repaired: Option<Repair>,
    /// Why a hook wants a person to be asked, if one does.
    pub(crate) ask: Option<String>,
}

/// A call behind another one.
struct Unwrapped<'a> {
    entry: &'a Entry,
    arguments: Value,
    changes: Vec<String>,
    /// The name of the tool it was written with, if that is another.
    through: Option<String>,
}

impl Runtime {
    /// A call that makes sense: which tool it means, and with what. No rule denies the tool as such.
    pub(crate) async fn understood(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        firings: &mut Vec<Firing>,
    ) -> Result<Understood, Outcome> {
        let failed = |text: String| Outcome::Failed { text: self.short(&text) };
        let Unwrapped { entry, arguments: meant, mut changes, through } =
            self.unwrapped(snapshot, call).map_err(|outcome| *outcome)?;
        let tool = Arc::clone(&entry.tool);
        let name = tool.name().to_owned();
        let matter = Matter::Before { tool: name.clone(), arguments: meant.clone() };
        let folder = self.folder();
        let (fired, heard) = hook::fire(&self.hooks, &self.moment(call, &folder), matter).await;
        firings.extend(fired);
        let heard =
            heard.map_err(|stopped| Outcome::Denied { text: self.short(&stopped.to_string()) })?;
        let (ask, arguments) = match heard.matter {
            Matter::Before { arguments, .. } => (heard.ask, arguments),
            _ => (heard.ask, meant.clone()),
        };
        // What is recorded is what runs, also where a hook had the last word.
        if arguments != meant {
            changes.push("a hook changed the arguments".into());
        }
        let repaired = (!changes.is_empty()).then(|| Repair {
            arguments: match through {
                Some(_) => json!({"name": name, "arguments": arguments}).to_string(),
                None => arguments.to_string(),
            },
            changes: changes.iter().map(|change| self.short(change)).collect(),
        });
        schema::validate(&name, &entry.definition, &arguments)
            .map_err(|failure| failed(failure.text))?;
        let prepared =
            Arc::clone(&tool).prepare(arguments.clone()).map_err(|failure| failed(failure.text))?;
        if let Some(through) = through.filter(|_| prepared.parts().is_some()) {
            let text = format!("{name} is not called through {through}; call it by itself.");
            return Err(failed(text));
        }
        Ok(Understood { tool, arguments, prepared, repaired, ask })
    }

    /// The call that is meant in the end.
    fn unwrapped<'a>(
        &self,
        snapshot: &'a Snapshot,
        call: &Call,
    ) -> Result<Unwrapped<'a>, Box<Outcome>> {
        let failed = |text: String| Box::new(Outcome::Failed { text: self.short(&text) });
        let outer = self.meant(snapshot, (call.by, &call.tool, &call.arguments))?;
        let Some(part) = outer.entry.tool.stands_for(&outer.arguments) else { return Ok(outer) };
        let through = outer.entry.tool.name();
        let inner = self.meant(snapshot, (call.by, &part.tool, &part.arguments))?;
        let name = inner.entry.tool.name();
        let nested = inner.entry.tool.stands_for(&inner.arguments).is_some() || name == through;
        if nested || part.tool == INVALID {
            let text = format!("{name} is not called through {through}; call it by itself.");
            return Err(failed(text));
        }
        // What makes no sense is answered as if it had been written without a wrapping.
        let through = (name != INVALID).then(|| through.to_owned());
        let changes = outer.changes.into_iter().chain(inner.changes).collect();
        Ok(Unwrapped { through, changes, ..inner })
    }

    /// The tool that is meant, which is there and which no rule denies.
    fn meant<'a>(
        &self,
        snapshot: &'a Snapshot,
        written: (Author, &str, &str),
    ) -> Result<Unwrapped<'a>, Box<Outcome>> {
        let failed = |text: String| Box::new(Outcome::Failed { text: self.short(&text) });
        let Meaning { name, arguments, repaired: changes } = understand(snapshot, written);
        let Some(entry) = snapshot.exactly(&name) else {
            return Err(failed(format!("There is no tool {name}.")));
        };
        let tool = &entry.tool;
        // A rule may name the tool or its key, and holds whatever the call would touch.
        for name in [tool.name(), tool.key()] {
            if self.policy.denies_outright(name) {
                let text = format!("This call is not permitted: a rule denies {name}.");
                return Err(Box::new(Outcome::Denied { text }));
            }
        }
        if self.policy.lacks(tool.name()) {
            let text = format!("This call is not permitted: this agent works without {name}.");
            return Err(Box::new(Outcome::Denied { text }));
        }
        if !self.registry.still_has(tool) {
            let text = format!("{name} has changed since it was offered; look at it anew.");
            return Err(failed(text));
        }
        Ok(Unwrapped { entry, arguments, changes, through: None })
    }
}

/// What a call means.
struct Meaning {
    name: String,
    arguments: Value,
    repaired: Vec<String>,
}

/// The tool and arguments a call means; what makes no sense becomes a call of `invalid`.
fn understand(snapshot: &Snapshot, (by, tool, arguments): (Author, &str, &str)) -> Meaning {
    let invalid = |error: String| Meaning {
        name: INVALID.to_owned(),
        arguments: json!({"tool": tool, "error": error}),
        repaired: Vec::new(),
    };
    let found = match by {
        Author::Model => snapshot.find(tool),
        Author::Person => snapshot.find(tool).or_else(|| snapshot.exactly(tool)),
    };
    let Some(entry) = found else {
        let nearest = snapshot.nearest(tool).join(", ");
        return invalid(format!("There is no tool of this name. There is: {nearest}"));
    };
    let mut read = match repair::read(arguments) {
        Ok(read) => read,
        Err(why) => return invalid(format!("The arguments are not JSON: {why}")),
    };
    repair::coerce(&entry.definition.schema, &mut read.value, &mut read.changes);
    let name = entry.tool.name().to_owned();
    if name != tool {
        read.changes.insert(0, format!("the name was `{}`", repair::short(tool)));
    }
    Meaning { name, arguments: read.value, repaired: read.changes }
}
