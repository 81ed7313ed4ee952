//! A server's tool as one of ours. It stands for one definition: what the server says now must be
//! what was looked at, or somebody is asked with the difference in front of them.
//!
//! What a server says of its own harmlessness counts for nothing here; that a call may be repeated
//! only decides whether it is, once, when the connection was lost.

use crate::call::told;
use crate::content::{output, pretty};
use crate::server::Server;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool, bound, foreign};

/// How a definition stands to the one that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is that one.
    Same,
    /// It was another.
    Changed,
    /// There was none.
    New,
}

/// When a model is told of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At once.
    Listed,
    /// Once it has found it.
    Found,
}

/// A server's tool.
pub(crate) struct Foreign {
    pub(crate) server: Arc<Server>,
    pub(crate) name: String,
    /// What the server calls it.
    pub(crate) remote: String,
    /// What a model is told.
    pub(crate) told: Definition,
    pub(crate) place: Place,
    pub(crate) standing: Standing,
    /// Names the definition it stands for.
    pub(crate) digest: String,
    /// That definition.
    pub(crate) live: Value,
    /// The one that was looked at, if it is another.
    pub(crate) pinned: Option<Value>,
}

impl Foreign {
    /// The first part of a digest, which is enough to name a definition to a person.
    fn mark(&self) -> String {
        let digest: String = self.digest.chars().take(16).collect();
        format!("{}@{digest}", self.name)
    }

    /// The server says that a call does nothing more when it is repeated.
    fn repeats(&self) -> bool {
        self.live.pointer("/annotations/idempotentHint") == Some(&Value::Bool(true))
    }
}

/// What a model is told of a definition; why not, if its schema cannot be.
pub(crate) fn definition(definition: &Value) -> Result<Definition, String> {
    let text = |key: &str| definition.get(key).and_then(Value::as_str).map(str::trim);
    let title = text("title").or_else(|| {
        definition.pointer("/annotations/title").and_then(Value::as_str).map(str::trim)
    });
    let (title, body) = (title.unwrap_or_default(), text("description").unwrap_or_default());
    let whole = match (title.is_empty(), body.is_empty()) {
        (true, _) => body.to_owned(),
        (false, true) => title.to_owned(),
        (false, false) if body.starts_with(title) => body.to_owned(),
        (false, false) => format!("{title}. {body}"),
    };
    let plain = bound::plain(&whole);
    let schema = foreign::tame(definition.get("inputSchema").unwrap_or(&Value::Null))?;
    Ok(Definition { description: foreign::shortened(&plain).to_owned(), schema })
}

/// What is different in a definition; all of it, if there was none.
pub(crate) fn difference(before: Option<&Value>, after: &Value) -> String {
    let after = pretty(after);
    let Some(before) = before.map(pretty) else { return after };
    let difference = similar::TextDiff::from_lines(&before, &after);
    difference.unified_diff().context_radius(2).to_string().trim_end().to_owned()
}

#[async_trait]
impl Tool for Foreign {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn batched(&self) -> bool {
        false
    }

    fn listed(&self) -> bool {
        self.place == Place::Listed
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        self.told.clone()
    }

    fn access(&self, _input: &Map<String, Value>) -> Vec<Access> {
        let mut accesses = vec![Access::Use { tool: self.name.clone() }];
        match self.standing {
            Standing::Same => {}
            Standing::Changed | Standing::New => {
                accesses.push(Access::Accept { what: self.mark() })
            }
        }
        accesses
    }

    async fn preview(
        &self,
        input: &Map<String, Value>,
        _cx: &Cx<'_>,
    ) -> Result<Option<String>, Failure> {
        let mut text = String::new();
        let server = self.server.name();
        let happened = match (self.standing, &self.pinned) {
            (Standing::Same, _) => None,
            (Standing::Changed | Standing::New, Some(_)) => {
                Some(format!("{server} has changed what {} is:", self.name))
            }
            (Standing::Changed | Standing::New, None) => {
                Some(format!("{server} brings {} since you last looked:", self.name))
            }
        };
        if let Some(happened) = happened {
            let difference = difference(self.pinned.as_ref(), &self.live);
            text.push_str(&format!("{happened}\n{difference}\n\n"));
        }
        Ok(Some(foreign::preview(&text, input)))
    }

    async fn run(&self, input: Map<String, Value>, cx: &Cx<'_>) -> Result<Output, Failure> {
        let result = self.server.call(self, input, cx).await?;
        output(&self.name, result, cx.caller).await
    }
}

impl Foreign {
    /// Whether a call that the server would answer now is the one that was agreed to.
    pub(crate) fn check(&self, live: Option<&str>) -> Result<(), Failure> {
        match live {
            Some(live) if live == self.digest => Ok(()),
            Some(_) => Err(Failure::new(format!(
                "{} has changed what {} is since it was looked at, so it was not called. Call it \
                 again: the person is asked then. Without one, they run `windlass mcp tools {} \
                 --accept`.",
                self.server.name(),
                self.name,
                self.server.name()
            ))),
            None => Err(Failure::new(format!(
                "{} no longer has {}. Use another tool.",
                self.server.name(),
                told(&self.remote)
            ))),
        }
    }

    /// The call may be sent once more if its connection was lost.
    pub(crate) fn may_repeat(&self) -> bool {
        self.repeats()
    }
}
